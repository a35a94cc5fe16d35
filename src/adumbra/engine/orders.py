"""What a worker of a cluster is asked and answers: one range of rows, summed, or noised and written.

An order goes from the driver to one worker directly and is the only thing that holds keys. The answer is
bytes sealed with a key of the pass, which the order brought: whatever Dask stores, moves or shows of it
is ciphertext. A worker never raises: an error's text would go to logs and to the scheduler.

Parts of released rows are files. A worker writes one under a name of its own and links it into place:
the first writer's file stands, and a second one must be the same, byte for byte.
"""

import ctypes
import errno
import hashlib
import json
import os
import platform
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from adumbra.data.sources import Batch, Source
from adumbra.engine.local import LocalEngine
from adumbra.errors import AdumbraError, ClusterFailed, InvalidInput, NoiseKeyReused, system_fault
from adumbra.numerics import Ints
from adumbra.privacy.grant import HandedKeys
from adumbra.statistics.base import Statistic
from adumbra.version import package_digest

PART_BYTES = 32 * 2**20  # of released rows in a file
PIECE_BYTES = 64 * 2**20  # of an answer that are sealed at once
MMAP_BYTES, TRIM_BYTES = 32 * 2**20, 512 * 2**20  # glibc keeps freed memory up to here
FAILED, UNFIT = "failed", "unfit"
PROBE = "here"  # a file by which a worker sees that a folder is the driver's
OWN = "use workers of your own, and release again"
Arrays = Sequence[NDArray[Any]]
Sealed = list[NDArray[np.uint8]]  # arrays: Dask sends them without a copy


class Hidden:
    """What an order holds; it shows nothing of itself to a log."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hidden)"


@dataclass(frozen=True, slots=True)
class Answer:
    """Facts in words and numbers, and arrays."""

    facts: Mapping[str, Any]
    arrays: Arrays = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class MergeOrder(Hidden):
    """Add sums of the same pass."""

    number: int
    seal: bytes  # the key of the pass


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Order(MergeOrder):
    """Read rows; by itself it asks whether that can be done."""

    source: Source
    pin: str  # of the files as the driver sees them
    code: str  # that the driver runs
    threads: int = 1
    rows_per_block: int | None = None
    memory: int | None = None  # that the worker may take
    folder: Path | None = None  # where released rows go

    def answer(self) -> Answer:
        """Asked of every worker before anything is paid: only whether it fits."""
        _require_files(self)
        return Answer({})


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class SumOrder(Order):
    """Sum a statistic over prepared rows."""

    prepare: Callable[[Any], Any]
    statistic: Statistic[Any]

    def answer(self) -> Answer:
        """The exact sum of a range, and what its watcher saw."""
        _require_files(self)
        total = _engine(self).fold(self.source, self.prepare, self.statistic, stage="")
        _require_files(self)
        return Answer({}, [total.units, *_seen(self.source)])


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class RowsOrder(Order):
    """Draw released rows and write them to files in a folder that the driver reads."""

    function: Callable[[Any, HandedKeys], pa.RecordBatch]
    keys: HandedKeys
    folder: Path

    def answer(self) -> Answer:
        """The files, what each key covered, and what the watcher saw."""
        _require_files(self)

        def function(batch: Batch) -> pa.RecordBatch:
            return self.function(batch, self.keys)

        blocks = _engine(self).map_blocks(self.source, function, stage="")
        files = [
            put_part(self.folder, f"{self.number:06d}-{place:06d}", content)
            for place, content in enumerate(_contents(blocks))
        ]
        _require_files(self)
        claims = [[*place, digest.hex()] for place, digest in self.keys.claims().items()]
        return Answer({"files": files, "claims": claims}, _seen(self.source))


def carry_out(order: Order) -> Sealed:
    """The task of a worker; never raises."""
    try:
        keep_memory()
        unfit = why_unfit(order)
        answer = order.answer() if unfit is None else Answer({FAILED: UNFIT, "words": unfit})
    except BaseException as error:  # noqa: BLE001 - the driver raises it again, in our words
        answer = _failure(error)
    return sealed(answer, order.seal, order.number)


@cache
def keep_memory() -> None:
    """Undo Dask's setting by which glibc returns every block, to take it back page by page."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # musl has none
        mallopt(-3, MMAP_BYTES)  # M_MMAP_THRESHOLD
        mallopt(-1, TRIM_BYTES)  # M_TRIM_THRESHOLD


def why_unfit(order: Order) -> str | None:
    """Why this worker must not do what it is asked: workers may come at any time."""
    from distributed import get_worker  # noqa: PLC0415  (a worker has it loaded)

    if order.code != running_code():
        return "runs another Adumbra or Python; install the driver's there"
    if not isinstance(get_worker().data, dict):
        rule = "writes what it holds to disk when memory is short (Dask's spilling)"
        settings = "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False and ...__SPILL=False"
        return f"{rule}; start it with {settings}"
    return None if order.folder is None else _why_no_parts(order.folder)


def can_read(driver: int, worker: int) -> bool:
    """Whether the driver, whose probe it is, reads what a worker writes for itself alone (user ids)."""
    return driver in {0, worker}


def _why_no_parts(folder: Path) -> str | None:
    """Why released rows cannot go to a folder: a small part is put there as a large one would be."""
    place = "the driver's folder of parts"
    remedy = "by --parts or parts=..."
    name = f"probe-{secrets.token_hex(8)}"
    try:
        if not (folder / PROBE).is_file():
            return f"does not see {place}; give one that all of them share, {remedy}"
        if not can_read((folder / PROBE).stat().st_uid, os.geteuid()):
            return f"runs as another user than the driver, who could not read its part of {place}"
        put_part(folder, name, pa.py_buffer(b"?"))
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        reason = errno.errorcode.get(error.errno or 0, type(error).__name__)
        rule = f"cannot write a file and a hard link in {place} ({reason})"
        return f"{rule}; give one where it may, on a file system that has hard links, {remedy}"
    finally:
        with suppress(OSError):
            (folder / name).unlink()
    return None


@cache
def running_code() -> str:
    """This package, and the Python that functions are sent to."""
    major, minor, _ = platform.python_version_tuple()
    return f"{package_digest()} {major}.{minor}"


def _engine(order: Order) -> LocalEngine:
    return LocalEngine(threads=order.threads, rows_per_block=order.rows_per_block, memory=order.memory)


def _require_files(order: Order) -> None:
    """The files are those that the driver opened."""
    try:
        same = order.source.pin() == order.pin
    except OSError:
        same = False
    if not same:
        rule = "a worker finds other files than the driver, or none"
        raise InvalidInput(f"data: {rule}; let all of them read one folder, and change nothing in it")


def _seen(source: Source) -> Arrays:
    """What the watcher of a source saw, if it has one."""
    watcher = getattr(source, "watcher", None)
    return [] if watcher is None else list(watcher.seen())


def _contents(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    """Blocks in Arrow's file format, a few megabytes at a time; where they end follows from them."""
    held: list[pa.RecordBatch] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += block.nbytes
        if size >= PART_BYTES:
            yield _written(held)
            held, size = [], 0
    if held:
        yield _written(held)


def _written(blocks: list[pa.RecordBatch]) -> pa.Buffer:
    """Blocks as the bytes of one file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, blocks[0].schema) as writer:
        for block in blocks:
            writer.write_batch(block)
    return sink.getvalue()


def put_part(folder: Path, name: str, content: pa.Buffer) -> list[str]:
    """Link a new file into place; where there is one already it must be the same. Name and digest."""
    digest = hashlib.sha256(content).hexdigest()
    own, place = folder / f".{name}.{secrets.token_hex(8)}", folder / name
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(own, flags, 0o600), "wb") as sink:  # noqa: PTH123  (a descriptor)
            sink.write(content)
        try:
            os.link(own, place)
        except FileExistsError:
            if hashlib.sha256(place.read_bytes()).hexdigest() != digest:
                raise NoiseKeyReused(
                    f"part={name}: is there already and differs; rows were drawn twice from unlike data"
                ) from None
    finally:
        with suppress(FileNotFoundError):
            own.unlink()
    return [name, digest]


def _failure(error: BaseException) -> Answer:
    """An error in our words; of one that is not ours only the kind."""
    named = error if isinstance(error, AdumbraError) else system_fault(error, "worker")
    if named is not None:
        return Answer({FAILED: type(named).__name__, "words": str(named)})
    number = error.errno if isinstance(error, OSError) else None
    what = type(error).__name__ + ("" if number is None else f", {errno.errorcode.get(number, number)}")
    return Answer({FAILED: "", "words": what})


def merge(order: MergeOrder, *answers: Sealed) -> Sealed:
    """A task of a worker: the sealed sum of sealed sums."""
    try:
        total = added([opened(answer, order.seal) for answer in answers])
    except BaseException as error:  # noqa: BLE001 - as above
        total = _failure(error)
    return sealed(total, order.seal, order.number)


def added(answers: Sequence[Answer]) -> Answer:
    """The first array of each summed; what watchers saw is kept as it is, one after the other."""
    for answer in answers:
        if FAILED in answer.facts:
            return answer
    total: Ints = answers[0].arrays[0]
    for answer in answers[1:]:
        total += answer.arrays[0]
    return Answer({}, [total, *(seen for answer in answers for seen in answer.arrays[1:])])


def sealed(answer: Answer, key: bytes, number: int) -> Sealed:
    """An answer under the key of its pass: a head, then the arrays in pieces.

    Nonces are 64 random bits of the answer and the number of the piece, which is bound to its place.
    """
    shapes = [[array.dtype.str, list(array.shape)] for array in answer.arrays]
    head = json.dumps([number, dict(answer.facts), shapes]).encode()
    cipher, prefix = AESGCM(key), os.urandom(8)
    pieces = [np.frombuffer(head, np.uint8)]
    for array in answer.arrays:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces += [flat[first : first + PIECE_BYTES] for first in range(0, len(flat), PIECE_BYTES)]
    found = [np.frombuffer(prefix, np.uint8)]
    for place, piece in enumerate(pieces):
        hidden = cipher.encrypt(_nonce(prefix, place), piece.data, _place(place, len(pieces)))
        found.append(np.frombuffer(hidden, np.uint8))
    return found


def _nonce(prefix: bytes, place: int) -> bytes:
    """Of one piece."""
    return prefix + place.to_bytes(4, "big")


def _place(place: int, count: int) -> bytes:
    """Where a piece stands among how many."""
    return place.to_bytes(8, "big") + count.to_bytes(8, "big")


def opened(content: Sealed, key: bytes, number: int | None = None) -> Answer:
    """The answer in sealed pieces: of this pass, and of this order where one is named."""
    cipher, prefix, count = AESGCM(key), content[0].tobytes(), len(content) - 1

    def clear(place: int) -> bytes:
        hidden = content[1 + place].data
        try:
            return cipher.decrypt(_nonce(prefix, place), hidden, _place(place, count))
        except InvalidTag:
            raise ClusterFailed(f"cluster: an answer is not of this pass; {OWN}") from None

    found, facts, shapes = json.loads(clear(0))
    if number is not None and found != number:
        raise ClusterFailed(f"cluster: an answer is of another order; {OWN}")
    arrays: list[NDArray[Any]] = []
    place = 1
    for kind, shape in shapes:
        array = np.empty(shape, np.dtype(kind))
        flat = array.reshape(-1).view(np.uint8)
        for first in range(0, len(flat), PIECE_BYTES):
            flat[first : first + PIECE_BYTES] = np.frombuffer(clear(place), np.uint8)
            place += 1
        arrays.append(array)
    return Answer(facts, arrays)
