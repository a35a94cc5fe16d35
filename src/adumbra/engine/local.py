"""The local engine: stream blocks through all cores of one machine with a few blocks in memory.

The reading thread decodes block i+1 while workers prepare and sum block i. BLAS is held to one thread a
worker: blocks are the parallelism, and exact sums make their order irrelevant.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar, cast

from threadpoolctl import ThreadpoolController

from adumbra.data.batch import SetBatch, join_sets
from adumbra.data.sources import Source
from adumbra.engine.base import BLOCK_BYTES, BLOCK_ROWS, BatchT, Progress, block_rows
from adumbra.errors import require
from adumbra.numerics import NOISE_BLOCK, Ints, Lattice
from adumbra.statistics.base import Statistic

JOINED_BYTES = 4 * 2**20  # of item sets that are summed together: they stay in the cache

RowsT = TypeVar("RowsT")
T = TypeVar("T")


def _silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


class LocalEngine:
    """`fold` and `map_blocks` on threads; `rows_per_block` changes speed and memory, never a bit."""

    def __init__(
        self,
        *,
        threads: int | None = None,
        rows_per_block: int | None = None,
        progress: Progress = _silent,
    ) -> None:
        self.threads = threads or os.cpu_count() or 1
        require(self.threads >= 1, f"threads={threads}: must be at least 1")
        require(
            rows_per_block is None or (rows_per_block > 0 and rows_per_block % NOISE_BLOCK == 0),
            f"rows_per_block={rows_per_block}: must be a positive multiple of {NOISE_BLOCK}",
        )
        self.rows_per_block = rows_per_block
        self.progress = progress

    def fold(
        self,
        source: Source,
        prepare: Callable[[BatchT], RowsT],
        statistic: Statistic[RowsT],
        *,
        stage: str,
    ) -> Lattice:
        """Sum every block on a worker and add the integer totals; order does not matter."""

        def total_of(group: list[BatchT]) -> Ints:
            total = statistic.zero()
            for piece in _summed_together(group):
                total = statistic.add(total, prepare(piece))
            return total

        total = statistic.zero()
        for part in self._run(source, total_of, stage):
            total += part
        return Lattice(total, statistic.exponent)

    def map_blocks(self, source: Source, function: Callable[[BatchT], T], *, stage: str) -> Iterator[T]:
        """Yield the function of each noise block in row order, a few I/O blocks ahead of the reader."""

        def apply(group: list[BatchT]) -> list[T]:
            return [function(piece) for batch in group for piece in _pieces(batch)]

        for results in self._run(source, apply, stage):
            yield from results

    def _run(self, source: Source, work: Callable[[list[BatchT]], T], stage: str) -> Iterator[T]:
        rows = self.rows_per_block or block_rows(source.width)
        public = source.public_rows()
        total = None if public is None else -(-public // rows)
        done = 0
        self.progress(stage, done, total)
        waiting: deque[tuple[int, Future[T]]] = deque()

        def finish() -> T:
            nonlocal done
            blocks, future = waiting.popleft()
            result = future.result()
            done += blocks
            self.progress(stage, done if total is not None else 0, total)
            return result

        limited = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
        with limited, ThreadPoolExecutor(self.threads) as pool:
            batches = cast("Iterator[BatchT]", source.batches(rows))
            try:
                for group in grouped(batches, self.rows_per_block or BLOCK_ROWS):
                    waiting.append((len(group), pool.submit(work, group)))
                    if len(waiting) > self.threads:
                        yield finish()
                while waiting:
                    yield finish()
            finally:
                for _, future in waiting:
                    future.cancel()


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:  # noqa: ARG001 - the key: a module more, look again
    """The loaded BLAS libraries; finding them takes as long as a short pass."""
    return ThreadpoolController()


def grouped(batches: Iterable[BatchT], most: int, room: int = BLOCK_BYTES) -> Iterator[list[BatchT]]:
    """Blocks for one worker at a time: `most` rows and `room` bytes together, or one block.

    Rows of a wide but sparse source come in small blocks, for any of them might be full.
    """
    group: list[BatchT] = []
    rows = size = 0
    for batch in batches:
        if group and (rows + len(batch) > most or size + batch.nbytes > room):
            yield group
            group, rows, size = [], 0, 0
        group.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
    if group:
        yield group


def _summed_together(group: list[BatchT]) -> Iterator[BatchT]:
    """What a statistic takes at once: noise blocks of a table; many short sets, to spare the calls."""
    if isinstance(group[0], SetBatch):
        yield from map(join_sets, grouped(group, BLOCK_ROWS, JOINED_BYTES))
    else:
        for batch in group:
            yield from _pieces(batch)


def _pieces(batch: BatchT) -> Iterator[BatchT]:
    """The batch in noise blocks: a batch starts on one, and small pieces stay in the cache."""
    for start in range(0, len(batch), NOISE_BLOCK):
        yield batch.slice(start, min(start + NOISE_BLOCK, len(batch)))
