"""Rows whose class means and second moments follow given ones: the greedy sampler of the LDA paper.

    row i, class c:  make  s_c + y - t_c mu_c  and  Q + y y^T - i E  small, one feature of y at a time

Categories first (each level is tried, numbers stand at their class mean), then numbers. Classes come by
quota. `loss="absolute"` is the paper's; `"squared"` has the same steps, and its moments converge. All of
it is arithmetic on released numbers without randomness, and numba and numpy give the same rows.
"""

import importlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from adumbra.compiled import machine_code
from adumbra.errors import require
from adumbra.numerics import ROW_BITS, Array, Ints
from adumbra.postprocess import greedy_arrays, greedy_loops
from adumbra.postprocess.decode import block_sizes

Loss = Literal["squared", "absolute"]
Engine = Literal["numba", "numpy"]

ONE = 2**ROW_BITS
HALF = 2 ** (ROW_BITS - 1)
SUM_WEIGHT = 2.0  # of a class sum: as much as a product, which the symmetric matrix holds twice
_ROOM = 2**31  # rows x columns: sums of residuals (each below rows * 2^31) stay inside int64


@dataclass(frozen=True, slots=True)
class Targets:
    """What the rows are to reproduce, in the encoder's columns; numbers lie in [-1/2, 1/2]."""

    shares: Array  # of each class, above 0, sum 1
    means: Array  # classes x width
    second: Array  # width x width: the average of y y^T over all classes
    numeric: tuple[int, ...]
    groups: tuple[slice, ...]


def sampler_engine() -> str:
    """The form that runs: "numba" where it can be loaded, else "numpy"; ADUMBRA_NOISE forces one."""
    forced = os.environ.get("ADUMBRA_NOISE", "")
    return forced or ("numba" if _has_numba() else "numpy")


@lru_cache(maxsize=1)
def _has_numba() -> bool:
    """Whether numba can be loaded: a broken installation must not cost a release that is paid for."""
    try:
        importlib.import_module("numba")
    except Exception:  # noqa: BLE001  (it raises what it likes)
        return False
    return True


def most_rows(width: int) -> int:
    """The rows that can be drawn of so many encoded columns."""
    return (_ROOM - 1) // max(width, 1)


def greedy_rows(
    targets: Targets, rows: int, *, loss: Loss = "squared", engine: Engine | None = None
) -> tuple[Array, Ints]:
    """`rows` encoded rows and their class codes."""
    made, labels = zip(*greedy_blocks(targets, rows, loss=loss, engine=engine), strict=True)
    return np.concatenate(made), np.concatenate(labels)


def greedy_blocks(
    targets: Targets, rows: int, *, loss: Loss = "squared", engine: Engine | None = None
) -> Iterator[tuple[Array, Ints]]:
    """The same block by block: what the moments still lack is carried on, so blocks change no row."""
    width = len(targets.second)
    require(rows >= 1, f"rows={rows}: must be at least 1")
    most = most_rows(width)
    require(
        rows <= most,
        f"rows={rows}: with {width} encoded columns at most {most} can be drawn; ask for less",
    )
    high = np.full(width, HALF)
    low = -high
    for group in targets.groups:
        low[group], high[group] = 0, ONE
    means = np.clip(np.rint(targets.means * ONE), -(2.0**30), 2.0**30)
    second = np.clip(np.rint(targets.second * ONE * ONE), -(2.0**31), 2.0**31)
    start = np.clip(means, low, high)
    starts: Ints = np.array([group.start for group in targets.groups], np.int64)
    stops: Ints = np.array([group.stop for group in targets.groups], np.int64)
    numeric: Ints = np.array(targets.numeric, np.int64)
    compiled = (engine or sampler_engine()) == "numba"
    orders = class_orders(targets.shares, block_sizes(rows, width))
    if loss == "absolute":
        absolute = compiled_absolute() if compiled else greedy_arrays.sample_absolute
        whole = (means.astype(np.int64), second.astype(np.int64), start.astype(np.int64))
        asked = np.zeros((width, width), np.int64), np.zeros(means.shape, np.int64)
        for labels in orders:
            made = absolute(labels, *asked, *whole, numeric, starts, stops, ONE)
            yield made.astype(np.float64) / ONE, labels
        return
    squared = compiled_squared() if compiled else greedy_arrays.sample_squared
    real = (means / ONE, second / ONE**2, start / ONE)
    lacks, steps = (np.zeros((width, width)), np.zeros(means.shape)), greedy_loops.STEPS
    for labels in orders:
        yield squared(labels, *lacks, *real, numeric, starts, stops, ONE, SUM_WEIGHT, steps), labels


def class_orders(shares: Array, sizes: Iterable[int]) -> Iterator[Ints]:
    """The class of each row, in blocks: the one furthest behind its share, so quotas hold all along.

    Shares become whole numbers first: no float decides.
    """
    quotas = np.maximum(np.rint(shares / shares.sum() * 2.0**31), 1.0).astype(np.int64)
    total, taken = int(quotas.sum()), np.zeros(len(quotas), np.int64)
    done = 0
    for size in sizes:
        order = np.empty(size, np.int64)
        for i in range(size):
            c = int(np.argmax(quotas * (done + i + 1) - taken * total)) if len(quotas) > 1 else 0
            taken[c] += 1
            order[i] = c
        done += size
        yield order


@lru_cache(maxsize=1)
def compiled_absolute() -> greedy_loops.AbsoluteSampler:
    """The loop with absolute errors as machine code."""
    return machine_code(greedy_loops.sample_absolute, greedy_loops.SHARED)


@lru_cache(maxsize=1)
def compiled_squared() -> greedy_loops.SquaredSampler:
    """The loop with squared errors as machine code."""
    return machine_code(greedy_loops.sample_squared, greedy_loops.SHARED)
