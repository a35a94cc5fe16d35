"""Several readings of one noisy table, averaged by their squared errors as Stein estimates them.

    weight of a reading  ~  exp(-estimated squared error / (32 x variance of the noise))

Readings that do nearly as well make unlike mistakes, and their average is better than any of them; one
that does far worse gets nothing (Leung, Barron: Information theory and mixing least-squares regressions,
IEEE Trans. IT 52(8), 2006). Below them: a noisy mean that should be 0. All arguments are released.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from adumbra.numerics import Array

Reading = Callable[[Array], Array]
_STEP = 0.25  # standard deviations by which counts are moved to see how a reading follows them ...
_PROBED = 64  # ... in as many directions as give so many rows: few rows need more of them, ...
_MOST_PROBED = 4096  # ... but no more than give so many values: a large table is known by one of them
_LOOSE = 32.0  # variances of the noise by which errors of readings may differ, and both still count
_MOST_GAIN = 500.0  # beyond it the weight of none is nothing in floats


def averaged(readings: Sequence[Reading], table: Array, sigma: float) -> Array:
    """The mean of all readings of a table with independent noise sigma, each by its weight."""
    return _averaged(readings, table, sigma, _MOST_PROBED)[1]


def believed(readings: Sequence[Reading], table: Array, sigma: float, most: int = _MOST_PROBED) -> Array:
    """The same, drawn up to half the way to none: that all is noise is one more reading.

    A reading that chooses its own strength finds some in noise, too. What it is right about shows in
    Stein's estimate of all values together. That itself varies by about sqrt(values) variances of the
    noise: so far apart, both count. Half is kept at least: half of noise has a quarter of its squared
    error, and half of what is not noise still tells rows apart. `most` are the values that are moved to
    see it.
    """
    error, found = _averaged(readings, table, sigma, most)
    gain = (float((table**2).sum()) - error) / (math.sqrt(table.size) * sigma**2)
    return np.asarray(found / (1.0 + math.exp(-min(max(gain, 0.0), _MOST_GAIN))))


def _averaged(readings: Sequence[Reading], table: Array, sigma: float, most: int) -> tuple[float, Array]:
    """The mean of all readings, and of their errors: its own is no larger."""
    tried = [judged(read, table, sigma, most) for read in readings]
    errors = np.array([error for error, _ in tried])
    weights = np.exp(-(errors - errors.min()) / (_LOOSE * sigma**2))
    weights /= weights.sum()
    found = np.stack([one for _, one in tried])
    return float(weights @ errors), np.asarray(np.tensordot(weights, found, axes=1))


def judged(read: Reading, table: Array, sigma: float, most: int = _MOST_PROBED) -> tuple[float, Array]:
    """A reading's squared error as Stein estimates it, up to what all readings share, and its result.

    How far a reading follows the noise is seen by moving the counts a little, in a few directions. That
    is unbiased for linear readings, and near it for these, which choose strengths and so may jump.
    """
    found, step = read(table), _STEP * sigma
    probes = max(1, min(_PROBED // len(table), most // table.size))
    rng, follows = np.random.default_rng(0), 0.0  # public, and the same directions for all readings
    for _ in range(probes):
        probe = rng.choice((-1.0, 1.0), table.shape)  # signs: exact for a reading that is linear
        follows += float((probe * (read(table + step * probe) - found)).sum()) / (step * probes)
    return float(((table - found) ** 2).sum()) + 2.0 * sigma**2 * follows, found


def kept_part(mean: Array, sigma: float) -> float:
    """The part of a mean that noise of sigma per entry does not explain (James and Stein)."""
    square = float(mean @ mean)
    return max(1.0 - len(mean) * sigma**2 / square, 0.0) if square > 0.0 else 0.0


def centred_mean(mean: Array, sigma: float, is_centred: Array | bool) -> Array:
    """A noisy mean of rows, of which some columns were centred: there, what noise explains is 0."""
    chosen = np.broadcast_to(is_centred, mean.shape)
    return np.where(chosen, mean * kept_part(mean[chosen], sigma), mean)
