"""Parquet files as a source: one table in sorted file order, streamed, only the declared columns."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adumbra.data.begun import BegunSource
from adumbra.data.files import PIECE_ROWS, FileSource, match_columns, require_rows
from adumbra.errors import InvalidInput
from adumbra.numerics import NOISE_BLOCK, Array
from adumbra.schema.schema import Schema

COLUMNS_AT_ONCE = 512  # of a row group of more columns, ...
DECODED_BYTES = 64 * 2**20  # ... fewer if that takes more than this, ...
GROUP_BYTES = 512 * 2**20  # ... and rows that take at most this much as float64
PAGED_COLUMNS = 2048  # up to which a page of each (1 MB, as writers make them) can be held instead
READ_BYTES = 2**14  # of a column at a time; else one thread reads a whole row group before the first row
_DAMAGED = "cannot be read as Parquet; check that the file is whole"


@dataclass(frozen=True, slots=True)
class ParquetSource(FileSource):
    """Rows of Parquet files; what it holds is public, so a worker can be sent one."""

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """The declared columns from row `start` on."""
        return parquet_pieces(self.paths, list(self.schema.names), rows, start)

    def begun(self, rows: int, most: int) -> BegunSource | None:
        """The same rows, of which about `most` bytes are decoded from now on; None of wide tables.

        Of those a row group is mostly read whole, which is more than should wait for a charge.
        """
        return BegunSource(self, rows, most) if self.width <= COLUMNS_AT_ONCE else None

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        return parquet_pieces(self.paths, names, PIECE_ROWS, 0)

    def storage(self, name: str) -> list[pa.DataType]:
        """The type in which each file stores a column."""
        return [parquet_schema(path).field(name).type for path in self.paths]


def parquet_pieces(
    paths: tuple[Path, ...], names: list[str], rows: int, start: int
) -> Iterator[pa.RecordBatch]:
    """Pieces of the chosen columns from global row `start` on; row groups before it are not read."""
    skip = start
    for path in paths:
        file = _open(path)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        first = 0
        while first < len(sizes) and skip >= sizes[first]:
            skip -= sizes[first]
            first += 1
        groups = list(range(first, len(sizes)))
        if not groups:
            continue
        if len(names) > COLUMNS_AT_ONCE:
            begin = _first_window(file, groups[0], names, rows, skip)
            found = _wide_pieces(file, groups, names, rows, begin)
            skip -= begin
        else:
            found = file.iter_batches(batch_size=rows, row_groups=groups, columns=names)
        for piece in _guarded(found, path):
            if skip < len(piece):
                yield piece.slice(skip) if skip else piece
            skip = max(skip - len(piece), 0)


def _is_windowed(file: pq.ParquetFile, group: int, names: list[str]) -> bool:
    """Whether a row group of many columns is decoded a few columns at a time."""
    storage = file.schema_arrow
    is_plain = all(pa.types.is_primitive(storage.field(name).type) for name in names)
    is_large = 8 * file.metadata.row_group(group).num_rows * len(names) > GROUP_BYTES
    return is_plain and not (is_large and len(names) <= PAGED_COLUMNS)


def _window_rows(names: list[str], rows: int) -> int:
    """Rows of a group that are decoded together: whole pieces."""
    return max(rows, GROUP_BYTES // (8 * len(names)) // rows * rows)


def _first_window(file: pq.ParquetFile, group: int, names: list[str], rows: int, skip: int) -> int:
    """Where the window begins that holds a row: those before it need no decoding."""
    most = _window_rows(names, rows)
    return skip // most * most if _is_windowed(file, group, names) else 0


def _wide_pieces(
    file: pq.ParquetFile, groups: list[int], names: list[str], rows: int, begin: int
) -> Iterator[pa.RecordBatch]:
    """Row groups of many columns: a few columns at a time, and as many rows as fit, mostly all.

    A reader of all columns at once holds a page, a dictionary and a buffer for each of them, which is
    several times the group. So a larger group is decoded once for every `GROUP_BYTES` of it; that of
    fewer columns is not, whose pages are smaller than the group. The first group is read from the
    window at row `begin` on.
    """
    most = _window_rows(names, rows)
    for group in groups:
        if not _is_windowed(file, group, names):
            yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=names)
            continue
        count = file.metadata.row_group(group).num_rows
        for first in range(begin if group == groups[0] else 0, count, most):
            held = _window(file, group, names, range(first, min(first + most, count)), rows)
            while held:  # each is let go once it was taken, for the next window comes beside it
                whole = held.pop(0)
                for at in range(0, len(whole), rows):
                    yield whole.slice(at, rows)
                del whole


def _window(
    file: pq.ParquetFile, group: int, names: list[str], window: range, rows: int
) -> list[pa.RecordBatch]:
    """Rows of a row group in batches of whole pieces, each in memory of its own."""
    step = max(rows, NOISE_BLOCK // rows * rows)
    firsts = range(window.start, window.stop, step)
    cells = [np.empty((len(names), min(step, window.stop - first))) for first in firsts]
    columns: list[list[pa.Array]] = [[] for _ in firsts]
    count = file.metadata.row_group(group).num_rows
    width = min(COLUMNS_AT_ONCE, max(1, DECODED_BYTES // max(8 * count, 1)))
    for start in range(0, len(names), width):
        few = names[start : start + width]
        table = file.read_row_group(group, columns=few)
        for place, name in enumerate(few, start):
            column = _joined(table[name])
            for first, own, found in zip(firsts, cells, columns, strict=True):
                found.append(_moved(column.slice(first, own.shape[1]), own[place]))
    return [pa.RecordBatch.from_arrays(found, names=names) for found in columns]


def _moved(column: pa.Array, place: Array) -> pa.Array:
    """The same values in the place that is given, which has eight bytes for each; bits of their own.

    A slice would keep the whole column; and Arrow keeps the many small arrays of a group that are freed,
    which would take as much again.
    """
    values, count = column.buffers()[1], len(column)
    if values is None or count == 0 or pa.types.is_boolean(column.type):
        return pa.concat_arrays([column])  # hardly any bytes
    size = column.type.bit_width // 8
    own = place.view(np.uint8)[: count * size]
    own[:] = np.frombuffer(values, np.uint8, count * size, size * column.offset)
    known = None
    if column.null_count:
        is_known = column.is_valid().to_numpy(zero_copy_only=False)
        known = pa.py_buffer(np.packbits(is_known, bitorder="little"))
    return pa.Array.from_buffers(column.type, count, [known, pa.py_buffer(own)], column.null_count)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """The values in one array; one chunk is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _guarded(pieces: Iterator[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    """The pieces; a failure is reported without its text, which may quote the data."""
    while True:
        try:
            piece = next(pieces, None)
        except MemoryError:  # pyarrow's own is an ArrowException, too
            raise
        except (pa.ArrowException, OSError):
            break
        if piece is None:
            return
        yield piece
    # Raised outside the handler, so that the foreign exception hangs on to nothing.
    raise InvalidInput(f"data={path.name!r}: {_DAMAGED}")


def ahead(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same pieces; the next one is decoded while one is used, for a single column has one thread."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = thread.submit(next, pieces, None)
            yield piece


def open_parquet(paths: tuple[Path, ...], schema: Schema) -> ParquetSource:
    """Check names, types and public row counts of every file, then hand out the source."""
    rows, matched, is_public = 0, None, schema.neighbours.rows_are_public
    for path in paths:
        file = _open(path)
        storage = file.schema_arrow
        if matched is None or not storage.equals(matched):  # files of one table are mostly alike
            types = {field.name: field.type for field in storage}
            schema = match_columns(schema, types, storage.names, f"data={path.name!r}")
            matched = storage
        rows += file.metadata.num_rows if is_public else 0
    return ParquetSource(paths, schema, require_rows(schema, rows) if is_public else None)


def count_parquet(paths: tuple[Path, ...]) -> int:
    """The number of rows in the files' metadata."""
    return sum(_open(path).metadata.num_rows for path in paths)


def group_rows(path: Path) -> tuple[int, ...]:
    """Rows of each row group of a file."""
    facts = _open(path).metadata
    return tuple(facts.row_group(index).num_rows for index in range(facts.num_row_groups))


def piece_rows(paths: tuple[Path, ...], column: str, values: int, most: int) -> int:
    """Rows that hold about `values` values of a list column where its lists are longest; from metadata.

    Memory then does not grow with the length of lists. Which rows are read together changes no result.
    """
    rows = most
    for path in paths:
        facts = _open(path).metadata
        for group in map(facts.row_group, range(facts.num_row_groups)):
            leaves = map(group.column, range(group.num_columns))
            named = [leaf for leaf in leaves if leaf.path_in_schema.startswith(f"{column}.")]
            for held in (leaf.num_values for leaf in named if leaf.num_values):
                rows = min(rows, max(1, values * group.num_rows // held))
    return rows


def parquet_schema(path: Path) -> pa.Schema:
    """Column names and storage types; no statistics are looked at."""
    return _open(path).schema_arrow


def _open(path: Path) -> pq.ParquetFile:
    """Open a file, without passing on a message that may quote it."""
    try:
        # pre_buffer keeps every column chunk read so far: memory would grow with the file
        return pq.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=READ_BYTES)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError):
        pass
    raise InvalidInput(f"data={path.name!r}: {_DAMAGED}")
