"""The greedy sampler in array calls: the form that runs without numba.

Its two losses share every step but two: the gain of a level, and the best value of a number. Sums run in
the order of the compiled loops (`greedy_loops`), so both forms give the same rows.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.greedy_loops import best_number

ValuesT = TypeVar("ValuesT", Array, Ints)


def sample(  # noqa: PLR0913, PLR0917 - what to follow, where things stand, and the two steps of a loss
    labels: Ints,
    missing: ValuesT,
    lacking: ValuesT,
    means: ValuesT,
    second: ValuesT,
    start: ValuesT,
    numeric: Ints,
    groups: list[slice],
    top: float,
    gains: Callable[[ValuesT, ValuesT, ValuesT, ValuesT], ValuesT],
    number: Callable[[ValuesT, ValuesT, int, int, int], float],
) -> ValuesT:
    """Rows one after another; `missing` is i E - Q and `lacking` is t_c mu_c - s_c, before y."""
    rows, width = len(labels), means.shape[1]
    out = np.empty((rows, width), means.dtype)
    for i in range(rows):
        c = labels[i]
        lacking[c] += means[c]
        missing += second
        y, need = start[c].copy(), lacking[c]
        for group in groups:
            y[group] = 0
            block = missing[group]
            found = gains(block, block[:, group].diagonal(), y, need[group])
            y[group.start + int(found.argmax())] = top
        for j in numeric:
            y[j] = 0
            y[j] = number(y, missing[j], need[j], j, start[c, j])
        need -= y
        missing -= np.multiply.outer(y, y)
        out[i] = y
    return out


def sample_squared(  # noqa: PLR0913, PLR0917 - the signature of the compiled form
    labels: Ints,
    missing: Array,
    lacking: Array,
    means: Array,
    second: Array,
    start: Array,
    numeric: Ints,
    starts: Ints,
    stops: Ints,
    one: int,
    weight: float,
    steps: int,
) -> Array:
    """With squared errors; sums by `cumsum`, which adds from left to right as a loop does."""

    def gains(block: Array, diagonal: Array, y: Array, need: Array) -> Array:
        return 2.0 * (block * y).cumsum(axis=1)[:, -1] + diagonal + weight * need

    def number(y: Array, row: Array, need: float, j: int, _: float) -> float:
        pull = weight / 2.0 * float(need) + float((y * row).cumsum()[-1])
        bend = weight / 2.0 + float((y * y).cumsum()[-1]) - float(row[j])
        return float(np.rint(best_number(bend, pull, steps) * one) / one)

    groups = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    return sample(labels, missing, lacking, means, second, start, numeric, groups, 1.0, gains, number)


def sample_absolute(  # noqa: PLR0913, PLR0917 - the signature of the compiled form
    labels: Ints,
    missing: Ints,
    lacking: Ints,
    means: Ints,
    second: Ints,
    start: Ints,
    numeric: Ints,
    starts: Ints,
    stops: Ints,
    one: int,
) -> Ints:
    """With absolute errors, as published, in integers."""
    slopes, goals = np.empty(means.shape[1] + 1, np.int64), np.empty(means.shape[1] + 1, np.int64)
    slopes[0] = one

    def gains(block: Ints, diagonal: Ints, y: Ints, need: Ints) -> Ints:
        gain: Ints = (np.abs(block) - np.abs(block - y * one)).sum(axis=1)
        gain += np.abs(diagonal) - np.abs(diagonal - one * one)
        gain += (np.abs(need) - np.abs(need - one)) * one
        return gain

    def number(y: Ints, row: Ints, need: int, j: int, mean: int) -> int:
        goals[0], slopes[1:], goals[1:] = need * one, y, row
        used = slopes.nonzero()[0]
        a, b, square = slopes.take(used), goals.take(used), int(row[j])
        found = proposals(a, b, square, int(mean))
        near = [*dict.fromkeys(round(min(max(z, -(one // 2)), one // 2)) for z in found)]
        off = np.abs(np.multiply.outer(np.array(near), a) - b).sum(axis=1).tolist()
        cost = [part + abs(square - z * z) for part, z in zip(off, near, strict=True)]
        return near[cost.index(min(cost))]

    groups = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    return sample(labels, missing, lacking, means, second, start, numeric, groups, one, gains, number)


def proposals(slopes: Ints, goals: Ints, square: int, mean: int) -> list[float]:
    """Where sum |a z - b| + |z^2 - c| may be least: three weighted medians, and the roots themselves.

    |z^2 - c| enters the medians as a straight term: |mean z - c| (the paper), 2r |z - r| or 2r |z + r|
    with r the root of c. The median of the others and one more item is that item, held between two
    quantiles of the others. Past the array calls plain numbers are faster.
    """
    ratios = goals / slopes
    order = ratios.argsort()
    ordered = [*ratios.take(order).tolist(), math.inf]
    sums = np.abs(slopes).take(order).cumsum().tolist()
    root, half = float(round(math.sqrt(max(square, 0)))), sums[-1]
    found = []
    for item, extra in (
        (square / mean if mean else 0.0, abs(mean)),
        (root, 2 * int(root)),
        (-root, 2 * int(root)),
    ):
        low = ordered[bisect_left(sums, (half - extra + 1) // 2)] if extra < half else -math.inf
        found.append(min(max(item, low), ordered[bisect_left(sums, (half + extra + 1) // 2)]))
    return [*found, root, -root]
