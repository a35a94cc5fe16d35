"""Denoise a projected release at its known noise level: a public linear map, fitted on public rows.

    Y = S + N,  N of variance s2      ->      S~ = m + (Y - m) V diag(f) V^T

V are the right singular vectors of the centred release, f_i = shrunk / observed singular value, by the
shrinker that is optimal for Frobenius loss (Gavish & Donoho 2017) at s2: directions below the noise edge
vanish. Distances through it are |s~_i - s~_j|^2 + c, with c such that they are right on average: biased
towards the average distance, and far closer than the unbiased ones where the noise is large (measured
in benchmarks/utility/projections.py). Where nothing rises above the noise, the answer is a constant;
where the noise is small the unbiased distances are better, and `helps` is False.
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array
from adumbra.postprocess.distances import DistanceModel, pair_distances


@dataclass(frozen=True, slots=True)
class Denoiser:
    """An affine map of released rows, and what it leaves of the noise."""

    model: DistanceModel
    mean: Array  # k
    gain: Array  # k x k, symmetric, eigenvalues f in [0, 1]
    floor: float  # c, in released units
    helps: bool  # whether distances of single pairs hold more noise than signal, judged on the release

    @property
    def effective_components(self) -> float:
        """The sum of f: how many released directions carry more than noise."""
        return float(np.trace(self.gain))

    def rows(self, released: Array) -> Array:
        """The denoised rows, in the unit of the release."""
        return np.asarray(self.mean + (released - self.mean) @ self.gain)

    def pair_distances(self, left: Array, right: Array) -> Array:
        """Shrunk squared distance of row i of `left` with row i of `right`; never negative."""
        gap = (left - right) @ self.gain
        return np.asarray((np.einsum("ij,ij->i", gap, gap) + self.floor) * self.model.unit**2)


def fit_denoiser(model: DistanceModel, released: Array) -> Denoiser:
    """Fit the shrinkage on released rows; one k x k eigenproblem, whatever the number of rows."""
    n, k = released.shape
    mean, values, vectors, observed = _spectrum(model, released)
    gains = shrink(observed, k / n) / np.where(observed > 0.0, observed, 1.0)
    # Mean squared distance of two rows, once unbiased and once through the map.
    average = 2.0 * (float(values.sum()) / (n - 1) - k * model.noise.variance)
    shrunk = 2.0 * float(np.sum(values * gains**2)) / (n - 1)
    gain = (vectors * gains) @ vectors.T
    return Denoiser(model, mean, gain, max(average - shrunk, 0.0), _noise_dominates(model, released))


def signal_directions(model: DistanceModel, released: Array) -> Array:
    """The right singular vectors above the noise edge, as columns; all of them where none is above."""
    n, k = released.shape
    _, _, vectors, observed = _spectrum(model, released)
    above = observed > 1.0 + math.sqrt(k / n)
    return vectors[:, above] if bool(above.any()) else vectors


def _spectrum(model: DistanceModel, released: Array) -> tuple[Array, Array, Array, Array]:
    """Mean, squared singular values, right singular vectors, singular values in units of the noise."""
    n, k = released.shape
    require(n > k, f"{n} rows of {k} columns: a noise edge needs more rows than columns")
    mean = released.mean(axis=0)
    centred = released - mean
    values, vectors = np.linalg.eigh(centred.T @ centred)
    observed = np.sqrt(np.maximum(values, 0.0)) / math.sqrt(n * model.noise.variance)
    return mean, values, vectors, observed


def _noise_dominates(model: DistanceModel, released: Array) -> bool:
    """Whether more than half of the variance of unbiased distances is error, over disjoint pairs."""
    half = len(released) // 2
    found = pair_distances(model, released[:half], released[half : 2 * half])
    error = float(model.variance(np.asarray(max(float(found.mean()), 0.0))))
    return error > 0.5 * float(found.var())


def shrink(observed: Array, shape: float) -> Array:
    """The optimal Frobenius shrinker of singular values in units of sqrt(n s2); shape = k / n.

    y -> sqrt((y^2 - shape - 1)^2 - 4 shape) / y above the edge 1 + sqrt(shape), and 0 below.
    """
    edge = 1.0 + math.sqrt(shape)
    above = observed > edge
    y = np.where(above, observed, edge)
    root = np.sqrt(np.maximum((y * y - shape - 1.0) ** 2 - 4.0 * shape, 0.0))
    return np.asarray(np.where(above, root / y, 0.0))
