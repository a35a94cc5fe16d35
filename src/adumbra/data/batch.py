"""Private rows on their way: blocks of fixed global row ranges, in schema order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adumbra.numerics import NOISE_BLOCK, Array, Ints

Items = NDArray[np.signedinteger]  # int32 where a source made them, which halves what is moved about


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows `start` to `start + len`: finite, within bounds, missing values filled in.

    `values` is rows x columns in schema order, float64; categories and booleans are codes 0, 1, ... A
    missing number of a column with `missing = "null"` is the next value above the column's bounds.
    """

    start: int
    values: Array = field(repr=False)  # private: no repr may show it
    weight: int = 1  # of each row in a sum, in units of 2^-weight_bits of the schema

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """The size of the values."""
        return self.values.nbytes

    @property
    def noise_block(self) -> int:
        """The number of the first noise block (4,096 rows by global row number) of this batch."""
        return self.start // NOISE_BLOCK

    def slice(self, first: int, last: int) -> "Batch":
        """Rows `first` to `last` of this batch, without a copy."""
        return Batch(self.start + first, self.values[first:last], self.weight)


@dataclass(frozen=True, slots=True)
class SetBatch:
    """Item sets of rows `start` to `start + len`, in compressed rows.

    Row i holds `indices[indptr[i]:indptr[i + 1]]`: sorted, without doubles, from 0 to width - 1.
    """

    start: int
    indptr: Ints = field(repr=False)
    indices: Items = field(repr=False)
    width: int
    weight: int = 1  # as above

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        """The size of the rows."""
        return self.indptr.nbytes + self.indices.nbytes

    @property
    def noise_block(self) -> int:
        """The number of the first noise block of this batch."""
        return self.start // NOISE_BLOCK

    def slice(self, first: int, last: int) -> "SetBatch":
        """Rows `first` to `last` of this batch."""
        pointers = self.indptr[first : last + 1]
        indices = self.indices[pointers[0] : pointers[-1]]
        return SetBatch(self.start + first, pointers - pointers[0], indices, self.width, self.weight)

    @property
    def lengths(self) -> Ints:
        """Items in each row."""
        return self.indptr[1:] - self.indptr[:-1]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that were read but are no batch yet; whoever works on them makes it, once."""

    rows: int
    nbytes: int  # of the batch
    read: Callable[[], Batch | SetBatch] = field(repr=False)

    def __len__(self) -> int:
        return self.rows


def join_sets(batches: Sequence[SetBatch]) -> SetBatch:
    """One batch of neighbouring ones of one weight, in row order."""
    first = batches[0]
    if len(batches) == 1:
        return first
    ends = np.cumsum([0, *(len(batch.indices) for batch in batches)])
    pointers = [batch.indptr[:-1] + end for batch, end in zip(batches, ends[:-1], strict=True)]
    indices = np.concatenate([batch.indices for batch in batches])
    joined = np.concatenate([*pointers, ends[-1:]])
    return SetBatch(first.start, joined, indices, first.width, first.weight)
