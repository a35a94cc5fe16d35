"""A chosen part of one Gram: blocks of columns with themselves, and every column with a common tail.

    z = (x_1, ..., x_B, t)      entries of x_b x_b^T (upper triangle), x t^T, t t^T (upper triangle)

With one block this is the whole Gram. With more, memory and time stay bounded in the width, and the
entries are still a part of the one matrix z z^T, so that its sensitivity covers them.

Proof       block_gram.proof.md, of `BlockGram` and `block_sensitivity`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from adumbra.data.bounds import BoundedRows
from adumbra.errors import require
from adumbra.numerics import EXACT, ROW_BITS, Array, Ints, round_up, sqrt_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.moments import gram_sensitivity


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

    @property
    def columns(self) -> int:
        """Columns before the tail."""
        return sum(self.blocks)

    @property
    def width(self) -> int:
        """Columns and tail."""
        return self.columns + self.tail

    @property
    def parts(self) -> tuple[int, ...]:
        """Lengths of the flat parts: one triangle a block, the cross part, the tail's triangle."""
        triangles = [w * (w + 1) // 2 for w in self.blocks]
        return (*triangles, self.columns * self.tail, self.tail * (self.tail + 1) // 2)

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
