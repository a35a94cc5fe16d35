"""SQLite's journal: every charge that was committed is in the ledger's one file.

A rollback journal (`journal_mode=DELETE`) holds old pages, and only while a transaction is committed. So
a copy of the file alone has every earlier charge. A write-ahead log holds new pages, and such a copy
forgets them. Ledgers of earlier versions had one; they are converted when opened.
"""

import secrets
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from adumbra.errors import LedgerError, VerificationFailed

MAGIC = b"SQLite format 3\0"
SQLITE_PRIMARY = 0xFF  # the part of an error code that all its variants share


def convert(path: Path, patience: float) -> None:
    """Move a write-ahead log into the file and do without one from now on; needs the file alone.

    SQLite recovers the log that a crash left, copies it into the file, flushes, then deletes the log.
    A connection that failed is closed before the next try: two that wait for each other would not end.
    """
    deadline = time.monotonic() + patience
    while not _without_log(path):
        if time.monotonic() > deadline:
            raise LedgerError(
                f"ledger={path}: another process holds it open in the mode of an earlier version "
                "(write-ahead log); end that process and try again"
            )
        time.sleep(0.01 + secrets.randbelow(90) / 1000)  # not in step with another that waits


def _without_log(path: Path) -> bool:
    """Whether the file has no write-ahead log now; false if somebody else is using it."""
    try:
        with _connected(path) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & SQLITE_PRIMARY == sqlite3.SQLITE_BUSY:
            return False
        raise LedgerError(f"ledger={path}: cannot be opened for writing; check its mode") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if is_damage(error):
            raise damaged(path) from None
        return True  # not a database: whoever opens it says so


def _connected(path: Path) -> closing[sqlite3.Connection]:
    """A connection of its own to a file that exists, closed at the end of the block."""
    return closing(
        sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=1, isolation_level=None)
    )


def require_sharing(path: Path) -> None:
    """Refuse a file system on which SQLite cannot share memory, as on most network drives.

    Locks work there only by luck. The file is new and empty; it is as it was afterwards.
    """
    with _connected(path) as connection:
        require_mode(connection, "wal")
        require_mode(connection, "delete")


def require_mode(connection: sqlite3.Connection, mode: str) -> None:
    """Set how the journal is kept, or refuse: SQLite answers with the mode that it could set."""
    if connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0] != mode:
        raise LedgerError(
            "ledger: this file system cannot hold a ledger; use a local disk or PostgreSQL"
        )


def is_database(path: Path) -> bool:
    """Whether SQLite can read a file.

    Asked through SQLite: a file that is opened and closed beside it loses, by the rules of POSIX, every
    lock that this process holds on it, and another process could then write in the middle of a commit.
    """
    try:
        with _connected(path) as connection:
            connection.execute("PRAGMA schema_version")
    except (sqlite3.OperationalError, UnicodeDecodeError):  # locked, for one; or a damaged name in it
        return True
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & SQLITE_PRIMARY != sqlite3.SQLITE_NOTADB:
            return True
        with path.open("rb") as file:  # SQLite holds no lock on what it cannot read
            if file.read(len(MAGIC)) == MAGIC:
                raise damaged(path) from None
        return False
    return path.stat().st_size > 0


def is_damage(error: BaseException | None) -> bool:
    """Whether SQLite says that the bytes of the file are not what it wrote."""
    if isinstance(error, UnicodeDecodeError):  # of its own messages: they quote the file
        return True
    if not isinstance(error, sqlite3.Error):
        return False
    code = getattr(error, "sqlite_errorcode", 0) & SQLITE_PRIMARY
    is_text = str(error).startswith("Could not decode to UTF-8")
    return is_text or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def damaged(name: object) -> VerificationFailed:
    """What is said of such a file."""
    return VerificationFailed(
        f"ledger={name}: the file is damaged; keep it, and go on with `adumbra ledger restore`"
    )
