"""PostgreSQL over a network that may freeze: addresses, limits on every wait, and lost replies.

Every wait has a limit. The server ends a statement, a wait for a lock and a transaction that nobody goes
on with; the two kernels give up on a peer that is silent; and the client gives up on a silent server,
whatever lies between them. So no writer blocks the others for ever.

A commit whose reply is lost was either written or not, and the server knows which: we ask it.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError, DBAPIError

from adumbra.errors import InvalidInput, LedgerError

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 10
SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service", "sslmode")  # of an address's options
NETWORK: dict[str, int] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def address(url: URL) -> URL:
    """The address with our driver, or a refusal that repeats no part of it: it may hold a password."""
    try:
        url = url.set(drivername="postgresql+psycopg")
        dialect = url.get_dialect()()
        dialect.dbapi = url.get_dialect().import_dbapi()
        _, options = dialect.create_connect_args(url)
        named = (5432 if url.port is None else url.port, options.get("port", 5432))
        ports = [int(port) for each in named for port in str(each).split(",")]
        from psycopg.conninfo import make_conninfo  # noqa: PLC0415 - an optional dependency

        make_conninfo(**options)
    except ImportError:
        raise InvalidInput("ledger=postgresql: psycopg is missing; install adumbra[postgres]") from None
    except (ArgumentError, ValueError, TypeError):
        raise bad_port() from None
    except _driver().Error:
        raise InvalidInput(
            "ledger=postgresql: its address has an option that PostgreSQL does not know; "
            "write postgresql://user@host:port/database"
        ) from None
    if not all(1 <= port < 2**16 for port in ports):
        raise bad_port()
    return url


def bad_port() -> InvalidInput:
    """What is wrong with an address whose port is none."""
    return InvalidInput(
        "ledger=postgresql: its port must be a number from 1 to 65535; "
        "write postgresql://user@host:port/database"
    )


def shown(url: URL) -> str:
    """An address for people: no password, and no option that could be one."""
    options = {name: value for name, value in url.query.items() if name in SHOWN}
    return url.set(query=options, drivername="postgresql").render_as_string(hide_password=True)


def connector(url: URL, silence: float) -> "Callable[[], psycopg.Connection[Any]]":
    """What makes connections to an address; its own options go before ours."""
    _, options = url.get_dialect()().create_connect_args(url)
    options = {**NETWORK, **options}
    kind = _impatient(silence)
    return lambda: kind.connect(**options)


def _driver() -> Any:  # noqa: ANN401 - a module
    import psycopg  # noqa: PLC0415 - an optional dependency

    return psycopg


@cache
def _impatient(silence: float) -> "type[psycopg.Connection[Any]]":
    """A connection that closes itself when the server has been silent for so many seconds."""
    driver = _driver()

    class Impatient(driver.Connection):  # type: ignore[misc, name-defined]
        def wait(self, gen: Generator[Any, int, Any], *rest: Any, **more: Any) -> Any:  # noqa: ANN401
            return super().wait(self._limited(gen), *rest, **more)

        def _limited(self, gen: Generator[Any, int, Any]) -> Generator[Any, int, Any]:
            """The same steps; psycopg comes back every tenth of a second, with 0 when nothing came."""
            last = time.monotonic()
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if ready:
                        last = time.monotonic()
                    elif time.monotonic() - last > silence:
                        self.pgconn.finish()
                        raise driver.OperationalError("the server is silent")
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

    return Impatient


def limit_server(connection: object, patience: float) -> None:
    """Per connection: a commit returns after it is on disk, and nothing holds a lock for ever."""
    limits = {
        "lock_timeout": patience,
        "statement_timeout": 2 * patience,
        "idle_in_transaction_session_timeout": 2 * patience,
    }
    cursor = connection.cursor()  # type: ignore[attr-defined]
    if cursor.execute("SHOW fsync").fetchone()[0] != "on":
        connection.close()  # type: ignore[attr-defined]
        raise LedgerError("ledger: the server runs with fsync=off and could forget a charge; turn it on")
    cursor.execute("SET SESSION synchronous_commit = on")
    for name, seconds in limits.items():
        cursor.execute(f"SET SESSION {name} = '{int(1000 * seconds)}ms'")
    for name in ("keepalives_idle", "keepalives_interval", "keepalives_count"):
        cursor.execute(f"SET SESSION tcp_{name} = {NETWORK[name]}")  # a Unix socket ignores them
    cursor.close()
    connection.commit()  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Mark:
    """What the server knows a write transaction by."""

    transaction: int
    process: int


def mark(connection: Connection) -> Mark:
    """Name the transaction that has just begun, so that its fate can be asked for later."""
    row = connection.execute(sql("SELECT txid_current(), pg_backend_pid()")).one()
    return Mark(transaction=row[0], process=row[1])


# Only the session that still runs this very transaction: process numbers are used again.
_END = sql(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = :process AND backend_xid::text = (:transaction % 4294967296)::text"
)
_STATUS = sql("SELECT txid_status(:transaction)")


def was_written(engine: Engine, of: Mark, patience: float) -> bool | None:
    """Whether a transaction was committed although its reply is lost; None if no server answers.

    A transaction that still runs can get no further order from us: it is ended, and then it is decided.
    """
    engine.dispose()
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            with engine.connect() as connection:
                status = connection.execute(_STATUS, {"transaction": of.transaction}).scalar()
                if status in ("committed", "aborted"):
                    return bool(status == "committed")
                connection.execute(_END, {"process": of.process, "transaction": of.transaction})
        except (DBAPIError, engine.dialect.loaded_dbapi.Error):
            engine.dispose()
        time.sleep(0.1)
    return None
