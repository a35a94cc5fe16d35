"""The greedy sampler with squared errors: the same steps, with a closed form for each.

    category   the level v with the largest  2 R_v . y + R_vv + w r_v
    number     z^3 + A z = B  with  A = w/2 + sum y_l^2 - R_jj,  B = w r_j / 2 + sum y_l R_jl

R is what the second moments lack and r what the class sums lack. A row that reduces squared errors most
is a step of Frank and Wolfe: the more rows, the nearer their moments come to the best there is.
Rows are multiples of 2^-15 and sums run in one fixed order, so both forms give the same rows.
"""

import math
from collections.abc import Callable

import numpy as np

from adumbra.numerics import Array, Ints

Sampler = Callable[[Ints, Array, Array, Array, Ints, Ints, Ints, int, float, int], Array]

STEPS = 30  # halvings of an interval of length 1: below the grid 2^-15


def sample_arrays(  # noqa: PLR0913, PLR0917 - the signature of the compiled form
    labels: Ints,
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
    """The sampler in array calls; sums by `cumsum`, which adds from left to right as a loop does."""
    rows, width = len(labels), means.shape[1]
    out = np.empty((rows, width))
    missing, lacking = np.zeros((width, width)), np.zeros_like(means)
    groups = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    for i in range(rows):
        c = labels[i]
        lacking[c] += means[c]
        missing += second
        y, need = start[c].copy(), lacking[c]
        for group in groups:
            y[group] = 0.0
            block = missing[group]
            gain = 2.0 * (block * y).cumsum(axis=1)[:, -1] + block[:, group].diagonal()
            y[group.start + int((gain + weight * need[group]).argmax())] = 1.0
        for j in numeric:
            y[j] = 0.0
            pull = weight / 2.0 * float(need[j]) + float((y * missing[j]).cumsum()[-1])
            bend = weight / 2.0 + float((y * y).cumsum()[-1]) - float(missing[j, j])
            y[j] = np.rint(best_number(bend, pull, steps) * one) / one
        need -= y
        missing -= np.multiply.outer(y, y)
        out[i] = y
    return out


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


def sample_loop(  # noqa: PLR0913, PLR0917, C901, PLR0912 - one loop, for numba
    labels: Ints,
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
    """The same sampler as one loop; constants are arguments because numba's cache would keep them."""
    rows, width = labels.shape[0], means.shape[1]
    out = np.empty((rows, width))
    missing, lacking = np.zeros((width, width)), np.zeros(means.shape)
    y = np.empty(width)
    for i in range(rows):
        c = labels[i]
        for k in range(width):
            lacking[c, k] += means[c, k]
            y[k] = start[c, k]
            for m in range(width):
                missing[k, m] += second[k, m]
        for g in range(starts.shape[0]):
            first, last = starts[g], stops[g]
            for v in range(first, last):
                y[v] = 0.0
            best, most = first, 0.0
            for v in range(first, last):
                total = 0.0
                for k in range(width):
                    total += missing[v, k] * y[k]
                gain = (2.0 * total + missing[v, v]) + weight * lacking[c, v]
                if v == first or gain > most:
                    best, most = v, gain
            y[best] = 1.0
        for q in range(numeric.shape[0]):
            j = numeric[q]
            y[j] = 0.0
            along, length = 0.0, 0.0
            for k in range(width):
                along += y[k] * missing[j, k]
                length += y[k] * y[k]
            pull = weight / 2.0 * lacking[c, j] + along
            bend = weight / 2.0 + length - missing[j, j]
            number, least = 0.0, np.inf
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
                    number, least = z, cost
            y[j] = np.rint(number * one) / one
        for k in range(width):
            lacking[c, k] -= y[k]
            out[i, k] = y[k]
            for m in range(width):
                missing[k, m] -= y[k] * y[m]
    return out
