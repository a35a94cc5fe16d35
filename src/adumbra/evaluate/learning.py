"""NOT FOR RELEASE: what a model learns from a table, judged on real rows.

    classify    area under the curve, for a label that is a category (logistic regression, boosted trees,
                random forest)
    regress     R^2, for a numeric label or else the number that the others predict best (ridge, boosted)
    clusters    mean squared distance of real rows to centres found by k-means, over that of real centres

The ceiling learns from real rows, the floor from real columns that were shuffled each on its own.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score

from adumbra.evaluate.tstr import class_scores, design_matrix
from adumbra.numerics import Array
from adumbra.schema.schema import Schema

CLUSTERS = 8
PLAINLY_COPIED = 0.999  # R^2 above which a number is computed from others, and no task
BOOSTING = {"max_iter": 40, "max_leaf_nodes": 15, "max_bins": 63, "random_state": 0}

CLASSIFIERS: dict[str, tuple[bool, Callable[[], object]]] = {  # on a design matrix, or on codes
    "logistic regression": (True, lambda: LogisticRegression(max_iter=200, C=0.1)),
    "boosted trees": (False, lambda: HistGradientBoostingClassifier(**BOOSTING)),
    "random forest": (
        False,
        lambda: RandomForestClassifier(n_estimators=40, min_samples_leaf=5, random_state=0),
    ),
}
REGRESSORS: dict[str, tuple[bool, Callable[[], object]]] = {
    "ridge regression": (True, lambda: Ridge(alpha=1.0)),
    "boosted trees": (False, lambda: HistGradientBoostingRegressor(**BOOSTING)),
}

Tables = Sequence[Array]
Said = Callable[[str], None]


def classify(
    schema: Schema, tables: Tables, test: Array, most: int, say: Said
) -> dict[str, object] | None:
    """Scores of every model after each table; None without a label that is a category."""
    index = schema.label_index
    if index is None or schema.columns[index].kind.has_bounds:
        return None
    models: dict[str, object] = {}
    for name, (is_design, make) in CLASSIFIERS.items():
        scores = []
        for table in tables:
            say(f"classify: {name}")
            (x, y), (u, v) = _task(schema, index, table[:most], test[:most], is_design=is_design)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # its text is no help to a custodian
                found = class_scores(make(), (x, y), (u, v))
            scores.append({"auc": found.auc, "balanced_accuracy": found.balanced_accuracy})
        models[name] = scores
    return {"target": schema.columns[index].name, "models": models}


def regress(
    schema: Schema, tables: Tables, test: Array, most: int, say: Said
) -> dict[str, object] | None:
    """R^2 of every model after each table; None without a number to predict."""
    index = _number_to_predict(schema, tables[0], most)
    if index is None:
        return None
    models: dict[str, object] = {}
    for name, (is_design, make) in REGRESSORS.items():
        scores = []
        for table in tables:
            say(f"regress: {name}")
            (x, y), (u, v) = _task(schema, index, table[:most], test[:most], is_design=is_design)
            model = make()
            model.fit(x, y)  # type: ignore[attr-defined]
            scores.append(float(r2_score(v, model.predict(u))))  # type: ignore[attr-defined]
        models[name] = scores
    return {"target": schema.columns[index].name, "models": models}


def clusters(schema: Schema, tables: Tables, test: Array, most: int, say: Said) -> dict[str, object]:
    """Distances of real rows to the centres of each table, over those of the real ones."""
    label = schema.label_index
    kind = None if label is None else schema.columns[label]
    count = CLUSTERS if kind is None or kind.kind.has_bounds else max(kind.levels, 2)
    plain = _plain(schema, None)
    real = filled(schema, tables[0], tables[0])
    judged = design_matrix(filled(schema, test[:most], tables[0]), plain, real)
    found = []
    for table in tables:
        say("clusters")
        rows = design_matrix(filled(schema, table[:most], tables[0]), plain, real)
        wanted = min(count, len(np.unique(rows, axis=0)))
        model = KMeans(n_clusters=wanted, n_init=3, random_state=0).fit(rows)
        nearest = model.transform(judged).min(axis=1)
        found.append(float(np.mean(nearest**2)))
    return {"clusters": count, "ratios": [one / max(found[0], 1e-12) for one in found]}


def filled(schema: Schema, values: Array, fitted: Array) -> Array:
    """Rows whose missing numbers are the mean of those that `fitted` has."""
    made = values
    for at, column in enumerate(schema.columns):
        if column.keeps_null:
            known = fitted[:, at][fitted[:, at] <= column.limits[1]]
            mean = float(known.mean()) if len(known) else column.limits[0]
            made = made.copy() if made is values else made
            made[values[:, at] > column.limits[1], at] = mean
    return made


def _plain(schema: Schema, label: str | None) -> Schema:
    """The columns alone, with another label."""
    return replace(schema, label=label, rows=None, rules=(), derived=(), constraints=())


def _task(
    schema: Schema, index: int, table: Array, test: Array, *, is_design: bool
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Training and test rows without the target, and the target, where it is not missing."""
    limit = schema.columns[index].limits[1]
    rows, judged = (part[part[:, index] <= limit] for part in (table, test))
    judged, rows = filled(schema, judged, rows), filled(schema, rows, rows)
    x, u = np.delete(rows, index, axis=1), np.delete(judged, index, axis=1)
    if is_design:
        plain = _plain(schema, schema.columns[index].name)
        x, u = design_matrix(x, plain, x), design_matrix(u, plain, x)
    return (x, rows[:, index]), (u, judged[:, index])


def _number_to_predict(schema: Schema, real: Array, most: int) -> int | None:
    """A numeric label; else the number that all others explain best (by the inverse covariance)."""
    label = schema.label_index
    if label is not None and schema.columns[label].kind.has_bounds:
        return label
    numbers = [at for at, column in enumerate(schema.columns) if column.is_numeric]
    if len(numbers) < 2:
        return None
    rows = filled(schema, real[:most], real)[:, numbers]
    spread = rows.std(axis=0)
    moving = np.flatnonzero(spread > 0)
    if len(moving) < 2 or len(rows) <= 2 * len(moving):
        return numbers[0]
    correlations = np.corrcoef(rows[:, moving], rowvar=False) + 1e-6 * np.eye(len(moving))
    explained = 1.0 - 1.0 / np.diagonal(np.linalg.inv(correlations))
    explained[explained > PLAINLY_COPIED] = -1.0
    return numbers[int(moving[int(np.argmax(explained))])]
