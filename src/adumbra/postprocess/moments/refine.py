"""Single values of synthetic rows moved until the rows show given tables.

    minimise   sum over pair and triple cells (wanted - shown)^2  +  ONE_WAY x that of one-way cells

by exact coordinate descent: one sweep over rows and columns; a value moves to the code that lowers the
sum most, if one does. Where columns are scores, what their products (and their sums over codes of other
columns) lose against the rows as they came counts, too: a cell cannot see that many cells together bend
a correlation, and no move would pay for any of them. Wanted counts are multiples of 2^-10, so that every
sum is exact in float64, and numba and numpy give the same rows. Public numbers only.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np

from adumbra.compiled import machine_code
from adumbra.numerics import Array, Ints, table_places
from adumbra.postprocess.greedy import sampler_engine
from adumbra.postprocess.moments.refine_loops import Lacking, sweep_arrays, sweep_loops

Sweep = Callable[[Ints, Ints, Lacking, float, Ints, Ints], int]
ONE_WAY = 10.0  # weight of a one-way cell against that of a pair's
UNIT = 2.0**-10  # of wanted counts
SCORE_UNIT, MOST_SCORE = 2.0**-4, 8.0  # of scores, in standard deviations
_CHUNK = 8192


@dataclass(frozen=True, slots=True)
class Triple:
    """A table of three columns that rows are to show."""

    columns: tuple[int, int, int]
    table: Array = field(repr=False)  # flat, the last column runs fastest


def one_hot(codes: Ints, starts: Ints) -> Array:
    """Codes (rows x columns) as rows of zeros and ones; `starts` has one more entry, the width."""
    rows = np.zeros((len(codes), int(starts[-1])))
    np.put_along_axis(rows, codes + starts[:-1], 1.0, axis=1)
    return rows


def pair_tables(codes: Ints, starts: Ints) -> Array:
    """Counts of every pair of codes; one-way counts on the diagonal."""
    width = int(starts[-1])
    total = np.zeros((width, width))
    for first in range(0, len(codes), _CHUNK):
        rows = one_hot(codes[first : first + _CHUNK], starts)
        total += rows.T @ rows
    return total


def refine(  # noqa: PLR0913 - rows, tables, and how
    codes: Ints,
    starts: Ints,
    wanted: Array,
    rng: np.random.Generator,
    *,
    triples: Sequence[Triple] = (),
    scores: Sequence[Array | None] = (),
    engine: Literal["numba", "numpy"] | None = None,
) -> Ints:
    """Codes like these whose tables are nearer to the wanted: pairs, one-way (the diagonal), triples.

    `scores` are those of the codes of each column, None of columns without: second moments are kept.
    """
    moved = codes.copy()
    lacking = lacking_of(codes, starts, wanted, triples, scores)
    order = rng.permutation(len(codes))
    firsts = rng.integers(0, codes.shape[1], len(codes))
    compiled = (engine or sampler_engine()) == "numba"
    sweep = compiled_sweep() if compiled else sweep_arrays
    sweep(moved, starts, lacking, ONE_WAY, order, firsts)
    return moved


def lacking_of(
    codes: Ints,
    starts: Ints,
    wanted: Array,
    triples: Sequence[Triple],
    scores: Sequence[Array | None] = (),
) -> Lacking:
    """What the tables of these rows lack of the wanted ones, in multiples of the unit."""
    pairs = np.rint(wanted / UNIT) * UNIT - pair_tables(codes, starts)
    single = np.diagonal(pairs).copy()
    for start, stop in itertools.pairwise(starts):
        pairs[start:stop, start:stop] = 0.0  # a column with itself is no pair, and stays 0
    sizes = np.diff(starts).tolist()
    members = np.array([t.columns for t in triples], np.int64).reshape(-1, 3)
    steps = [(sizes[b] * sizes[c], sizes[c], 1) for _, b, c in members]
    strides = np.array(steps, np.int64).reshape(-1, 3)
    ends = np.cumsum([len(t.table) for t in triples], dtype=np.int64)
    flat = [
        np.rint(t.table / UNIT) * UNIT
        - np.bincount(table_places(codes, t.columns, sizes), minlength=len(t.table))
        for t in triples
    ]
    by_column = np.argsort(members.ravel(), kind="stable")
    found, units, slots, is_number = _placed(starts, scores)
    return Lacking(
        pairs=pairs,
        single=single,
        triples=np.concatenate([*flat, np.zeros(0)]),
        members=members,
        strides=strides,
        origins=np.concatenate(([0], ends))[: len(triples)].astype(np.int64),
        own_starts=np.searchsorted(members.ravel()[by_column], np.arange(len(starts))).astype(np.int64),
        own_triples=(by_column // 3).astype(np.int64),
        own_strides=strides.ravel()[by_column],
        scores=found,
        units=units,
        slots=slots,
        is_number=is_number,
        moments=np.zeros((len(starts) - 1 if len(found) else 0, len(found))),
    )


def _placed(starts: Ints, scores: Sequence[Array | None]) -> tuple[Array, Array, Ints, Ints]:
    """Score and factor of each code, where its moments are kept, and which columns have scores."""
    is_number = np.array([own is not None for own in scores], np.int64)
    if not is_number.any():
        nowhere = np.zeros(0, np.int64)
        return np.zeros(0), np.zeros(0), nowhere, nowhere
    width = int(starts[-1])
    found, units, slots = np.zeros(width), np.ones(width), np.arange(width)
    for start, stop, own in zip(starts[:-1].tolist(), starts[1:].tolist(), scores, strict=True):
        if own is not None:
            rounded = np.clip(np.rint(own / SCORE_UNIT) * SCORE_UNIT, -MOST_SCORE, MOST_SCORE)
            found[start:stop], units[start:stop], slots[start:stop] = rounded, rounded, start
    return found, units, slots, is_number


@lru_cache(maxsize=1)
def compiled_sweep() -> Sweep:
    """The loop as machine code, cached on disk where there is a writable place."""
    return machine_code(sweep_loops)
