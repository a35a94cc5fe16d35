"""What a crash left in a folder: staged releases that nobody will publish, and half-made ledgers."""

import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adumbra.errors import InvalidInput, require
from adumbra.privacy.ledger.values import Entry, State
from adumbra.release.storage import is_held

STAGED = re.compile(r"\..+\.(?P<entry>[0-9a-f]{8}-[0-9]{6,})(\.[0-9a-f]{16})?\.staged", re.DOTALL)
DRAFT = re.compile(r"\..+\.([0-9a-f]{16}|[0-9]+)\.new(-journal)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Leftover:
    """One name that can go."""

    path: Path
    why: str


def find_leftovers(folder: Path, entries: Mapping[str, Entry]) -> list[Leftover]:
    """Everything in a folder that can go; what is in use, sealed or somebody else's stays.

    A sealed folder stays: `resume` publishes it. A drawn one cannot be published any more, and its noise
    is on the disk: it goes.
    """
    require(folder.is_dir(), f"folder={folder}: is not a folder; give one that releases were made in")
    found = []
    for path in sorted(folder.iterdir()):
        why = _why(path, entries)
        if why and not is_held(path):
            found.append(Leftover(path, why))
    return found


def _why(path: Path, entries: Mapping[str, Entry]) -> str:
    """Why this can go; empty if it must stay."""
    status = path.lstat()
    if status.st_uid != os.geteuid():
        return ""
    if stat.S_ISREG(status.st_mode) and DRAFT.fullmatch(path.name):
        return "a file that was never finished"
    match = STAGED.fullmatch(path.name)
    entry = entries.get(match["entry"]) if match and stat.S_ISDIR(status.st_mode) else None
    if entry is None or entry.state in (State.SEALED, State.PUBLISHING):
        return ""
    return f"of entry {entry.id}, which is {entry.state} and was not sealed here"


def remove(leftover: Leftover) -> None:
    """Delete one of them; no link is followed."""
    try:
        if leftover.path.is_dir():
            shutil.rmtree(leftover.path)
        else:
            leftover.path.unlink()
    except OSError as error:
        raise InvalidInput(f"{leftover.path}: cannot be removed ({error.strerror})") from None
