"""Faults of the machine have a name and an exit code of their own, before the charge and after it."""

import errno
import re
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event

from adumbra import workflow
from adumbra.cli.main import EXIT_CODES
from adumbra.data import csv, parquet
from adumbra.data.opening import open_source
from adumbra.errors import (
    AdumbraError,
    ChargeNote,
    InvalidInput,
    LedgerNotWritable,
    NoSpace,
    NotWritable,
    OutOfMemory,
    system_fault,
)
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Population, State, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.release import storage
from adumbra.schema.schema import Schema
from support.ledger import DATABASES, new_location

SCHEMA = Schema.numeric(3, -1.0, 1.0, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
CONFIG = DPProConfig(n_components=2, epsilon=0.5, delta=1e-6)
TABLE = np.zeros((50, 3))
PRIVATE = "a cell of 17.25"
FAULTS = [
    (OSError(errno.ENOSPC, PRIVATE), NoSpace, 5, "disk is full"),
    (OSError(errno.EDQUOT, PRIVATE), NoSpace, 5, "quota"),
    (OSError(errno.EROFS, PRIVATE), NotWritable, 6, "read-only"),
    (OSError(errno.EACCES, PRIVATE), NotWritable, 6, "permission"),
    (MemoryError(PRIVATE), OutOfMemory, 7, "memory"),
]


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as book:
        book.register(Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 2.0, 1e-6))
        yield book


def release(ledger, out, **keywords):
    return workflow.release(
        TABLE, CONFIG, schema=SCHEMA, ledger=ledger, population="people", out=out, **keywords
    )


class Broken:
    """An engine on a machine that fails."""

    def __init__(self, error):
        self.error = error

    def fold(self, *_passed, **_named):
        raise self.error

    map_blocks = fold


@pytest.mark.parametrize(("error", "kind", "code", "words"), FAULTS)
def test_a_fault_after_the_charge_is_named_and_says_what_stays_charged(
    ledger, tmp_path, error, kind, code, words
):
    with pytest.raises(kind, match=words) as caught:
        release(ledger, tmp_path / "out", engine=Broken(error))
    assert caught.value.exit_code == code
    assert PRIVATE not in str(caught.value)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)  # nor behind it
    notes = [note for note in caught.value.__notes__ if isinstance(note, ChargeNote)]
    assert len(notes) == 1
    (statement,) = ledger.show("people")
    assert [one.state for one in statement.stranded] == [State.DRAWN]  # charged all the same


def test_data_that_can_no_longer_be_read_is_not_named_as_the_release(ledger, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text(",".join(SCHEMA.names) + "\n" + "0,0,0\n" * 50)
    right = csv.file_records

    def failing(where, header, *size):
        if ledger.show("people")[0].entries:
            raise PermissionError(errno.EACCES, PRIVATE)
        return right(where, header, *size)

    monkeypatch.setattr(csv, "file_records", failing)
    with pytest.raises(InvalidInput, match="data: cannot be read any more") as caught:
        workflow.release(
            path, CONFIG, schema=SCHEMA, ledger=ledger, population="people", out=tmp_path / "out"
        )
    assert "out=" not in str(caught.value)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    assert [type(note) for note in caught.value.__notes__] == [ChargeNote]


def test_memory_that_runs_out_while_a_file_is_read_is_no_damage(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({name: [0.5] for name in SCHEMA.names}), path)

    def failing(*_passed, **_named):
        raise pa.ArrowMemoryError(PRIVATE)

    monkeypatch.setattr(parquet.pq, "ParquetFile", failing)
    with pytest.raises(MemoryError):
        open_source(path, SCHEMA)


@pytest.mark.parametrize(("error", "kind", "code", "words"), FAULTS[:4])
def test_a_place_that_fails_before_the_charge_is_named(
    ledger, tmp_path, monkeypatch, error, kind, code, words
):
    right = storage.Path.mkdir

    def failing(self, *passed, **named):
        if self.name.startswith("."):
            raise error
        right(self, *passed, **named)

    monkeypatch.setattr(storage.Path, "mkdir", failing)
    with pytest.raises(kind, match=words) as caught:
        release(ledger, tmp_path / "out")
    assert caught.value.exit_code == code
    (statement,) = ledger.show("people")
    assert (statement.entries, statement.stranded) == ((), ())


def pragma(ledger, words):
    """Every connection of the ledger from now on begins with this."""
    engine = ledger._store._engine
    engine.dispose()

    def begin(connection, _record):
        connection.execute(f"PRAGMA {words}")

    event.listen(engine, "connect", begin)


def register_many(ledger):
    """A full file takes what fits into its last page."""
    for number in range(200):
        one = Population(f"others-{number}", Unit.ROW, Neighbours.REPLACE_ONE, 2.0, 1e-6)
        ledger.register(one)


@pytest.mark.parametrize(
    ("words", "said"), [("query_only = ON", "read-only"), ("max_page_count = 1", "disk is full")]
)
def test_a_ledger_that_cannot_be_written_is_named(ledger, words, said):
    pragma(ledger, words)
    with pytest.raises(LedgerNotWritable, match=said) as caught:
        register_many(ledger)
    assert caught.value.exit_code == 8


def test_a_release_from_a_read_only_ledger_charges_nothing(ledger, tmp_path):
    pragma(ledger, "query_only = ON")
    with pytest.raises(LedgerNotWritable, match="read-only"):
        release(ledger, tmp_path / "out")
    (statement,) = ledger.show("people")
    assert (statement.entries, statement.stranded) == ((), ())
    assert not (tmp_path / "out").exists()


def test_other_faults_have_no_name():
    assert system_fault(ValueError("x"), "out=x") is None
    assert system_fault(OSError(errno.EIO, "x"), "out=x") is None
    assert system_fault(InvalidInput("x"), "out=x") is None
    assert system_fault(sqlite3.OperationalError("x"), "out=x") is None


def test_help_names_every_exit_code():
    kinds, found = [AdumbraError], set()
    for kind in kinds:
        kinds += kind.__subclasses__()
        found.add(kind.exit_code)
    assert found > {1, 9}
    assert all(re.search(rf"\b{code} [a-z]", EXIT_CODES) for code in found)


def test_no_two_exit_codes_are_alike():
    codes = [one.exit_code for one in (NoSpace, NotWritable, OutOfMemory, LedgerNotWritable)]
    assert len({*codes, AdumbraError.exit_code, 2, 3, 4, 130}) == len(codes) + 5


@pytest.mark.parametrize("database", DATABASES)
def test_a_ledger_that_can_be_written_is_left_as_it_was(database, tmp_path):
    with create_ledger(new_location(database, tmp_path)) as book:
        before = book.head()
        book.require_writable()
        assert book.head() == before
        assert book.verify().events == 1


STATES = {  # a setting makes the first one real; a trigger says the others
    "25006": "is read-only here",
    "53100": "its disk is full",
    "53200": "has no memory left",
}


@pytest.mark.parametrize("state", STATES if "postgresql" in DATABASES else ())
def test_what_a_server_cannot_do_is_named_by_its_own_code(state, tmp_path):
    location = new_location("postgresql", tmp_path)
    with create_ledger(location) as book:
        book.register(Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 2.0, 1e-6))
        with book._store.write() as connection:
            if state == "25006":
                connection.exec_driver_sql("SET SESSION default_transaction_read_only = on")
            else:
                connection.exec_driver_sql(
                    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    f"RAISE EXCEPTION '{PRIVATE}' USING ERRCODE = '{state}'; END $$"
                )
                connection.exec_driver_sql(
                    "CREATE TRIGGER fail BEFORE UPDATE ON adumbra_heads EXECUTE FUNCTION fail()"
                )
        with pytest.raises(LedgerNotWritable, match=STATES[state]) as caught:
            release(book, tmp_path / "out")
        assert caught.value.exit_code == 8
        assert PRIVATE not in str(caught.value)
        assert book.show("people")[0].entries == ()
