"""Arrow datasets as a source: files in any format and store that pyarrow reads, in the dataset's order.

A dataset on an object store (`pyarrow.dataset.dataset(..., filesystem=...)`, fsspec too) is read from
there on every pass. Its types are its own declaration, as public as its names.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset as ds

from adumbra.data.files import MEMORY_PIN, PIECE_ROWS, PieceSource, match_columns, require_rows
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import Schema

ReadT = TypeVar("ReadT")

_DAMAGED = "data: the dataset cannot be read; check that its files are whole and of its schema"


@dataclass(frozen=True, slots=True)
class DatasetSource(PieceSource):
    """Rows of an Arrow dataset."""

    data: ds.Dataset = field(repr=False)
    schema: Schema
    counted: int | None = None  # rows, where their number is public
    address: str = field(default="", repr=False)  # of the store that holds it, if it was opened by one

    def public_rows(self) -> int | None:
        """The number of rows when the source was opened, where it is public."""
        return self.counted

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """The declared columns from row `start` on."""
        return _pieces(self.data, list(self.schema.names), rows, start)

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        return _pieces(self.data, names, PIECE_ROWS, 0)

    def storage(self, name: str) -> list[pa.DataType]:
        """The dataset's own type of a column, and that of its files where it has any."""
        held = [one.physical_schema for one in self.data.get_fragments()]
        return [one.field(name).type for one in (self.data.schema, *held) if name in one.names]

    def pin(self) -> str:
        """A digest of names, sizes and modification times, where the dataset has files."""
        return pin_dataset(self.data)


def pin_dataset(data: ds.Dataset) -> str:
    """The same of any dataset."""
    with suppress(Exception):  # in memory, or a store that does not tell
        infos = data.filesystem.get_file_info(data.files)
        facts = [[info.path, info.size, info.mtime_ns] for info in infos]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return MEMORY_PIN


def row_groups(data: ds.Dataset) -> tuple[tuple[int, ...], ...]:
    """Rows of every row group of every file; a fault says none of the store's words."""
    return _alone(
        lambda: tuple(tuple(g.num_rows for g in one.row_groups) for one in data.get_fragments())
    )


def pieces_from(data: ds.Dataset, names: list[str], rows: int, skip: int) -> Iterator[pa.RecordBatch]:
    """The rows after the first `skip`; row groups before them are not read."""
    kept: list[ds.Fragment] = []
    for group in _each_group(data):
        count = group.row_groups[0].num_rows
        if kept or skip < count:
            kept.append(group)
        else:
            skip -= count
    if kept:
        rest = ds.FileSystemDataset(kept, data.schema, data.format, data.filesystem)
        yield from _pieces(rest, names, rows, skip)


def _each_group(data: ds.Dataset) -> list[ds.Fragment]:
    """Every row group as a fragment of its own."""
    return _alone(lambda: [group for one in data.get_fragments() for group in one.split_by_row_group()])


def _pieces(data: ds.Dataset, names: list[str], rows: int, skip: int) -> Iterator[pa.RecordBatch]:
    found = _guarded(data, names, rows)
    for piece in found:
        if skip < len(piece):
            yield piece.slice(skip)
        skip = max(skip - len(piece), 0)


def _guarded(data: ds.Dataset, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches in order; a reader's message may quote a cell, so ours stands alone."""
    batches = _alone(lambda: iter(data.to_batches(columns=names, batch_size=rows)))
    while (piece := _alone(lambda: next(batches, None))) is not None:
        yield piece


def _alone(read: Callable[[], ReadT]) -> ReadT:
    """What is read. A store fails with errors of any kind, which may quote a signed address or cells."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001, S110 - whatever it is: it is named below, outside of the handler
        pass
    raise InvalidInput(_DAMAGED)


def open_dataset(data: ds.Dataset, schema: Schema, address: str = "") -> DatasetSource:
    """Check names, types and, where it is public, the number of rows."""
    rule = "item sets are read from tables and files; give a pyarrow table"
    require(schema.items is None, f"data of type {type(data).__name__}: {rule}")
    types = {item.name: item.type for item in data.schema}
    schema = match_columns(schema, types, data.schema.names, "data")
    if not schema.neighbours.rows_are_public:
        return DatasetSource(data, schema, address=address)
    rows = _alone(data.count_rows)
    return DatasetSource(data, schema, require_rows(schema, rows), address)
