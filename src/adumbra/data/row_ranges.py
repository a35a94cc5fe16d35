"""Fixed row ranges out of pieces of any length, and the checks that all table sources share."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from adumbra.data.batch import Batch
from adumbra.data.columns import fill_column, fits_kind, is_readable
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import Column, Schema
from adumbra.schema.writing import delimiter_hint, is_text, value_type

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
    absent = [name for name in schema.names if name not in types]
    if absent:
        faults.append(f"column {listed(absent)} absent; rename in the data or the schema")
        faults += delimiter_hint(names)
    doubled = (
        sorted({name for name in schema.names if names.count(name) > 1})
        if len(types) < len(names)
        else []
    )
    if doubled:
        faults.append(f"column {listed(doubled)} twice; names must differ")
    found = [(column, types[column.name]) for column in schema.columns if column.name in types]
    return faults + [fault for column, storage in found for fault in _type_faults(column, storage)]


def _type_faults(column: Column, storage: pa.DataType) -> list[str]:
    """What does not fit between a declared kind and a stored type."""
    what = f"column {column.name!r} of type {storage}"
    if not is_readable(storage):
        remedy = "cast it in the data or leave the column out"
        return [f"{what} cannot be read as {column.kind}; {remedy}"]
    if fits_kind(column, storage):
        return []
    remedy = "correct the kind"
    if is_text(value_type(storage)):
        remedy += ", or declare cast = true to read its texts"
        return [f"{what} is declared {column.kind}, and text that says none is missing; {remedy}"]
    remedy += " or the categories, or declare cast = true"
    return [f"{what} is declared category, and no category is a number; {remedy}"]


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


def rechunk(
    pieces: Iterable[pa.RecordBatch], schema: Schema, rows: int, start: int, count: int
) -> Iterator[Batch]:
    """Blocks of exactly `rows` rows from pieces of any length; at most `count` rows in all."""
    block = np.empty((0, schema.width))
    filled = 0
    for piece in pieces:
        offset = 0
        while offset < len(piece) and count > 0:
            if filled == 0:
                block = np.empty((rows, schema.width), order="F")
            taken = min(rows - filled, len(piece) - offset, count)
            part = piece.slice(offset, taken)
            for index, column in enumerate(schema.columns):
                fill_column(column, part.column(column.name), block[filled : filled + taken, index])
            filled, offset, count = filled + taken, offset + taken, count - taken
            if filled == rows:
                yield Batch(start, block)
                start, filled = start + rows, 0
        if count == 0:
            break
    if filled:
        yield Batch(start, block[:filled])
