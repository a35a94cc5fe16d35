"""One SQL query as a source: read once, when it is opened, into an encrypted spool for all passes.

A query is a `SqlQuery`, or a file `.sql` that holds it: its first line says where,
`-- address: postgresql://reader@host/records`, unless the variable ADUMBRA_SQL_ADDRESS does. Names of
the result are as public as the query; its cells are read each by itself, as those of any other source.
The address is never shown, and no message repeats what a database says: it may quote a cell. The
connection is read-only where the database knows it, and is rolled back.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import URL, CursorResult, Engine, create_engine, event, make_url
from sqlalchemy.pool import NullPool

from adumbra.data.cells import CELLS, printed_cells, read_cells
from adumbra.data.files import PIECE_ROWS, PieceSource, match_columns, require_rows
from adumbra.data.opening import is_query_file
from adumbra.data.spool import Spool
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import Schema

VARIABLE = "ADUMBRA_SQL_ADDRESS"
_MARK = "-- address:"
# Types of PostgreSQL that Python's own always hold; a value of any other comes as text.
_PLAIN = (
    "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "name",
    "bytea", "uuid",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """One query and the address of its database; neither is shown."""

    address: str = field(repr=False)
    query: str = field(repr=False)
    name: str = "query"  # for messages

    def __post_init__(self) -> None:
        known = isinstance(self.address, str) and isinstance(self.query, str) and self.query.strip()
        require(bool(known), "SqlQuery: give an address and the text of one query")


def query_of(data: object) -> SqlQuery | None:
    """The query that data is or that its file holds; None if it is something else."""
    if isinstance(data, SqlQuery):
        return data
    if not is_query_file(data):
        return None
    path = Path(str(data))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"data={path.name!r}: cannot be read as UTF-8; check the file") from None
    first, _, rest = text.partition("\n")
    address = os.environ.get(VARIABLE)
    if first.startswith(_MARK):  # which the database never sees: its log would keep it
        address, text = first.removeprefix(_MARK).strip(), rest
    rule = f"does not say where; begin it with `{_MARK} postgresql://...`, or set {VARIABLE}"
    require(bool(address), f"data={path.name!r}: {rule}")
    return SqlQuery(str(address), text, path.name)


def query_names(query: SqlQuery) -> list[str]:
    """The names of its columns; no row is fetched."""
    with _executed(query) as result:
        return list(result.keys())


@dataclass(frozen=True, slots=True)
class SqlSource(PieceSource):
    """The rows of a query, as they were when it was opened."""

    spool: Spool = field(repr=False)
    schema: Schema
    counted: int | None  # rows, where their number is public
    mark: str

    def public_rows(self) -> int | None:
        """The number of rows when the query was run, where it is public."""
        return self.counted

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - they have a size
        """The declared columns from row `start` on."""
        for piece in self.named_pieces(list(self.schema.names)):
            if start < len(piece):
                yield piece.slice(start)
            start = max(start - len(piece), 0)

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        for frame in self.spool.frames():
            yield pa.ipc.open_stream(frame).read_next_batch().select(names)

    def storage(self, name: str) -> list[pa.DataType]:  # noqa: ARG002 - of any column
        """Cells of any type."""
        return [CELLS]

    def pin(self) -> str:
        """A digest of the query: its rows are held, and change no more."""
        return self.mark


def open_sql(query: SqlQuery, schema: Schema) -> SqlSource:
    """Run the query, and put its declared columns aside."""
    where = f"data={query.name!r}"
    require(schema.items is None, f"{where}: a query holds no item sets; use Parquet list<int> or .dat")
    with _executed(query) as result:
        names = list(result.keys())
        schema = match_columns(schema, dict.fromkeys(names, pa.null()), names, where)
        spool, count = _spooled(result, schema, query)
    counted = require_rows(schema, count) if schema.neighbours.rows_are_public else None
    mark = hashlib.sha256(query.query.encode("utf-8", "surrogatepass")).hexdigest()
    return SqlSource(spool, schema, counted, mark)


def _spooled(result: CursorResult[Any], schema: Schema, query: SqlQuery) -> tuple[Spool, int]:
    """The rows in frames, and their number: those beyond `max_rows` may be left out.

    Of persons all are read: who has many rows would push out those of others before any bound.
    """
    person = None if schema.person is None else schema.person.column
    names = [*schema.names, *([] if person is None else [person])]
    keys = list(result.keys())
    places = [keys.index(name) for name in names]
    spool, count = Spool(), 0
    while rows := _guarded(query, lambda: result.fetchmany(PIECE_ROWS)):
        columns = [
            (printed_cells if name == person else read_cells)(row[place] for row in rows)
            for name, place in zip(names, places, strict=True)
        ]
        spool.put(_packed(pa.RecordBatch.from_arrays(columns, names)))
        count += len(rows)
        if person is None and count > schema.max_rows:
            break
    return spool, count


def _packed(piece: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, piece.schema) as writer:
        writer.write_batch(piece)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


@contextmanager
def _executed(query: SqlQuery) -> Iterator[CursorResult[Any]]:
    """The result of the query in a transaction that is rolled back."""
    engine = _guarded(query, lambda: _engine(query))
    connection = _guarded(query, engine.connect)
    try:
        options = {"stream_results": True, "max_row_buffer": PIECE_ROWS, "no_parameters": True}
        result = _guarded(
            query, lambda: connection.execution_options(**options).exec_driver_sql(query.query)
        )
        rule = "gives no rows; write one SELECT"
        require(result.returns_rows, f"data={query.name!r}: the query {rule}")
        yield result
    finally:
        with suppress(Exception):  # a lost connection; whatever was read is there
            connection.close()
        engine.dispose()


def _guarded(query: SqlQuery, step: Callable[[], Any]) -> Any:  # noqa: ANN401  (what the step gives)
    """A step of the database; its own words, which may quote a cell or a password, stay behind."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001  (drivers raise what they like)
        kind = type(getattr(error, "orig", None) or error).__name__
    remedy = "check the address, and run the query in a client of the database"
    raise InvalidInput(f"data={query.name!r}: the database failed ({kind}); {remedy}")


def _engine(query: SqlQuery) -> Engine:
    url = make_url(query.address)
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        url = _readable(url)
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
    settle = {"sqlite": _settle_sqlite, "postgresql": _settle_postgres}.get(engine.dialect.name)
    if settle is not None:
        event.listen(engine, "connect", settle)
    return engine


def _readable(url: URL) -> URL:
    """A SQLite file that is there, opened to read."""
    if url.database is None or not Path(url.database).is_file():
        raise FileNotFoundError
    return url.set(database=f"file:{Path(url.database).resolve()}", query={"mode": "ro", "uri": "true"})


def _settle_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401  (of the driver)
    """Texts as bytes: one that is no UTF-8 is a cell like others."""
    connection.text_factory = bytes
    connection.execute("PRAGMA query_only = ON")


def _settle_postgres(connection: Any, _: object) -> None:  # noqa: ANN401  (of the driver)
    """Read-only, times in UTC; whatever Python might not hold comes as text, so that no cell raises."""
    from psycopg.types.string import TextLoader  # noqa: PLC0415  (an extra)

    connection.read_only = True
    connection.execute("SET TIME ZONE 'UTC'")
    connection.execute("SET datestyle = 'ISO, YMD'")
    connection.commit()
    for kind in connection.adapters.types:
        oids: Sequence[int] = [kind.array_oid] if kind.name in _PLAIN else [kind.oid, kind.array_oid]
        for oid in oids:
            if oid:
                connection.adapters.register_loader(oid, TextLoader)
