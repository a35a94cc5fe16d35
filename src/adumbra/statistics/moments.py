"""Exact sums of bounded rows: count, sum, Gram, and the Gram of each class.

    sum z,   sum z z^T,   sum over class c of z z^T          z integer rows with |z|^2 <= limit

The Gram of augmented rows (`data.bounds.with_constant`, `with_classes`) holds count, sums, class sums
and class counts at once; its sensitivity, label change included, is that of a plain Gram with the larger
limit. Values are on 2^-15 (sums) and 2^-30 (Grams) of the unit ball.

A `BlockGram` is a chosen part of one Gram: blocks of columns with themselves, every column with a tail.

    z = (x_1, ..., x_B, t)      entries of x_b x_b^T (upper triangle), x t^T, t t^T (upper triangle)

With one block this is the whole Gram. With more, memory and time stay bounded in the width, and the
entries are still a part of the one matrix z z^T, so that its sensitivity covers them.

Proof       moments.proof.md, of every function named `*_sensitivity`;
            block_gram.proof.md, of `BlockGram`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from adumbra.data.bounds import BoundedRows
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import (
    EXACT,
    ROW_BITS,
    Array,
    Ints,
    product_upper,
    round_up,
    sqrt_upper,
)
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity

UNIT_LIMIT = 4**ROW_BITS  # the integer squared norm of the unit ball


def upper_triangle(matrix: Ints) -> Ints:
    """The entries i <= j of the last two axes, row by row: what is noised, once."""
    rows, columns = np.triu_indices(matrix.shape[-1])
    return np.ascontiguousarray(matrix[..., rows, columns])


def symmetric(upper: Array, width: int) -> Array:
    """The symmetric matrix of an upper triangle: symmetric by construction."""
    rows, columns = np.triu_indices(width)
    full = np.zeros((*upper.shape[:-1], width, width))
    full[..., rows, columns] = upper
    full[..., columns, rows] = upper
    return full


def frobenius_weights(width: int) -> Array:
    """Noise multipliers of an upper triangle in Frobenius-isometric coordinates: 1 and 1/sqrt(2).

    A coordinate off the diagonal is sqrt(2) A_ij, so its noise sigma is sigma / sqrt(2) on A_ij; the
    division is rounded up.
    """
    rows, columns = np.triu_indices(width)
    return np.where(rows == columns, 1.0, round_up(math.sqrt(0.5)))


def sum_sensitivity(width: int, limit: int, neighbours: Neighbours) -> Sensitivity:
    """|sum z| moves by B (add-remove) or 2B (replace-one) in L2, sqrt(p) times that in L1."""
    radius = sqrt_upper(limit / UNIT_LIMIT)
    l2 = radius * _moves(neighbours)
    return Sensitivity(l1=product_upper(sqrt_upper(width), l2), l2=l2)


def gram_sensitivity(width: int, limit: int, neighbours: Neighbours) -> Sensitivity:
    """The upper triangle of the Gram in L1, and the Gram in Frobenius norm (docs/theory.md T6, T7).

    add-remove    L1 (p+1)/2 B^2,    F  B^2
    replace-one   L1 min(sqrt(p(p+3)/2), p/sqrt2 + 1) B^2,    F  sqrt2 B^2
    """
    square = limit / UNIT_LIMIT
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=product_upper((width + 1) / 2, square), l2=square)
    _moves(neighbours)
    root = min(sqrt_upper(width * (width + 3) / 2), round_up(round_up(width * math.sqrt(0.5)) + 1.0))
    return Sensitivity(l1=product_upper(root, square), l2=product_upper(sqrt_upper(2.0), square))


def class_gram_sensitivity(width: int, limit: int, neighbours: Neighbours) -> Sensitivity:
    """One Gram per class; a row may change its class.

    A move across classes changes two blocks by z z^T and z' z'^T: sqrt2 B^2 in Frobenius norm, no more
    than a move inside a class, but (p+1) B^2 in L1 of the upper triangles.
    """
    square = limit / UNIT_LIMIT
    within = gram_sensitivity(width, limit, neighbours)
    if neighbours is Neighbours.ADD_REMOVE:
        return within
    across = product_upper(float(width + 1), square)
    return Sensitivity(l1=max(within.l1, across), l2=within.l2)


def class_sum_sensitivity(width: int, limit: int, neighbours: Neighbours) -> Sensitivity:
    """One sum per class; a row may change its class.

    Inside a class |z - z'| <= 2B; across classes two sums change by at most B each: sqrt2 B in L2, and
    at most 2 sqrt(p) B in L1 both ways.
    """
    return sum_sensitivity(width, limit, neighbours)


def _moves(neighbours: Neighbours) -> float:
    """How many rows' worth a neighbour changes: 1 for add-remove, 2 for replace-one."""
    if neighbours is Neighbours.ADD_REMOVE:
        return 1.0
    if neighbours is Neighbours.REPLACE_ONE:
        return 2.0
    raise Unsupported(
        f"neighbours={neighbours}: sums of bounded rows have no proof for it; use unit=row"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum:
    """sum z over bounded rows; with `classes`, one sum per class (rows of other labels are left out)."""

    width: int
    limit: int = UNIT_LIMIT
    classes: int | None = None
    exponent: int = -ROW_BITS

    def zero(self) -> Ints:
        """No rows: the zero vector."""
        return np.zeros((self.width,) if self.classes is None else (self.classes, self.width), np.int64)

    def add(self, total: Ints, rows: BoundedRows) -> Ints:
        """Exact: integers below 2^53 in every partial sum of a block."""
        _require_rows(rows, self.width, self.limit)
        if self.classes is None:
            total += rows.units.sum(axis=0).astype(np.int64)
        else:
            for code, units in _by_class(rows, self.classes):
                total[code] += units.sum(axis=0).astype(np.int64)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `sum_sensitivity`."""
        return (sum_sensitivity if self.classes is None else class_sum_sensitivity)(
            self.width, self.limit, neighbours
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gram:
    """sum z z^T over bounded rows; with `classes`, one Gram per class."""

    width: int
    limit: int = UNIT_LIMIT
    classes: int | None = None
    exponent: int = -2 * ROW_BITS

    def zero(self) -> Ints:
        """No rows: the zero matrix."""
        shape = (self.width, self.width)
        return np.zeros(shape if self.classes is None else (self.classes, *shape), np.int64)

    def add(self, total: Ints, rows: BoundedRows) -> Ints:
        """Exact: float64 BLAS on integers, added as int64."""
        _require_rows(rows, self.width, self.limit)
        if self.classes is None:
            total += (rows.units.T @ rows.units).astype(np.int64)
        else:
            for code, units in _by_class(rows, self.classes):
                total[code] += (units.T @ units).astype(np.int64)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `gram_sensitivity` and `class_gram_sensitivity`."""
        return (gram_sensitivity if self.classes is None else class_gram_sensitivity)(
            self.width, self.limit, neighbours
        )


def require_no_overflow(limit: int, max_rows: int) -> None:
    """Refuse before the run what could leave int64: rows x limit must stay below 2^63."""
    require(
        max_rows * limit < 2**63,
        f"max_rows={max_rows}: sums could leave 64-bit integers; declare at most {(2**63 - 1) // limit}",
    )


def _by_class(rows: BoundedRows, classes: int) -> list[tuple[int, Array]]:
    if rows.labels is None:
        raise InvalidInput("labels=None: a class statistic needs labels; declare a label in the schema")
    labels = rows.labels
    return [(code, rows.units[labels == code]) for code in range(classes)]


def _require_rows(rows: BoundedRows, width: int, limit: int) -> None:
    """The statistic's declared limit covers these rows, and the block is small enough to be exact."""
    require(
        rows.units.shape[1] == width and rows.limit <= limit,
        f"width={rows.units.shape[1]}, limit={rows.limit}: statistic was declared for {width}, {limit}",
    )
    require(
        len(rows.units) * limit < EXACT,
        f"rows={len(rows.units)}: a block this large is not exact in float64; use smaller blocks",
    )


def block_sensitivity(width: int, limit: int, neighbours: Neighbours) -> Sensitivity:
    """That of the whole Gram of this width: leaving entries out shrinks both norms."""
    return gram_sensitivity(width, limit, neighbours)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGram:
    """Upper triangles of diagonal blocks, then columns x tail, then the tail's upper triangle; flat."""

    blocks: tuple[int, ...]  # widths of the blocks; their sum is the number of columns
    tail: int  # width of the common tail
    limit: int  # integer bound of |z|^2
    exponent: int = -2 * ROW_BITS

    # Follows from the fields above:
    columns: int = field(init=False)  # before the tail
    width: int = field(init=False)  # columns and tail
    # Lengths of the flat parts: one triangle per block, the cross part, the tail's triangle
    parts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        columns, triangles = sum(self.blocks), [w * (w + 1) // 2 for w in (*self.blocks, self.tail)]
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "width", columns + self.tail)
        object.__setattr__(self, "parts", (*triangles[:-1], columns * self.tail, triangles[-1]))

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(sum(self.parts), np.int64)

    def add(self, total: Ints, rows: Iterable[BoundedRows]) -> Ints:
        """Exact: float64 BLAS on integers, chunk by chunk, added as int64."""
        for chunk in rows:
            require(
                chunk.units.shape[1] == self.width and chunk.limit <= self.limit,
                f"width={chunk.units.shape[1]}: does not fit the declared {self.width} and its limit",
            )
            require(
                len(chunk.units) * self.limit < EXACT,
                f"rows={len(chunk.units)}: a chunk this large is not exact in float64; use smaller ones",
            )
            self._add_chunk(total, chunk.units)
        return total

    def _add_chunk(self, total: Ints, units: Array) -> None:
        """The products of one chunk, written to their places."""
        tail = units[:, self.columns :]
        place, start = 0, 0
        for width in self.blocks:
            block = units[:, start : start + width]
            place = _add_triangle(total, place, block.T @ block)
            start += width
        cross = (units[:, : self.columns].T @ tail).reshape(-1)
        total[place : place + len(cross)] += cross.astype(np.int64)
        _add_triangle(total, place + len(cross), tail.T @ tail)

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `block_sensitivity`."""
        return block_sensitivity(self.width, self.limit, neighbours)

    def noise_weights(self) -> Array:
        """Noise multipliers in isometric coordinates: 1 on the diagonal, 1/sqrt(2) (up) off it."""
        off = round_up(math.sqrt(0.5))
        weights = np.full(sum(self.parts), off)
        weights[self._diagonal()] = 1.0
        return weights

    def rounding(self) -> float:
        """The Frobenius norm of a change by one in every released entry, rounded up."""
        entries, diagonal = sum(self.parts), self.width
        return sqrt_upper(diagonal + 2 * (entries - diagonal))

    def _diagonal(self) -> Ints:
        """Places of the squares: the first entry of every row of every triangle."""
        *triangles, cross, _ = self.parts
        starts = [sum(triangles[:number]) for number in range(len(triangles))]
        starts.append(sum(triangles) + cross)
        places = []
        for width, start in zip((*self.blocks, self.tail), starts, strict=True):
            rows = np.arange(width, dtype=np.int64)
            places.append(start + rows * width - rows * (rows - 1) // 2)
        return np.concatenate(places)

    def unpack(self, flat: Array) -> tuple[list[Array], Array, Array]:
        """The (noisy) flat vector as symmetric blocks, columns x tail, and the symmetric tail."""
        pieces = np.split(flat, np.cumsum(self.parts)[:-1])
        blocks = [_mirror(piece, width) for piece, width in zip(pieces[:-2], self.blocks, strict=True)]
        return blocks, pieces[-2].reshape(self.columns, self.tail), _mirror(pieces[-1], self.tail)


def _add_triangle(total: Ints, place: int, product: Array) -> int:
    """Add the upper triangle, row by row, at a place; gives the place after it."""
    width = len(product)
    for row in range(width):
        total[place : place + width - row] += product[row, row:].astype(np.int64)
        place += width - row
    return place


def _mirror(upper: Array, width: int) -> Array:
    """The symmetric matrix of an upper triangle."""
    full = np.zeros((width, width))
    full[np.triu_indices(width)] = upper
    return full + np.triu(full, 1).T
