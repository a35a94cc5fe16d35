"""One sweep of the refinement: plain loops for numba, and the same steps in array calls.

A move of column j from code a to l lowers the squared errors if

    S_l - S_a  >  weight + (columns - 1),    S_l = weight r_l + sum over other columns k of R[x_k, l]

where R and r are what pair and one-way tables lack. Both are multiples of 2^-10 far below 2^43, so every
sum is exact, in any order.
"""

import itertools

import numpy as np

from adumbra.numerics import Array, Ints


def sweep_loops(  # noqa: PLR0913, PLR0917, C901 - one loop over plain arrays, for numba
    codes: Ints,
    starts: Ints,
    lacking: Array,
    single: Array,
    weight: float,
    order: Ints,
    firsts: Ints,
) -> int:
    """Move codes in place, with what tables lack kept up to date; gives the number of moves."""
    columns = codes.shape[1]
    most = 0
    for j in range(columns):
        most = max(most, starts[j + 1] - starts[j])
    score = np.empty(most)
    least = weight + (columns - 1)
    moves = 0
    for i in order:
        for step in range(columns):
            j = (step + firsts[i]) % columns
            start = starts[j]
            levels = starts[j + 1] - start
            for v in range(levels):
                score[v] = weight * single[start + v]
            for k in range(columns):
                u = starts[k] + codes[i, k]
                for v in range(levels):
                    score[v] += lacking[u, start + v]
            old = codes[i, j]
            new = 0
            for v in range(1, levels):
                if score[v] > score[new]:
                    new = v
            if score[new] - score[old] <= least:
                continue
            moves += 1
            codes[i, j] = new
            single[start + old] += 1.0
            single[start + new] -= 1.0
            for k in range(columns):
                if k != j:
                    u = starts[k] + codes[i, k]
                    lacking[u, start + old] += 1.0
                    lacking[start + old, u] += 1.0
                    lacking[u, start + new] -= 1.0
                    lacking[start + new, u] -= 1.0
    return moves


def sweep_arrays(  # noqa: PLR0913, PLR0917 - the signature of the compiled form
    codes: Ints,
    starts: Ints,
    lacking: Array,
    single: Array,
    weight: float,
    order: Ints,
    firsts: Ints,
) -> int:
    """The same steps in array calls: the form that runs without numba."""
    columns = codes.shape[1]
    bounds = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts)]
    least, moves = weight + (columns - 1), 0
    for i in order:
        places = starts[:-1] + codes[i]
        for step in range(columns):
            j = int((step + firsts[i]) % columns)
            own = bounds[j]
            score = lacking[places, own].sum(axis=0) + weight * single[own]
            old, new = int(places[j]) - own.start, int(score.argmax())
            if score[new] - score[old] <= least:
                continue
            moves += 1
            others = np.delete(places, j)
            leaves, enters = int(places[j]), own.start + new
            single[leaves] += 1.0
            single[enters] -= 1.0
            lacking[others, leaves] += 1.0
            lacking[leaves, others] += 1.0
            lacking[others, enters] -= 1.0
            lacking[enters, others] -= 1.0
            codes[i, j], places[j] = new, enters
    return moves
