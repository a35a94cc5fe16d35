"""Noisy tables drawn toward what is expected of them, as far as known noise explains the difference.

    difference = signal + noise,   signal of variance  k (expected + 1)^p,   noise of known variance

The likeliest k and p are found for each table; a small table borrows the evidence of all. The signal's
posterior mean is what the table has beyond its expectation. All arguments are released numbers.
"""

import numpy as np

from adumbra.numerics import Array

_POWERS = (0.0, 0.5, 1.0, 1.5)  # of the expected count: how differences grow with it
_STRENGTHS = np.exp(np.arange(-8.0, 9.0))  # mean signal over mean noise, both as variances
_FLOOR = 1e-9


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
