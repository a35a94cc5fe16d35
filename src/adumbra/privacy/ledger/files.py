"""Bytes on disk: the digest of a folder, flushing it, and the one rename that publishes."""

import hashlib
import os
import secrets
from pathlib import Path

from adumbra.errors import LedgerError, VerificationFailed

_CHUNK = 1 << 20


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
    """Publish by one atomic rename on one file system; never over something that exists."""
    require_free(target)
    try:
        staged.rename(target)
    except OSError as error:
        raise LedgerError(
            f"target={target}: could not be moved there; free the place and resume"
        ) from error


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


def require_same_file_system(staged: Path, target: Path) -> None:
    """A rename is atomic only within one file system."""
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
