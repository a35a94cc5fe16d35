"""The greedy sampler as plain loops, for numba; `greedy_arrays` has the same steps in array calls.

    squared    level v with the largest  2 R_v . y + R_vv + w r_v;  number: z^3 + A z = B  with
               A = w/2 + sum y_l^2 - R_jj,  B = w r_j / 2 + sum y_l R_jl
    absolute   sum_l |a_l z - b_l| + |z^2 - c|  is least near the median of b_l / a_l weighted by |a_l|

R is what the second moments lack and r what the class sums lack. A row that reduces squared errors most
is a step of Frank and Wolfe: the more rows, the nearer their moments come to the best there is. Squared:
rows are multiples of 2^-15, sums run in one fixed order. Absolute: integers of units 2^-15 throughout.
R (`missing`) and r (`lacking`) are kept up to date in place, so that the next call goes on from there.

All loops stand in this one file, for numba's cache on disk looks at the file of the outermost one only.
Constants are arguments for the same reason.
"""

import math
from collections.abc import Callable

import numpy as np

from adumbra.numerics import Array, Ints

SquaredSampler = Callable[
    [Ints, Array, Array, Array, Array, Array, Ints, Ints, Ints, int, float, int], Array
]
AbsoluteSampler = Callable[[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, int], Ints]

STEPS = 30  # halvings of an interval of length 1: below the grid 2^-15


def begin_row(  # noqa: PLR0913, PLR0917 - the state of a sampler
    c: int,
    y: Array | Ints,
    missing: Array | Ints,
    lacking: Array | Ints,
    means: Array | Ints,
    second: Array | Ints,
    start: Array | Ints,
) -> None:
    """Ask for one more row of class c, and stand at its mean."""
    for k in range(y.shape[0]):
        lacking[c, k] += means[c, k]
        y[k] = start[c, k]
        for m in range(y.shape[0]):
            missing[k, m] += second[k, m]


def end_row(  # noqa: PLR0913, PLR0917 - the state of a sampler
    i: int,
    c: int,
    y: Array | Ints,
    missing: Array | Ints,
    lacking: Array | Ints,
    out: Array | Ints,
) -> None:
    """Write the row down and take it off what is asked for."""
    for k in range(y.shape[0]):
        lacking[c, k] -= y[k]
        out[i, k] = y[k]
        for m in range(y.shape[0]):
            missing[k, m] -= y[k] * y[m]


def take_level(y: Array | Ints, gain: Array | Ints, first: int, last: int, top: float) -> None:
    """Set the level of the largest gain; the first of equal ones."""
    best = first
    for v in range(first + 1, last):
        if gain[v] > gain[best]:
            best = v
    y[best] = top


def rank(values: Array, count: int, order: Ints) -> None:
    """The places of the first `count` values in rising order; few are inserted one by one, as cards."""
    if count > 64:  # a constant of the machine: both ways give the same values in order
        order[:count] = np.argsort(values[:count])
        return
    for k in range(count):
        place = k
        while place > 0 and values[order[place - 1]] > values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k


def best_number(bend: float, pull: float, steps: int) -> float:
    """The z in [-1/2, 1/2] with the least z^4/4 + bend z^2/2 - pull z, by halving."""
    best, least = 0.0, math.inf
    edge = math.sqrt(-bend / 3.0) if bend < 0.0 else 0.0
    for side in range(2 if bend < 0.0 else 1):
        low, high = -0.5, 0.5
        if bend < 0.0 and side == 0:
            low = min(edge, 0.5)
        elif bend < 0.0:
            high = max(-edge, -0.5)
        for _ in range(steps):
            middle = (low + high) / 2.0
            if middle * middle * middle + bend * middle > pull:
                high = middle
            else:
                low = middle
        z = (low + high) / 2.0
        cost = z * z * z * z / 4.0 + bend * z * z / 2.0 - pull * z
        if cost < least:
            best, least = z, cost
    return best


def sample_squared(  # noqa: PLR0913, PLR0917 - plain arrays, for numba
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
    """Rows that reduce squared errors most."""
    rows, width = labels.shape[0], means.shape[1]
    out = np.empty((rows, width))
    y, gain = np.empty(width), np.empty(width)
    for i in range(rows):
        c = labels[i]
        begin_row(c, y, missing, lacking, means, second, start)
        for g in range(starts.shape[0]):
            first, last = starts[g], stops[g]
            y[first:last] = 0.0
            for v in range(first, last):
                total = 0.0
                for k in range(width):
                    total += missing[v, k] * y[k]
                gain[v] = (2.0 * total + missing[v, v]) + weight * lacking[c, v]
            take_level(y, gain, first, last, 1.0)
        for q in range(numeric.shape[0]):
            j = numeric[q]
            y[j] = 0.0
            along, length = 0.0, 0.0
            for k in range(width):
                along += y[k] * missing[j, k]
                length += y[k] * y[k]
            pull = weight / 2.0 * lacking[c, j] + along
            bend = weight / 2.0 + length - missing[j, j]
            y[j] = np.rint(best_number(bend, pull, steps) * one) / one
        end_row(i, c, y, missing, lacking, out)
    return out


def sample_absolute(  # noqa: PLR0912, PLR0913, PLR0917, C901 - one loop, for numba
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
    """Rows that reduce absolute errors most, as published."""
    rows, width = labels.shape[0], means.shape[1]
    out = np.empty((rows, width), np.int64)
    y, gain, weight = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width + 1, np.int64)
    ratio, proposal = np.empty(width + 1, np.float64), np.empty(5, np.float64)
    order = np.empty(width + 1, np.int64)
    for i in range(rows):
        c = labels[i]
        begin_row(c, y, missing, lacking, means, second, start)
        for g in range(starts.shape[0]):
            first, last = starts[g], stops[g]
            y[first:last] = 0
            for v in range(first, last):
                gain[v] = (abs(lacking[c, v]) - abs(lacking[c, v] - one)) * one
                gain[v] += abs(missing[v, v]) - abs(missing[v, v] - one * one)
                for k in range(width):
                    gain[v] += abs(missing[v, k]) - abs(missing[v, k] - y[k] * one)
            take_level(y, gain, first, last, one)
        for q in range(numeric.shape[0]):
            j = numeric[q]
            y[j] = 0
            ratio[0], weight[0] = float(lacking[c, j]), one
            count, half = 1, np.int64(one)
            for k in range(width):
                if y[k] != 0:
                    ratio[count], weight[count] = missing[j, k] / y[k], abs(y[k])
                    half += weight[count]
                    count += 1
            rank(ratio, count, order)
            square, mean = missing[j, j], start[c, j]
            root = np.rint(np.sqrt(float(max(square, 0))))
            for t in range(3):
                item, extra = (root if t == 1 else -root), np.int64(2 * root)
                if t == 0:
                    item, extra = (square / mean if mean != 0 else 0.0), abs(mean)
                low, high, twice = -np.inf, np.inf, np.int64(0)
                for k in order[:count]:
                    twice += 2 * weight[k]
                    if extra < half and low == -np.inf and twice >= half - extra:
                        low = ratio[k]
                    if twice >= half + extra:
                        high = ratio[k]
                        break
                proposal[t] = min(max(item, low), high)
            proposal[3], proposal[4] = root, -root
            chosen, least = np.int64(0), np.int64(0)
            for t in range(5):
                z = np.int64(np.rint(min(max(proposal[t], -(one // 2)), one // 2)))
                cost = abs(lacking[c, j] - z) * one + abs(square - z * z)
                for k in range(width):
                    if y[k] != 0:
                        cost += abs(missing[j, k] - z * y[k])
                if t == 0 or cost < least:
                    chosen, least = z, cost
            y[j] = chosen
        end_row(i, c, y, missing, lacking, out)
    return out


SHARED = (begin_row, end_row, take_level, rank, best_number)  # what the loops call
