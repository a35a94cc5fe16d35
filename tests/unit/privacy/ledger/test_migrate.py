"""Ledgers that earlier versions left open, verify and migrate; their history stays what it was."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.privacy.ledger import create_ledger, migrate_ledger, open_ledger
from adumbra.privacy.ledger.guards import is_earlier_guard
from adumbra.privacy.ledger.migrate import GUARD, ONE_FILE
from support.cli import in_process
from support.ledger import register, reserve

KEPT = Path(__file__).resolve().parents[3] / "data/ledger-1"
# first.db was made by the sources of 16 November 2026, 02:49; second.db by those before operators.
EXPECTED = {"first": (ONE_FILE, GUARD), "second": ()}


def kept(name, folder):
    path = folder / f"{name}.db"
    path.write_bytes(gzip.decompress((KEPT / f"{name}.db.gz").read_bytes()))
    path.chmod(0o600)
    return path, json.loads((KEPT / f"{name}.head.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_kept_ledger_is_brought_up_to_date(name, tmp_path):
    path, head = kept(name, tmp_path)
    done = migrate_ledger(path, tmp_path / "before.db")
    assert done.changes == EXPECTED[name]
    assert done.head.to_dict() == head  # the head that was kept beside the copy, bit by bit
    with open_ledger(path) as ledger, open_ledger(tmp_path / "before.db") as copy:
        assert ledger.verify(head).card
        assert copy.verify(head).card
        assert not ledger.maintain(is_earlier_guard)
        shown = {one.population.name: (one.spent, len(one.entries)) for one in ledger.show()}
        assert shown == {"people": (1.14, 2), "pure": (0.5, 2), "ward": (0.5, 1)}
        assert [change.reason for change in ledger.show("people")[0].raised] == ["a second study"]
        reserve(ledger, "people", 0.1, 1e-6)
        ledger.verify(head)
    assert migrate_ledger(path, tmp_path / "again.db").changes == ()


def test_a_damaged_ledger_is_not_migrated(tmp_path):
    path, _ = kept("first", tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER adumbra_populations_update")
        connection.execute("UPDATE adumbra_populations SET cap = cap + 1")
    connection.close()
    with pytest.raises(VerificationFailed, match="guard=adumbra_populations_update: missing"):
        migrate_ledger(path, tmp_path / "before.db")
    assert not (tmp_path / "before.db").exists()


def test_every_database_can_be_asked(location, tmp_path):
    with create_ledger(location) as ledger:
        register(ledger)
    done = in_process("ledger", "migrate", "--ledger", location, "--backup", tmp_path / "b.db", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["changes"] == []
    text = in_process("ledger", "migrate", "--ledger", location, "--backup", tmp_path / "c.db").stdout
    assert "nothing was out of date" in text
    with pytest.raises(InvalidInput, match="exists already"):
        migrate_ledger(location, tmp_path / "c.db")
