"""From noisy moments to a model: leading directions, class means, a covariance that can be inverted.

Arithmetic on released numbers only. A covariance estimated with noise may be indefinite: directions are
taken by eigenvalue and end where these do, and for anything that inverts, eigenvalues are lifted to the
edge of the noise's own spectrum.
"""

from dataclasses import dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array

SHRINK = 2.0  # standard deviations of noise below which a covariance is taken for 0


@dataclass(frozen=True, slots=True)
class Subspace:
    """A mean, orthonormal directions (width x k, by falling variance) and the variance along each."""

    mean: Array
    directions: Array
    variances: Array


def leading_subspace(mean: Array, second: Array, components: int) -> Subspace:
    """The top directions of second - mean mean^T whose variance is above 0: at most `components`."""
    width = len(mean)
    require(0 <= components <= width, f"n_components={components}: must be 0 to {width} (columns)")
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    order = np.argsort(values, kind="stable")[::-1][:components]
    kept = order[values[order] > 0.0]
    # the sign of an eigenvector is arbitrary: the largest entry is made positive
    directions = vectors[:, kept]
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(len(kept))] if len(kept) else 1.0
    return Subspace(mean=mean, directions=directions * np.sign(largest), variances=values[kept])


def shrinkage(variances: Array, noise_variance: float) -> Array:
    """How much of a noisy coordinate to keep for the least squared error: v / (v + noise)."""
    return variances / (variances + noise_variance)


def sample_subspace(subspace: Subspace, rows: int, rng: np.random.Generator) -> Array:
    """Normal rows inside the subspace, from a public generator."""
    spread = rng.standard_normal((rows, len(subspace.variances))) * np.sqrt(subspace.variances)
    drawn: Array = subspace.mean + spread @ subspace.directions.T
    return drawn


@dataclass(frozen=True, slots=True)
class ClassMoments:
    """Shares of the classes, a mean for each, and the pooled second moment."""

    shares: Array
    means: Array  # classes x width
    second: Array  # width x width, average of z z^T over all rows

    def within(self) -> Array:
        """The pooled covariance about the class means."""
        within: Array = self.second - (self.means.T * self.shares) @ self.means
        return within


def class_moments(  # noqa: PLR0913 - the released numbers and what is known of their noise
    matrix: Array, rows: float, low: Array, high: Array, *, sigma: float, edge: float
) -> ClassMoments:
    """Means and second moment from noisy sums.

    Covariances lose what their noise (standard deviation `sigma` of a sum) may explain: those within two
    of its deviations vanish. Eigenvalues of the whole are at least `edge`: the sampler then follows
    structure rather than noise.

    `matrix` holds the sum of z z^T, class sums in the columns beside it, class counts on the diagonal
    below. Counts are at least 1 and add up to `rows`; means lie in the box that the schema declares.
    """
    width = len(low)
    counts = np.maximum(np.diag(matrix)[width:], 1.0)
    counts = counts * (rows / counts.sum())
    means = np.clip(matrix[:width, width:].T / counts[:, None], low, high)
    raw = ClassMoments(counts / rows, means, matrix[:width, :width] / rows)
    within = raw.within()
    believed = floored(shrunk(within, SHRINK * sigma / rows), edge)
    return ClassMoments(raw.shares, means, raw.second - within + believed)


def shrunk(covariance: Array, sigma: float) -> Array:
    """Entries off the diagonal times max(0, 1 - sigma^2 / entry^2): positive-part James-Stein."""
    size = np.maximum(np.abs(covariance), max(sigma, np.finfo(float).tiny))
    result: Array = covariance * (1.0 - (sigma / size) ** 2)
    np.fill_diagonal(result, np.diag(covariance))
    return result


def floored(covariance: Array, edge: float) -> Array:
    """The covariance with eigenvalues of at least `edge` (0 or above), symmetric to the bit."""
    values, vectors = np.linalg.eigh(covariance)
    lifted: Array = (vectors * np.maximum(values, edge)) @ vectors.T
    return (lifted + lifted.T) / 2.0
