"""Where a release goes. It is written after the charge, so a bad place is refused before it."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adumbra.errors import InvalidInput, require, system_fault
from adumbra.release.promise import FORMATS

LONGEST_ENTRY = "0" * 24  # an entry's id is shorter in any ledger that a disk can hold
OPEN_FOLDER = 0o755  # of what everybody may read, whatever the umask is


def staged_at(target: Path, entry: str) -> Path:
    """A name that nobody can foresee, beside the target: a release is written there first."""
    return target.parent / f".{target.name}.{entry}.{secrets.token_hex(8)}.staged"


@contextmanager
def staging(target: Path, entry: str) -> Iterator[Path]:
    """A new, empty folder of ours alone beside the target; locked while the release is made.

    `mkdir` follows no link and takes no folder that is there. The lock goes with the process, so that
    `ledger clean` can tell what a crash left from what is being written.
    """
    make_parents(target.parent)
    folder = staged_at(target, entry)
    folder.mkdir(mode=0o700)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(handle, 0o700)
        yield folder
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether a process that lives is writing here."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def make_parents(folder: Path) -> None:
    """Make a folder and those above it that are missing, readable for all."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(mode=OPEN_FOLDER)
            each.chmod(OPEN_FOLDER)


def require_place(target: Path) -> None:
    """Refuse a folder that exists, lies in another release, or cannot be made; leaves nothing behind."""
    require(not os.path.lexists(target), f"out={target}: exists already; choose a new folder")
    above = [Path(os.path.realpath(target.absolute().parent))]
    above += above[0].parents
    around = next((folder for folder in above if _is_release(folder)), None)
    require(
        around is None,
        f"out={target}: lies inside the release {around}, which would no longer verify; choose a "
        "folder beside it",
    )
    missing = [folder for folder in above if not folder.exists()]
    probe = staged_at(target, LONGEST_ENTRY)
    try:
        probe.mkdir(mode=0o700, parents=True)
    except (OSError, ValueError) as error:  # ValueError: a path that no system takes
        if (named := system_fault(error, f"out={target}")) is not None:
            raise named from None
        reason = getattr(error, "strerror", None) or "not a path"
        raise InvalidInput(
            f"out={target}: no folder can be made there ({reason}); choose another place"
        ) from None
    finally:
        for folder in (probe, *missing):
            with suppress(OSError, ValueError):
                folder.rmdir()


def _is_release(folder: Path) -> bool:
    """Whether a folder holds a card of a known format."""
    with suppress(OSError, ValueError):
        card = (folder / "card.json").read_bytes()
        return any(f'"format": "{known}"'.encode() in card for known in FORMATS)
    return False
