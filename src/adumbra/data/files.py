"""Tables in pieces: columns matched with the schema, a pin of files, fixed row ranges out of pieces."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa

from adumbra.data.columns import (
    fill_column,
    fill_numbers,
    is_number,
    read_numbers,
    type_faults,
)
from adumbra.data.sources import Batch, Part
from adumbra.errors import InvalidInput, require
from adumbra.numerics import Array
from adumbra.schema.schema import Schema

MEMORY_PIN = "memory"  # an object in memory has no name, size or time that could change behind us


def pin_files(paths: tuple[Path, ...]) -> str:
    """SHA-256 over the names, sizes and modification times."""
    facts = []
    for path in paths:
        status = path.stat()
        facts.append([path.name, status.st_size, status.st_mtime_ns])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


PIECE_ROWS = 65_536  # of pieces whose length is nobody's business
TOGETHER = 16  # columns of float64 numbers from which on they are read together ...
LONG = 2**14  # ... in one call, unless there are so many rows that a call per column hardly counts
SHOWN = 5  # names listed in a message before it says how many more there are


def match_columns(
    schema: Schema, types: Mapping[str, pa.DataType], names: list[str], where: str
) -> Schema:
    """Expand the schema by the data's names and refuse absent, doubled or unreadable columns."""
    expanded = schema.expand(names)
    faults = column_mismatches(expanded, types, names)
    require(not faults, f"{where}: " + "; ".join(faults))
    return expanded


def column_mismatches(schema: Schema, types: Mapping[str, pa.DataType], names: list[str]) -> list[str]:
    """What does not fit between a closed schema and the data's names and storage types."""
    faults = []
    wanted = schema.names if schema.person is None else (*schema.names, schema.person.column)
    absent = [name for name in wanted if name not in types]
    if absent:
        word = "column" if len(absent) == 1 else "columns"
        near = near_names(absent, [name for name in types if name not in wanted], types)
        faults.append(f"{word} {listed(absent)} absent{near}; rename in the data or the schema")
        faults += delimiter_hint(names)
    doubled = (
        sorted({name for name in wanted if names.count(name) > 1}) if len(types) < len(names) else []
    )
    if doubled:
        word = "column" if len(doubled) == 1 else "columns"
        faults.append(f"{word} {listed(doubled)} twice; names must differ")
    if schema.person is not None:
        faults += id_faults(schema.person.column, types.get(schema.person.column, pa.null()))
    found = [(column, types[column.name]) for column in schema.columns if column.name in types]
    return faults + [fault for column, storage in found for fault in type_faults(column, storage)]


def delimiter_hint(names: list[str]) -> list[str]:
    """A word on the delimiter, if the one name of a text file looks like several; it quotes nothing."""
    if len(names) != 1 or not any(sign in names[0] for sign in ";\t|,"):
        return []
    rule = "delimiters are commas (.csv) or tabs (.tsv), or declared by delimiter in [table]"
    return [f"the first line has one field only; {rule}"]


def near_names(absent: list[str], others: list[str], types: Mapping[str, pa.DataType]) -> str:
    """Names of the data that may be meant, in brackets; only where it stores types, so names are public.

    The first line of a CSV file may be a person's, and is never shown.
    """
    typed = [name for name in others if not pa.types.is_null(types[name])]
    found = [near for name in absent[:SHOWN] for near in get_close_matches(name, typed, n=1)]
    return f" (did you mean {', '.join(map(repr, dict.fromkeys(found)))}?)" if found else ""


def id_faults(name: str, storage: pa.DataType) -> list[str]:
    """What does not fit between a column of ids and its stored type."""
    from adumbra.data.person_ids import is_id_type  # noqa: PLC0415  (only this unit needs it)

    rule = "holds no ids; use text or whole numbers"
    return [] if is_id_type(storage) else [f"column {name!r} of type {storage} {rule}"]


def listed(names: list[str]) -> str:
    """A few names, quoted, and how many more."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def require_rows(schema: Schema, rows: int) -> int:
    """Compare a public number of rows with the declared one and the limit."""
    if schema.rows is not None and rows != schema.rows:
        raise InvalidInput(f"rows={schema.rows}: the data has {rows}; correct the schema or the data")
    remedy = "raise max_rows in the schema"
    require(rows <= schema.max_rows, f"max_rows={schema.max_rows}: the data has {rows} rows; {remedy}")
    return rows


def require_range(rows: int, start: int, stop: int | None) -> None:
    """The arguments of `batches`."""
    require(rows >= 1, f"rows={rows}: a block needs at least one row")
    ends = (start,) if stop is None else (start, stop)
    require(
        all(end >= 0 and end % rows == 0 for end in ends),
        f"start={start}, stop={stop}: not whole blocks",
    )


class PieceSource:
    """A source whose rows come in Arrow pieces of any length."""

    __slots__ = ()
    schema: Schema

    @property
    def width(self) -> int:
        """Values per row."""
        return self.schema.width

    def pieces(self, rows: int, start: int) -> Iterable[pa.RecordBatch]:
        """The rows from global row `start` on, of the schema's columns at least; `rows` is a hint."""
        raise NotImplementedError

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Blocks of fixed row ranges."""
        plain = plain_storage(self.schema)
        return (filled(self.schema, plain, *block) for block in self._blocks(rows, start, stop))

    def parts(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """The same blocks, each converted by whoever reads it."""
        plain = plain_storage(self.schema)
        for first, held in self._blocks(rows, start, stop):
            size = sum(map(len, held))
            yield Part(size, 8 * size * self.width, partial(filled, self.schema, plain, first, held))

    def _blocks(
        self, rows: int, start: int, stop: int | None
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        require_range(rows, start, stop)
        last = self.schema.max_rows if stop is None else min(stop, self.schema.max_rows)
        return rechunk(self.pieces(rows, start), rows, start, max(last - start, 0))


@dataclass(frozen=True, slots=True)
class FileSource(PieceSource):
    """Rows of files; holds paths and public facts only."""

    paths: tuple[Path, ...]
    schema: Schema
    counted: int | None = None  # rows, where their number is public

    def public_rows(self) -> int | None:
        """The number of rows when the source was opened, where it is public."""
        return self.counted

    def pin(self) -> str:
        """A digest of names, sizes and modification times."""
        return pin_files(self.paths)


def rechunk(
    pieces: Iterable[pa.RecordBatch], rows: int, start: int, count: int
) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Blocks of exactly `rows` rows, at most `count` rows in all: their first row, and their pieces."""
    held: list[pa.RecordBatch] = []
    size = 0
    for piece in pieces:
        offset = 0
        while offset < len(piece) and count > 0:
            taken = min(rows - size, len(piece) - offset, count)
            held.append(piece if taken == len(piece) else piece.slice(offset, taken))
            size, offset, count = size + taken, offset + taken, count - taken
            if size == rows:
                yield start, held
                held, start, size = [], start + rows, 0
        if count == 0:
            break
    if size:
        yield start, held


def plain_storage(schema: Schema) -> pa.Schema | None:
    """How pieces of numbers alone are mostly stored: asked once, not of every column of every piece."""
    plain = [pa.field(column.name, pa.float64()) for column in schema.columns if is_number(column)]
    return pa.schema(plain) if len(plain) == schema.width else None


def filled(schema: Schema, plain: pa.Schema | None, start: int, held: list[pa.RecordBatch]) -> Batch:
    """One block of the pieces' cells, each read by its column's declaration."""
    if plain is not None and all(piece.schema.equals(plain) for piece in held):
        is_short = len(held) == 1 and len(held[0]) < LONG
        cells = _tensor(held[0], list(schema.names)) if is_short else _joined(held, schema.width)
        fill_numbers(schema.columns, cells)
        return Batch(start, cells)
    block = np.empty((sum(map(len, held)), schema.width), order="F")
    first = 0
    for piece in held:
        rows = block[first : first + len(piece)]
        numbers = _numbers(schema, piece)
        together = numbers if len(numbers) >= TOGETHER else []
        _fill_together(schema, piece, together, rows)
        apart = set(together)
        for index, column in enumerate(schema.columns):
            if index not in apart:
                fill_column(column, piece.column(column.name), rows[:, index])
        first += len(piece)
    return Batch(start, block)


def _numbers(schema: Schema, piece: pa.RecordBatch) -> list[int]:
    """Columns that are numbers and stored as float64."""
    stored = dict(zip(piece.schema.names, piece.schema.types, strict=True))
    plain = pa.float64()
    listed = enumerate(schema.columns)
    return [place for place, one in listed if stored[one.name] == plain and is_number(one)]


def _fill_together(schema: Schema, piece: pa.RecordBatch, numbers: list[int], out: Array) -> None:
    """Write such columns; those of a short piece in one go, for calls are most of its work."""
    names = [schema.names[place] for place in numbers]
    cells = _tensor(piece, names) if numbers and len(piece) < LONG else None
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        pairs = list(run)  # neighbours in the table
        place = slice(pairs[0][1], pairs[-1][1] + 1)
        if cells is not None:
            out[:, place] = cells[:, pairs[0][0] : pairs[-1][0] + 1]
        else:
            for at, column in pairs:
                out[:, column] = read_numbers(piece.column(names[at]))
        fill_numbers(schema.columns[place], out[:, place])


def _tensor(piece: pa.RecordBatch, names: list[str]) -> Array:
    """Columns of float64 in memory of their own; NaN for null."""
    chosen = piece if piece.schema.names == names else piece.select(names)
    cells: Array = chosen.to_tensor(null_to_nan=True, row_major=False).to_numpy()
    return cells


def _joined(held: list[pa.RecordBatch], width: int) -> Array:
    """The cells of pieces of float64 in one block, each copied once; NaN for null."""
    cells: Array = np.empty((sum(map(len, held)), width), order="F")
    first = 0
    for piece in filter(len, held):
        last = first + len(piece)
        for index, array in enumerate(piece.columns):
            if array.null_count:
                cells[first:last, index] = read_numbers(array)
            else:  # many short columns: what `read_numbers` asks of each takes as long as the copy
                whole = np.frombuffer(array.buffers()[1], np.float64, len(array), 8 * array.offset)
                cells[first:last, index] = whole
        first = last
    return cells
