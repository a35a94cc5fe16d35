"""The greedy sampler with absolute errors, as published: numbers by weighted medians.

    sum_l |a_l z - b_l| + |z^2 - c|  is least near a weighted median of b_l / a_l with weights |a_l|

Everything is an integer of units 2^-15 (products 2^-30), so both forms give the same rows.
"""

import math
from collections.abc import Callable

import numpy as np

from adumbra.numerics import Array, Ints

Sampler = Callable[[Ints, Ints, Ints, Ints, Ints, Ints, Ints, int], Ints]


def sample_arrays(  # noqa: PLR0913, PLR0917 - the signature of the compiled form
    labels: Ints,
    means: Ints,
    second: Ints,
    start: Ints,
    numeric: Ints,
    starts: Ints,
    stops: Ints,
    one: int,
) -> Ints:
    """The sampler in array calls; `missing` is i E - Q and `lacking` is t_c mu_c - s_c, before y."""
    rows, width = len(labels), means.shape[1]
    out = np.empty((rows, width), np.int64)
    missing, lacking = np.zeros((width, width), np.int64), np.zeros_like(means)
    groups = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    slopes, goals = np.empty(width + 1, np.int64), np.empty(width + 1, np.int64)
    slopes[0] = one
    for i in range(rows):
        c = labels[i]
        lacking[c] += means[c]
        missing += second
        y, need = start[c].copy(), lacking[c]
        for group in groups:
            y[group] = 0
            block = missing[group]
            cost = (np.abs(block - y * one) - np.abs(block)).sum(axis=1)
            diagonal = block[:, group].diagonal()
            cost += np.abs(diagonal - one * one) - np.abs(diagonal)
            cost += (np.abs(need[group] - one) - np.abs(need[group])) * one
            y[group.start + int(cost.argmin())] = one
        for j in numeric:
            y[j] = 0
            goals[0], slopes[1:], goals[1:] = need[j] * one, y, missing[j]
            used = slopes.nonzero()[0]
            proposals = _proposals(slopes[used], goals[used], int(missing[j, j]), int(start[c, j]))
            z = np.rint(np.minimum(np.maximum(proposals, -(one // 2)), one // 2)).astype(np.int64)
            cost = np.abs(goals[used][:, None] - slopes[used][:, None] * z).sum(axis=0)
            cost += np.abs(missing[j, j] - z * z)
            y[j] = z[cost.argmin()]
        need -= y
        missing -= np.multiply.outer(y, y)
        out[i] = y
    return out


def _proposals(slopes: Ints, goals: Ints, square: int, mean: int) -> Array:
    """Where sum |a z - b| + |z^2 - c| may be least: three weighted medians, and the roots themselves.

    |z^2 - c| enters the medians as a straight term: |mean z - c| (the paper), 2r |z - r| or 2r |z + r|
    with r the root of c. The median of the others and one more item is that item, held between two
    quantiles of the others.
    """
    ratios = goals / slopes
    order = ratios.argsort(kind="stable")
    ordered = ratios[order]
    twice = np.abs(slopes[order]).cumsum() * 2
    root = float(np.rint(math.sqrt(max(square, 0))))
    extra = np.array((abs(mean), 2 * int(root), 2 * int(root)))
    item = np.array((square / mean if mean else 0.0, root, -root))
    half = twice[-1] // 2
    low = ordered[twice.searchsorted(half - extra)]
    low[extra >= half] = -np.inf
    high = np.append(ordered, np.inf)[twice.searchsorted(half + extra)]
    return np.append(np.minimum(np.maximum(item, low), high), (root, -root))


def sample_loop(  # noqa: PLR0912, PLR0913, PLR0915, PLR0917, C901 - one loop, for numba
    labels: Ints,
    means: Ints,
    second: Ints,
    start: Ints,
    numeric: Ints,
    starts: Ints,
    stops: Ints,
    one: int,
) -> Ints:
    """The same sampler as one loop; `one` is an argument because numba's cache would keep a constant."""
    rows, width = labels.shape[0], means.shape[1]
    out = np.empty((rows, width), np.int64)
    missing, lacking = np.zeros((width, width), np.int64), np.zeros(means.shape, np.int64)
    y, weight = np.empty(width, np.int64), np.empty(width + 1, np.int64)
    ratio, proposal = np.empty(width + 1, np.float64), np.empty(5, np.float64)
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
                y[v] = 0
            best, best_cost = first, np.int64(0)
            for v in range(first, last):
                cost = (abs(lacking[c, v] - one) - abs(lacking[c, v])) * one
                cost += abs(missing[v, v] - one * one) - abs(missing[v, v])
                for k in range(width):
                    cost += abs(missing[v, k] - y[k] * one) - abs(missing[v, k])
                if v == first or cost < best_cost:
                    best, best_cost = v, cost
            y[best] = one
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
            order = np.argsort(ratio[:count])
            square, mean = missing[j, j], start[c, j]
            root = np.rint(np.sqrt(float(max(square, 0))))
            for t in range(3):
                item, extra = (root if t == 1 else -root), np.int64(2 * root)
                if t == 0:
                    item, extra = (square / mean if mean != 0 else 0.0), abs(mean)
                low, high, twice = -np.inf, np.inf, np.int64(0)
                for k in order:
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
        for k in range(width):
            lacking[c, k] -= y[k]
            out[i, k] = y[k]
            for m in range(width):
                missing[k, m] -= y[k] * y[m]
    return out
