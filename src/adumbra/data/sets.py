"""Item sets as a source: Parquet or Arrow lists of whole numbers, FIMI `.dat` lines, sparse matrices.

Each row becomes a set: items outside the universe, nulls and unreadable words are dropped, doubles are
one item. In `.dat` files every line is a row, a blank line the empty set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adumbra.data.columns import is_readable, read_numbers
from adumbra.data.files import MEMORY_PIN, id_faults, pin_files, require_range, require_rows
from adumbra.data.fimi import parse_lines
from adumbra.data.lines import read_lines
from adumbra.data.parquet import ahead, count_parquet, parquet_pieces, parquet_schema, piece_rows
from adumbra.data.sources import Items, SetBatch
from adumbra.errors import InvalidInput, require
from adumbra.numerics import EXACT, Array, Ints
from adumbra.schema.schema import ItemSpec, Schema

_PIECE_ROWS = 65_536
_PIECE_ITEMS = 2**21


PartT = TypeVar("PartT", bound=Items)


@dataclass(frozen=True, slots=True)
class Lists:
    """Raw rows: the number of items in each, and all items one after the other."""

    lengths: Ints = field(repr=False)
    items: Items = field(repr=False)

    def __len__(self) -> int:
        return len(self.lengths)

    def rows_from(self, start: int) -> "Lists":
        """The rows from `start` on."""
        return Lists(self.lengths[start:], self.items[int(self.lengths[:start].sum()) :])


@dataclass(frozen=True, slots=True)
class SetSource:
    """Item sets behind a reader of raw rows."""

    schema: Schema
    reader: "SetReader" = field(repr=False)
    counted: int | None = None  # rows, where their number is public

    @property
    def width(self) -> int:
        """Items of the universe."""
        return self.schema.width

    def public_rows(self) -> int | None:
        """The number of rows when the source was opened, where it is public."""
        return self.counted

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[SetBatch]:
        """Blocks of fixed row ranges."""
        require_range(rows, start, stop)
        last = self.schema.max_rows if stop is None else min(stop, self.schema.max_rows)
        return self.numbered(rows, start, last)

    def numbered(self, rows: int, start: int, last: int, offset: int = 0) -> Iterator[SetBatch]:
        """Blocks of rows `start` to `last`, where the reader's first row is row `offset`."""
        spec, pieces = item_spec(self.schema), self.reader.pieces(start - offset)
        for first, lists in _rechunk(pieces, rows, start, max(last - start, 0)):
            yield make_sets(lists, spec, first)

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        reader = cast("ParquetReader | ColumnReader", self.reader)  # others are refused when opened
        return reader.named_pieces(names)

    def storage(self, name: str) -> list[pa.DataType]:
        """The types in which a column is stored."""
        return cast("ParquetReader | ColumnReader", self.reader).storage(name)

    def pin(self) -> str:
        """A digest of names, sizes and modification times; a constant in memory."""
        return self.reader.pin()


def item_spec(schema: Schema) -> ItemSpec:
    """The item set declaration of a schema that must have one."""
    if schema.items is None:
        raise InvalidInput("items are absent: this data holds item sets; declare [items] in the schema")
    return schema.items


def make_sets(lists: Lists, spec: ItemSpec, start: int) -> SetBatch:
    """Sort each row, drop doubles and what lies outside the universe; clean rows pass at once."""
    ids = spec.numbers()
    if ids is not None:
        return _listed_sets(lists, ids, start)
    indptr = _pointers(lists.lengths)
    indices = lists.items - np.int64(spec.lower) if spec.lower else lists.items
    if are_sets(indices, indptr, spec.width):  # they are below 2^31, as the universe is
        return SetBatch(start, indptr, indices.astype(np.int32, copy=False), spec.width)
    rows = np.repeat(np.arange(len(lists), dtype=np.int64), lists.lengths)
    known = (lists.items >= spec.lower) & (lists.items <= spec.upper)
    keys = np.unique(rows[known] * spec.width + (lists.items[known] - np.int64(spec.lower)))
    counts = np.bincount(keys // spec.width, minlength=len(lists))
    indices = (keys % spec.width).astype(np.int32)
    return SetBatch(start, _pointers(counts), indices, spec.width)


def _listed_sets(lists: Lists, ids: Ints, start: int) -> SetBatch:
    """The same where a public file lists the items, in rising order: an item is its place there."""
    rows = np.repeat(np.arange(len(lists), dtype=np.int64), lists.lengths)
    places = np.minimum(np.searchsorted(ids, lists.items), len(ids) - 1)
    known = ids[places] == lists.items
    keys = np.unique(rows[known] * len(ids) + places[known])
    counts = np.bincount(keys // len(ids), minlength=len(lists))
    return SetBatch(start, _pointers(counts), (keys % len(ids)).astype(np.int32), len(ids))


def _pointers(lengths: Ints) -> Ints:
    """Where rows of these lengths start, and where the last one ends."""
    pointers = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=pointers[1:])
    return pointers


def are_sets(indices: Items, indptr: Ints, width: int) -> bool:
    """Whether every row is strictly rising and within 0 to width - 1."""
    if not len(indices):
        return True
    if indices.min() < 0 or indices.max() >= width:
        return False
    rising = indices[1:] > indices[:-1]
    starts = indptr[1:-1]  # where a row starts, any step is right
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rising.all())


def _rechunk(pieces: Iterable[Lists], rows: int, start: int, count: int) -> Iterator[tuple[int, Lists]]:
    """Exactly `rows` rows at a time, at most `count` in all."""
    lengths: list[Ints] = []
    items: list[Items] = []
    filled = 0
    for piece in pieces:
        bounds = _pointers(piece.lengths)
        offset = 0
        while offset < len(piece) and count > 0:
            taken = min(rows - filled, len(piece) - offset, count)
            lengths.append(piece.lengths[offset : offset + taken])
            items.append(piece.items[bounds[offset] : bounds[offset + taken]])
            filled, offset, count = filled + taken, offset + taken, count - taken
            if filled == rows:
                yield start, Lists(_joined(lengths), _joined(items))
                lengths, items, start, filled = [], [], start + rows, 0
        if count == 0:
            break
    if filled:
        yield start, Lists(_joined(lengths), _joined(items))


def _joined(parts: list[PartT]) -> PartT:
    """One array; a single part is not copied."""
    return parts[0] if len(parts) == 1 else cast("PartT", np.concatenate(parts))


def arrow_lists(array: pa.Array) -> Lists:
    """A list column as raw rows; null rows are empty, what is no whole number is no item (-1)."""
    if pa.types.is_null(array.type):
        return Lists(np.zeros(len(array), np.int64), np.empty(0, np.int64))
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    values = array.flatten()
    kind = values.type
    if not pa.types.is_integer(kind):
        return Lists(lengths.astype(np.int64), _whole(read_numbers(values)))
    is_short = kind.bit_width < 32 or kind.equals(pa.int32())
    whole = pc.cast(values, pa.int32() if is_short else pa.int64(), safe=False)
    whole = pc.fill_null(whole, -1) if whole.null_count else whole
    return Lists(lengths.astype(np.int64), whole.to_numpy(zero_copy_only=False))


def _whole(values: Array) -> Ints:
    """Whole numbers from 0 on; -1 for any other value."""
    is_item = (values >= 0) & (values < EXACT) & (np.floor(values) == values)
    return np.where(is_item, values, -1.0).astype(np.int64)


def require_lists(spec: ItemSpec, storage: pa.Schema, where: str, person: str | None = None) -> None:
    """The item column is there once, and holds lists of truths, numbers or text (or nothing at all)."""
    if person is not None:
        ids = storage.get_all_field_indices(person)
        require(len(ids) == 1, f"{where}: column {person!r} occurs {len(ids)} times; need it once")
        faults = id_faults(person, storage.field(ids[0]).type)
        require(not faults, f"{where}: " + "; ".join(faults))
    found = storage.get_all_field_indices(spec.column)
    require(len(found) == 1, f"{where}: column {spec.column!r} occurs {len(found)} times; need it once")
    kind = storage.field(found[0]).type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    is_right = pa.types.is_null(kind) or (is_list and is_readable(kind.value_type))
    require(
        bool(is_right),
        f"{where}: column {spec.column!r} of type {kind} holds no item sets; use list<int>",
    )


@dataclass(frozen=True, slots=True)
class DatReader:
    """FIMI files: one set a line."""

    paths: tuple[Path, ...]

    def pieces(self, start: int) -> Iterator[Lists]:
        """Raw rows from global row `start` on."""
        for path in self.paths:
            for block in read_lines(path, b"\n"):
                count = block.count(b"\n")
                if start < count:
                    yield Lists(*parse_lines(block)).rows_from(start)
                start = max(start - count, 0)

    def count(self) -> int:
        """The number of lines."""
        return sum(block.count(b"\n") for path in self.paths for block in read_lines(path, b"\n"))

    def pin(self) -> str:
        """A digest of names, sizes and modification times."""
        return pin_files(self.paths)


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """A list column of Parquet files."""

    paths: tuple[Path, ...]
    column: str

    def pieces(self, start: int) -> Iterator[Lists]:
        """Raw rows from global row `start` on."""
        rows = piece_rows(self.paths, self.column, _PIECE_ITEMS, _PIECE_ROWS)
        for piece in ahead(parquet_pieces(self.paths, [self.column], rows, start)):
            yield arrow_lists(piece.column(self.column))

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        rows = piece_rows(self.paths, self.column, _PIECE_ITEMS, _PIECE_ROWS)
        return parquet_pieces(self.paths, names, rows, 0)

    def storage(self, name: str) -> list[pa.DataType]:
        """The type in which each file stores a column."""
        return [parquet_schema(path).field(name).type for path in self.paths]

    def count(self) -> int:
        """The number of rows in the files' metadata."""
        return count_parquet(self.paths)

    def pin(self) -> str:
        """A digest of names, sizes and modification times."""
        return pin_files(self.paths)


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """A list column in memory."""

    column: pa.ChunkedArray = field(repr=False)
    ids: pa.ChunkedArray | None = field(default=None, repr=False)  # whose rows they are

    def pieces(self, start: int) -> Iterator[Lists]:
        """Raw rows from global row `start` on."""
        for chunk in self.column.slice(start).chunks:
            yield arrow_lists(chunk)

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """The two columns of all rows."""
        return iter(pa.table([self.column, self.ids], names=names).to_batches(_PIECE_ROWS))

    def storage(self, name: str) -> list[pa.DataType]:  # noqa: ARG002 - the ids have no other name here
        """The type of the ids."""
        return [] if self.ids is None else [self.ids.type]

    def count(self) -> int:
        """The number of rows."""
        return len(self.column)

    def pin(self) -> str:
        """A constant: what is in memory is not pinned."""
        return MEMORY_PIN


@dataclass(frozen=True, slots=True)
class MatrixReader:
    """A scipy.sparse matrix in compressed rows; column j is item j of the universe."""

    indptr: Ints = field(repr=False)
    indices: Items = field(repr=False)

    def pieces(self, start: int) -> Iterator[Lists]:
        """Raw rows from global row `start` on."""
        for first in range(start, self.count(), _PIECE_ROWS):
            bounds = self.indptr[first : first + _PIECE_ROWS + 1]
            yield Lists(np.diff(bounds), self.indices[bounds[0] : bounds[-1]])

    def count(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def pin(self) -> str:
        """A constant: what is in memory is not pinned."""
        return MEMORY_PIN


SetReader = DatReader | ParquetReader | ColumnReader | MatrixReader  # where raw rows come from


def open_sets(reader: SetReader, schema: Schema) -> SetSource:
    """A source over a reader; the number of rows is compared with the schema, where it is public."""
    is_public = schema.neighbours.rows_are_public
    return SetSource(schema, reader, require_rows(schema, reader.count()) if is_public else None)
