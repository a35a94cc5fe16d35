"""The two verbs of an engine, and the local engine: blocks streamed through all cores of one machine.

Nothing but the verbs belongs to an engine: it abstracts where, never what. The reading thread decodes
block i+1 while workers convert, prepare and sum block i; a few blocks are in memory. BLAS is held to one
thread per worker: blocks are the parallelism, and exact sums make their order irrelevant.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa
from threadpoolctl import ThreadpoolController

from adumbra.data.sources import Batch, Part, SetBatch, Source, WatchedSource, join_sets, parts
from adumbra.errors import Unsupported, require
from adumbra.numerics import NOISE_BLOCK, Ints, Lattice
from adumbra.statistics.base import Statistic

RowsT = TypeVar("RowsT")
T = TypeVar("T")
BatchT = TypeVar("BatchT", Batch, SetBatch)  # which of the two a source gives follows from its schema
Progress = Callable[[str, int, int | None], None]  # stage, how many are done, and in all (None: private)
BLOCK_BYTES = 8 * 2**20  # a block is about this large: Arrow returns longer columns to the system ...
BLOCK_ROWS = 16 * NOISE_BLOCK  # ... and has at most this many rows ...
LEAST_ROWS = 512  # ... and in wide tables this many, for every column of a block costs a call ...
SHORT_BYTES = 16 * 2**20  # ... or as many as fit in this, as item sets do ...
WIDE_BYTES = 64 * 2**20  # ... but none that are larger than this


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
    if SHORT_BYTES // row >= NOISE_BLOCK:
        return block_rows(width)
    return max(1, SHORT_BYTES // row, min(LEAST_ROWS, WIDE_BYTES // row))


JOINED_BYTES = 4 * 2**20  # of item sets that are summed together: they stay in the cache

KEPT_BLOCK = 31 * 2**20  # just below the largest that glibc learns from

# Numbers in a buffer of numpy's on a worker. Where a row of numbers meets columns of which two fit into
# one, numpy repeats it there until the buffer is full, which takes up to three times as long as to go
# column by column. Two columns of a noise block do not fit. A setting of the thread: no number that
# a release is made of depends on it.
BUFFER = NOISE_BLOCK

AHEAD_BYTES = 256 * 2**20  # of blocks that are read and not finished; one block may be larger

BlockT = TypeVar("BlockT", Batch, SetBatch, Part)


def blocks_ahead(threads: int) -> int:
    """Blocks that are read and not finished: two per worker, so that none waits while a file is read."""
    return 2 * threads + 1


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


class LocalEngine:
    """`fold` and `map_blocks` on threads; no argument changes a bit of what they give."""

    unit = "blocks"  # what progress counts

    def __init__(
        self,
        *,
        threads: int | None = None,
        rows_per_block: int | None = None,
        memory: int | None = None,
        progress: Progress = silent,
    ) -> None:
        self.threads = threads or os.cpu_count() or 1
        require(self.threads >= 1, f"threads={threads}: must be at least 1")
        require_blocks(rows_per_block)
        self.rows_per_block = rows_per_block
        self.memory = memory  # bytes that a release may take; None: what the machine has
        self._ahead = AHEAD_BYTES if memory is None else min(AHEAD_BYTES, memory // 8)
        self.progress = progress

    def begin(self, source: WatchedSource) -> None:
        """Decode the first blocks before a pass asks for them; they count as read and not finished.

        A pass takes them before it reads on. A plan counts all that may be held (`sizes.reading`).
        Not with fewer threads than Arrow has: it would take all of them.
        """
        if self.threads < pa.cpu_count():
            return
        source.begin(self.rows_per_block or block_rows(source.width), self._ahead // 2)

    def fold(
        self,
        source: Source,
        prepare: Callable[[BatchT], RowsT],
        statistic: Statistic[RowsT],
        *,
        stage: str,
    ) -> Lattice:
        """Sum every block on a worker, which goes on from a free total; order does not matter."""
        free: SimpleQueue[Ints] = SimpleQueue()  # as many totals as workers, however many blocks

        def add(group: list[Part]) -> None:
            try:
                total = free.get_nowait()
            except Empty:
                total = statistic.zero()
            for piece in _summed_together([cast("BatchT", part.read()) for part in group]):
                total = add_rows(statistic, total, prepare(piece), piece.weight)
            free.put(total)

        for _ in self._run(source, add, stage, self.rows_per_block or fold_rows_of(source)):
            pass
        total = statistic.zero()
        while not free.empty():
            total += free.get_nowait()
        return summed(source, statistic, total)

    def map_blocks(self, source: Source, function: Callable[[BatchT], T], *, stage: str) -> Iterator[T]:
        """Yield the function of each noise block in row order, a few I/O blocks ahead of the reader."""

        def apply(group: list[Part]) -> list[T]:
            batches = (whole_rows(cast("BatchT", part.read())) for part in group)
            return [function(piece) for batch in batches for piece in _pieces(batch)]

        rows = self.rows_per_block or block_rows(source.width)
        for results in self._run(source, apply, stage, rows):
            yield from results

    def _run(
        self, source: Source, work: Callable[[list[Part]], T], stage: str, rows: int
    ) -> Iterator[T]:
        public = source.public_rows()
        total = None if public is None else -(-public // rows)
        done, held, most = 0, 0, blocks_ahead(self.threads)
        self.progress(stage, done, total)
        waiting: deque[tuple[int, int, Future[T]]] = deque()  # blocks, bytes, result

        def finish() -> T:
            nonlocal done, held
            blocks, size, future = waiting.popleft()
            result = future.result()
            done, held = done + blocks, held - size
            self.progress(stage, done if total is not None else 0, total)
            return result

        keep_blocks()
        workers = ThreadPoolExecutor(self.threads, initializer=np.setbufsize, initargs=(BUFFER,))
        with one_blas_thread(), decoding(self.threads), workers as pool:
            try:
                room = BLOCK_BYTES if source.schema.items is None else SHORT_BYTES
                for group in grouped(parts(source, rows), self.rows_per_block or BLOCK_ROWS, room):
                    size = sum(part.nbytes for part in group)
                    while waiting and (len(waiting) >= most or held + size > self._ahead):
                        yield finish()
                    waiting.append((len(group), size, pool.submit(work, group)))
                    held += size
                while waiting:
                    yield finish()
            finally:
                for _, _, future in waiting:
                    future.cancel()


_PASSES = RLock()  # not Lock: a pass that nobody ends is ended by whichever thread clears it away
_threads: list[int] = []  # of Arrow before any pass began, then of every pass under way


@contextmanager
def decoding(threads: int) -> Iterator[None]:
    """Let Arrow decode files by as many threads: of itself it asks OMP_NUM_THREADS, or takes all cores.

    Workers that wait for one thread of a reader leave a core idle. Passes of several releases may
    overlap in one process; the last one that ends leaves Arrow as the first one found it.
    """
    with _PASSES:
        if not _threads:
            _threads.append(pa.cpu_count())
        _threads.append(threads)
        pa.set_cpu_count(max(_threads[1:]))
    try:
        yield
    finally:
        with _PASSES:
            del _threads[_threads.index(threads, 1)]
            pa.set_cpu_count(max(_threads[1:], default=_threads[0]))
            if len(_threads) == 1:
                _threads.clear()


_held: list[ThreadpoolController] = []  # one for every pass under way
_freeing: list[Callable[[], None]] = []  # undoes what they changed, in order


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread per worker.

    Passes overlap here, too, and a later one may know libraries that were loaded since. The last one
    that ends undoes the changes of all, the latest first, which leaves each library as it was.
    """
    with _PASSES:
        libraries = _libraries(len(sys.modules))
        is_new = libraries not in _held
        _held.append(libraries)  # first: a pass that is cleared away in between must not free this one
        if is_new:
            limits = libraries.limit(limits=1, user_api="blas")
            _freeing.append(limits.restore_original_limits)
    try:
        yield
    finally:
        with _PASSES:
            _held.remove(libraries)
            while _freeing and not _held:
                _freeing.pop()()


@cache
def keep_blocks() -> None:
    """Free one large block: from then on glibc keeps smaller ones, which need no new pages.

    It learns only from blocks of its own, and those of Arrow are not. A setting of the user's stands.
    """
    np.empty(KEPT_BLOCK, np.uint8)


def fold_rows_of(source: Source) -> int:
    """Rows per block of a fold; item sets of a wide universe are short."""
    return fold_rows(source.width) if source.schema.items is None else block_rows(source.width)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:  # noqa: ARG001 - the key: a module more, look again
    """The loaded BLAS libraries; finding them takes as long as a short pass."""
    return ThreadpoolController()


def grouped(batches: Iterable[BlockT], most: int, room: int = SHORT_BYTES) -> Iterator[list[BlockT]]:
    """Blocks for one worker at a time: `most` rows and `room` bytes together, or one block.

    Rows of a wide but sparse source come in small blocks, for any of them might be full.
    """
    group: list[BlockT] = []
    rows = size = 0
    for batch in batches:
        if group and (rows + len(batch) > most or size + batch.nbytes > room):
            yield group
            group, rows, size = [], 0, 0
        group.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= most or size >= room:  # nothing more would fit: do not read on before it is worked on
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _summed_together(group: list[BatchT]) -> Iterator[BatchT]:
    """What a statistic takes at once: noise blocks of a table; many short sets, to spare the calls."""
    if isinstance(group[0], SetBatch):
        for _, equal in groupby(group, lambda batch: batch.weight):
            yield from map(join_sets, grouped(equal, BLOCK_ROWS, JOINED_BYTES))
    else:
        for batch in group:
            yield from _pieces(batch)


def _pieces(batch: BatchT) -> Iterator[BatchT]:
    """The batch in noise blocks: a batch starts on one, and small pieces stay in the cache."""
    for start in range(0, len(batch), NOISE_BLOCK):
        yield batch.slice(start, min(start + NOISE_BLOCK, len(batch)))
