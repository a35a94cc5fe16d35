"""Objects in memory as sources: numpy arrays and everything with the Arrow C stream."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from adumbra.data.batch import Batch
from adumbra.data.blocks import match_columns, rechunk, require_range, require_rows
from adumbra.data.schema import Schema
from adumbra.errors import InvalidInput, require

MEMORY_PIN = "memory"  # an object in memory has no name, size or time that could change behind us


@dataclass(frozen=True, slots=True)
class ArrowSource:
    """Rows of an Arrow table in memory."""

    table: pa.Table = field(repr=False)
    schema: Schema

    @property
    def width(self) -> int:
        """Values a row."""
        return self.schema.width

    def public_rows(self) -> int | None:
        """The number of rows, where it is public."""
        public = self.schema.neighbours.rows_are_public
        return require_rows(self.schema, self.table.num_rows) if public else None

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Blocks of fixed row ranges."""
        require_range(rows, start, stop)
        last = self.schema.max_rows if stop is None else min(stop, self.schema.max_rows)
        pieces = self.table.slice(start).to_batches()
        return rechunk(pieces, self.schema, rows, start, max(last - start, 0))

    def pin(self) -> str:
        """A constant: what is in memory is not pinned."""
        return MEMORY_PIN


def open_array(data: np.ndarray, schema: Schema) -> ArrowSource:
    """A two-dimensional array in schema order; shares memory where it can."""
    require(data.ndim == 2, f"data of {data.ndim} dimensions: need rows x columns")
    schema.require_closed()
    width = data.shape[1]
    require(width == schema.width, f"data of {width} columns: the schema declares {schema.width}")
    columns = [_array_column(data[:, index]) for index in range(width)]
    return _open_table(pa.table(columns, names=list(schema.names)), schema)


def _array_column(values: np.ndarray) -> pa.Array:
    """One array column as Arrow values; nothing that it holds can raise."""
    if values.dtype.kind in "biuf":
        plain = values.astype(np.float64) if values.dtype.kind == "f" else values
        return pa.array(np.ascontiguousarray(plain))
    return pa.array([_as_text(value) for value in values.tolist()], type=pa.large_binary())


def _as_text(value: object) -> bytes | None:
    """Any Python object as text; None where it is nothing or has no text."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return value
    try:
        return str(value).encode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001  (a foreign __str__ may raise anything, and would show the value)
        return None


def open_arrow(data: object, schema: Schema) -> ArrowSource:
    """Anything with the Arrow C stream (pyarrow, polars, pandas); a one-shot reader is read whole."""
    return _open_table(arrow_table(data), schema)


def arrow_table(data: object) -> pa.Table:
    """The object as an Arrow table, without passing on a message that may quote it."""
    if isinstance(data, pa.Table):
        return data
    try:
        return pa.table(data)
    except Exception:  # noqa: BLE001  (pandas and pyarrow quote the cell that they cannot convert)
        kind = type(data).__name__
        raise InvalidInput(
            f"data of type {kind}: cannot be exported to Arrow; cast its columns"
        ) from None


def _open_table(table: pa.Table, schema: Schema) -> ArrowSource:
    """Check names, types and public row counts."""
    types = {item.name: item.type for item in table.schema}
    expanded = match_columns(schema, types, table.schema.names, "data")
    source = ArrowSource(table, expanded)
    source.public_rows()
    return source
