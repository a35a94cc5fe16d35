"""Objects in memory as sources: numpy arrays, scipy.sparse, everything with the Arrow C stream."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.batch import Batch
from adumbra.data.blocks import match_columns, rechunk, require_range, require_rows
from adumbra.data.columns import fill_values
from adumbra.data.files import MEMORY_PIN
from adumbra.data.schema import Schema
from adumbra.data.sets import ColumnReader, MatrixReader, SetSource, open_sets, require_lists
from adumbra.errors import InvalidInput, require

SourceT = TypeVar("SourceT", "ArrowSource", "ArraySource")
Matrix = Any  # a scipy.sparse array or matrix in compressed rows; scipy is imported by whoever made it


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
        is_public = self.schema.neighbours.rows_are_public
        return require_rows(self.schema, self.table.num_rows) if is_public else None

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Blocks of fixed row ranges."""
        require_range(rows, start, stop)
        last = self.schema.max_rows if stop is None else min(stop, self.schema.max_rows)
        pieces = self.table.slice(start).to_batches()
        return rechunk(pieces, self.schema, rows, start, max(last - start, 0))

    def pin(self) -> str:
        """A constant: what is in memory is not pinned."""
        return MEMORY_PIN


@dataclass(frozen=True, slots=True)
class ArraySource:
    """Rows of a numeric array, dense or in compressed sparse rows (made dense one block at a time)."""

    data: Matrix = field(repr=False)
    schema: Schema

    @property
    def width(self) -> int:
        """Values a row."""
        return self.schema.width

    def public_rows(self) -> int | None:
        """The number of rows, where it is public."""
        is_public = self.schema.neighbours.rows_are_public
        return require_rows(self.schema, self.data.shape[0]) if is_public else None

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Blocks of fixed row ranges."""
        require_range(rows, start, stop)
        ends = [int(self.data.shape[0]), self.schema.max_rows, *(() if stop is None else (stop,))]
        for first in range(start, min(ends), rows):
            piece = self.data[first : min(first + rows, *ends)]
            dense = piece if isinstance(piece, np.ndarray) else piece.toarray()
            block = np.array(dense, dtype=np.float64, order="F")
            for index, column in enumerate(self.schema.columns):
                fill_values(column, block[:, index], block[:, index])
            yield Batch(first, block)

    def pin(self) -> str:
        """A constant: what is in memory is not pinned."""
        return MEMORY_PIN


def open_array(data: NDArray[Any], schema: Schema) -> ArrowSource | ArraySource | SetSource:
    """A two-dimensional array in schema order; item sets have a column for each item."""
    _require_shape(data, schema)
    if data.dtype.kind in "biuf":
        if schema.items is not None:
            rows, items = np.nonzero(data)
            counts = np.bincount(rows, minlength=len(data))
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            return _open_matrix(indptr, items, schema)
        return _counted(ArraySource(data, schema))
    require(
        schema.items is None and data.dtype.kind in "OSUT",
        f"data of type {data.dtype}: cannot be read; give numbers or text",
    )
    columns = [_text_column(data[:, index].tolist()) for index in range(data.shape[1])]
    return _open_table(pa.table(columns, names=list(schema.names)), schema)


def open_sparse(data: Matrix, schema: Schema) -> ArraySource | SetSource:
    """A scipy.sparse matrix: item sets (its non-zero columns) or numbers, as the schema says."""
    _require_shape(data, schema)
    require(data.dtype.kind in "biuf", f"data of type {data.dtype}: cannot be read; give numbers")
    rows = data.tocsr()
    if schema.items is None:
        return _counted(ArraySource(rows, schema))
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return _open_matrix(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), schema)


def open_arrow(data: object, schema: Schema) -> ArrowSource | SetSource:
    """Anything with the Arrow C stream (pyarrow, polars, pandas); a one-shot reader is read whole."""
    table = arrow_table(data)
    if schema.items is None:
        return _open_table(table, schema)
    require_lists(schema.items, table.schema, "data")
    return open_sets(ColumnReader(table.column(schema.items.column)), schema)


def arrow_table(data: object) -> pa.Table:
    """The object as an Arrow table, without passing on a message that may quote it."""
    if isinstance(data, pa.Table):
        return data
    with suppress(Exception):  # exporters quote the cell that they cannot convert
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if type(data).__module__.partition(".")[0] == "pandas":
            return _pandas_table(data)
        return pa.table(data)
    kind = type(data).__name__
    raise InvalidInput(f"data of type {kind}: cannot be exported to Arrow; cast its columns")


def _pandas_table(data: Any) -> pa.Table:  # noqa: ANN401  (pandas is not a dependency)
    """A data frame column by column. Object columns become text cell by cell.

    pandas would guess their type from all cells together: one cell could change how the others are read.
    """
    columns = []
    for index in range(data.shape[1]):
        values = data.iloc[:, index]
        is_object = values.dtype == object
        columns.append(_text_column(values.tolist()) if is_object else pa.Array.from_pandas(values))
    return pa.table(columns, names=[str(name) for name in data.columns])


def _text_column(values: list[object]) -> pa.Array:
    """Python objects as text."""
    return pa.array([_as_text(value) for value in values], type=pa.large_binary())


def _as_text(value: object) -> bytes | None:
    """Any Python object as text; None where it is nothing or has no text."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return str(value).encode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001  (a foreign __str__ may raise anything, and would show the value)
        return None


def _open_table(table: pa.Table, schema: Schema) -> ArrowSource:
    """Check names, types and public row counts."""
    types = {item.name: item.type for item in table.schema}
    expanded = match_columns(schema, types, table.schema.names, "data")
    return _counted(ArrowSource(table, expanded))


def _open_matrix(indptr: NDArray[np.int64], columns: NDArray[np.int64], schema: Schema) -> SetSource:
    """Item sets from the places of non-zeros."""
    lower = schema.items.lower if schema.items is not None else 0
    return open_sets(MatrixReader(indptr, columns + lower), schema)


def _require_shape(data: Matrix, schema: Schema) -> None:
    """Two dimensions, and a column for each one of the schema."""
    require(data.ndim == 2, f"data of {data.ndim} dimensions: need rows x columns")
    width = schema.require_closed().width
    require(data.shape[1] == width, f"data of {data.shape[1]} columns: the schema declares {width}")


def _counted(source: SourceT) -> SourceT:
    """Compare the number of rows with the schema, where it is public."""
    source.public_rows()
    return source
