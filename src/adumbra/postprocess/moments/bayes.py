"""Noisy tables drawn toward what is expected of them, as far as known noise explains the difference.

    difference = signal + noise,   signal of variance  k (expected + 1)^p,   noise of known variance

The likeliest k and p are found for each table; a small table borrows the evidence of all. The signal's
posterior mean is what the table has beyond its expectation. All arguments are released numbers.
"""

import math

import numpy as np
from scipy.special import gammainc

from adumbra.numerics import Array
from adumbra.postprocess.marginals import project_simplex

_POWERS = (0.0, 0.5, 1.0, 1.5)  # of the expected count: how differences grow with it
_STRENGTHS = np.exp(np.arange(-8.0, 9.0))  # mean signal over mean noise, both as variances
_FLOOR = 1e-9
_SHAPES = (
    0.02,
    0.05,
    0.1,
    0.2,
    0.4,
    0.8,
    1.6,
    3.2,
    6.4,
    25.0,
    100.0,
)  # of the law of a histogram's counts
_ENDS = np.linspace(-6.0, 6.0, 49)  # of the pieces of its integral, in standard deviations of the noise
_TINY = 1e-280


def evidence(difference: Array, expected: Array, noise: Array) -> Array:
    """The log likelihood of every (power, strength), against that of noise alone."""
    seen, variance = difference.ravel() ** 2, np.maximum(noise.ravel(), _FLOOR)
    out = np.empty((len(_POWERS), len(_STRENGTHS)))
    for place, power in enumerate(_POWERS):
        total = _STRENGTHS[:, None] * _shape(expected.ravel(), variance, power) + variance
        out[place] = -0.5 * (np.log(total / variance) + seen * (1.0 / total - 1.0 / variance)).sum(
            axis=1
        )
    return out


def signal(difference: Array, expected: Array, noise: Array, likelihood: Array) -> Array:
    """The posterior mean of the signal at the likeliest power and strength."""
    power, strength = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    variance = np.maximum(noise, _FLOOR)
    prior = _STRENGTHS[strength] * _shape(expected, variance, _POWERS[power])
    return np.asarray(difference * prior / (prior + variance))


def _shape(expected: Array, variance: Array, power: float) -> Array:
    """The signal's variance in each cell for a strength of one: its mean is that of the noise."""
    shape = (np.maximum(expected, 0.0) + 1.0) ** power
    return np.asarray(shape * (variance.mean() / shape.mean()))


def counts_posterior(noisy: Array, sigma: float, total: float) -> Array:
    """The posterior mean of the counts of one histogram whose total is known.

    Cells are draws of a Gamma law around the even count; its shape is the likeliest for the noisy
    counts: large where cells are alike, small where few hold nearly all. So noise neither fills empty
    cells nor leaves a few lucky ones. What the total tells of the noise is taken off first.
    """
    cells, even = len(noisy), max(total, 1.0) / len(noisy)
    if cells < 2 or sigma <= 0.0:
        return project_simplex(noisy, total)
    seen = noisy - (float(noisy.sum()) - total) / cells
    spread = sigma * math.sqrt(1.0 - 1.0 / cells)
    ends = np.maximum(seen[:, None] + spread * _ENDS, 0.0)
    ends[:, 0] = 0.0
    best, found = -math.inf, seen
    for shape in _SHAPES:
        scaled = ends * (shape / even)
        mass = np.maximum(np.diff(gammainc(shape, scaled), axis=1), 0.0)
        first = np.maximum(np.diff(gammainc(shape + 1.0, scaled), axis=1), 0.0) * even
        middle = np.where(mass > _TINY, first / np.maximum(mass, _TINY), ends[:, 1:])
        away = (seen[:, None] - middle) ** 2 - np.minimum(seen, 0.0)[:, None] ** 2
        weight = mass * np.exp(-0.5 * away / spread**2)
        whole = np.maximum(weight.sum(axis=1), _TINY)
        if (likely := float(np.log(whole).sum())) > best:
            best, found = likely, (weight * middle).sum(axis=1) / whole
    return project_simplex(found, total)
