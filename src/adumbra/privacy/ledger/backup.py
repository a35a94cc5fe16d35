"""A copy of a ledger that is whole, made while others write, and the way back from it.

A backup is a ledger file of its own, from SQLite and PostgreSQL alike; it can be restored to either. A
copy cannot tell that it is old: only a head that was kept elsewhere can. So a backup comes with the head
of its moment, and restoring asks for the newest head, card or release at hand.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select

from adumbra.errors import InvalidInput, LedgerError, VerificationFailed, require
from adumbra.privacy.ledger import files
from adumbra.privacy.ledger.check import check
from adumbra.privacy.ledger.ledger import Fill, Ledger, make_ledger, open_ledger, require_new
from adumbra.privacy.ledger.model import metadata
from adumbra.privacy.ledger.values import LedgerHead

ROWS = 1000  # copied at a time


def backup_ledger(ledger: Ledger, path: str | Path, head: str | Path | None = None) -> LedgerHead:
    """Copy one moment of an open ledger to the new file `path`, verified; returns its head.

    The head is also written to the new file `head`, or beside the backup as `<path>.head.json`.
    """
    require("://" not in str(path), "backup: is written to a file; give a path")
    place = Path(path).absolute()
    kept = place.with_name(f"{place.name}.head.json") if head is None else Path(head).absolute()
    require(kept != place, f"head={kept}: is the backup itself; choose another name")
    require_new(place, "backup")
    require_new(kept, "head")
    with make_ledger(place, _copy_of(ledger)) as made:
        found = made.head()
    try:
        files.write_new(kept, json.dumps(found.to_dict(), indent=2).encode() + b"\n")
    except OSError as error:
        place.unlink()
        raise LedgerError(
            f"head={kept}: cannot be written ({error.strerror}); nothing was backed up"
        ) from None
    return found


def restore_ledger(
    backup: str | Path,
    location: str | Path,
    *,
    against: Mapping[str, Any],
    card_digest: str | None = None,
) -> Ledger:
    """Make a ledger at a new place from a backup that is whole and no older than `against`.

    `against` is a kept head or the card of a release, the newest that is at hand. A backup that lacks it
    would forget charges, and is refused.
    """
    require("://" not in str(backup), "backup: is a file; give its path")
    with _opened(backup) as kept:
        try:
            kept.verify(against, card_digest=card_digest)
        except VerificationFailed as failed:
            raise VerificationFailed(
                f"{failed}\nbackup={backup}: not restored; a newer backup may hold what this one lacks"
            ) from None
        return make_ledger(location, _copy_of(kept))


def _opened(backup: str | Path) -> Ledger:
    """The ledger in a backup; what is wrong with the file is said of the backup."""
    remedy = "give the file that `adumbra ledger backup` wrote"
    require(Path(backup).exists(), f"backup={backup}: no such file; {remedy}")
    try:
        return open_ledger(backup)
    except InvalidInput as problem:
        if "is not a ledger" not in str(problem):
            raise
    raise InvalidInput(f"backup={backup}: is not a ledger; {remedy}")


def _copy_of(ledger: Ledger) -> Fill:
    """Every row of one moment of a ledger; what was written is verified before it is committed."""

    def fill(connection: Connection) -> None:
        with ledger.snapshot() as source:
            for table in metadata.sorted_tables:
                for part in source.execute(select(table)).mappings().partitions(ROWS):
                    connection.execute(insert(table), [dict(row) for row in part])
        check(connection)

    return fill
