"""Arrow datasets as a source: files in any format and store that pyarrow reads, in the dataset's order.

A dataset on an object store (`pyarrow.dataset.dataset(..., filesystem=...)`, fsspec too) is read from
there on every pass. Its types are its own declaration, as public as its names.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.dataset as ds

from adumbra.data.files import MEMORY_PIN, PIECE_ROWS, PieceSource, match_columns, require_rows
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import Schema

_DAMAGED = "data: the dataset cannot be read; check that its files are whole and of its schema"


@dataclass(frozen=True, slots=True)
class DatasetSource(PieceSource):
    """Rows of an Arrow dataset."""

    data: ds.Dataset = field(repr=False)
    schema: Schema
    counted: int | None = None  # rows, where their number is public

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
        with suppress(Exception):  # in memory, or a store that does not tell
            infos = self.data.filesystem.get_file_info(self.data.files)
            facts = [[info.path, info.size, info.mtime_ns] for info in infos]
            return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        return MEMORY_PIN


def _pieces(data: ds.Dataset, names: list[str], rows: int, skip: int) -> Iterator[pa.RecordBatch]:
    found = _guarded(data, names, rows)
    for piece in found:
        if skip < len(piece):
            yield piece.slice(skip)
        skip = max(skip - len(piece), 0)


def _guarded(data: ds.Dataset, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches in order; a reader's message may quote a cell, so ours stands alone."""
    batches = None
    while True:
        try:
            if batches is None:
                batches = iter(data.to_batches(columns=names, batch_size=rows))
            piece = next(batches, None)
        except (pa.ArrowException, OSError, ValueError):
            break
        if piece is None:
            return
        yield piece
    raise InvalidInput(_DAMAGED)


def open_dataset(data: ds.Dataset, schema: Schema) -> DatasetSource:
    """Check names, types and, where it is public, the number of rows."""
    rule = "item sets are read from tables and files; give a pyarrow table"
    require(schema.items is None, f"data of type {type(data).__name__}: {rule}")
    types = {item.name: item.type for item in data.schema}
    schema = match_columns(schema, types, data.schema.names, "data")
    if not schema.neighbours.rows_are_public:
        return DatasetSource(data, schema)
    rows = None
    with suppress(pa.ArrowException, OSError, ValueError):
        rows = data.count_rows()
    require(rows is not None, _DAMAGED)
    return DatasetSource(data, schema, require_rows(schema, rows or 0))
