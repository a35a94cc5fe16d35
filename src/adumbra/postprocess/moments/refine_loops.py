"""One sweep of the refinement: plain loops for numba, and the same steps in array calls.

A move of column j from code a to l lowers the squared errors if

    S_l - S_a  >  weight + (columns - 1) + (triples with j)
    S_l = weight r_l + sum over other columns k of R[x_k, l] + sum over triples of T[..., l, ...]

where R, r and T are what pair, one-way and triple tables lack. All are multiples of 2^-10 far below
2^43, so every sum is exact, in any order.

Where numbers are scores, what sums of their products (and their sums over each code of the others) lack
counts, too, in M: a score that moves by d adds

    d G - d^2 Q / 2,   G = sum over k of M[j, x_k] u(x_k),   Q = sum over k of u(x_k)^2

with u the score of a number's code, and 1 of any other. Scores are multiples of 2^-4 up to 8.
"""

import itertools
from typing import NamedTuple

import numpy as np

from adumbra.numerics import Array, Ints


class Lacking(NamedTuple):
    """What tables lack, kept up to date while codes move; a plain tuple of arrays for numba."""

    pairs: Array  # codes x codes; 0 inside a column
    single: Array  # of each code
    triples: Array  # cells of all triple tables, flat
    members: Ints  # triples x 3: columns
    strides: Ints  # triples x 3: steps of each column's code in the flat table
    origins: Ints  # first cell of each triple
    own_starts: Ints  # of each column's triples in the next two, and the end
    own_triples: Ints
    own_strides: Ints
    scores: Array  # of each code; empty: no number is a score
    units: Array  # the same, and 1 for each code of other columns
    slots: Ints  # of each code among the moments: a number's codes share one
    is_number: Ints  # of each column: 1 or 0
    moments: Array  # columns x codes


def sweep_loops(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one loop over plain arrays, for numba
    codes: Ints, starts: Ints, lacking: Lacking, weight: float, order: Ints, firsts: Ints
) -> int:
    """Move codes in place, with what tables lack kept up to date; gives the number of moves."""
    pairs, single, triples, members, strides, origins, own_starts, own_triples, own_strides = lacking[:9]
    scores, units, slots, is_number, moments = lacking[9:]
    is_scored = len(scores) > 0
    columns = codes.shape[1]
    most = 0
    for j in range(columns):
        most = max(most, starts[j + 1] - starts[j])
    score = np.empty(most)
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
                    score[v] += pairs[u, start + v]
            old = codes[i, j]
            for q in range(own_starts[j], own_starts[j + 1]):
                t = own_triples[q]
                stride = own_strides[q]
                cell = origins[t] - old * stride
                for c in range(3):
                    cell += codes[i, members[t, c]] * strides[t, c]
                for v in range(levels):
                    score[v] += triples[cell + v * stride]
            if is_scored and is_number[j]:
                total, square = 0.0, 0.0
                for k in range(columns):
                    if k != j:
                        u = starts[k] + codes[i, k]
                        total += moments[j, slots[u]] * units[u]
                        square += units[u] * units[u]
                for v in range(levels):
                    gap = scores[start + v] - scores[start + old]
                    score[v] += gap * total - 0.5 * gap * gap * square
            elif is_scored:
                square = 0.0
                for k in range(columns):
                    if is_number[k]:
                        u = starts[k] + codes[i, k]
                        square += scores[u] * scores[u]
                        for v in range(levels):
                            score[v] += moments[k, start + v] * scores[u]
                score[old] += square
            new = 0
            for v in range(1, levels):
                if score[v] > score[new]:
                    new = v
            least = weight + (columns - 1) + (own_starts[j + 1] - own_starts[j])
            if score[new] - score[old] <= least:
                continue
            moves += 1
            codes[i, j] = new
            single[start + old] += 1.0
            single[start + new] -= 1.0
            for k in range(columns):
                if k != j:
                    u = starts[k] + codes[i, k]
                    pairs[u, start + old] += 1.0
                    pairs[start + old, u] += 1.0
                    pairs[u, start + new] -= 1.0
                    pairs[start + new, u] -= 1.0
                    if is_scored and is_number[j]:
                        change = (scores[start + new] - scores[start + old]) * units[u]
                        moments[j, slots[u]] -= change
                        if is_number[k]:
                            moments[k, slots[start]] -= change
                    elif is_scored and is_number[k]:
                        moments[k, start + new] -= scores[u]
                        moments[k, start + old] += scores[u]
            for q in range(own_starts[j], own_starts[j + 1]):
                t = own_triples[q]
                stride = own_strides[q]
                cell = origins[t]
                for c in range(3):
                    cell += codes[i, members[t, c]] * strides[t, c]
                triples[cell + (old - new) * stride] += 1.0
                triples[cell] -= 1.0
    return moves


def sweep_arrays(  # noqa: PLR0913, PLR0917 - the signature of the compiled form
    codes: Ints, starts: Ints, lacking: Lacking, weight: float, order: Ints, firsts: Ints
) -> int:
    """The same steps in array calls: the form that runs without numba."""
    columns, moves = codes.shape[1], 0
    pairs, single, triples = lacking.pairs, lacking.single, lacking.triples
    moments, is_scored = lacking.moments, len(lacking.scores) > 0
    numbers = np.flatnonzero(lacking.is_number)
    bounds = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts)]
    owned = [slice(int(a), int(b)) for a, b in itertools.pairwise(lacking.own_starts)]
    for i in order:
        places = starts[:-1] + codes[i]
        for step in range(columns):
            j = int((step + firsts[i]) % columns)
            own, tables = bounds[j], lacking.own_triples[owned[j]]
            strides, old = lacking.own_strides[owned[j]], int(codes[i, j])
            inside = (codes[i, lacking.members[tables]] * lacking.strides[tables]).sum(axis=1)
            cells = lacking.origins[tables] + inside - old * strides
            score = pairs[places, own].sum(axis=0) + weight * single[own]
            levels = np.arange(own.stop - own.start)
            score += triples[cells[:, None] + strides[:, None] * levels].sum(axis=0)
            if is_scored and lacking.is_number[j]:
                others = np.delete(places, j)
                units = lacking.units[others]
                total = float(moments[j, lacking.slots[others]] @ units)
                gaps = lacking.scores[own] - lacking.scores[own.start + old]
                score += gaps * total - 0.5 * gaps * gaps * float(units @ units)
            elif is_scored:
                scores = lacking.scores[places[numbers]]
                score += scores @ moments[numbers, own]
                score[old] += float(scores @ scores)
            new = int(score.argmax())
            if score[new] - score[old] <= weight + (columns - 1) + len(tables):
                continue
            moves += 1
            others = np.delete(places, j)
            leaves, enters = int(places[j]), own.start + new
            single[leaves] += 1.0
            single[enters] -= 1.0
            pairs[others, leaves] += 1.0
            pairs[leaves, others] += 1.0
            pairs[others, enters] -= 1.0
            pairs[enters, others] -= 1.0
            if is_scored and lacking.is_number[j]:
                changes = (lacking.scores[enters] - lacking.scores[leaves]) * lacking.units[others]
                moments[j, lacking.slots[others]] -= changes
                both = np.delete(lacking.is_number, j) > 0
                moments[np.delete(np.arange(columns), j)[both], lacking.slots[own.start]] -= changes[
                    both
                ]
            elif is_scored:
                scores = lacking.scores[places[numbers]]
                moments[numbers, enters] -= scores
                moments[numbers, leaves] += scores
            triples[cells + old * strides] += 1.0
            triples[cells + new * strides] -= 1.0
            codes[i, j], places[j] = new, enters
    return moves
