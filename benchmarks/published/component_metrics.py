"""NOT FOR RELEASE: the paper's measures of released rows against the private ones.

F-norm (mean squared error a row), accuracy and AUC of classifiers trained on released rows and tested on
private ones, entropy of the released columns, and their Kullback-Leibler divergence from the private.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from adumbra.errors import require
from adumbra.numerics import Array, Ints

BINS = 20  # equal bins of a number between its declared bounds
LEAF = 50  # rows in a leaf of the decision tree (scikit-learn's CART, the stand-in for C4.5)


@dataclass(frozen=True, slots=True)
class Score:
    """How well a classifier trained on released rows does on private ones."""

    accuracy: float
    auc: float


def squared_error(released: Array, private: Array) -> float:
    """The squared F-norm of the difference, for each row: rows correspond one to one."""
    require(
        released.shape == private.shape,
        f"shapes {released.shape}, {private.shape}: released rows must correspond to private ones",
    )
    return float(((released - private) ** 2).sum() / len(private))


def lda_score(train: tuple[Array, Ints], test: tuple[Array, Ints]) -> Score:
    """Linear discriminant analysis of two classes, without shrinkage."""
    return _score(LinearDiscriminantAnalysis(), train, test)


def tree_score(train: tuple[Array, Ints], test: tuple[Array, Ints]) -> Score:
    """A decision tree of two classes by entropy, the stand-in for C4.5."""
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=LEAF, random_state=0)
    return _score(tree, train, test)


def _score(model: object, train: tuple[Array, Ints], test: tuple[Array, Ints]) -> Score:
    if len(np.unique(train[1])) < 2:  # one class only: nothing to tell apart
        return Score(float(np.mean(test[1] == train[1][0])), 0.5)
    model.fit(*train)  # type: ignore[attr-defined]
    chance = model.predict_proba(test[0])[:, 1]  # type: ignore[attr-defined]
    accuracy = float(np.mean((chance > 0.5) == (test[1] == 1)))
    return Score(accuracy, float(roc_auc_score(test[1], chance)))


def marginals(x: Array, numeric: tuple[int, ...], groups: tuple[slice, ...]) -> list[Array]:
    """The distribution of each feature of encoded rows: numbers in bins, categories by level."""
    found = []
    for j in numeric:
        counts = np.histogram(np.clip(x[:, j], -0.5, 0.5), BINS, (-0.5, 0.5))[0]
        found.append(counts / len(x))
    for group in groups:
        levels = group.stop - group.start
        found.append(np.bincount(np.argmax(x[:, group], axis=1), minlength=levels) / len(x))
    return found


def entropy(features: list[Array]) -> float:
    """Average entropy of the features, in bits."""
    return float(np.mean([-np.sum(p[p > 0] * np.log2(p[p > 0])) for p in features]))


def divergence(released: list[Array], private: list[Array], rows: int) -> float:
    """Average KL divergence D(released || private) in bits; half a row is added to every cell."""

    def smooth(p: Array) -> Array:
        return (p * rows + 0.5) / (rows + 0.5 * len(p))

    pairs = [(smooth(p), smooth(q)) for p, q in zip(released, private, strict=True)]
    return float(np.mean([np.sum(p * np.log2(p / q)) for p, q in pairs]))
