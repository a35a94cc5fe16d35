"""Bounds and levels out of noisy counts: what stands above the noise of all empty cells.

grid         the public cells of a column: 16 for each doubling of a number's size, even ones of dates
thresholds   noisy rows that a block of cells must hold, so that no empty one passes by chance
found_range  the outermost cells that hold rows, by single cells first, then by larger blocks

Proof       src/adumbra/mechanisms/bounds/release.proof.md, of `threshold`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adumbra.numerics import Array
from adumbra.schema.schema import Column, Kind

PARTS = 16  # cells for each doubling
FINEST, COARSEST = -20, 40  # numbers below 2^-20 share a cell with zero
EVEN_CELLS = 1024  # of dates and times, and of whole numbers that are so few
DAY = 86_400_000_000  # microseconds
_TILTS = tuple(step / 50 for step in range(1, 50))

Range = tuple[float, float]


def grid(column: Column) -> Array:
    """Edges of the public cells: edges[c] <= x < edges[c + 1]; the last is above every value."""
    lower, upper = column.limits
    if column.is_whole:
        values = int(upper) - int(lower) + 1
        if column.kind.is_time or values <= EVEN_CELLS:
            step = -(-values // EVEN_CELLS)
            if column.kind is Kind.DATETIME and step > DAY:
                step = -(-step // DAY) * DAY
            inner = np.arange(int(lower), int(upper) + 1, step, dtype=np.float64)
            return np.append(inner, upper + 1.0)
    sizes = _sizes(max(abs(lower), abs(upper)), whole=column.is_whole)
    inner = np.concatenate((-sizes[::-1], [0.0], sizes))
    inner = inner[(inner > lower) & (inner < upper)]
    last = upper + 1.0 if column.is_whole else math.nextafter(upper, math.inf)
    return np.concatenate(([lower], inner, [last]))


def _sizes(largest: float, *, whole: bool) -> Array:
    """The sizes at which cells part: 1 + r/16 times every power of two; exact binary numbers."""
    top = max(COARSEST, math.frexp(largest)[1])
    powers = 2.0 ** np.arange(0 if whole else FINEST, top + 1)
    sizes = np.outer(powers, 1.0 + np.arange(PARTS) / PARTS).ravel()
    return sizes[sizes == np.floor(sizes)] if whole else sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """The noise of one count."""

    scale: float  # standard deviation of a rounded normal, or scale of a discrete Laplace
    step: float  # of the lattice that counts lie on
    is_pure: bool


def threshold(width: int, tests: int, chance: float, noise: CountNoise) -> float:
    """Noise of `width` empty cells passes this in one of so many tests with at most this chance.

    Gaussian  M exp(-t^2 / (2 w sigma^2)) / 2 <= chance, and half a step of rounding per cell;
    Laplace   M (1 - a^2)^-w exp(-a t / b) <= chance, for the best of some tilts a in (0, 1).
    """
    odds, scale = math.log(tests / chance), noise.scale
    if not noise.is_pure:
        return scale * math.sqrt(2.0 * width * max(odds - math.log(2.0), 0.0)) + width * noise.step / 2.0
    return scale * min((odds - width * math.log1p(-tilt * tilt)) / tilt for tilt in _TILTS)


def found_range(counts: Array, limit: Callable[[int], float]) -> tuple[int, int] | None:
    """The first and last cell that hold rows; None if all may be noise.

    Single cells decide. Blocks of 2, 4, ... cells then add what lies wholly outside: thin tails.
    """
    found: tuple[int, int] | None = None
    width = 1
    while width <= len(counts):
        blocks = np.add.reduceat(counts, np.arange(0, len(counts), width))
        passed = np.flatnonzero(blocks > limit(width)).tolist()
        starts = [block * width for block in passed]
        ends = [min(start + width, len(counts)) - 1 for start in starts]
        if found is None:
            found = (starts[0], ends[-1]) if passed else None
        else:
            first = min((start for start, end in zip(starts, ends, strict=True) if end < found[0]),
                        default=found[0])  # fmt: skip
            last = max((end for start, end in zip(starts, ends, strict=True) if start > found[1]),
                       default=found[1])  # fmt: skip
            found = (first, last)
        width *= 2
    return found


def tests_of(cells: int) -> int:
    """How many blocks `found_range` looks at, at most: cells, half as many, ... each rounded up."""
    return 2 * cells + cells.bit_length()


def bounds_of(column: Column, edges: Array, cells: tuple[int, int]) -> Range:
    """The bounds that hold these cells: two different values within the column's own."""
    lower, upper = float(edges[cells[0]]), float(edges[cells[1] + 1])
    _least, most = column.limits
    upper = min(upper - 1.0, most) if column.is_whole else min(upper, most)
    if upper > lower:
        return lower, upper
    return (lower, lower + 1.0) if lower < most else (lower - 1.0, lower)
