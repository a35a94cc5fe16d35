"""Noisy tables drawn toward what is expected of them, as far as known noise explains the difference.

    difference = signal + noise,   signal of variance  k (expected + 1)^p,   noise of known variance

The likeliest k and p are found for each table; a small table borrows the evidence of all. The signal's
posterior mean is what the table has beyond its expectation. Cells of a number have an order: where it is
likelier, their signal is a smooth one. All arguments are released numbers.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from adumbra.numerics import Array
from adumbra.postprocess.marginals import project_simplex

Flags = npt.NDArray[np.bool_]
_POWERS = (0.0, 0.5, 1.0, 1.5)  # of the expected count: how differences grow with it
_STRENGTHS = np.exp(np.arange(-8.0, 9.0))  # mean signal over mean noise, both as variances
_FLOOR = 1e-9
_SHAPES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 25.0, 100.0)  # of the law of counts
_FALLS = (-4.0, 0.0, 4.0, 16.0)  # of a number's density over its range, as powers of e
_ENDS = np.linspace(-6.0, 6.0, 49)  # of the pieces of its integral, in standard deviations of the noise
_REACHES = (3.0, 12.0, 48.0)  # cells along which neighbours are alike
_SMOOTH_POWERS = (1.0, 2.0)  # of the expected count, where they are
_FAR = 1e9  # cells away from everything
_ROUNDS = 30  # of expectation and maximisation
_NEAR = 4.0  # cells whose neighbours crowd, or are empty, alike ...
_ANYWHERE = 2.0  # ... as if so many more were like those anywhere
_FARTHEST_BELOW = -30.0  # standard deviations: a count so far below none is one that is empty
_POINT = 1e-9  # of the range of a number: a narrower cell is one value
_TINY = 1e-280
_LEAST_PART = 1e-3  # of a table: a strength that is less likely is left out


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


def shared_signals(tables: Sequence[tuple[Array, Array, Array]], likelihoods: Array) -> list[Array]:
    """Signals of many tables (difference, expected, noise), each a mean over powers and strengths.

    How often each of them occurs among all tables is found by expectation and maximisation; no signal at
    all is one of them. Where noise is loud, the likeliest strength of one table alone follows chance.
    `likelihoods` has one line per table: its evidence, flat.
    """
    logs = np.pad(likelihoods, ((0, 0), (1, 0)))  # the first: no signal
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(logs.shape[1], 1.0 / logs.shape[1])
    for _ in range(_ROUNDS):
        parts = likely * weights
        parts /= parts.sum(axis=1, keepdims=True)
        weights = parts.sum(axis=0) + 1.0 / len(weights)  # as if one more table were like any
        weights /= weights.sum()
    parts = likely * weights
    parts /= parts.sum(axis=1, keepdims=True)
    found = []
    for (difference, expected, noise), own in zip(tables, parts, strict=True):
        variance, kept = np.maximum(noise, _FLOOR), np.zeros(noise.shape)
        for place in np.flatnonzero(own[1:] > _LEAST_PART):
            power, strength = divmod(int(place), len(_STRENGTHS))
            prior = _STRENGTHS[strength] * _shape(expected, variance, _POWERS[power])
            kept += own[1 + place] * prior / (prior + variance)
        found.append(difference * kept)
    return found


def _shape(expected: Array, variance: Array, power: float) -> Array:
    """The signal's variance in each cell for a strength of one: its mean is that of the noise."""
    shape = (np.maximum(expected, 0.0) + 1.0) ** power
    return np.asarray(shape * (variance.mean() / shape.mean()))


def counts_posterior(noisy: Array, sigma: float, total: float, widths: Array | None = None) -> Array:
    """The posterior mean of the counts of one histogram whose total is known.

    What the total tells of the noise is taken off first. Then the likeliest of several readings is
    taken: cells apart, around the even count; and for cells of a number (of these widths) a smooth law
    around a density that falls or rises from bound to bound, or is even.
    """
    return project_simplex(_likeliest(noisy, sigma, total, widths)[0], total)


def stand_apart(noisy: Array, sigma: float, total: float, widths: Array) -> bool:
    """Whether cells of a number are likelier apart than parts of a smooth law."""
    return _likeliest(noisy, sigma, total, widths)[1]


def _likeliest(noisy: Array, sigma: float, total: float, widths: Array | None) -> tuple[Array, bool]:
    """The counts of the likeliest reading, and whether it is that of cells apart."""
    cells, whole = len(noisy), max(total, 1.0)
    if cells < 2 or sigma <= 0.0:
        return noisy, True
    seen = noisy - (float(noisy.sum()) - total) / cells
    spread, even = sigma * math.sqrt(1.0 - 1.0 / cells), whole / cells
    best, found = apart_counts(seen, even, spread)
    is_apart = True
    if widths is not None:
        alone = stands_alone(widths)
        for law in densities(widths) * whole:
            spreads = np.where(alone, even, law)[None] ** 2
            likely, beyond = _smooth((seen - law)[None], spreads, spread**2, alone)
            likely -= 0.5 * float(((seen - law) ** 2).sum()) / spread**2  # as that of cells apart
            if likely > best:
                best, found, is_apart = likely, law + beyond[0], False
    return found, is_apart


def densities(widths: Array) -> Array:
    """Laws of cells whose density falls (or rises) like an exponential from the lower bound on."""
    middle = (np.cumsum(widths) - widths / 2.0) / float(widths.sum())
    laws = widths * np.exp(-np.outer(_FALLS, middle))
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def apart_counts(seen: Array, even: float, spread: float) -> tuple[float, Array]:
    """Counts as draws of a Gamma law around the even count, whose shape is the likeliest.

    It is large where cells are alike, small where few hold nearly all. So noise neither fills empty
    cells nor leaves a few lucky ones. Gives the log likelihood (but for what all readings share) and
    the posterior mean.
    """
    from scipy.special import gammainc  # noqa: PLC0415 - slow to import, and no plan needs it

    ends = np.maximum(seen[:, None] + spread * _ENDS, 0.0)
    ends[:, 0] = 0.0
    below = 0.5 * float((np.minimum(seen, 0.0) ** 2).sum()) / spread**2
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
    return best - below, found


def crowded_counts(noisy: Array, sigma: float, total: float) -> Array:
    """The posterior mean of counts, in order, that crowd on some cells and leave whole stretches empty.

    A cell has none, or as many as an exponential law gives; how often each mean of it occurs is found by
    expectation and maximisation among its neighbours. Cells that hold rows take what the total lacks.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415 - slow to import, and no plan needs it

    seen = (noisy - (float(noisy.sum()) - total) / len(noisy)) / sigma
    means = 2.0 ** np.arange(1.0, math.log2(max(float(seen.max()), 2.0)) + 2.0)
    at = np.maximum(seen[:, None] - 1.0 / means, _FARTHEST_BELOW)
    bends = log_ndtr(at) + 0.5 * (at**2 + math.log(2.0 * math.pi))
    logs = np.pad(bends - np.log(means), ((0, 0), (1, 0)))
    middle = np.pad(np.maximum(at + np.exp(-bends), 0.0), ((0, 0), (1, 0)))
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    cells = np.arange(len(seen)) / _NEAR
    near = np.exp(-0.5 * np.subtract.outer(cells, cells) ** 2)
    parts = likely / likely.sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        anywhere = parts.sum(axis=0) + 1.0 / len(logs[0])
        parts = likely * (near @ parts + _ANYWHERE * anywhere / anywhere.sum())
        parts /= parts.sum(axis=1, keepdims=True)
    held = sigma * (parts * middle).sum(axis=1)
    loose = held / (held + sigma)
    return np.asarray(held + loose * max((total - float(held.sum())) / float(loose.sum()), -sigma))


def stands_alone(widths: Array) -> Flags:
    """Cells that need not be like their neighbours: the bounds of a number, and its atoms."""
    alone: Flags = widths < _POINT * float(widths.sum())
    alone[[0, -1]] = True
    return alone


def sparse_signal(difference: Array, expected: Array, variance: float) -> tuple[float, Array]:
    """The likeliest signal of which some cells may have much and most nothing: a mixture of strengths.

    How often each strength occurs is found by expectation and maximisation. Gives the log likelihood
    against that of noise alone, and the posterior mean.
    """
    square = difference.ravel()[:, None] ** 2 / max(variance, _FLOOR)
    strengths = np.append(0.0, _STRENGTHS)
    best, found = -math.inf, np.zeros(difference.size)
    for power in _POWERS:
        shape = (np.maximum(expected.ravel(), 0.0) + 1.0) ** power
        total = 1.0 + np.outer(shape / shape.mean(), strengths)  # signal and noise, over noise
        logs = -0.5 * (np.log(total) + square * (1.0 / total - 1.0))
        highest = logs.max(axis=1, keepdims=True)
        likely, weights = np.exp(logs - highest), np.full(len(strengths), 1.0 / len(strengths))
        for _ in range(_ROUNDS):
            parts = likely * weights
            parts /= parts.sum(axis=1, keepdims=True)
            weights = parts.sum(axis=0) + 1.0 / len(strengths)  # as if one more cell were like any
            weights /= weights.sum()
        mixed = likely @ weights
        if (held := float((np.log(mixed) + highest[:, 0]).sum())) > best:
            kept = (likely * weights * (1.0 - 1.0 / total)).sum(axis=1) / mixed
            best, found = held, difference.ravel() * kept
    return best, found.reshape(difference.shape)


def ordered_signal(difference: Array, expected: Array, variance: float, alone: Flags) -> Array:
    """The posterior mean of a signal (classes x cells) whose neighbouring cells may differ alike.

    Either cell by cell, as `sparse_signal`, or along the order of the cells: whichever is likelier.
    """
    best, found = sparse_signal(difference, expected, variance)
    for power in _SMOOTH_POWERS:
        shape = np.asarray((np.maximum(expected, 0.0) + 1.0) ** power)
        likely, smooth = _smooth(difference, shape, variance, alone)
        if likely > best:
            best, found = likely, smooth
    return found


def alike(apart: Array) -> Array:
    """The correlation of cells so far apart: of a law that is smooth, but not more than once."""
    return np.asarray((1.0 + apart) * np.exp(-apart))


def _smooth(difference: Array, shape: Array, variance: float, alone: Flags) -> tuple[float, Array]:
    """The likeliest signal of variances like `shape` whose correlation falls along each row.

    Gives its log likelihood against that of noise alone, and its posterior mean.
    """
    best, found = -math.inf, np.zeros_like(difference)
    for likely, kept, vectors in _smooth_readings(difference, shape, variance, alone):
        if (whole := float(likely.sum())) > best:
            best, found = whole, kept @ vectors.T
    return best, found


def smooth_each(difference: Array, shape: Array, variance: float, alone: Flags) -> tuple[Array, Array]:
    """The same for each row by itself: every one has its own reach and strength."""
    best, found = np.full(len(difference), -math.inf), np.zeros_like(difference)
    whole = np.broadcast_to(shape, difference.shape)
    for likely, kept, vectors in _smooth_readings(difference, whole, variance, alone):
        is_better = likely > best
        best = np.where(is_better, likely, best)
        found[is_better] = kept[is_better] @ vectors.T
    return best, found


def _smooth_readings(
    difference: Array, shape: Array, variance: float, alone: Flags
) -> Iterator[tuple[Array, Array, Array]]:
    """For each reach and strength: every row's log likelihood, its posterior mean, and their basis."""
    cells = np.arange(difference.shape[1])
    apart = np.abs(np.subtract.outer(cells, cells)).astype(np.float64)
    apart[(alone | alone[:, None]) & (apart > 0.0)] = _FAR
    rows, columns = shape.mean(axis=1), shape.mean(axis=0)
    mean = max(float(shape.mean()), _FLOOR)
    scale = np.sqrt(columns / mean)
    for reach in _REACHES:
        values, vectors = np.linalg.eigh(np.outer(scale, scale) * alike(apart / reach))
        seen, prior = difference @ vectors, np.outer(rows / mean, np.maximum(values, 0.0))
        for strength in _STRENGTHS:
            total = strength * prior + 1.0  # signal and noise, over noise
            likely = -0.5 * (np.log(total) + seen**2 / variance * (1.0 / total - 1.0)).sum(axis=1)
            yield likely, seen * (1.0 - 1.0 / total), vectors
