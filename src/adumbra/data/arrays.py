"""Objects in memory as sources: numpy arrays, scipy.sparse, everything with the Arrow C stream."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.cells import (
    array_column,
    array_numbers,
    id_column,
    pandas_column,
    read_cells,
    read_lists,
)
from adumbra.data.columns import fill_values, read_numbers
from adumbra.data.files import (
    MEMORY_PIN,
    PIECE_ROWS,
    PieceSource,
    match_columns,
    require_range,
    require_rows,
)
from adumbra.data.sets import ColumnReader, MatrixReader, SetSource, open_sets, require_lists
from adumbra.data.sources import Batch, Part
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import ItemSpec, Schema

SourceT = TypeVar("SourceT", "ArrowSource", "ArraySource")
Matrix = Any  # a scipy.sparse array or matrix in compressed rows; scipy is imported by whoever made it


@dataclass(frozen=True, slots=True)
class ArrowSource(PieceSource):
    """Rows of an Arrow table in memory."""

    table: pa.Table = field(repr=False)
    schema: Schema

    def public_rows(self) -> int | None:
        """The number of rows, where it is public."""
        is_public = self.schema.neighbours.rows_are_public
        return require_rows(self.schema, self.table.num_rows) if is_public else None

    def pieces(self, rows: int, start: int) -> list[pa.RecordBatch]:  # noqa: ARG002 - they have a size
        """The table's own chunks from row `start` on."""
        found: list[pa.RecordBatch] = self.table.slice(start).to_batches()
        return found

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        return iter(self.table.select(names).to_batches(PIECE_ROWS))

    def storage(self, name: str) -> list[pa.DataType]:
        """The type in which a column is stored."""
        return [self.table.schema.field(name).type]

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
        """Values per row."""
        return self.schema.width

    def public_rows(self) -> int | None:
        """The number of rows, where it is public."""
        is_public = self.schema.neighbours.rows_are_public
        return require_rows(self.schema, self.data.shape[0]) if is_public else None

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Blocks of fixed row ranges."""
        return (cast("Batch", part.read()) for part in self.parts(rows, start, stop))

    def parts(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """The same blocks, to be converted elsewhere."""
        require_range(rows, start, stop)
        ends = [int(self.data.shape[0]), self.schema.max_rows, *(() if stop is None else (stop,))]
        for first in range(start, min(ends), rows):
            size = min(first + rows, *ends) - first
            yield Part(size, 8 * size * self.width, partial(self._block, first, first + size))

    def _block(self, first: int, last: int) -> Batch:
        """These rows, dense."""
        piece = self.data[first:last]
        dense = piece if isinstance(piece, np.ndarray) else piece.toarray()
        with np.errstate(all="ignore"):  # a long double beyond float64 is infinite, so missing
            block = np.array(dense, dtype=np.float64, order="F")
        for index, column in enumerate(self.schema.columns):
            fill_values(column, block[:, index], block[:, index])
        return Batch(first, block)

    def pin(self) -> str:
        """A constant: what is in memory is not pinned."""
        return MEMORY_PIN


def open_array(data: NDArray[Any], schema: Schema) -> ArrowSource | ArraySource | SetSource:
    """A two-dimensional array of any type in schema order; item sets have a column for each item."""
    _require_shape(data, schema)
    is_cells = data.dtype.kind in "OSUT"
    if schema.items is None and is_cells:
        columns = [array_column(data[:, index]) for index in range(data.shape[1])]
        return _open_table(pa.table(columns, names=list(schema.names)), schema)
    if is_cells:
        values = read_numbers(array_column(data.reshape(-1))).reshape(data.shape)
    else:
        is_plain = data.dtype.kind in "biuf" and not isinstance(data, np.ma.MaskedArray)
        values = data if is_plain else array_numbers(data)
    if schema.items is None:
        return _counted(ArraySource(values, schema))
    rows, items = np.nonzero(is_there(values))
    counts = np.bincount(rows, minlength=len(data))
    return _open_matrix(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), items, schema)


def is_there(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a cell of a 0/1 matrix says that the item is in the row: a number other than 0."""
    return np.asarray(np.isfinite(values) & (values != 0))


def open_sparse(data: Matrix, schema: Schema) -> ArraySource | SetSource:
    """A scipy.sparse matrix: item sets (its non-zero columns) or numbers, as the schema says."""
    _require_shape(data, schema)
    rows = data.tocsr()
    if schema.items is None and rows.dtype.kind != "c":
        return _counted(ArraySource(rows, schema))
    rows = rows.copy()
    rows.sum_duplicates()
    rows.data = array_numbers(rows.data)
    if schema.items is None:
        return _counted(ArraySource(rows, schema))
    rows.data = is_there(rows.data)
    rows.eliminate_zeros()
    return _open_matrix(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), schema)


def open_arrow(data: object, schema: Schema) -> ArrowSource | SetSource:
    """Anything with the Arrow C stream (pyarrow, polars, pandas); a one-shot reader is read whole."""
    person = schema.person.column if schema.person is not None else None
    table = arrow_table(data, schema.items, person)
    if schema.items is None:
        return _open_table(table, schema, is_typed=not is_pandas(data))
    require_lists(schema.items, table.schema, "data", person)
    ids = None if person is None else table.column(person)
    return open_sets(ColumnReader(table.column(schema.items.column), ids), schema)


def arrow_table(data: object, items: ItemSpec | None = None, person: str | None = None) -> pa.Table:
    """The object as an Arrow table, without passing on a message that may quote it."""
    if isinstance(data, pa.Table):
        return data
    with suppress(Exception):  # exporters quote the cell that they cannot convert
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if is_pandas(data):
            return _pandas_table(data, items, person)
        if hasattr(data, "collect_schema") and hasattr(data, "collect"):
            data = data.collect()  # a lazy frame of polars; what it reads is held in memory
        if "polars" in _libraries(data) and hasattr(data, "get_columns"):
            return _polars_table(data)
        return pa.table(data)
    kind = type(data).__name__
    is_column = kind == "Series"  # of pandas or polars
    remedy = "give a table, with to_frame()" if is_column else "cast its columns"
    raise InvalidInput(f"data of type {kind}: cannot be exported to Arrow; {remedy}")


def is_pandas(data: object) -> bool:
    """Whether a table is one of pandas, where the rows decide the type of a column."""
    return "pandas" in _libraries(data)


def _libraries(data: object) -> set[str]:
    """The packages of an object's classes: a frame of one's own kind is one of pandas too."""
    return {kind.__module__.partition(".")[0] for kind in type(data).__mro__}


def _pandas_table(data: Any, items: ItemSpec | None, person: str | None) -> pa.Table:  # noqa: ANN401  (no dependency)
    """A data frame column by column; the type of a column, which its cells decided, refuses none."""
    names = [str(name) for name in data.columns]
    columns = []
    for index, name in enumerate(names):
        values = data.iloc[:, index]
        is_sets = items is not None and name == items.column
        read = id_column if name == person else pandas_column
        columns.append(read_lists(values.tolist()) if is_sets else read(values))
    return pa.table(columns, names=names)


def _polars_table(data: Any) -> pa.Table:  # noqa: ANN401  (polars is not a dependency)
    """A data frame column by column: Arrow has no type for some of polars'."""
    exotic = ("Object", "Int128", "UInt128")
    columns = [
        read_cells(values.to_list()) if str(values.dtype) in exotic else values.to_arrow()
        for values in data.get_columns()
    ]
    return pa.table(columns, names=data.columns)


def _open_table(table: pa.Table, schema: Schema, *, is_typed: bool = True) -> ArrowSource:
    """Check names, types (unless rows decided them) and public row counts."""
    types = {item.name: item.type if is_typed else pa.null() for item in table.schema}
    expanded = match_columns(schema, types, table.schema.names, "data")
    return _counted(ArrowSource(table, expanded))


def _open_matrix(indptr: NDArray[np.int64], columns: NDArray[np.int64], schema: Schema) -> SetSource:
    """Item sets from the places of non-zeros."""
    lower = schema.items.lower if schema.items is not None else 0
    ids = schema.items.numbers() if schema.items is not None else None
    items = columns + lower if ids is None else ids[columns]
    return open_sets(MatrixReader(indptr, items), schema)


def _require_shape(data: Matrix, schema: Schema) -> None:
    """Two dimensions, a column for each one of the schema, and no dates: an array keeps none."""
    times = [column.name for column in schema.columns if column.kind.is_time]
    remedy = "give a pandas, polars or Arrow table"
    require(not times, f"column {times[:1]} of dates: is not read from arrays; {remedy}")
    require(data.ndim == 2, f"data of {data.ndim} dimensions: need rows x columns")
    width = schema.require_closed(bought=False).width
    require(data.shape[1] == width, f"data of {data.shape[1]} columns: the schema declares {width}")


def _counted(source: SourceT) -> SourceT:
    """Compare the number of rows with the schema, where it is public."""
    source.public_rows()
    return source
