"""Bring a ledger that an earlier version made to the present shape; its history stays as it is.

Every ledger of format `adumbra-ledger/1` opens in this version. What differs is beside the log: the text
of a trigger, and on SQLite how a commit is kept. A backup is written first, and the ledger is verified
before and after, against the same head.
"""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from adumbra.privacy.ledger.backup import backup_ledger
from adumbra.privacy.ledger.check import check
from adumbra.privacy.ledger.files import require_own, uses_log
from adumbra.privacy.ledger.guards import is_earlier_guard, renew_population_guard
from adumbra.privacy.ledger.ledger import open_ledger
from adumbra.privacy.ledger.store import parse_location
from adumbra.privacy.ledger.values import LedgerHead

ONE_FILE = "a write-ahead log was moved into the ledger's file"
GUARD = "the guard of the accounts allows a change of delta before the first charge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What was brought up to date; nothing, if it was already."""

    changes: tuple[str, ...]
    head: LedgerHead

    def sentence(self) -> str:
        """For people."""
        done = "; ".join(self.changes) if self.changes else "nothing was out of date"
        return f"event {self.head.sequence}, the same before and after: {done}"


def migrate_ledger(location: str | Path, backup: str | Path) -> Migrated:
    """Back a ledger up to the new file `backup`, then bring it up to date; `verify` holds throughout."""
    url = parse_location(location)
    had_log = False
    if url.get_backend_name() == "sqlite":
        require_own(Path(str(url.database)))
        had_log = uses_log(Path(str(url.database)))
    with open_ledger(location) as ledger:
        ledger.verify()
        head = backup_ledger(ledger, backup)
        changed = ledger.maintain(_renew)
        ledger.verify(head.to_dict())
    changes = (*([ONE_FILE] if had_log else []), *([GUARD] if changed else []))
    return Migrated(changes=changes, head=head)


def _renew(connection: Connection) -> bool:
    """Put the present guard in place; whether another one stood there."""
    if not is_earlier_guard(connection):
        return False
    renew_population_guard(connection)
    check(connection)
    return True
