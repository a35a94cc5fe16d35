"""Encoded rows back to a table: the schema's own columns, names and types, whatever the floats.

number   lower + (x + 1/2) (upper - lower), clipped to the bounds; integers, dates, ranks rounded
category the level with the largest value of its group; a category of its own for missing is null
label    class codes, or a numeric target of [-1, 1]
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.errors import require
from adumbra.numerics import Array, Ints
from adumbra.schema.layout import Layout, unscale_number
from adumbra.schema.schema import Column, Kind, Schema

BLOCK_VALUES = 2**23  # encoded values of synthetic rows that are drawn at once ...
BLOCK_ROWS = 4096  # ... or so many rows, if they are wider


def block_sizes(rows: int, width: int) -> Iterator[int]:
    """Synthetic rows in blocks of a public size: memory does not grow with the number of rows."""
    step = max(BLOCK_ROWS, BLOCK_VALUES // max(width, 1))
    for start in range(0, rows, step):
        yield min(step, rows - start)


def decode_rows(
    layout: Layout, rows: Array, *, labels: Ints | None = None, targets: Array | None = None
) -> pa.Table:
    """The table of encoded rows, with the label column if its codes or targets are given."""
    width = rows.shape[1] if rows.ndim == 2 else -1
    require(width == layout.width, f"rows of shape {rows.shape}: need {layout.width} columns")
    columns: dict[str, pa.Array] = {}
    numbers = {
        column.name: unscale_number(column, rows[:, start], centred=layout.centred)
        for column, start in zip(layout.features, layout.starts, strict=True)
        if column.is_numeric
    }
    keep_orders(layout.schema, numbers)
    for column, start in zip(layout.features, layout.starts, strict=True):
        if column.is_numeric:
            columns[column.name] = _number_array(column, numbers[column.name])
        else:
            columns[column.name] = _level_array(column, _largest(rows[:, start : start + column.levels]))
    label = layout.label
    given = labels is not None or targets is not None
    require(label is not None or not given, "labels: the schema declares no label; leave them out")
    if label is not None and given:
        columns[label.name] = _label_array(layout, label, labels, targets)
    order = [name for name in layout.schema.names if name in columns]
    return pa.table([columns[name] for name in order], schema=table_schema(layout, order))


def keep_orders(schema: Schema, numbers: dict[str, Array]) -> None:
    """Make rows keep the declared constraints, in place: two values in the wrong order are swapped.

    A swapped value stays within its new column's bounds and is whole where that column is; the schema
    has refused constraints that bounds cannot meet. Chains settle like a bubble sort.
    """
    declared = {column.name: column for column in schema.columns}
    for _ in range(len(schema.constraints) ** 2):
        is_settled = True
        for order in schema.constraints:
            low, high = declared[order.lower], declared[order.upper]
            small, large = numbers[low.name], numbers[high.name]
            wrong = small > large
            if not wrong.any():
                continue
            is_settled = False
            small, large = (
                np.where(wrong, _settled(low, large, np.floor), small),
                np.where(wrong, _settled(high, small, np.ceil), large),
            )
            numbers[low.name], numbers[high.name] = small, large
        if is_settled:
            return


def _settled(column: Column, values: Array, rounding: np.ufunc) -> Array:
    """Values of another column as values of this one."""
    whole = rounding(values) if column.is_whole else values
    return np.asarray(np.clip(whole, *column.limits))


def table_schema(layout: Layout, names: list[str] | None = None) -> pa.Schema:
    """The Arrow schema of decoded rows, in schema order."""
    chosen = layout.schema.names if names is None else names
    return pa.schema(
        [
            pa.field(column.name, arrow_type(column))
            for column in layout.schema.columns
            if column.name in chosen
        ]
    )


def arrow_type(column: Column) -> pa.DataType:
    """The storage type that a declared column is released in."""
    kinds = {
        Kind.NUMBER: pa.float64(),
        Kind.INTEGER: pa.int64(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.CATEGORY: pa.dictionary(pa.int32(), pa.string()),
        Kind.ORDINAL: pa.dictionary(pa.int32(), pa.string()),
        Kind.DATE: pa.date32(),
        Kind.DATETIME: pa.timestamp("us"),
    }
    return kinds[column.kind]


def _largest(group: Array) -> Ints:
    """The place of the largest value of each row; NaN is never the largest, ties go to the first."""
    places: Ints = np.argmax(np.where(np.isnan(group), -np.inf, group), axis=1)
    return places


def _label_array(layout: Layout, label: Column, labels: Ints | None, targets: Array | None) -> pa.Array:
    """The label column from class codes or from targets of [-1, 1]."""
    if labels is not None:
        levels = layout.label_levels
        codes = np.clip(np.asarray(labels, dtype=np.int64), 0, levels - 1)
        return (
            _number_array(label, codes.astype(np.float64) + label.limits[0])
            if label.is_numeric
            else _level_array(label, codes)
        )
    values = unscale_number(label, np.asarray(targets, dtype=np.float64) / 2.0, centred=True)
    return (
        _number_array(label, values)
        if label.is_numeric
        else _level_array(label, np.rint(values).astype(int))
    )


def _number_array(column: Column, values: Array) -> pa.Array:
    """Numbers in the column's storage type; null where the column keeps what is missing."""
    if column.kind is Kind.ORDINAL:
        return _level_array(column, values.astype(np.int64))
    width = np.int32 if column.kind is Kind.DATE else np.int64
    stored = values.astype(width) if column.is_whole else np.asarray(values, np.float64)
    plain = pa.array(stored, mask=values == column.fill) if column.keeps_null else plain_array(stored)
    return plain.cast(arrow_type(column)) if column.kind.is_time else plain


def plain_array(values: NDArray[np.generic]) -> pa.Array:
    """Numbers without nulls as they are; `pa.array` would load pandas, a fifth of a second."""
    whole = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(whole.dtype)
    return pa.Array.from_buffers(kind, len(whole), [None, pa.py_buffer(whole)])


def _level_array(column: Column, codes: Ints) -> pa.Array:
    """Booleans, or categories as a dictionary; a category of its own for missing is null."""
    if column.kind is Kind.BOOLEAN:
        return pa.array(codes == 1)
    is_null = codes >= len(column.categories)
    indices = pa.array(codes.astype(np.int32), mask=is_null)
    return pa.DictionaryArray.from_arrays(indices, pa.array(column.categories, type=pa.string()))


def column_array(column: Column, values: Array) -> pa.Array:
    """Values of one column, as numbers or level codes within its limits, in its storage type."""
    if column.is_numeric:
        return _number_array(column, values)
    return _level_array(column, values.astype(np.int64))
