"""The Dask engine: the same two verbs on workers of a cluster, each of which reads its own rows.

    fold         orders to sum; exact sums are added in any order, so the total is the local engine's
    map_blocks   orders to draw released rows under handed keys; the driver checks what each key covered

How many orders there are depends on the number of workers alone, never on the rows. What travels, who
sees it and what a fault does is in decision 0023.
"""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import pyarrow as pa
from distributed import Client

from adumbra.data.sources import Source
from adumbra.data.split import Split, split
from adumbra.engine.dispatch import POLL, Dispatch, TreeDispatch, require_fit, workers_of
from adumbra.engine.local import BatchT, Progress, require_blocks, silent, summed
from adumbra.engine.orders import PROBE, Answer, Order, RowsOrder, SumOrder, added, running_code
from adumbra.errors import ClusterFailed, InvalidInput, Unsupported, require, system_fault
from adumbra.numerics import NOISE_BLOCK, Lattice
from adumbra.privacy.grant import KeyedRows
from adumbra.statistics.base import Statistic

ORDERS = 4  # for each worker in a pass: a slow one takes fewer, and what is lost with one is small
TREE_BYTES = 4 * 2**20  # sums from this size on are added by workers, not by the driver

RowsT = TypeVar("RowsT")
T = TypeVar("T")


class DaskEngine:
    """`fold` and `map_blocks` on a cluster; make one by `cluster.local_engine` or `cluster.connect`."""

    is_remote = True  # blocks of rows do not come back to this process
    unit = "orders"  # what progress counts

    def __init__(  # noqa: PLR0913 - all but the client have defaults
        self,
        client: Client,
        *,
        close: Callable[[], object] = lambda: None,
        parts: Path | None = None,
        rows_per_block: int | None = None,
        orders: int = ORDERS,
        memory: int | None = None,
        progress: Progress = silent,
    ) -> None:
        require(orders >= 1, f"orders={orders}: must be at least 1")
        require_blocks(rows_per_block)
        self.client, self._close = client, close
        self.parts = Path(tempfile.gettempdir()) if parts is None else parts
        self.rows_per_block, self.orders = rows_per_block, orders
        self.memory = memory  # bytes that each process may take; None: what this machine has
        self.progress = progress

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workers; those of a local cluster end."""
        self._close()

    def require_ready(self, source: Source) -> None:
        """Refuse, before anything is paid, data that cannot be divided and workers that do not fit."""
        whole, seal = split(source, 1, 1, 1).parts[0], secrets.token_bytes(32)
        with _folder(self.parts) as folder:
            order = partial(_probe, source=whole, seal=seal, folder=folder)
            require_fit(self.client, seal, order)

    def fold(
        self,
        source: Source,
        prepare: Callable[[BatchT], RowsT],
        statistic: Statistic[RowsT],
        *,
        stage: str,
    ) -> Lattice:
        """The sums of all ranges, added."""
        pins, found = _pinned(self._split(source, 1))  # sums need no whole blocks: cut at row groups
        seal = secrets.token_bytes(32)

        def order(number: int, threads: int) -> SumOrder:
            return SumOrder(
                number=number,
                seal=seal,
                source=found.parts[number],
                pin=pins[number],
                code=running_code(),
                threads=threads,
                rows_per_block=self.rows_per_block,
                memory=self.memory,
                prepare=prepare,
                statistic=statistic,
            )

        count = len(found.parts)
        shown = _Shown(self.progress, stage, count if source.public_rows() is not None else None)
        if statistic.zero().nbytes >= TREE_BYTES:
            answer = TreeDispatch(self.client, count, seal, order, shown.to).total()
        else:
            answer = _added(self.client, count, seal, order, shown)
        total, *seen = answer.arrays
        if found.watched is not None:
            each = len(seen) // count
            found.watched([seen[first : first + each] for first in range(0, len(seen), each)])
        shown.all()
        return summed(source, statistic, total)

    def map_blocks(self, source: Source, function: Callable[[BatchT], T], *, stage: str) -> Iterator[T]:
        """Released rows in row order, from files that workers wrote; T is a `pyarrow.RecordBatch`."""
        if not isinstance(function, KeyedRows):
            raise Unsupported("engine=dask: rows that are not released stay with the workers")
        pins, found = _pinned(self._split(source, NOISE_BLOCK))
        seal, answers = secrets.token_bytes(32), dict[int, Answer]()
        public = source.public_rows()
        shown = _Shown(self.progress, stage, len(found.parts) if public is not None else None)

        def take(number: int, answer: Answer) -> None:
            claims = {(purpose, block): bytes.fromhex(d) for purpose, block, d in answer.facts["claims"]}
            function.accept(*_blocks(found.spans[number]), claims)
            answers[number] = answer
            shown.one()

        with _folder(self.parts) as folder:

            def order(number: int, threads: int) -> RowsOrder:
                part = found.parts[number]
                return RowsOrder(
                    number=number,
                    seal=seal,
                    source=part,
                    pin=pins[number],
                    code=running_code(),
                    threads=threads,
                    rows_per_block=self.rows_per_block,
                    memory=self.memory,
                    function=function.function,
                    keys=function.hand_over(*_blocks(found.spans[number])),
                    folder=folder,
                )

            pass_ = Dispatch(self.client, len(found.parts), seal, order, take)
            try:
                for number in range(len(found.parts)):
                    while number not in answers:
                        pass_.pump()
                        time.sleep(POLL if number not in answers else 0.0)
                    for name, digest in answers[number].facts["files"]:
                        for block in _read_part(folder / name, digest):
                            yield cast("T", block)
                            pass_.pump()  # so that workers never wait for the reader
            finally:
                pass_.stop()
        if found.watched is not None:
            found.watched([answers[number].arrays for number in range(len(answers))])

    def _split(self, source: Source, rows: int) -> Split:
        """Orders of a pass: so many for each worker, whatever the rows are."""
        workers = len(workers_of(self.client))
        return split(source, rows, self.orders * max(workers, 1), max(workers, 1))


class _Shown:
    """Progress in orders, where their share of the rows is public."""

    def __init__(self, progress: Progress, stage: str, total: int | None) -> None:
        self._progress, self._stage, self._total, self._done = progress, stage, total, 0
        self.to(0)

    def one(self) -> None:
        """One order more is done."""
        self.to(self._done + 1)

    def to(self, done: int) -> None:
        """So many orders are done; fewer than before, where a worker was lost with what it held."""
        self._done = done
        self._progress(self._stage, done if self._total is not None else 0, self._total)

    def all(self) -> None:
        """The pass is over."""
        self.to(self._total or 0)


def _added(
    client: Client, count: int, seal: bytes, order: Callable[[int, int], Order], shown: _Shown
) -> Answer:
    """All answers, added here as they come."""
    held: list[Answer] = []

    def take(_number: int, answer: Answer) -> None:
        held[:] = [added([*held, answer])]
        shown.one()

    pass_ = Dispatch(client, count, seal, order, take)
    try:
        pass_.run()
    finally:
        pass_.stop()
    return held[0]


def _pinned(found: Split) -> tuple[list[str], Split]:
    """What the driver sees of the files of each range."""
    return [part.pin() for part in found.parts], found


def _blocks(span: tuple[int, int]) -> tuple[int, int]:
    """The noise blocks of a range of rows."""
    first, stop = span
    return (first // NOISE_BLOCK, -(-stop // NOISE_BLOCK)) if stop > first else (0, 0)


def _read_part(path: Path, digest: str) -> Iterator[pa.RecordBatch]:
    """The blocks of a part that is what its writer said; it is removed."""
    content = path.read_bytes()
    if sha256(content).hexdigest() != digest:
        raise ClusterFailed(
            "cluster: a part of the rows was changed after it was written; release again"
        )
    path.unlink()
    with pa.ipc.open_file(pa.py_buffer(content)) as reader:
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A folder of our own for parts of released rows; it goes with all that is in it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=".adumbra-parts-", dir=parent))
    except OSError as error:
        named = system_fault(error, f"parts={parent}")
        rule = f"no folder can be made there ({os.strerror(error.errno or 0)}); choose another place"
        raise named or InvalidInput(f"parts={parent}: {rule}") from None
    try:
        (folder / PROBE).touch()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _probe(number: int, *, source: Source, seal: bytes, folder: Path) -> Order:
    """What is asked of a worker before anything is paid."""
    return Order(
        number=number, seal=seal, source=source, pin=source.pin(), code=running_code(), folder=folder
    )
