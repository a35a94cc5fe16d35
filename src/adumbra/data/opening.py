"""What data is (files, a query, a store, an object): open its rows, or describe its columns.

Both look at file names, column names and storage types (and row counts where those are public). Whatever
is wrong with these is said here; past it no value raises and none is shown.
"""

import glob
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from adumbra.data.files import pin_files
from adumbra.data.sources import Source
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import ItemSpec, Schema

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".dat": "dat"}
SUFFIXES |= {".jsonl": "jsonl", ".ndjson": "jsonl"}
SUFFIXES |= {f"{plain}.gz": SUFFIXES[plain] for plain in (".csv", ".tsv", ".jsonl", ".ndjson")}
PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip", ".7z"}
_LISTED = ", ".join(SUFFIXES)
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]+::)*[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_READABLE = (
    "give a path, a pandas, polars or pyarrow table, an Arrow dataset, a SqlQuery, a numpy array or a "
    "scipy.sparse matrix"
)
Fields = list[tuple[str, pa.DataType | None]]  # None: text whose type nobody declared


def find_files(location: str | Path) -> tuple[Path, ...]:
    """The files of a path, a folder (with its subfolders) or a glob: sorted, all of one kind."""
    text = str(location)
    path = Path(location)
    if path.is_dir():
        found = [p for p in path.rglob("*") if suffix_of(p) in SUFFIXES and _is_visible(p, path)]
        require(bool(found), f"data={text!r}: the folder holds no file with one of {_LISTED}")
    elif path.exists():
        require(path.is_file(), f"data={text!r}: is a pipe or a device; write the rows to a file first")
        found = [path]
    else:
        found = [Path(name) for name in glob.glob(text, recursive=True)]  # noqa: PTH207  (absolute patterns too)
        found = [p for p in found if p.is_file()]
        require(bool(found), f"data={text!r}: no such file, folder or pattern; check the path")
    kinds = sorted({suffix_of(p) for p in found})
    unknown = [suffix for suffix in kinds if suffix not in SUFFIXES]
    is_packed = any(suffix.endswith(tuple(PACKED)) for suffix in unknown)
    remedy = "unpack it first" if is_packed else f"use one of {_LISTED}"
    require(not unknown, f"data={text!r}: suffix {', '.join(map(repr, unknown))} is unknown; {remedy}")
    distinct = {SUFFIXES[suffix] for suffix in kinds}
    require(
        len(distinct) == 1,
        f"data={text!r}: mixes {' and '.join(sorted(distinct))}; name one kind by a glob",
    )
    return tuple(sorted(_once(found)))


def _once(found: list[Path]) -> list[Path]:
    """Each file once, by where it really is: a link or a repeated `**` would count its rows twice."""
    by_place: dict[Path, Path] = {}
    for path in sorted(found):
        by_place.setdefault(path.resolve(), path)
    return list(by_place.values())


def suffix_of(path: Path) -> str:
    """What tells the kind of a file: its last suffix, of a packed file the last two."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() + suffix if suffix == ".gz" else suffix


def is_query_file(data: object) -> bool:
    """Whether data names a file that holds one SQL query."""
    return isinstance(data, str | Path) and str(data).lower().endswith(".sql") and Path(data).is_file()


def is_store(data: object) -> bool:
    """Whether data is the address of an object store, such as s3://bucket/folder."""
    return isinstance(data, str) and _ADDRESS.match(data) is not None


@dataclass(frozen=True, slots=True)
class Located:
    """What data is, before anything of it is read."""

    kind: str  # "parquet", "csv", "jsonl" or "dat" of files; "sql" and "store" of addresses; "object"
    paths: tuple[Path, ...] = ()  # of files


def locate(data: object) -> Located:
    """Which files, query, store or object data means; every reader asks this first."""
    if is_query_file(data):
        return Located("sql")
    if is_store(data):
        return Located("store")
    if not isinstance(data, str | Path):
        return Located("object")
    paths = find_files(data)
    return Located(SUFFIXES[suffix_of(paths[0])], paths)


def is_dataset(data: object) -> bool:
    """Whether an object is an Arrow dataset, without loading what reads them."""
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(data).__mro__)


def has_arrow(data: object) -> bool:
    """Whether an object is a table, or a query of polars that gives one."""
    exports = ("__arrow_c_stream__", "__arrow_c_array__", "collect_schema")
    return any(hasattr(data, name) for name in exports)


def _is_visible(path: Path, folder: Path) -> bool:
    """Whether no part of the path below the folder is hidden or a side file (`_SUCCESS`, `.tmp`)."""
    inner = path.relative_to(folder)
    return path.is_file() and not any(part.startswith((".", "_")) for part in inner.parts)


def open_source(data: object, schema: Schema) -> Source:
    """Open a path, folder, glob, Arrow C stream object, numpy array or scipy.sparse matrix."""
    kind = type(schema).__name__
    remedy = "give a Schema, for a file Schema.read(path)"
    require(isinstance(schema, Schema), f"schema of type {kind}: cannot be used; {remedy}")
    source = _opened(data, schema)
    if schema.person is None:
        return source
    from adumbra.data.persons import bounded_source  # noqa: PLC0415  (only this unit needs it)

    return bounded_source(source)


def _opened(data: object, schema: Schema) -> Source:
    """The rows as they are."""
    found, address = locate(data), ""
    if found.kind == "sql" or type(data).__name__ == "SqlQuery":
        from adumbra.data.sql import open_sql, query_of  # noqa: PLC0415

        query = query_of(data)
        if query is not None:
            return open_sql(query, schema)
    if found.kind == "store":
        from adumbra.data.stores import dataset_of  # noqa: PLC0415

        data, address = dataset_of(data), str(data)
    if found.paths:
        return _open_files(found, schema)
    from adumbra.data import arrays  # noqa: PLC0415  (each kind of data loads only what it needs)

    if isinstance(data, np.ndarray):
        return arrays.open_array(data, schema)
    if hasattr(data, "tocsr"):
        return arrays.open_sparse(data, schema)
    if is_dataset(data):
        from adumbra.data.datasets import open_dataset  # noqa: PLC0415

        return open_dataset(data, schema, address)
    if has_arrow(data):
        return arrays.open_arrow(data, schema)
    raise InvalidInput(f"data of type {type(data).__name__}: cannot be read; {_READABLE}")


def _open_files(found: Located, schema: Schema) -> Source:
    """Open files of one kind; what is public of them is read now, so they may not change meanwhile."""
    before = pin_files(found.paths)
    source = _open_kind(found, schema)
    require(pin_files(found.paths) == before, "data: changed while it was opened; try again")
    return source


def _open_kind(found: Located, schema: Schema) -> Source:
    """Files of one kind, as a table or as item sets."""
    kind, paths = found.kind, found.paths
    if kind in ("csv", "jsonl"):
        from adumbra.data.csv import open_csv  # noqa: PLC0415
        from adumbra.data.jsonl import open_jsonl  # noqa: PLC0415

        words = "CSV files" if kind == "csv" else "JSON lines"
        require(schema.items is None, f"items: {words} hold no item sets; use Parquet list<int> or .dat")
        return (open_csv if kind == "csv" else open_jsonl)(paths, schema)
    from adumbra.data import parquet  # noqa: PLC0415

    if schema.items is None:
        remedy = "declare [items] in the schema, or give a table"
        require(kind != "dat", f"data={paths[0].name!r}: .dat files hold item sets; {remedy}")
        return parquet.open_parquet(paths, schema)
    from adumbra.data import sets  # noqa: PLC0415

    if kind == "dat":
        return sets.open_sets(sets.DatReader(paths), schema)
    for path in paths:
        person = schema.person.column if schema.person is not None else None
        sets.require_lists(schema.items, parquet.parquet_schema(path), f"data={path.name!r}", person)
    return sets.open_sets(sets.ParquetReader(paths, schema.items.column), schema)


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
