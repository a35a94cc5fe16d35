"""The two verbs of an engine. Nothing else belongs here: an engine abstracts where, never what."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from adumbra.data.sources import Batch, SetBatch, Source
from adumbra.errors import Unsupported, require
from adumbra.numerics import NOISE_BLOCK, Ints, Lattice
from adumbra.statistics.base import Statistic

RowsT = TypeVar("RowsT")
T = TypeVar("T")
BatchT = TypeVar("BatchT", Batch, SetBatch)  # which of the two a source gives follows from its schema

Progress = Callable[[str, int, int | None], None]  # stage, blocks done, blocks in all (None: private)

BLOCK_BYTES = 16 * 2**20  # a block is about this large: larger ones go back to the system each time ...
BLOCK_ROWS = 16 * NOISE_BLOCK  # ... and has at most this many rows ...
LEAST_ROWS = 512  # ... and in wide tables this many, for every column of a block costs a call ...
WIDE_BYTES = 64 * 2**20  # ... unless they are larger than this


class Engine(Protocol):
    """Where a statistic or a row-wise map runs. A retry of either repeats the same bits."""

    def fold(
        self,
        source: Source,
        prepare: Callable[[BatchT], RowsT],
        statistic: Statistic[RowsT],
        *,
        stage: str,
    ) -> Lattice:
        """The exact sum of a statistic over all prepared rows, each at its weight (`add_rows`)."""

    def map_blocks(self, source: Source, function: Callable[[BatchT], T], *, stage: str) -> Iterator[T]:
        """The function of every noise block (4,096 rows by global row number), in row order."""


def add_rows(statistic: Statistic[RowsT], total: Ints, rows: RowsT, weight: int) -> Ints:
    """The total with the sum of some rows added, as often as each of them weighs."""
    if weight == 1:
        return statistic.add(total, rows)
    total += weight * statistic.add(statistic.zero(), rows)
    return total


def summed(source: Source, statistic: Statistic[RowsT], total: Ints) -> Lattice:
    """A total of rows at their weights, which are multiples of 2^-weight_bits."""
    return Lattice(total, statistic.exponent - source.schema.weight_bits)


def whole_rows(batch: BatchT) -> BatchT:
    """The batch, for what takes rows one by one: rows at a part of their weight are refused."""
    if batch.weight != 1:
        raise Unsupported("bound=scale: rows at a part of their weight can be summed and nothing else")
    return batch


def require_blocks(rows_per_block: int | None) -> None:
    """Refuse blocks that are no whole blocks of noise."""
    require(
        rows_per_block is None or (rows_per_block > 0 and rows_per_block % NOISE_BLOCK == 0),
        f"rows_per_block={rows_per_block}: must be a positive multiple of {NOISE_BLOCK}",
    )


def block_rows(width: int) -> int:
    """Rows of a block of whole noise blocks, a function of public width alone."""
    fitting = BLOCK_BYTES // (8 * max(width, 1))
    return max(NOISE_BLOCK, min(BLOCK_ROWS, fitting // NOISE_BLOCK * NOISE_BLOCK))


def fold_rows(width: int) -> int:
    """Rows of a block that is summed: fewer where rows are wide, for no noise is drawn by block."""
    row = 8 * max(width, 1)
    if BLOCK_BYTES // row >= NOISE_BLOCK:
        return block_rows(width)
    return max(1, BLOCK_BYTES // row, min(LEAST_ROWS, WIDE_BYTES // row))
