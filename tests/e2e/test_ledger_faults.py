"""A database that fails at any statement of a release shows no private value: no parameter, no n."""

import logging
import re
import sqlite3
import traceback
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import event

from adumbra import workflow
from adumbra.attestation import events
from adumbra.errors import LedgerError
from adumbra.mechanisms.topk import TopKConfig
from adumbra.privacy.ledger import Population, create_ledger, memory_ledger
from adumbra.privacy.ledger import store as store_module
from adumbra.privacy.ledger.protocol import Spending
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from support.ledger import DATABASES, new_location

ROWS = 3001
NUMBER = re.compile(rf"(?<![0-9a-fx]){ROWS}(?![0-9a-f])|{ROWS:016x}|DETAIL")  # not within an address
PRIVATE_NAMES = re.compile("fingerprint_key|signing_key|source_pin|sketch")
SCHEMA = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "add-remove"
declared_by = "test"
[items]
universe = 8
"""
ITEMS = [[1, 2]] * 50 + [[]] * (ROWS - 50)  # few of any item: a noisy count is not near n
TABLE = pa.table({"items": pa.array(ITEMS, pa.list_(pa.int64()))})
LOGGERS = ("sqlalchemy", "sqlalchemy.engine", "sqlalchemy.engine.Engine", "psycopg")
CONFIG = TopKConfig(k=2, epsilon=1.0, delta=0.0)


class Failing:
    """Lets so many statements and commits pass, then fails one (or all that follow) as a driver does."""

    def __init__(self, ledger, passing, *, forever):
        self._engine = ledger._store._engine
        self._errors = self._engine.dialect.loaded_dbapi
        self.left, self.forever = passing, forever
        self.seen: list[str] = []

    def _statement(self, _cursor, statement, parameters, _context):
        self._count(statement, parameters)

    def _plain(self, _cursor, statement, _context):
        self._count(statement, ())

    def _commit(self, _connection):
        self._count("COMMIT", ())

    def _count(self, statement, parameters):
        self.seen.append(statement)
        self.left -= 1
        if self.left == -1 or (self.forever and self.left < 0):
            kind = (self._errors.OperationalError, self._errors.IntegrityError)[len(self.seen) % 2]
            raise kind(f"DETAIL: failing row contains {parameters}")  # as PostgreSQL's own errors do

    @contextmanager
    def planted(self):
        listeners = [
            ("do_execute", self._statement),
            ("do_executemany", self._statement),
            ("do_execute_no_params", self._plain),
            ("commit", self._commit),
        ]
        for name, listener in listeners:
            event.listen(self._engine, name, listener)
        try:
            yield
        finally:
            for name, listener in listeners:
                event.remove(self._engine, name, listener)


def told(error):
    """Everything that can be printed of an error, with the local variables of all frames but ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    shown = traceback.TracebackException(type(error), error, trace, capture_locals=True)
    parts = ["".join(shown.format()), repr(error), repr(vars(error))]
    parts += getattr(error, "__notes__", [])
    return "\n".join(parts)


def parts_with_n(text):
    """What stands around each place that holds the number of rows, or the driver's words."""
    return [text[max(found.start() - 60, 0) : found.end() + 20] for found in NUMBER.finditer(text)]


def attempt(ledger, out, failing):
    with failing.planted():
        workflow.release(
            TABLE, CONFIG, schema=Schema.parse(SCHEMA), ledger=ledger, population="p", out=out
        )


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("forever", [False, True])
def test_a_failure_at_any_statement_shows_no_parameter(database, forever, tmp_path, caplog, capfd):
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    with create_ledger(new_location(database, tmp_path)) as ledger:
        ledger.register(Population("p", Unit.ROW, Neighbours.ADD_REMOVE, 1000.0, 0.0))
        whole = Failing(ledger, 10**6, forever=False)
        attempt(ledger, tmp_path / "whole", whole)
        assert len(whole.seen) > 40
        assert any("INSERT" in statement for statement in whole.seen)
        for passing in range(len(whole.seen)):
            failing = Failing(ledger, passing, forever=forever)
            with pytest.raises(LedgerError) as caught:
                attempt(ledger, tmp_path / str(passing), failing)
            error = caught.value
            assert error.__cause__ is None
            assert error.__context__ is None
            shown = told(error)
            assert parts_with_n(shown) == [], whole.seen[passing]
    captured = capfd.readouterr()
    logged = "\n".join(record.getMessage() for record in caplog.records)
    for text in (captured.out, captured.err, logged):
        assert parts_with_n(text) == []
        assert not PRIVATE_NAMES.search(text)


def unguarded(self, entry_id, fingerprint):
    """As `record_fingerprint`, without what it does for a traceback."""
    with self._acts() as chain:
        kept = {"digest": fingerprint.digest(), "sketch": fingerprint.sketch()}
        chain.append("private", "fingerprint", entry=entry_id, population="p", **kept)


def test_the_failures_would_show_n(tmp_path):
    """What the planted driver says holds n: an error that passes through untouched is found."""
    with create_ledger(tmp_path / "ledger.db") as ledger:
        ledger.register(Population("p", Unit.ROW, Neighbours.ADD_REMOVE, 1000.0, 0.0))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store_module, "_withhold", lambda _error: None)
            patch.setattr(Spending, "record_fingerprint", unguarded)
            heard = []
            for passing in range(60):
                failing = Failing(ledger, passing, forever=False)
                with pytest.raises(LedgerError) as caught:
                    attempt(ledger, tmp_path / str(passing), failing)
                heard.append(f"{ROWS:016x}" in told(caught.value))
    assert any(heard)


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), LedgerError("operator: was dismissed")])
def test_a_stop_while_a_fingerprint_is_recorded_shows_no_n(fault, tmp_path, monkeypatch):
    right, stopped = events.canonical, []

    def stop(event):
        if event.get("kind") != "fingerprint":
            return right(event)
        stopped.append(event["digest"])
        raise fault

    monkeypatch.setattr(events, "canonical", stop)
    with create_ledger(tmp_path / "ledger.db") as ledger:
        ledger.register(Population("p", Unit.ROW, Neighbours.ADD_REMOVE, 1000.0, 0.0))
        with pytest.raises(type(fault)) as caught:
            workflow.release(
                TABLE,
                CONFIG,
                schema=Schema.parse(SCHEMA),
                ledger=ledger,
                population="p",
                out=tmp_path / "r",
            )
    assert stopped[0].endswith(f"{ROWS:016x}")
    assert parts_with_n(told(caught.value)) == []


def test_a_log_of_all_statements_holds_no_row_of_the_ledger(caplog):
    """SQLAlchemy logs parameters at INFO and rows at DEBUG; the ledger's own engine does neither."""
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    with memory_ledger() as ledger:
        ledger.register(Population("canary-name", Unit.ROW, Neighbours.ADD_REMOVE, 1.0, 0.0))
        ledger.show()
    assert "canary-name" not in "\n".join(record.getMessage() for record in caplog.records)


def test_a_database_error_of_any_kind_is_ours():
    with memory_ledger() as ledger:
        for foreign in (sqlite3.DatabaseError, sqlite3.ProgrammingError, sqlite3.InterfaceError):
            with pytest.raises(LedgerError) as caught, ledger._store.read():
                raise foreign(np.int64(ROWS))
            assert (caught.value.__cause__, caught.value.__context__) == (None, None)
            assert parts_with_n(told(caught.value)) == []
