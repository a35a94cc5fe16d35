"""A noisy covariance made usable: symmetric already, positive by projection with the noise's own edge.

    eigenvalue >= edge   kept          edge = spectral edge of the known noise
    eigenvalue <  edge   their average, clipped to [0, edge]: what is left of the trace, spread evenly

All of it is arithmetic on released numbers.
"""

import math

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array

LEAST_REST = 1e-3  # of what the slopes explain: a target's own variance is at least this


def noise_edge(off_diagonal_sigma: float, width: int) -> float:
    """The largest eigenvalue that symmetric noise of this standard deviation alone would show."""
    return 2.0 * off_diagonal_sigma * math.sqrt(width)


def positive_covariance(noisy: Array, *, edge: float, trace_limit: float) -> Array:
    """The nearest thing to a covariance that the noise allows one to believe.

    `trace_limit` is a public bound of the trace (rows were clipped); noise cannot push beyond it.
    """
    require(noisy.ndim == 2 and noisy.shape[0] == noisy.shape[1], f"shape={noisy.shape}: must be square")
    values, vectors = np.linalg.eigh(noisy)
    buried = values < edge
    values[buried] = np.clip(values[buried].mean() if buried.any() else 0.0, 0.0, edge)
    total = float(values.sum())
    if total > trace_limit:
        values *= trace_limit / total
    result: Array = (vectors * values) @ vectors.T
    return (result + result.T) / 2.0


def regression_covariance(noisy: Array, *, edge: float) -> Array:
    """A positive covariance of (x, y) from a noisy one, y last: ridge regression at the noise's edge.

    Slopes are S^-1 c with the eigenvalues of the noisy covariance S of x at least twice the edge: a
    smaller one is mostly noise, and its inverse would be nothing else. What y has beyond is its own.
    """
    values, vectors = np.linalg.eigh(noisy[:-1, :-1])
    values = np.maximum(values, max(2.0 * edge, np.finfo(float).tiny))
    slopes = vectors @ ((vectors.T @ noisy[:-1, -1]) / values)
    inner = (vectors * values) @ vectors.T
    crossed = inner @ slopes
    explained = float(slopes @ crossed)
    rest = max(float(noisy[-1, -1]) - explained, LEAST_REST * explained)
    return np.block([[(inner + inner.T) / 2.0, crossed[:, None]], [crossed[None], explained + rest]])


def into_unit_ball(vector: Array) -> Array:
    """A noisy mean of unit-ball rows, pulled back to where every mean lies."""
    length = float(np.linalg.norm(vector))
    return vector / max(length, 1.0)


def sample_gaussian(mean: Array, covariance: Array, rows: int, rng: np.random.Generator) -> Array:
    """Rows of N(mean, covariance), from a public generator."""
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn: Array = rng.standard_normal((rows, len(values))) @ factor.T + mean
    return drawn


def conditional_sizes(counts: Array, rows: int) -> list[int]:
    """`rows` split in proportion to noisy counts, by largest remainder; negative counts are empty."""
    shares = np.maximum(counts, 0.0)
    total = float(shares.sum())
    shares = np.full(len(counts), 1.0 / len(counts)) if total == 0.0 else shares / total
    exact = shares * rows
    sizes = np.floor(exact).astype(int)
    rest = np.argsort(sizes - exact, kind="stable")[: rows - int(sizes.sum())]
    sizes[rest] += 1
    return [int(size) for size in sizes]
