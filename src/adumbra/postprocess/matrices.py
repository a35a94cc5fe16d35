"""Noisy matrices denoised at their known noise level, by the shrinkers that are optimal for it.

    symmetric, Wigner noise s     w -> sqrt(w^2 - e^2) above e = 2 s sqrt(d), else 0
    rectangular noise s           Gavish & Donoho (2017), singular values above s (sqrt(p) + sqrt(q))
    means along a basis           James-Stein factors, one for each run of neighbouring directions

Only released numbers come in: nothing here can read data (an import contract).
"""

import math

import numpy as np

from adumbra.numerics import Array
from adumbra.postprocess.denoise import shrink
from adumbra.postprocess.spectrum import noise_edge

_FLOOR = 1e-9  # relative eigenvalue floor of a root


def shrink_symmetric(matrix: Array, sigma: float) -> tuple[Array, int]:
    """The positive part of a symmetric matrix with off-diagonal noise sigma, shrunk; and its rank."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    edge = noise_edge(sigma, len(matrix))
    kept = values > edge
    values = np.sqrt(np.maximum(values[kept] ** 2 - edge**2, 0.0))
    return np.asarray((vectors[:, kept] * values) @ vectors[:, kept].T), int(kept.sum())


def shrink_rectangular(matrix: Array, sigma: float) -> tuple[Array, int]:
    """A matrix with independent noise sigma, its singular values shrunk; and its rank."""
    if min(matrix.shape) == 0:
        return matrix, 0
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    longest, shape = max(matrix.shape), min(matrix.shape) / max(matrix.shape)
    unit = sigma * math.sqrt(longest)
    shrunk = shrink(values / unit, shape) * unit if sigma > 0 else values
    return np.asarray((left * shrunk) @ right), int((shrunk > 0).sum())


def shrink_means(means: Array, covariance: Array, sigmas: Array, shares: Array, entry: float) -> Array:
    """Centred class means (L x d) with noise sigma_c an entry, shrunk along the covariance's directions.

    Directions are taken from the largest noisy eigenvalue down, in runs that grow by half: a run whose
    power is mostly noise is shrunk with it, so no direction is cut because of its own noise alone.
    Noise of standard deviation `entry` in the covariance tilts its directions, so that means spill from
    those above the noise edge into the others; what that explains counts as noise there.
    """
    classes, width = means.shape
    if classes < 2:
        return np.zeros_like(means)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    values, vectors = values[::-1], vectors[:, ::-1]
    along = means @ vectors
    power = shares @ along**2
    noise = float(shares @ sigmas**2) * (classes - 1) / classes
    kept, spill = _spill(values, np.maximum(power - noise, 0.0), entry)
    factors = np.zeros(width)
    start, step = 0, max(classes, 4)
    while start < width:
        run = slice(start, min(start + step, width))
        observed = float(power[run].mean())
        blamed = noise + (spill if start >= kept else 0.0)
        factors[run] = max(0.0, 1.0 - blamed / observed) if observed > 0.0 else 0.0
        start, step = start + step, step + step // 2
    return np.asarray((along * factors) @ vectors.T)


def _spill(values: Array, power: Array, entry: float) -> tuple[int, float]:
    """Directions above the noise edge, and the power that their tilt moves into every other one.

    A noisy eigenvalue w comes from l = (w + sqrt(w^2 - edge^2)) / 2; the squared sine of its tilt is
    (edge / 2 l)^2, spread over the other directions. It does no harm where these vary as much as l.
    """
    width = len(values)
    edge = noise_edge(entry, width)
    above = values[values > edge]
    if len(above) == 0:
        return 0, 0.0
    shrunk = np.sqrt(above**2 - edge**2)
    true = (above + shrunk) / 2.0
    rest = max(float(values.sum() - shrunk.sum()), 0.0) / max(width - len(above), 1)
    harm = np.maximum(1.0 - rest / true, 0.0) ** 2
    return len(above), float(power[: len(above)] @ ((edge / (2.0 * true)) ** 2 * harm)) / width


def root(covariance: Array) -> Array:
    """A with A A^T = the positive part of a symmetric matrix (a floor keeps every direction alive)."""
    whole = (covariance + covariance.T) / 2.0
    try:
        return np.asarray(np.linalg.cholesky(whole), np.float64)
    except np.linalg.LinAlgError:  # indefinite
        values, vectors = np.linalg.eigh(whole)
        floor = max(float(values[-1]), 1e-12) * _FLOOR
        return np.asarray(vectors * np.sqrt(np.maximum(values, floor)))
