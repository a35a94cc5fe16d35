"""Numbers that a proof may lean on: lattice values, exact integers in float64, directed rounding.

A `Lattice` is an exact array: `units * 2**exponent` with int64 units. Whatever feeds a guarantee is
either such a value or a float rounded toward more noise (`round_up`, `*_upper`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import InvalidInput

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

ROW_BITS = 15  # b: bounded rows are integers in units of 2^-15 of their norm bound
MATRIX_BITS = 20  # q: public matrices are integers in units of 2^-20
EXACT = 2**53  # integers below this are exact in float64, and so are their sums in any order
_SMALLEST = 1023  # 2^-1022 is the smallest normal float
_CACHED_VALUES = 2**15  # that go through several steps before the next ones do
NOISE_BLOCK = 4096  # rows that share one noise key, by global row number; a constant of the format


@dataclass(frozen=True, slots=True)
class Lattice:
    """The exact array `units * 2**exponent`; the only kind of value that noise is added to."""

    units: Ints
    exponent: int

    def __post_init__(self) -> None:
        if not isinstance(self.units, np.ndarray) or self.units.dtype != np.int64:
            kind = type(self.units).__name__
            raise InvalidInput(f"units of type {kind}: a Lattice holds an int64 array; quantise first")

    @property
    def grid(self) -> float:
        """The distance of two neighbouring values."""
        return math.ldexp(1.0, self.exponent)

    def to_float(self, order: Literal["K", "F"] = "K") -> Array:
        """The value as float64: exact while |units| < 2^53, which holds for whatever `noise` returns."""
        values = self.units.astype(np.float64, order=order)
        if abs(self.exponent) < _SMALLEST:  # the grid is a float: a product is rounded as `ldexp` rounds
            values *= self.grid
        else:
            np.ldexp(values, self.exponent, out=values)
        return values


def coarsen(value: Lattice, exponent: int) -> Lattice:
    """Round an exact value to the coarser grid 2**exponent (halves go up); a finer grid changes nothing.

    Each coordinate moves by at most half a grid step, so two neighbours' difference grows by at most
    one step per coordinate: g sqrt(D) in L2, g D in L1 (docs/theory.md T4). Whoever calibrates noise for
    the rounded value adds that to the sensitivity.
    """
    shift = exponent - value.exponent
    if shift <= 0:
        return value
    if shift > 63:  # below half a step, whatever the units are
        return Lattice(np.zeros_like(value.units), exponent)
    half = np.int64(1) << np.int64(shift - 1)
    # floor((u + half) / 2^shift) without the overflow of u + half near the int64 edge
    floor, low = value.units >> shift, value.units & np.int64(2**shift - 1)
    return Lattice(floor + (low >= half), exponent)


def few_columns(rows: int, columns: int) -> Iterator[slice]:
    """The columns of a block, a few at a time: what several steps make of them stays in the cache."""
    step = max(1, _CACHED_VALUES // max(rows, 1))
    for first in range(0, columns, step):
        yield slice(first, min(first + step, columns))


def row_squares(x: Array) -> Array:
    """sum_j x_ij^2 of each row, added in the order of j.

    A row's float sum must not depend on the other rows, their number or the order of memory (einsum and
    BLAS choose their order by these), so every step is element-wise over the rows.
    """
    total = np.zeros(len(x))
    for few in few_columns(*x.shape):
        add_squares(total, x[:, few])
    return total


def add_squares(total: Array, x: Array) -> None:
    """Add the squares of further columns to the total of each row, one column after the other."""
    for column in np.square(x).T:
        total += column


def round_up(x: float) -> float:
    """The next float above x: absorbs the half-ulp of the operation that made x."""
    return math.nextafter(x, math.inf)


def sqrt_upper(x: float) -> float:
    """A float not below the square root of x."""
    root = math.sqrt(x)
    return root if Fraction(root) ** 2 >= Fraction(x) else round_up(root)


def sum_upper(*terms: float) -> float:
    """A float not below the real sum of the (float) terms."""
    exact = sum((Fraction(term) for term in terms), Fraction(0))
    return fraction_upper(exact)


def product_upper(*factors: float) -> float:
    """A float not below the real product of the (float) factors."""
    exact = Fraction(1)
    for factor in factors:
        exact *= Fraction(factor)
    return fraction_upper(exact)


def fraction_upper(exact: Fraction) -> float:
    """The smallest float that is not below an exact rational."""
    nearest = exact.numerator / exact.denominator
    return nearest if Fraction(nearest) >= exact else round_up(nearest)


def grid_exponent(sigma: float, bits: int = 24) -> int:
    """The exponent of the coarsest power-of-two grid not above sigma * 2**-bits."""
    if not (math.isfinite(sigma) and sigma > 0):
        message = f"sigma={sigma}: must be finite and above 0"
        raise InvalidInput(message)
    return math.frexp(sigma)[1] - 1 - bits


def figure_upper(value: float, digits: int = 6) -> str:
    """A guarantee or a spend for print: so many significant digits, never below what it stands for.

    The value is read as the shortest decimal that gives the same float, so 0.1 is printed as 0.1.
    """
    return _figure(value, digits, ROUND_CEILING)


def figure_lower(value: float, digits: int = 6) -> str:
    """A budget that is said to be left, for print: never above what it stands for."""
    return _figure(value, digits, ROUND_FLOOR)


def _figure(value: float, digits: int, rounding: str) -> str:
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(rounded):.{digits}g}"


def table_places(codes: Ints, columns: tuple[int, ...], sizes: Sequence[int]) -> Ints:
    """The cell of each row in the joint table of some columns; the last one runs fastest."""
    places = codes[:, columns[0]]
    for column in columns[1:]:
        places = places * sizes[column] + codes[:, column]
    return np.asarray(places, np.int64)
