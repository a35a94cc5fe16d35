"""One table or one set of arrays, to bytes and back: Parquet and safetensors, never pickle.

The bytes depend on the rows alone: row groups are cut at fixed row numbers whatever the batches were,
and no time, host or pandas metadata is written. What is read is untrusted: its shape is held against the
card before anything is allocated.
"""

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from adumbra.errors import InvalidInput, VerificationFailed, require
from adumbra.release.parquet_pages import list_bytes

GROUP_CELLS = 2**23  # cells a row group may hold: 64 MiB of float64
GROUP_ROWS = 65536
JOINED_BYTES = 4 * 2**20  # of a table's file that are written at once
FLUSHED_BYTES = 32 * 2**20  # of a file that are brought to the disk while the next ones are written
HEADER_LIMIT = (
    2**20
)  # bytes of a safetensors header: thousands of arrays; parsed, it fills 20 times that
READ_FLOOR = 2**30  # bytes of memory that any table may ask for ...
READ_RATIO = (
    256  # ... and how many times its file's size a larger one may, unless the caller allows more
)

COLUMN_TYPES = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float",
        "double",
        "string",
        "date32[day]",
        "timestamp[us]",
        "list<int32>",
    ]
)
ITEM_SETS = pa.list_(pa.int32())
SET_ROWS = 8192  # rows a group may hold where a cell is a whole set of items
ARRAY_TYPES = {
    "float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip

# What the two readers raise on bytes that are not theirs; each becomes a named fault.
UNREADABLE = (
    pa.ArrowException,
    SafetensorError,
    OSError,
    ValueError,
    LookupError,
    OverflowError,
    MemoryError,
)

Columns = list[list[str]]
AnyArray = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class TableStream:
    """Rows that come in batches; only a few batches are held at a time."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    facts: Callable[[], Mapping[str, object]] = dict  # of the card, known once all batches are drawn


@dataclass(frozen=True, slots=True)
class Written:
    """What the card lists of one file."""

    sha256: str
    bytes: int


class HashingFile(io.RawIOBase):
    """A new file that is hashed while it is written, and on disk once it is closed.

    Of a long file, most is brought to the disk by a thread while the rest is written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o644), "wb")
        os.fchmod(self._file.fileno(), 0o644)  # a release is for everyone, whatever the umask is
        self._hash = hashlib.sha256()
        self._size = 0
        self._flushed = 0
        self._flusher = ThreadPoolExecutor(1)  # has no thread until the first task
        self._flushing: Future[None] | None = None

    def writable(self) -> bool:
        """Writing is all it does."""
        return True

    def write(self, data: "memoryview | bytes") -> int:  # type: ignore[override]
        """Append and hash."""
        self._hash.update(data)
        self._file.write(data)
        self._size += len(data)
        if self._size - self._flushed >= FLUSHED_BYTES:
            self._flush_behind()
        return len(data)

    def _flush_behind(self) -> None:
        """Start to bring what there is to the disk; an error of the disk is raised by a later call."""
        if self._flushing is not None and not self._flushing.done():
            return
        self._finish_flushing()
        self._file.flush()
        self._flushed, self._flushing = self._size, self._flusher.submit(os.fsync, self._file.fileno())

    def _finish_flushing(self) -> None:
        if self._flushing is not None:
            self._flushing.result()
            self._flushing = None

    def close(self) -> None:
        """Flush to the disk, not only to the system."""
        if not self.closed:
            try:
                self._finish_flushing()
                self._file.flush()
                os.fsync(self._file.fileno())
            finally:
                self._flusher.shutdown()
                try:
                    self._file.close()  # gives up the handle, also where it fails
                finally:
                    super().close()

    def written(self) -> Written:
        """Hash and size of what was written."""
        return Written(self._hash.hexdigest(), self._size)


def write_bytes(path: Path, content: bytes) -> Written:
    """Write one small file."""
    with HashingFile(path) as sink:
        sink.write(content)
    return sink.written()


def write_table(path: Path, table: pa.Table | TableStream) -> tuple[Written, dict[str, object]]:
    """Write rows as Parquet; returns the file's entry and the table's shape for the card."""
    schema = stored_schema(table.schema)
    batches = table.to_batches() if isinstance(table, pa.Table) else table.batches
    names = [(field.name, type_name(field.type)) for field in schema]
    with HashingFile(path) as sink, _joined(sink) as joined:
        writer = pq.ParquetWriter(
            joined,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name, kind in names if kind == "string"],
            use_byte_stream_split=[name for name, kind in names if kind in ("float", "double")],
            write_statistics=False,
            store_schema=False,  # the Arrow schema would bring extension types and metadata back
        )

        def write(held: list[pa.Table]) -> int:
            group = pa.concat_tables(held).combine_chunks()
            writer.write_table(group, row_group_size=group.num_rows)
            return int(group.num_rows)

        with writer:
            rows = _written_behind(_row_groups(schema, iter(batches)), write)
    return sink.written(), {"rows": rows, "columns": [list(pair) for pair in names]}


def _joined(sink: HashingFile) -> pa.NativeFile:
    """The sink behind a buffer of Arrow's: each call of Python takes its lock, which others wait for."""
    return pa.BufferedOutputStream(pa.PythonFile(sink, mode="w"), JOINED_BYTES)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as it will be read back: plain types, no metadata."""
    fields = [pa.field(field.name, _stored_type(field), nullable=field.nullable) for field in schema]
    require(len(fields) > 0, "a table without columns: a release needs at least one column")
    names = [field.name for field in fields]
    require(len(set(names)) == len(names), "two columns of one name: rename one of them")
    return pa.schema(fields)


def _stored_type(field: pa.Field) -> pa.DataType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    kind = pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind
    name = type_name(kind)
    message = (
        f"column {field.name!r} of type {kind}: a release holds numbers, booleans, text, dates "
        "(date32, timestamp[us]) and sets of items (list<int32>); convert it"
    )
    require(name in COLUMN_TYPES, message)
    return ITEM_SETS if name == "list<int32>" else kind


def type_name(kind: pa.DataType) -> str:
    """A type as the card names it; the inner field of a list goes by many names, which say nothing."""
    return f"list<{kind.value_type}>" if pa.types.is_list(kind) else str(kind)


def _written_behind(groups: Iterator[list[pa.Table]], write: Callable[[list[pa.Table]], int]) -> int:
    """Write each group in a thread while the next one is drawn; returns the number of rows."""
    rows = 0
    with ThreadPoolExecutor(1) as thread:
        running: Future[int] | None = None
        for group in groups:
            rows += running.result() if running is not None else 0
            running = thread.submit(write, group)
        rows += running.result() if running is not None else 0
    return rows


def _row_groups(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.Table]]:
    """The rows in groups of a size that depends on the schema only."""
    most = SET_ROWS if ITEM_SETS in schema.types else GROUP_ROWS
    size = max(1024, min(most, GROUP_CELLS // len(schema) // 1024 * 1024))
    held: list[pa.Table] = []
    count = 0
    for batch in batches:
        rest = _stored(pa.Table.from_batches([batch]), schema)
        while count + rest.num_rows >= size:
            held.append(rest.slice(0, size - count))
            yield held
            rest, held, count = rest.slice(size - count), [], 0
        held, count = [*held, rest], count + rest.num_rows
    if count:
        yield held


def _stored(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the types that are stored; a cast of a column to its own type costs a call, too."""
    same = table.schema.equals(schema, check_metadata=True)
    return table if same else table.replace_schema_metadata(None).cast(schema)


def write_arrays(path: Path, arrays: Mapping[str, AnyArray]) -> tuple[Written, dict[str, object]]:
    """Write arrays as safetensors, by sorted name; returns the file's entry and the arrays' shapes."""
    whole: dict[str, AnyArray] = {}
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        message = (
            f"array {name!r} of type {array.dtype}: a release holds numbers and booleans; convert it"
        )
        require(array.dtype.name in ARRAY_TYPES, message)
        whole[name] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(
            array.shape
        )
    try:
        save_file(whole, path)
    except SafetensorError as error:
        system = re.search(r"\(os error (\d+)\)", str(error))  # a full disk, for one
        if system is not None:
            raise OSError(int(system[1]), os.strerror(int(system[1]))) from None
        raise InvalidInput(
            f"arrays: cannot be written as safetensors ({error}); check their names"
        ) from None
    require(
        _header_bytes(path) <= HEADER_LIMIT,
        f"arrays: their names and shapes take more than {HEADER_LIMIT} bytes; release fewer arrays",
    )
    path.chmod(0o644)  # safetensors makes it private; a release is for everyone
    with path.open("rb") as stored:
        os.fsync(stored.fileno())
        digest = hashlib.file_digest(stored, "sha256").hexdigest()
    shapes = {
        name: {"dtype": ARRAY_TYPES[a.dtype.name], "shape": list(a.shape)} for name, a in whole.items()
    }
    return Written(digest, path.stat().st_size), dict(shapes)


def shape_fault(path: Path, stated: Mapping[str, object]) -> str | None:
    """Why this file is not the table, or does not hold the arrays, that the card states."""
    return (table_fault if path.suffix == ".parquet" else arrays_fault)(path, stated)


def table_fault(path: Path, stated: Mapping[str, object]) -> str | None:
    """Why this file is not the table that the card states, from its footer alone; None if it is."""
    try:
        with pq.ParquetFile(path) as file:
            columns = [[field.name, type_name(field.type)] for field in file.schema_arrow]
            rows = file.metadata.num_rows
    except UNREADABLE:
        return "is not a readable Parquet file"
    same = [rows, columns] == [stated["rows"], stated["columns"]]
    return None if same else "has other rows or columns than the card states"


def read_table(path: Path, limit: int | None = None) -> pa.Table:
    """The rows of one table, unless they would take more than `limit` bytes of memory."""
    allowed = max(READ_FLOOR, READ_RATIO * path.stat().st_size) if limit is None else limit
    try:
        with pq.ParquetFile(path) as file:
            text = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
            _allow(max(_decoded_bytes(file.metadata), list_bytes(path, file.metadata)), allowed, path)
        # Text is read by its dictionary, which the file bounds, and measured before it is spread out.
        with pq.ParquetFile(path, read_dictionary=text) as file:
            table = file.read().replace_schema_metadata(None)
        table.validate(full=True)  # text that is not UTF-8 must not wait for the reader
        _allow(sum(_text_bytes(table[name]) for name in text), allowed, path)
        return table.cast(stored_schema(table.schema))
    except UNREADABLE:
        raise VerificationFailed(f"data/{path.name}: is not a readable Parquet file") from None


def _decoded_bytes(footer: pq.FileMetaData) -> int:
    """A rough size in memory: what the footer claims, and at least eight bytes per cell."""
    claimed = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    return max(int(claimed), 8 * int(footer.num_rows) * int(footer.num_columns))


def _text_bytes(column: pa.ChunkedArray) -> int:
    """The size of a dictionary column once each row has its own text."""
    lengths = (
        pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() for chunk in column.chunks
    )
    return sum(length or 0 for length in lengths)


def _allow(size: int, allowed: int, path: Path) -> None:
    if size > allowed:
        asked = f"asks for {size} bytes of memory, {allowed} allowed"
        raise VerificationFailed(
            f"data/{path.name}: {asked}; load it with a larger max_bytes if you trust it"
        )


def arrays_fault(path: Path, stated: Mapping[str, object]) -> str | None:
    """Why this file does not hold the arrays that the card states, from its header; None if it does."""
    if _header_bytes(path) > HEADER_LIMIT:
        return f"its header is larger than {HEADER_LIMIT} bytes"
    try:
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            found = {
                name: {"dtype": s.get_dtype(), "shape": s.get_shape()} for name, s in slices.items()
            }
    except UNREADABLE:
        return "is not a readable safetensors file"
    return None if found == stated else "has other arrays than the card states"


def _header_bytes(path: Path) -> int:
    """What a safetensors file says of the length of its header, which a reader parses as a whole."""
    with path.open("rb") as stored:
        return int.from_bytes(stored.read(8), "little")


def read_array(path: Path, name: str) -> AnyArray:
    """One array of the release."""
    try:
        with safe_open(path, framework="np") as file:
            array: AnyArray = file.get_tensor(name)
            return array
    except UNREADABLE:
        raise VerificationFailed(f"{path.name}: is not a readable safetensors file") from None
