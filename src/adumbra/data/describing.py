"""What a file or an object says of its columns before a value is read: names and storage types."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from adumbra.data.files import has_arrow, is_dataset, locate
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import ItemSpec, Schema

Fields = list[tuple[str, pa.DataType | None]]  # None: text whose type nobody declared


def describe(
    data: object, items: ItemSpec | None = None, *, header: bool = False
) -> list[tuple[str, Fields]]:
    """For each file (or the object): its name, column names and storage types, from metadata alone.

    The first line of a CSV file is read only where the caller declares it public, by `header`.
    """
    from adumbra.data.csv_header import likely_delimiter, read_header  # noqa: PLC0415

    def declared_names(path: Path) -> Sequence[str]:
        rule = "names of JSON lines stand in every row, and a row is never shown; write the schema"
        require(is_csv(path), f"data={path.name!r}: {rule} by hand")
        rule = "the first line of a CSV file may be a row, and a row is never shown"
        remedy = "give --header (header=True in Python) to declare that it holds public column names"
        require(header, f"data={path.name!r}: {rule}; {remedy}, else write the schema by hand")
        sign = likely_delimiter(path)
        return read_header(path, None if sign is None else sign.encode()).names

    return _described(data, items, declared_names)


def fields_by(data: object, schema: Schema) -> list[tuple[str, Fields]]:
    """The same as the schema reads it: the names of a CSV file are public under `header = true` only."""
    from adumbra.data.csv_header import table_header  # noqa: PLC0415

    own = [*schema.names, *([] if schema.person is None else [schema.person.column])]
    return _described(
        data, schema.items, lambda path: table_header(path, schema).names if is_csv(path) else own
    )


def is_csv(data: object) -> bool:
    """Whether this names CSV files, which have no types and, undeclared, no public names."""
    return locate(data).kind == "csv"


def _described(
    data: object, items: ItemSpec | None, named: Callable[[Path], Sequence[str]]
) -> list[tuple[str, Fields]]:
    """Names and storage types of each file or of the object."""
    located = locate(data)
    if located.kind == "sql" or type(data).__name__ == "SqlQuery":
        from adumbra.data.sql import query_names, query_of  # noqa: PLC0415

        query = query_of(data)
        if query is not None:
            return [(f"data={query.name!r}", [(name, None) for name in query_names(query)])]
    if located.kind == "store":
        from adumbra.data.stores import dataset_of  # noqa: PLC0415

        data = dataset_of(data)
    if not located.paths:
        from adumbra.data.arrays import arrow_table  # noqa: PLC0415
        from adumbra.data.cells import CELLS  # noqa: PLC0415

        if is_dataset(data):
            return [("data", [(item.name, item.type) for item in data.schema])]  # type: ignore[attr-defined]
        require(
            has_arrow(data), f"data of type {type(data).__name__}: has no column names; give a table"
        )
        found = arrow_table(data, items).schema
        return [("data", [(item.name, None if item.type == CELLS else item.type) for item in found])]
    return [(f"data={path.name!r}", _file_fields(path, located.kind, named)) for path in located.paths]


def _file_fields(path: Path, kind: str, named: Callable[[Path], Sequence[str]]) -> Fields:
    """Column names and storage types of one file."""
    if kind == "dat":
        return [("items", pa.list_(pa.int64()))]
    if kind in ("csv", "jsonl"):
        return [(name, None) for name in named(path)]
    from adumbra.data.parquet import parquet_schema  # noqa: PLC0415

    return [(item.name, item.type) for item in parquet_schema(path)]


def compare(data: object, schema: Schema) -> tuple[Schema, list[str]]:
    """The schema expanded by the data's names, and all that does not fit in names and storage types."""
    from adumbra.data.arrays import is_pandas  # noqa: PLC0415
    from adumbra.data.csv_header import require_names  # noqa: PLC0415
    from adumbra.data.files import column_mismatches  # noqa: PLC0415
    from adumbra.data.sets import require_lists  # noqa: PLC0415

    faults: list[str] = []
    if is_csv(data):
        try:
            require_names(schema, "data")
        except InvalidInput as problem:
            return schema, [str(problem)]
    for where, fields in fields_by(data, schema):
        names = [name for name, _ in fields]
        types = {name: pa.null() if storage is None else storage for name, storage in fields}
        if schema.items is None and is_pandas(data):
            types = dict.fromkeys(names, pa.null())  # its rows decide: no type is refused
        try:
            schema = schema.expand(names)
            if schema.items is not None and not where.endswith(".dat'"):
                person = schema.person.column if schema.person is not None else None
                held = pa.schema([(name, types[name]) for name in names])
                require_lists(schema.items, held, where, person)
        except InvalidInput as problem:
            faults.append(str(problem))
            continue
        faults += [f"{where}: {fault}" for fault in column_mismatches(schema, types, names)]
    return schema, faults
