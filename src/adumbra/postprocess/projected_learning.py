"""Learning from the rows of a projected release, by methods that know the noise.

A released row is y = x R + e, e of known variance s2 in every coordinate. What a learner sums over rows
is corrected for it:

    Gram          E Y'Y = (X R)'(X R) + n s2 I, so Y'Y - n s2 I is unbiased for the projected rows' Gram
    classes       means of many rows carry s2/n; the covariance within classes is that of Y less s2 I
    labels        a randomised label is true with chance p, else any other alike: the one-hot of labels
                  times the inverse of that matrix is unbiased for the true one-hot
    rows          the best linear guess of x R given y: mean + S (S + s2 I)^-1 (y - mean)

A corrected covariance is not positive where noise exceeds it. Negative eigenvalues become 0 and half of
the edge of what noise alone would show is added to each: directions follow class means where noise is
large, and plain LDA where it is small. The scale of scores, which decides the threshold, comes from the
corrected variance along the one direction that is used, which is known far better than the matrix.

Coefficients hold for projected rows without noise: a recipient's own rows, encoded and times the public
matrix of DPPro (`release.arrays["projection"]`), in the released unit. Everything here is arithmetic on
released numbers and costs nothing.

Reference   Xu et al. 2017 (sanitised covariance, Figure 5); Fuller, Measurement Error Models, 1987;
            Carroll, Ruppert, Stefanski, Crainiceanu, Measurement Error in Nonlinear Models, 2006.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array, Ints
from adumbra.postprocess.distances import DistanceModel
from adumbra.postprocess.two_level import ClassMoments, trusted_share, two_level_within

LEAST_VARIANCE = 1e-9  # of a direction, relative to the mean


def gram(rows: Array, model: DistanceModel) -> Array:
    """Y'Y - n s2 I: unbiased for the Gram of the projected rows, in released units."""
    _require_rows(rows, model)
    summed: Array = rows.T @ rows
    return summed - len(rows) * model.noise.variance * np.eye(model.n_components)


def covariance(rows: Array, model: DistanceModel) -> Array:
    """The covariance of the projected rows: that of the released ones less the noise; unbiased."""
    _require_rows(rows, model)
    require(len(rows) >= 2, f"{len(rows)} rows: a covariance needs at least 2")
    centred = rows - rows.mean(axis=0)
    found: Array = centred.T @ centred / (len(rows) - 1)
    return found - model.noise.variance * np.eye(model.n_components)


def usable_covariance(rows: Array, model: DistanceModel) -> Array:
    """The same, made positive at the edge of what noise alone would show."""
    return _positive(covariance(rows, model), model, len(rows))


def calibrated_rows(rows: Array, model: DistanceModel) -> Array:
    """The best linear guess of each projected row given its noisy one, for learners of any kind.

    Rows move towards their mean, most along directions that are mostly noise (regression calibration).
    """
    found, mean = usable_covariance(rows, model), rows.mean(axis=0)
    values, vectors = np.linalg.eigh(found)
    values = np.maximum(values, 0.0)
    kept = values / np.maximum(values + model.noise.variance, np.finfo(float).tiny)
    guessed: Array = mean + ((rows - mean) @ vectors * kept) @ vectors.T
    return guessed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearClassifier:
    """One score per class, linear in a projected row without noise; the largest wins."""

    classes: tuple[object, ...]
    weights: Array  # classes x k
    offsets: Array

    def scores(self, rows: Array) -> Array:
        """Log odds up to a constant, rows x classes."""
        found: Array = rows @ self.weights.T + self.offsets
        return found

    def predict(self, rows: Array) -> list[object]:
        """The likeliest class of each row."""
        return [self.classes[place] for place in np.argmax(self.scores(rows), axis=1)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearRegression:
    """A target, linear in a projected row without noise."""

    weights: Array
    offset: float

    def predict(self, rows: Array) -> Array:
        """The expected target of each row."""
        found: Array = rows @ self.weights + self.offset
        return found


def fit_lda(
    rows: Array,
    labels: Sequence[object],
    model: DistanceModel,
    *,
    classes: Sequence[object] | None = None,
    kept: float = 1.0,
) -> LinearClassifier:
    """Linear discriminant analysis of released rows with their labels, corrected for both noises.

    Parameters
    ----------
    rows : released rows, as `release.to_numpy` gives the components
    labels : one for each row, public or randomised
    model : `DistanceModel.from_facts(release.card["facts"]["distances"])`
    classes : all classes there are; those seen, unless given
    kept : the chance that a label is the true one, on the card at `facts`, `label`; 1 for public ones

    Returns
    -------
    LinearClassifier for projected rows without noise.
    """
    known = _classes(rows, labels, model, classes, kept)
    found = _class_moments(rows, _true_labels(labels, known, kept), model)
    solved = _solved(_positive(found.within, model, len(rows)), found)
    doubt = model.noise.variance * math.sqrt(2.0 / len(rows))  # one standard error of a variance
    return _classifier(known, found, solved * _score_scale(solved, found, doubt))


def fit_two_level_lda(
    rows: Array,
    labels: Sequence[object],
    model: DistanceModel,
    *,
    classes: Sequence[object] | None = None,
    kept: float = 1.0,
) -> LinearClassifier:
    """`fit_lda` where every column is boolean or of two levels and left as it stands.

    That is family=identity. Class means then tell the variance of each column, and noisy correlations
    are led back to possible ones (two_level.py). Parameters are those of `fit_lda`.
    """
    require(
        model.family == "identity", f"family={model.family}: columns are mixed; needs family=identity"
    )
    known = _classes(rows, labels, model, classes, kept)
    found = _class_moments(rows, _true_labels(labels, known, kept), model)
    within = two_level_within(found, half=0.5 / model.unit, noise=model.noise.variance)
    solved = _solved(within, found)
    return _classifier(known, found, solved * trusted_share(solved, found, within))


def _classes(
    rows: Array,
    labels: Sequence[object],
    model: DistanceModel,
    classes: Sequence[object] | None,
    kept: float,
) -> list[object]:
    """The classes there are, after a check of what was given."""
    _require_rows(rows, model)
    require(len(labels) == len(rows), f"{len(labels)} labels for {len(rows)} rows: give one for each")
    known = list(dict.fromkeys(labels)) if classes is None else list(classes)
    require(len(known) >= 2, f"{len(known)} classes: a classifier needs at least 2")
    require(1.0 / len(known) < kept <= 1.0, f"kept={kept}: must lie above 1/{len(known)}, at most 1")
    return known


def _class_moments(rows: Array, weights: Array, model: DistanceModel) -> ClassMoments:
    """Shares, means and the covariance within classes, less the noise of each."""
    enough = np.maximum(weights.sum(axis=0), 1.0)
    means = (weights.T @ rows) / enough[:, None]
    shares = enough / enough.sum()
    middle = rows.mean(axis=0)
    between = (means - middle).T * shares @ (means - middle)
    # Each noisy mean adds s2 / n_c of noise to its own square: given back, as it was never within.
    s2 = model.noise.variance
    spread = float(np.einsum("ic,c->", weights**2, shares / enough**2)) * s2
    within = covariance(rows, model) - between + spread * np.eye(model.n_components)
    moved = max(spread - s2 / len(rows), 0.0)
    return ClassMoments(rows=len(rows), means=means, shares=shares, within=within, moved=moved)


def _solved(within: Array, found: ClassMoments) -> Array:
    """The directions of the classes: offsets over the covariance within."""
    return np.asarray(np.linalg.solve(within, found.offsets.T).T, dtype=np.float64)


def _classifier(classes: list[object], found: ClassMoments, weights: Array) -> LinearClassifier:
    """Scores that are log odds, by weights about the mean of all."""
    middle = found.means - found.offsets
    offsets = np.log(found.shares) - np.sum(weights * (middle + 0.5 * found.offsets), axis=1)
    return LinearClassifier(classes=tuple(classes), weights=weights, offsets=offsets)


def _score_scale(solved: Array, found: ClassMoments, least: float) -> float:
    """The factor that makes scores log odds: explained over remaining variance along the directions.

    With the true covariance both sums are equal and the factor is 1. `least` is the least variance.
    """
    explained = float(found.shares @ np.einsum("ck,ck->c", solved, found.offsets))
    remaining = float(found.shares @ np.einsum("ck,kl,cl->c", solved, found.within, solved))
    lengths = float(found.shares @ np.einsum("ck,ck->c", solved, solved))
    return max(explained, 0.0) / max(remaining, least * lengths, np.finfo(float).tiny)


def fit_ridge(
    rows: Array, target: Array, model: DistanceModel, *, penalty: float = 0.0
) -> LinearRegression:
    """Least squares of a target on projected rows, corrected for the noise of the rows.

    `penalty` is added to every variance, beside what makes the corrected covariance positive.
    """
    _require_rows(rows, model)
    target = np.asarray(target, dtype=np.float64)
    require(
        target.shape == (len(rows),), f"target of shape {target.shape}: give one number for each row"
    )
    found = usable_covariance(rows, model)
    mean, level = rows.mean(axis=0), float(target.mean())
    crossed = (rows - mean).T @ (target - level) / max(len(rows) - 1, 1)
    require(penalty >= 0.0, f"penalty={penalty}: must be 0 or above")
    weights = np.linalg.solve(found + penalty * np.eye(len(found)), crossed)
    return LinearRegression(weights=weights, offset=level - float(weights @ mean))


def _true_labels(labels: Sequence[object], classes: list[object], kept: float) -> Array:
    """The one-hot of labels, unbiased for the true one where they were randomised."""
    place = {name: number for number, name in enumerate(classes)}
    unknown = next((name for name in labels if name not in place), None)
    require(unknown is None, f"label {unknown!r}: is not one of the classes; give all of them")
    codes: Ints = np.array([place[name] for name in labels], dtype=np.int64)
    hot = np.zeros((len(codes), len(classes)))
    hot[np.arange(len(codes)), codes] = 1.0
    other = (1.0 - kept) / (len(classes) - 1)
    found: Array = (hot - other) / (kept - other)
    return found


def _positive(found: Array, model: DistanceModel, rows: int) -> Array:
    """A covariance with no negative eigenvalue and half of the noise's edge on each."""
    values, vectors = np.linalg.eigh(found)
    mean = max(float(values.mean()), np.finfo(float).tiny)
    values = np.maximum(values, 0.0) + 0.5 * _edge(model, rows, found) + LEAST_VARIANCE * mean
    usable: Array = (vectors * values) @ vectors.T
    return (usable + usable.T) / 2.0


def _edge(model: DistanceModel, rows: int, found: Array) -> float:
    """How far the eigenvalues of a sample covariance of the noise alone spread about s2."""
    k, s2 = model.n_components, model.noise.variance
    ratio = k / max(rows, 1)
    signal = max(float(np.trace(found)) / k, 0.0)
    return s2 * (2.0 * math.sqrt(ratio) + ratio) + 2.0 * math.sqrt(s2 * signal * ratio)


def _require_rows(rows: Array, model: DistanceModel) -> None:
    fits = rows.ndim == 2 and rows.shape[1] == model.n_components
    require(fits, f"rows: must have the {model.n_components} columns of the release")
