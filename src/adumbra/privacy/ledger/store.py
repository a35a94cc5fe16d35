"""Connections and transactions: how the ledger is durable on SQLite and on PostgreSQL.

A write transaction holds the write lock from its first statement (BEGIN IMMEDIATE on SQLite, FOR UPDATE
on the head rows on PostgreSQL), so writers are serial and the chain has one order.

A statement's parameters are private: the source's digest, a fingerprint that holds the number of rows.
No error and no log record of the database leaves this module with them.
"""

import logging
import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event, make_url, update
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from adumbra.errors import (
    AdumbraError,
    InvalidInput,
    LedgerError,
    LedgerNotWritable,
    raise_alone,
)
from adumbra.privacy.ledger import postgres
from adumbra.privacy.ledger.files import damaged, is_damage, require_mode, require_one_file
from adumbra.privacy.ledger.model import heads

BUSY_SECONDS = 60
_WRITE = "adumbra_write"
ROOM = 4 * 2**20  # bytes that a release may write beside and into a SQLite file, many times over
_TOUCH = update(heads).values(sequence=heads.c.sequence + 1)
# SQLSTATE of PostgreSQL: disk full; read-only transaction or server; out of memory
_FULL, _READ_ONLY, _NO_MEMORY = ("53100",), ("25006",), ("53200",)
_NO_RIGHT = ("42501",)
_WITHHELD = ("withheld: it may hold private values",)
_LOGGER = "adumbra"  # below sqlalchemy.engine.Engine, with a level of its own
# What is meant as an address although it is none; it may hold a password and is never shown as a path.
ADDRESS = re.compile(r"(?i)postgres\w*(\+\w+)?:|.*\b(pass\w*|host|dbname)\s*=")


class ReplyLost(LedgerError):
    """Nobody can say now whether the last act was written."""


class _Undone(Exception):
    """Rolls a transaction back that shall leave no trace."""


class Store:
    """One database; safe for threads, and for forked children unless it lives in memory."""

    def __init__(self, url: URL) -> None:
        self._url = url
        is_file = url.get_backend_name() == "sqlite"
        self._memory = is_file and url.database is None
        # Where the ledger is, without any password
        self.name = str(url.database or "memory") if is_file else postgres.shown(url)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._abandoned: list[Engine] = []  # of the parent process: kept, so that no child closes them
        self._engine = self._connect()

    @classmethod
    def open(cls, location: str | Path) -> "Store":
        """The database at a path or an address; a write-ahead log of an earlier version is moved in."""
        url = parse_location(location)
        if url.get_backend_name() == "sqlite":
            require_one_file(Path(str(url.database)), BUSY_SECONDS)
        return cls(url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction: one snapshot."""
        with self._transaction(write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction: all or nothing, durable when the block has ended."""
        with self._transaction(write=True) as connection:
            yield connection

    def require_writable(self) -> None:
        """Refuse, by a write that is rolled back, a database that would not take a charge now."""
        if self._url.get_backend_name() == "sqlite" and not self._memory:
            status = os.statvfs(Path(str(self._url.database)).parent)
            if status.f_bavail * status.f_frsize < ROOM:
                raise LedgerNotWritable(f"ledger={self.name}: its disk is full; make room and try again")
        with suppress(_Undone), self.write() as connection:
            connection.execute(_TOUCH)
            raise _Undone

    def close(self) -> None:
        """Close the pooled connections."""
        self._current().dispose()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Connection]:
        with self._lock:
            engine = self._current()
            try:
                with (
                    engine.connect().execution_options(**{_WRITE: write}) as connection,
                    self._begun(connection, write=write),
                ):
                    yield connection
            except (SQLAlchemyError, engine.dialect.loaded_dbapi.Error) as error:
                fault = _fault(self.name, error)
                _withhold(error)
            else:
                return
            raise_alone(fault)

    @contextmanager
    def _begun(self, connection: Connection, *, write: bool) -> Iterator[None]:
        """A transaction; if the reply to its commit is lost, the server says whether it was written."""
        mark, is_ended = None, False
        fault: AdumbraError | None = None
        try:
            with connection.begin():
                if write and connection.dialect.name == "postgresql":
                    mark = postgres.mark(connection)
                yield
                is_ended = True
        except (DBAPIError, UnicodeDecodeError) as error:
            if is_damage(getattr(error, "orig", error)):
                fault = damaged(self.name)
            elif mark is None or not is_ended:
                raise
            else:
                written = postgres.was_written(self._current(), mark, 2 * BUSY_SECONDS)
                if written is False:
                    raise
                if written is None:
                    fault = ReplyLost(
                        f"ledger={self.name}: the reply to the last act was lost and no server answers; "
                        "it may be written: look with `adumbra ledger show` before you do it again"
                    )
            if isinstance(error, DBAPIError):
                _withhold(error)
        if fault is not None:
            raise_alone(fault)

    def _current(self) -> Engine:
        """This process's engine: a forked child makes its own."""
        if os.getpid() != self._pid:
            if self._memory:
                raise LedgerError(
                    "ledger=memory: made in another process; use a ledger file to share a budget"
                )
            self._abandoned.append(self._engine)
            self._engine, self._pid = self._connect(), os.getpid()
        return self._engine

    def _connect(self) -> Engine:
        _silence_statements()
        quiet: dict[str, Any] = {"hide_parameters": True, "logging_name": _LOGGER}
        if self._url.get_backend_name() == "postgresql":
            engine = create_engine(
                self._url,
                creator=postgres.connector(self._url, 1.5 * BUSY_SECONDS),
                pool_pre_ping=True,
                pool_timeout=BUSY_SECONDS,
                isolation_level="READ COMMITTED",
                **quiet,
            )
            event.listen(engine, "connect", _durable_postgres)
            event.listen(engine, "begin", _begin_postgres)
            return engine
        if self._memory:
            arguments: dict[str, object] = {"check_same_thread": False}
            engine = create_engine(self._url, poolclass=StaticPool, connect_args=arguments, **quiet)
        else:
            engine = create_engine(self._url, connect_args={"timeout": BUSY_SECONDS}, **quiet)
        event.listen(engine, "connect", _durable_sqlite)
        if not self._memory:
            event.listen(engine, "connect", _require_one_file)
        event.listen(engine, "begin", _begin_sqlite)
        return engine


def _fault(name: str, error: Exception) -> LedgerError:
    """What stops a database, by its own code and never by its text."""
    cause = getattr(error, "orig", error)
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest says why more closely
    state = getattr(cause, "sqlstate", None)
    if code == sqlite3.SQLITE_FULL or state in _FULL:
        return LedgerNotWritable(f"ledger={name}: its disk is full; make room and try again")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or state in _READ_ONLY:
        return LedgerNotWritable(
            f"ledger={name}: is read-only here; a release writes its charge, so make it writable"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return LedgerNotWritable(
            f"ledger={name}: cannot be written where it lies; its folder must be writable, too"
        )
    if code == sqlite3.SQLITE_NOMEM or state in _NO_MEMORY:
        return LedgerNotWritable(f"ledger={name}: its server has no memory left; try again later")
    if isinstance(error, OperationalError):
        return LedgerError(f"ledger={name}: busy or unreachable; try again")
    why = "; this role has no right to it, see `ledger grants`" if state in _NO_RIGHT else ""
    return LedgerError(f"ledger={name}: the database refused the act{why}")


def _silence_statements() -> None:
    """Keep the engine's logger above INFO: at DEBUG SQLAlchemy logs every row it reads, keys too."""
    logging.getLogger(f"sqlalchemy.engine.Engine.{_LOGGER}").setLevel(logging.WARNING)


def _withhold(error: BaseException) -> None:
    """Take its content from a database's error, and from those behind it.

    PostgreSQL says which values broke a rule, SQLAlchemy keeps the parameters, and a printed traceback
    with local variables shows the error even where it is nobody's cause.
    """
    waiting: list[BaseException | None] = [error]
    while waiting:
        seen = waiting.pop()
        if seen is None or seen.args == _WITHHELD:
            continue
        waiting += [seen.__cause__, seen.__context__]
        seen.args = _WITHHELD
        vars(seen).update(dict.fromkeys(vars(seen).keys() & {"statement", "params", "orig", "_info"}))
        seen.__cause__ = seen.__context__ = seen.__traceback__ = None


def _durable_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Per connection: no implicit transactions, every commit flushed, with its folder (EXTRA)."""
    connection.isolation_level = None
    for pragma in ("synchronous = EXTRA", "foreign_keys = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")


def _require_one_file(connection: sqlite3.Connection, _record: object) -> None:
    """No write-ahead log: a copy of the ledger's file has every charge that was committed."""
    try:
        require_mode(connection, "delete")
    except BaseException:
        connection.close()
        raise


def _begin_sqlite(connection: Connection) -> None:
    """SQLAlchemy's documented recipe: begin by hand, with the write lock when we mean to write."""
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    """A reading sees one moment, although others write meanwhile."""
    if not connection.get_execution_options().get(_WRITE, False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _durable_postgres(connection: object, _record: object) -> None:
    """Per connection: flushed commits, and a limit to every wait."""
    postgres.limit_server(connection, BUSY_SECONDS)


def parse_location(location: str | Path) -> URL:
    """A path means SQLite; `postgresql://...` means PostgreSQL through psycopg."""
    text = str(location)
    if "://" not in text:
        if ADDRESS.match(text):
            raise InvalidInput("ledger: not a path; write postgresql://user@host:port/database")
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError):
        raise InvalidInput("ledger: not a path and not a database address") from None
    except ValueError:
        raise postgres.bad_port() from None
    if backend == "sqlite" and url.database:
        return URL.create("sqlite", database=str(Path(url.database).absolute()))
    if backend != "postgresql":
        raise InvalidInput("ledger: must be a path or a postgresql:// address")
    return postgres.address(url)
