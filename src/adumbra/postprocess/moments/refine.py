"""Single values of synthetic rows moved until the rows show given pair tables.

    minimise   sum over pair cells (wanted - shown)^2  +  ONE_WAY x the same over one-way cells

by exact coordinate descent: one sweep over rows and columns; a value moves to the code that lowers the
sum most, if one does. Wanted counts are multiples of 2^-10, so that every sum is exact in float64, and
numba and numpy give the same rows. Public numbers only.
"""

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.greedy import sampler_engine
from adumbra.postprocess.moments.refine_loops import sweep_arrays, sweep_loops

Sweep = Callable[[Ints, Ints, Array, Array, float, Ints, Ints], int]
ONE_WAY = 10.0  # weight of a one-way cell against that of a pair's
UNIT = 2.0**-10  # of wanted counts
_CHUNK = 8192


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


def refine(
    codes: Ints,
    starts: Ints,
    wanted: Array,
    rng: np.random.Generator,
    *,
    engine: Literal["numba", "numpy"] | None = None,
) -> Ints:
    """Codes like these whose pair tables (and one-way tables, the diagonal) are nearer to the wanted."""
    moved = codes.copy()
    lacking = np.rint(wanted / UNIT) * UNIT - pair_tables(codes, starts)
    single = np.diagonal(lacking).copy()
    for start, stop in itertools.pairwise(starts):
        lacking[start:stop, start:stop] = 0.0  # a column with itself is no pair, and stays 0
    order = rng.permutation(len(codes))
    firsts = rng.integers(0, codes.shape[1], len(codes))
    compiled = (engine or sampler_engine()) == "numba"
    sweep = compiled_sweep() if compiled else sweep_arrays
    sweep(moved, starts, lacking, single, ONE_WAY, order, firsts)
    return moved


@lru_cache(maxsize=1)
def compiled_sweep() -> Sweep:
    """The loop as machine code, cached on disk where there is a writable place."""
    import numba  # noqa: PLC0415  (optional, and slow to import)

    try:
        made: Sweep = numba.njit(nogil=True, cache=True)(sweep_loops)
    except RuntimeError:  # numba found no writable place for its cache
        made = numba.njit(nogil=True)(sweep_loops)
    return made
