"""Bounds and levels out of noisy counts: what stands above the noise of all empty cells.

grid         the public cells of a column: 1 to 16 for each doubling of a number's size, even of dates
threshold    noisy rows that a window of cells must hold, so that no empty one passes by chance
found_range  the outermost cells that hold rows, by single cells first, then by wider windows

Proof       src/adumbra/mechanisms/bounds/release.proof.md, of `threshold`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.schema.schema import Column, Kind

PARTS = (16, 8, 4, 2, 1)  # cells for each doubling, finest first
FINEST, COARSEST = -20, 40  # numbers below 2^-20 share a cell with zero
EVEN_CELLS = 64  # times the parts: of dates and times, and of whole numbers that are so few
NEAR_ZERO = 4.0  # a bound is put at zero if the other is this many times as far from it
DAY = 86_400_000_000  # microseconds
_TILTS = tuple(step / 50 for step in range(1, 50))

Range = tuple[float, float]


def grid(column: Column, parts: int = PARTS[0]) -> Array:
    """Edges of the public cells: edges[c] <= x < edges[c + 1]; the last is above every value."""
    lower, upper = column.limits
    if column.is_whole:
        values = int(upper) - int(lower) + 1
        most = EVEN_CELLS * parts
        if column.kind.is_time or values <= most:
            step = -(-values // most)
            if column.kind is Kind.DATETIME and step > DAY:
                step = -(-step // DAY) * DAY
            inner = np.arange(int(lower), int(upper) + 1, step, dtype=np.float64)
            return np.append(inner, upper + 1.0)
    sizes = _sizes(max(abs(lower), abs(upper)), parts, whole=column.is_whole)
    inner = np.concatenate((-sizes[::-1], [0.0], sizes))
    inner = inner[(inner > lower) & (inner < upper)]
    last = upper + 1.0 if column.is_whole else math.nextafter(upper, math.inf)
    return np.concatenate(([lower], inner, [last]))


def _sizes(largest: float, parts: int, *, whole: bool) -> Array:
    """The sizes at which cells part: 1 + r/parts times every power of two; exact binary numbers."""
    top = max(COARSEST, math.frexp(largest)[1])
    powers = 2.0 ** np.arange(0 if whole else FINEST, top + 1)
    sizes = np.outer(powers, 1.0 + np.arange(parts) / parts).ravel()
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

    Single cells decide. Windows of 2, 4, ... cells then add what lies wholly outside, nearest first:
    thin tails.
    """
    totals = np.concatenate(([0.0], np.cumsum(counts)))
    found: tuple[int, int] | None = None
    width = 1
    while width <= len(counts):
        passed = np.flatnonzero(totals[width:] - totals[:-width] > limit(width))
        if found is None and len(passed):
            found = (
                (int(passed[0]), int(passed[-1]) + width - 1) if width == 1 else _around(passed, width)
            )
        if found is not None:
            first, last = found
            while len(below := passed[passed <= first - width]):
                first = int(below[-1])
            while len(above := passed[passed > last]):
                last = int(above[0]) + width - 1
            found = (first, last)
        width *= 2
    return found


def _around(passed: Ints, width: int) -> tuple[int, int]:
    """The middle one of the windows that passed."""
    start = int(passed[len(passed) // 2])
    return start, start + width - 1


def tests_of(cells: int) -> int:
    """How many windows `found_range` looks at, at most: one per cell and width 1, 2, 4, ..."""
    return cells * cells.bit_length()


def one_further(edges: Array, cells: tuple[int, int]) -> tuple[int, int]:
    """One more cell away from zero on either side: on the coarsest grid a whole tail may be hidden."""
    first = cells[0] - 1 if cells[0] > 0 and edges[cells[0]] < 0.0 else cells[0]
    last = cells[1] + 1 if cells[1] + 2 < len(edges) and edges[cells[1] + 1] > 0.0 else cells[1]
    return first, last


def bounds_of(column: Column, edges: Array, cells: tuple[int, int]) -> Range:
    """The bounds that hold these cells: two different values within the column's own."""
    lower, upper = float(edges[cells[0]]), float(edges[cells[1] + 1])
    least, most = column.limits
    upper = min(upper - 1.0, most) if column.is_whole else min(upper, most)
    if not column.kind.is_time:
        if 0.0 < NEAR_ZERO * lower <= upper:
            lower = max(0.0, least)
        elif lower <= NEAR_ZERO * upper < 0.0:
            upper = min(0.0, most)
    if upper > lower:
        return lower, upper
    return (lower, lower + 1.0) if lower < most else (lower - 1.0, lower)
