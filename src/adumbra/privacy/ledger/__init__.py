"""The budget ledger: no release without a durable charge."""

from adumbra.privacy.fingerprint import Fingerprint
from adumbra.privacy.ledger.accounts import Quote
from adumbra.privacy.ledger.backup import backup_ledger, restore_ledger
from adumbra.privacy.ledger.check import Verified
from adumbra.privacy.ledger.export import verify_export
from adumbra.privacy.ledger.files import tree_digest
from adumbra.privacy.ledger.ledger import Ledger, create_ledger, memory_ledger, open_ledger
from adumbra.privacy.ledger.migrate import Migrated, migrate_ledger
from adumbra.privacy.ledger.values import (
    Currency,
    Entry,
    LedgerHead,
    Overlap,
    Population,
    State,
    Statement,
)

__all__ = [
    "Currency",
    "Entry",
    "Fingerprint",
    "Ledger",
    "LedgerHead",
    "Migrated",
    "Overlap",
    "Population",
    "Quote",
    "State",
    "Statement",
    "Verified",
    "backup_ledger",
    "create_ledger",
    "memory_ledger",
    "migrate_ledger",
    "open_ledger",
    "restore_ledger",
    "tree_digest",
    "verify_export",
]
