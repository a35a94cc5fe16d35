"""Exact column counts of item sets, plain or with every row cut to a public length.

    f_j = #{i : j in t_i}                 c_j = sum over rows i that hold j of w(|t_i|)
    L1    w = floor(2^b min(1, theta / m)) / 2^b          so that a row weighs w m <= theta
    L2    w = floor(2^b sqrt(min(1, theta / m))) / 2^b    so that a row weighs w^2 m <= theta

Both bounds are checked on integers (`row_weights`), and sums of integer weights are exact in any order.

Proof       counts.proof.md, of `item_rows`, `row_weights` and `count_sensitivity`.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.sparse import csc_array

from adumbra.data.sets import are_sets
from adumbra.data.sources import Items, SetBatch
from adumbra.errors import Unsupported, require
from adumbra.numerics import ROW_BITS, Ints, sqrt_upper, sum_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity, Statistic


class Norm(StrEnum):
    """The norm in which a row is cut."""

    L1 = "l1"
    L2 = "l2"


@dataclass(frozen=True, slots=True)
class ItemRows:
    """Rows of distinct items from 0 to width - 1; made by `item_rows` alone."""

    indptr: Ints
    indices: Items
    width: int

    @property
    def lengths(self) -> Ints:
        """Distinct items in each row."""
        return np.diff(self.indptr)


def item_rows(batch: SetBatch) -> ItemRows:
    """The batch as sets, whatever it holds: items outside the universe and repeats count as absent."""
    indices, indptr = batch.indices, batch.indptr
    if are_sets(indices, indptr, batch.width):
        return ItemRows(indptr, indices, batch.width)
    inside = (indices >= 0) & (indices < batch.width)
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    keys = np.unique(row[inside] * batch.width + indices[inside])
    lengths = np.bincount(keys // batch.width, minlength=len(indptr) - 1)
    return ItemRows(np.concatenate(([0], np.cumsum(lengths))), keys % batch.width, batch.width)


def row_weights(lengths: Ints, length: int, norm: Norm, bits: int) -> Ints:
    """Integer weights W of rows of these lengths: W m <= theta 2^b (L1), or W^2 m <= theta 4^b (L2)."""
    rows = np.maximum(lengths, 1)
    if norm is Norm.L1:
        return np.minimum(np.int64(1 << bits), np.int64(length << bits) // rows)
    limit = length << (2 * bits)
    guess = np.minimum(1 << bits, np.floor(np.sqrt(limit / rows)).astype(np.int64))
    return guess - (guess * guess * rows > limit)  # the float root is at most one too high


def count_sensitivity(length: int, neighbours: Neighbours) -> Sensitivity:
    """How far one row moves counts whose rows weigh at most `length` in L1, or its root in L2.

        add-remove    L1 theta      L2 sqrt(theta)
        replace-one   L1 2 theta    L2 sqrt(2 theta), for the weights are not negative

    A statistic is cut in one norm; the other field is what the same bound gives there.
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=float(length), l2=sqrt_upper(length))
    if neighbours is Neighbours.REPLACE_ONE:
        return Sensitivity(l1=2.0 * length, l2=sqrt_upper(2 * length))
    raise Unsupported(
        f"neighbours={neighbours}: counts of sets are per row; use add-remove or replace-one"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """f_j: in how many rows each item is. One row moves every count by at most 1."""

    width: int

    @property
    def exponent(self) -> int:
        """Whole numbers."""
        return 0

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(self.width, np.int64)

    def add(self, total: Ints, rows: ItemRows) -> Ints:
        """Add a block's counts in place."""
        total += np.bincount(rows.indices, minlength=self.width)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """A row may hold every item."""
        return count_sensitivity(self.width, neighbours)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedCounts:
    """c_j: the counts of rows cut to `length` in one norm, on the lattice 2^-bits."""

    width: int
    length: int
    norm: Norm
    bits: int = ROW_BITS

    def __post_init__(self) -> None:
        require(self.length >= 1, f"length={self.length}: must be at least 1")
        require(0 <= self.bits <= ROW_BITS, f"bits={self.bits}: must lie between 0 and {ROW_BITS}")

    @property
    def exponent(self) -> int:
        """One unit is 2^-bits of a row."""
        return -self.bits

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(self.width, np.int64)

    def add(self, total: Ints, rows: ItemRows) -> Ints:
        """Add a block's weighted counts in place; float64 sums of these integers are exact."""
        lengths = rows.lengths
        weights = row_weights(lengths, self.length, self.norm, self.bits).astype(np.float64)
        items = rows.indices
        narrow: type[np.signedinteger] = np.int32 if len(items) < 2**31 else np.int64
        pointers = rows.indptr.astype(narrow)  # int64 would make scipy widen the items too
        table = csc_array((np.ones(len(items)), items, pointers), shape=(self.width, len(weights)))
        total += np.asarray(table @ weights, np.int64)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """The bound of the cut."""
        return count_sensitivity(self.length, neighbours)


@dataclass(frozen=True, slots=True)
class Stacked:
    """Two whole-number statistics of the same rows, end to end, in one pass."""

    first: Statistic[ItemRows]
    second: Statistic[ItemRows]

    def __post_init__(self) -> None:
        same = self.first.exponent == self.second.exponent
        require(same, "exponent: stacked statistics need the same one; fold them apart")

    @property
    def exponent(self) -> int:
        """That of both."""
        return self.first.exponent

    def zero(self) -> Ints:
        """No rows."""
        return np.concatenate((self.first.zero(), self.second.zero()))

    def add(self, total: Ints, rows: ItemRows) -> Ints:
        """Add to both parts in place."""
        cut = len(self.first.zero())
        self.first.add(total[:cut], rows)
        self.second.add(total[cut:], rows)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """The norms of the two parts together."""
        a, b = self.first.sensitivity(neighbours), self.second.sensitivity(neighbours)
        return Sensitivity(l1=sum_upper(a.l1, b.l1), l2=sum_upper(a.l2, b.l2))
