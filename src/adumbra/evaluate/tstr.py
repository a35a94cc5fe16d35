"""NOT FOR RELEASE: train on synthetic rows, test on real ones.

Logistic regression (numbers standardised, categories one-hot, C=0.1), boosted trees, ridge regression
for a numeric target: the protocol of the comparison with peers, so that figures stand side by side.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score

from adumbra.errors import InvalidInput
from adumbra.evaluate.utility import STAMP, schema_values
from adumbra.numerics import Array, Ints
from adumbra.schema.schema import Schema

_LEAST_SPREAD = 1e-3  # of the declared range: a constant column stays near 0
__all__ = ["STAMP", "Scores", "boosted", "class_scores", "design_matrix", "logistic", "matrix", "ridge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores on real rows; the area under the curve is the mean over classes, one against the rest."""

    auc: float
    balanced_accuracy: float


def matrix(table: pa.Table, schema: Schema) -> tuple[Array, Array]:
    """Schema values of a table without its label, and the label's values."""
    index = schema.label_index
    if index is None:
        raise InvalidInput("label is absent: training needs one; declare it in the schema")
    values = schema_values(table, schema)
    return np.delete(values, index, axis=1), values[:, index]


def design_matrix(x: Array, schema: Schema, fitted: Array) -> Array:
    """Numbers standardised by the training rows (`fitted`), categories one-hot."""
    parts = []
    columns = [c for i, c in enumerate(schema.columns) if i != schema.label_index]
    for place, column in enumerate(columns):
        values = x[:, place : place + 1]
        if column.is_numeric or column.levels <= 2:
            spread = max(
                float(fitted[:, place].std()), _LEAST_SPREAD * (column.limits[1] - column.limits[0])
            )
            parts.append((values - fitted[:, place].mean()) / spread)
        else:
            parts.append((values == np.arange(column.levels)).astype(np.float64))
    return np.hstack(parts)


def logistic(synthetic: pa.Table, real: pa.Table, schema: Schema) -> Scores:
    """Logistic regression trained on synthetic rows."""
    (x, y), (u, v) = matrix(synthetic, schema), matrix(real, schema)
    model = LogisticRegression(max_iter=200, C=0.1)
    return class_scores(model, (design_matrix(x, schema, x), y), (design_matrix(u, schema, x), v))


def boosted(synthetic: pa.Table, real: pa.Table, schema: Schema) -> Scores:
    """Boosted trees trained on synthetic rows; categories as codes."""
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    return class_scores(model, matrix(synthetic, schema), matrix(real, schema))


def ridge(synthetic: pa.Table, real: pa.Table, schema: Schema) -> float:
    """R^2 on real rows of ridge regression trained on synthetic rows (a numeric target)."""
    (x, y), (u, v) = matrix(synthetic, schema), matrix(real, schema)
    model = Ridge(alpha=1.0).fit(design_matrix(x, schema, x), y)
    return float(r2_score(v, model.predict(design_matrix(u, schema, x))))


def class_scores(model: object, train: tuple[Array, Array], test: tuple[Array, Array]) -> Scores:
    """Train a classifier on the first rows and score it on the others."""
    labels = train[1].astype(np.int64)
    truth = test[1].astype(np.int64)
    if len(np.unique(labels)) < 2:
        return Scores(auc=0.5, balanced_accuracy=1.0 / len(np.unique(truth)))
    model.fit(train[0], labels)  # type: ignore[attr-defined]
    chances: Array = model.predict_proba(test[0])  # type: ignore[attr-defined]
    known: Ints = model.classes_  # type: ignore[attr-defined]
    return Scores(
        auc=_mean_auc(chances, known, truth),
        balanced_accuracy=_balanced(known[chances.argmax(axis=1)], truth),
    )


def _mean_auc(chances: Array, known: Ints, truth: Ints) -> float:
    """One class against the rest, averaged over the classes that real rows show."""
    found = []
    for code in np.unique(truth):
        places = np.flatnonzero(known == code)
        chance = chances[:, places[0]] if len(places) else np.zeros(len(truth))
        if 0 < np.sum(truth == code) < len(truth):
            found.append(roc_auc_score(truth == code, chance))
    return float(np.mean(found)) if found else 0.5


def _balanced(predicted: Ints, truth: Ints) -> float:
    """The mean over real classes of the share that is recognised."""
    return float(np.mean([np.mean(predicted[truth == code] == code) for code in np.unique(truth)]))
