"""Single-byte changes of any row of any table, and of any sealed file: all of them are seen."""

from contextlib import suppress

import numpy as np
import pytest
from sqlalchemy import select, update
from sqlalchemy import text as sql
from sqlalchemy.exc import DBAPIError

from adumbra.errors import VerificationFailed
from adumbra.privacy.ledger import check, create_ledger, tree_digest
from adumbra.privacy.ledger.guards import guards
from adumbra.privacy.ledger.model import metadata
from support.ledger import DATABASES, FULL, new_location, register, reserve, run, stage

CHANGES = {"sqlite": 10_000 if FULL else 400, "postgresql": 10_000 if FULL else 60}


class Undo(Exception):
    """Ends a transaction that must leave no trace."""


def flip(value, rng):
    """One byte of a text, or one bit of an integer, made another."""
    if isinstance(value, int):
        return value ^ (1 << int(rng.integers(0, 40)))
    data = bytearray(value.encode())
    place = int(rng.integers(len(data)))
    while True:
        data[place] = int(rng.integers(32, 127))
        if data.decode() != value:
            return data.decode()


@pytest.mark.parametrize("database", DATABASES)
def test_no_byte_of_a_row_can_change_unseen(database, tmp_path, monkeypatch, record_property):
    ledger = create_ledger(new_location(database, tmp_path))
    register(ledger, "all", 5.0, owner="Ann")
    register(ledger, "people", 4.0, parent="all", purpose="research")
    register(ledger, "gauss", 2.0, delta=1e-6)
    run(ledger, tmp_path, reserve(ledger))
    run(ledger, tmp_path, reserve(ledger, "gauss", 0.5, 1e-6), "seal")
    ledger.record_fingerprint(reserve(ledger), ledger.fingerprint(3))
    ledger.void(reserve(ledger), "a mistake")
    ledger.raise_cap("all", 6.0, "agreed")
    with ledger._store.write() as connection:  # as an administrator of the database would
        for name in guards(database):
            on = f" ON {name.rpartition('_')[0]}" if database == "postgresql" else ""
            connection.execute(sql(f"DROP TRIGGER {name}{on}"))
    monkeypatch.setattr(check, "guard_faults", lambda _: [])
    ledger.verify()
    with ledger._store.read() as connection:
        rows = [
            (table, row)
            for table in metadata.sorted_tables
            for row in connection.execute(select(table)).mappings()
        ]
    rng = np.random.default_rng(17)
    refused = 0
    for _ in range(CHANGES[database]):
        table, row = rows[rng.integers(len(rows))]
        columns = [column for column in table.c if row[column.name] != ""]
        column = columns[rng.integers(len(columns))]
        change = update(table).where(*(key == row[key.name] for key in table.primary_key))
        with suppress(Undo), ledger._store.write() as connection:
            try:
                connection.execute(change.values({column: flip(row[column.name], rng)}))
            except DBAPIError:
                refused += 1  # a constraint of the database saw it first
                raise Undo from None
            with pytest.raises(VerificationFailed):
                check.check(connection, None)
            raise Undo
    ledger.verify()
    ledger.close()
    record_property(
        "figure",
        f"{database}: {CHANGES[database]} single-byte changes of ledger rows, all seen "
        f"({refused} by constraints, the rest by verify)",
    )


def test_no_byte_of_a_sealed_file_can_change_unseen(tmp_path, record_property):
    staged = stage(tmp_path, bytes(range(256)) * 8)
    files = [staged / "card.json", staged / "data" / "rows.bin"]
    sealed = tree_digest(staged)
    rng = np.random.default_rng(23)
    changes = 10_000 if FULL else 500
    for number in range(changes):
        file = files[number % 2]
        whole = file.read_bytes()
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        file.write_bytes(data)
        assert tree_digest(staged) != sealed
        file.write_bytes(whole)
    assert tree_digest(staged) == sealed
    record_property("figure", f"{changes} single-byte changes of sealed files, all seen")
