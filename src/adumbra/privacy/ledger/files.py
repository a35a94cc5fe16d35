"""Bytes on disk: the digest of a folder, flushing it, the one rename that publishes, SQLite's journal.

`checkpoint` names the places between two durable steps.

A rollback journal (`journal_mode=DELETE`) holds old pages, and only while a transaction is committed. So
a copy of the file alone has every earlier charge. A write-ahead log holds new pages, and such a copy
forgets them. Ledgers of earlier versions had one; they are converted when opened.
"""

import hashlib
import os
import secrets
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

from adumbra.errors import InvalidInput, LedgerError, VerificationFailed

_CHUNK = 1 << 20


def checkpoint(name: str) -> None:
    """Stand at a named place between two durable steps, and do nothing.

    The crash tests put a function in its place that kills the process there; there is no setting,
    variable or argument that could do it in production.
    """


def tree_digest(folder: Path) -> str:
    """SHA-256 over every file of a folder: sorted names, sizes and contents; links are refused."""
    total = hashlib.sha256(b"adumbra-tree/1\0")
    for path in _members(folder):
        name = path.relative_to(folder).as_posix().encode()
        content = hashlib.sha256()
        size = 0
        with path.open("rb") as stream:
            while block := stream.read(_CHUNK):
                content.update(block)
                size += len(block)
        total.update(b"%d:%s:%d:" % (len(name), name, size) + content.digest())
    return total.hexdigest()


def _members(folder: Path) -> list[Path]:
    """The regular files of a folder, sorted; anything else in it is refused."""
    if folder.is_symlink() or not folder.is_dir():
        raise VerificationFailed(f"folder={folder}: must be a folder")
    files = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise VerificationFailed(f"folder={folder}: holds a link or a special file")
        if path.is_file():
            files.append(path)
    return files


def flush_tree(folder: Path) -> None:
    """Flush every file and every folder of a tree, and the folder that holds it."""
    for path in _members(folder):
        flush(path)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            flush(path)
    flush(folder)
    flush(folder.parent)


def move(staged: Path, target: Path) -> None:
    """Publish by one atomic rename on one file system, durably; never over something that exists."""
    require_free(target)
    try:
        staged.rename(target)
    except OSError as error:
        raise LedgerError(
            f"target={target}: could not be moved there; free the place and resume"
        ) from error
    checkpoint("publish: moved, not flushed")
    flush_move(staged, target)
    checkpoint("publish: moved and flushed")


def require_free(target: Path) -> None:
    """Nothing may stand where a release goes."""
    if os.path.lexists(target):
        raise LedgerError(f"target={target}: exists already; choose another place")


def open_to_readers(folder: Path) -> None:
    """What is published is for everyone, whatever the umask is; staged it was its owner's own."""
    folder.chmod(0o755)


def flush_move(staged: Path, target: Path) -> None:
    """Make the rename durable: flush both parent folders."""
    flush(target.parent)
    if staged.parent.is_dir():
        flush(staged.parent)


def require_target(staged: Path, target: Path) -> None:
    """A free place on the file system of the staged bytes: only there is a rename atomic."""
    require_free(target)
    if staged.is_symlink() or not staged.is_dir():
        raise LedgerError(f"staged={staged}: the sealed folder is not there; put it back and resume")
    if not target.parent.is_dir():
        raise LedgerError(f"target={target}: its folder does not exist")
    if staged.stat().st_dev != target.parent.stat().st_dev:
        raise LedgerError(
            f"target={target}: not on the file system of the staged bytes; stage beside the target"
        )


def flush(path: Path) -> None:
    """Flush one file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_new(path: Path, content: bytes) -> None:
    """A new small file, whole or not there at all, flushed to disk; for everyone to read."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), 0o644)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(draft, path)
    finally:
        draft.unlink()
    flush(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """A small file, whole, flushed to disk; takes the place of what was there."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    write_new(draft, content)
    draft.replace(path)
    flush(path.parent)


def hash_bytes(value: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(value).hexdigest()


MAGIC = b"SQLite format 3\0"
SQLITE_PRIMARY = 0xFF  # the part of an error code that all its variants share


def require_own(path: Path) -> None:
    """A ledger must be a file of its owner's alone."""
    if not path.is_file():
        raise InvalidInput(f"ledger={path}: no such file; make one with `adumbra ledger init`")
    if not os.access(path, os.R_OK):
        raise InvalidInput(f"ledger={path}: cannot be read (Permission denied)")
    if not is_database(path):  # before its mode: never change that of a file that is not ours
        raise InvalidInput(f"ledger={path}: is not a ledger; name the file that `ledger init` made")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise InvalidInput(f"ledger={path}: mode {mode:04o} lets others read it; run chmod 600 on it")


def require_one_file(path: Path, patience: float) -> None:
    """A file of its owner's alone that holds every committed charge, after which it may be opened."""
    require_own(path)
    convert(path, patience)


def uses_log(path: Path) -> bool:
    """Whether a SQLite file says in its header that commits go to a write-ahead log."""
    with path.open("rb") as stored:
        return stored.read(20)[18:19] == b"\x02"


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
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        raise damaged(path) from None


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
