"""Rows whose norm is proven and which lie on the lattice: the only maker of `BoundedRows`.

    z = rint(2^15 x / norm),  then  sum z^2 <= 4^15 checked on integers         (bound_rows)

The check on integers is the only thing a proof may use. Everything here is total: whatever floats come
in, a row that would break the bound is scaled down until it holds.

Proof       bounds.proof.md
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import InvalidInput, require
from adumbra.matrices import ProjectionMatrix
from adumbra.numerics import (
    EXACT,
    ROW_BITS,
    Array,
    Ints,
    Lattice,
    add_squares,
    few_columns,
    row_squares,
)

CLIP_BITS = 22  # a clipped projected row is held in units of about radius * 2^-22
FEW = 8  # up to one row in so many is taken out and checked apart; with more, all rows are checked
_SHRINK = 1.0 - 2.0**-12  # one step of "scaled down until it holds"


_SILENT = np.errstate(all="ignore")  # a warning would tell of a cell; the integer check needs none


@dataclass(frozen=True, slots=True)
class BoundedRows:
    """Integer rows (held in float64, so that BLAS sums them exactly) with sum z^2 <= limit, each."""

    units: Array  # rows x width; the real value is units * norm * 2**-ROW_BITS
    norm: float
    limit: int = 4**ROW_BITS
    labels: Ints | None = None  # class codes, one per row, where a statistic needs them


@dataclass(frozen=True, slots=True)
class BoundedElements:
    """Integer rows in which every cell is bounded by its own column alone: |z| <= half_width."""

    units: Array  # the real value is units * 2**-ROW_BITS
    half_width: int = 2 ** (ROW_BITS - 1)


@_SILENT
def bound_rows(x: Array, norm: float, *, labels: Ints | None = None, owned: bool = False) -> BoundedRows:
    """Divide rows by their public norm bound, shorten the longer ones, put them on the lattice.

    `owned`: x is nobody else's and may be overwritten, which saves a block of memory traffic.
    """
    require(math.isfinite(norm) and norm > 0, f"norm={norm}: must be finite and above 0")
    place = x if owned and x.flags.f_contiguous else np.empty(x.shape, order="F")
    scaled, square = _scaled(x, 2.0**ROW_BITS / norm, place)
    units = _into_ball(scaled, square, 4**ROW_BITS)
    return BoundedRows(units=units, norm=norm, labels=labels)


@_SILENT
def bound_elements(x: Array) -> BoundedElements:
    """Put encoded cells of [-1/2, 1/2] on the lattice, each bounded by itself (no row is looked at)."""
    half = 2.0 ** (ROW_BITS - 1)
    units = np.nan_to_num(np.rint(x * 2.0**ROW_BITS), nan=0.0, posinf=half, neginf=-half)
    return BoundedElements(units=np.clip(units, -half, half, out=units))


def augment(rows: BoundedRows, columns: Array, limit: int) -> BoundedRows:
    """Append integer columns whose squares sum to at most `limit` in every row (checked)."""
    integral = bool(np.all(columns == np.rint(columns)))
    bounded = bool(np.all(row_squares(columns) <= limit))
    if not (integral and bounded):
        raise InvalidInput(
            f"limit={limit}: appended columns must be integers within it; bound them first"
        )
    units = np.concatenate([rows.units, columns], axis=1)
    return BoundedRows(units=units, norm=rows.norm, limit=rows.limit + limit, labels=rows.labels)


def with_constant(rows: BoundedRows, units: int) -> BoundedRows:
    """Append the constant `units` to every row: the Gram then holds the sum and the count too."""
    return augment(rows, np.full((len(rows.units), 1), float(units)), units**2)


def with_classes(rows: BoundedRows, classes: int, units: int) -> BoundedRows:
    """Append the one-hot of the row's class times `units`: the Gram holds class sums and class counts.

    A label outside 0..classes-1 appends zeros: that row has no class, which the bound allows.
    """
    if rows.labels is None:
        raise InvalidInput("labels=None: class columns need labels; declare a label in the schema")
    hot = (rows.labels[:, None] == np.arange(classes)[None, :]) * float(units)
    return augment(rows, hot, units**2)


def project(rows: BoundedRows | BoundedElements, matrix: ProjectionMatrix) -> Array:
    """The exact product with a public lattice matrix, as integers in float64 on 2^-(15+20).

    Every partial sum of a column is an integer below 2^53 (checked from the matrix), so BLAS is exact
    whatever its order.
    """
    if isinstance(rows, BoundedRows):
        worst = math.sqrt(rows.limit) * matrix.longest_column
    else:
        worst = rows.half_width * matrix.largest_column
    if worst * (1 + 2**-40) >= EXACT:
        raise InvalidInput("matrix: a column is too long for exact products; scale it down")
    exact: Array = (matrix.units.T @ rows.units.T).T  # column by column, as the next steps go through it
    return exact


@_SILENT
def clip_projected(exact: Array, exponent: int, radius: float) -> Lattice:
    """Shorten exact rows (integers on 2**exponent) to the radius, on a lattice of radius * 2^-22 or so.

    Both neighbours' rows end inside the ball of that radius as integers, hence they differ by at most
    twice the radius in L2 whatever the floats in between did.
    """
    require(math.isfinite(radius) and radius > 0, f"radius={radius}: must be finite and above 0")
    out = math.frexp(radius)[1] - CLIP_BITS
    limit = math.floor(Fraction(radius) ** 2 / Fraction(4) ** out)
    scaled, square = _scaled(exact, 2.0 ** (exponent - out), np.empty(exact.shape, order="F"))
    units = _into_ball(scaled, square, limit)
    return Lattice(units.astype(np.int64, order="C"), out)  # row by row, as noise goes through it


def _scaled(x: Array, factor: float, place: Array) -> tuple[Array, Array]:
    """Rows times a factor, written to `place`, and `row_squares` of them while they are in the cache."""
    square = np.zeros(len(x))
    for few in few_columns(*x.shape):
        add_squares(square, np.multiply(x[:, few], factor, out=place[:, few]))
    return place, square


def _into_ball(y: Array, square: Array, limit: int) -> Array:
    """The nearest integers to y, shortened where needed so that sum z^2 <= limit holds in every row.

    Overwrites y; `square` is its `row_squares`. What happens to a row depends on that row alone: also
    whether it may be shortened. Rows are aimed a hair inside the sphere: rounding moves |y|^2 by about
    |y| sqrt(1/3), so without the hair half of the clipped rows would break the check and be shrunk a
    second time.
    """
    radius = math.sqrt(limit)
    safe = max(radius - math.sqrt(y.shape[1]) / 2.0 - 1.0, 0.0)  # |rint(y)| <= |y| + sqrt(d)/2
    near = ~(square <= safe * safe)  # not `>`: NaN and overflow are near too
    places = np.flatnonzero(near)
    if len(places) > len(y) // FEW:
        return _checked(_shortened(y, square, near, limit), limit)
    shortened = y[places]
    np.rint(y, out=y)
    if len(places):
        y[places] = _checked(_shortened(shortened, square[places], near[places], limit), limit)
    return y


def _shortened(y: Array, square: Array, near: NDArray[np.bool_], limit: int) -> Array:
    """Near rows longer than the aim scaled to it; a NaN or overflowing square makes the zero row."""
    aim = max(math.sqrt(limit) - 4.0 - y.shape[1] / 2.0**17, 0.0)
    finite = np.isfinite(square)
    y[~finite] = 0.0
    long = near & finite & (square > aim * aim)
    factor = np.ones(len(y))
    factor[long] = aim / np.sqrt(square[long])
    y *= factor[:, None]
    return y


def _checked(y: Array, limit: int) -> Array:
    """Rounded rows, shrunk until the integer check holds."""
    units = np.rint(y, out=y)
    over = np.flatnonzero(row_squares(units) > limit)
    while len(over):
        units[over] = np.trunc(units[over] * _SHRINK)
        over = over[row_squares(units[over]) > limit]
    return units
