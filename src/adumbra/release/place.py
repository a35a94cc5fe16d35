"""Where a release goes. It is written after the charge, so a bad place is refused before it."""

import os
from contextlib import suppress
from pathlib import Path

from adumbra.errors import InvalidInput, require
from adumbra.release.promise import FORMATS

LONGEST_ENTRY = "0" * 24  # an entry's id is shorter in any ledger that a disk can hold


def staged_at(target: Path, entry: str) -> Path:
    """The folder beside the target in which a release is written before it is published."""
    return target.parent / f".{target.name}.{entry}.staged"


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
