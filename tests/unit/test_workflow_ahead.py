"""A release reads ahead while it is prepared: nothing of it is used, or left, before the charge."""

import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra import workflow
from adumbra.data import files
from adumbra.data.begun import BegunSource
from adumbra.data.parquet import ParquetSource
from adumbra.engine.local import LocalEngine
from adumbra.errors import BudgetRefused, ChargeNote, InvalidInput
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Ledger, Population, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema

SCHEMA = Schema.numeric(3, -1.0, 1.0)
CONFIG = DPProConfig(n_components=2, epsilon=0.5, delta=1e-6)
ROWS = 9000


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as book:
        book.register(Population("people", Unit.ROW, Neighbours.REPLACE_ONE, 0.6, 1e-6))
        yield book


@pytest.fixture
def path(tmp_path):
    values = np.random.default_rng(0).uniform(-1, 1, (ROWS, 3))
    found = tmp_path / "table.parquet"
    pq.write_table(pa.table({name: values[:, j] for j, name in enumerate(SCHEMA.names)}), found)
    return found


@pytest.fixture
def never_enough(monkeypatch):
    """Threads that read ahead until they are told to stop: one that nobody stops is seen."""
    started = []

    def patient(self, _coming, _most):
        started.append(threading.current_thread())
        self._enough.wait(60)

    monkeypatch.setattr(BegunSource, "_read", patient)
    return started


def readers():
    return [one for one in threading.enumerate() if one.name == "adumbra-begun"]


def given(book, tmp_path, **keywords):
    plain = {"schema": SCHEMA, "ledger": book, "population": "people", "out": tmp_path / "out"}
    return {**plain, **keywords}


def entries(ledger):
    return ledger.show("people")[0].entries


def test_a_release_reads_ahead_and_leaves_no_thread(ledger, path, tmp_path, never_enough):
    made = ad.release(path, CONFIG, **given(ledger, tmp_path))
    assert made.data.num_rows == ROWS
    assert len(never_enough) == 1
    assert not readers()


@pytest.mark.parametrize(
    "keywords",
    [
        {"population": "nobody"},  # by the ledger
        {"engine": LocalEngine},  # before there is one
        {"key": 7},
        {"ledger": "no such folder/ledger.db"},
        {"about": {"title": "x" * 10**6}},  # by the card
    ],
)
def test_a_refusal_drops_what_was_read(ledger, path, tmp_path, never_enough, keywords):
    with pytest.raises(ad.AdumbraError):
        workflow.prepare(path, CONFIG, **given(ledger, tmp_path, **keywords))
    assert len(never_enough) == (0 if "engine" in keywords else 1)
    assert not readers()
    assert entries(ledger) == ()


def test_a_config_that_cannot_be_settled_drops_what_was_read(ledger, path, tmp_path, never_enough):
    with pytest.raises(ad.AdumbraError):  # without a label
        workflow.prepare(path, LDAConfig(epsilon=0.5), **given(ledger, tmp_path))
    assert len(never_enough) == 1
    assert not readers()


def test_a_release_that_is_not_confirmed_drops_what_was_read(ledger, path, tmp_path, never_enough):
    with workflow.prepare(path, CONFIG, **given(ledger, tmp_path)) as prepared:
        assert readers() == never_enough
        assert prepared.quote
    assert not readers()
    assert entries(ledger) == ()


def test_a_spent_budget_drops_what_was_read(ledger, path, tmp_path, never_enough):
    with workflow.prepare(path, CONFIG, **given(ledger, tmp_path)) as late:
        ad.release(path, CONFIG, **given(ledger, tmp_path, out=tmp_path / "first"))
        with pytest.raises(BudgetRefused):
            late.commit()
    assert len(never_enough) == 2
    assert not readers()


def test_no_value_is_used_before_the_charge(ledger, path, tmp_path, monkeypatch):
    happened, filled, reserve = [], files.filled, Ledger.reserve
    monkeypatch.setattr(files, "filled", lambda *block: happened.append("used") or filled(*block))

    def reserved(self, *passed, **named):
        for thread in readers():
            thread.join()  # all that may be read ahead was read
        happened.append("asked")
        entry = reserve(self, *passed, **named)
        happened.append("charged")
        return entry

    monkeypatch.setattr(Ledger, "reserve", reserved)
    ad.release(path, CONFIG, **given(ledger, tmp_path))
    assert happened[:3] == ["asked", "charged", "used"]
    assert set(happened[3:]) <= {"used"}


def test_a_file_that_changes_after_it_was_read_ahead_is_refused(ledger, path, tmp_path):
    with workflow.prepare(path, CONFIG, **given(ledger, tmp_path)) as prepared:
        for thread in readers():
            thread.join()
        pq.write_table(pq.read_table(path).slice(1), path)
        with pytest.raises(InvalidInput, match="changed since the release was prepared"):
            prepared.commit()
    assert entries(ledger) == ()
    assert not readers()


def test_damage_is_reported_after_the_charge_as_without_reading_ahead(ledger, path, tmp_path):
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with workflow.prepare(path, CONFIG, **given(ledger, tmp_path)) as prepared:
        for thread in readers():
            thread.join()
        assert entries(ledger) == ()
        with pytest.raises(InvalidInput) as raised:
            prepared.commit()
    rule = "cannot be read as Parquet; check that the file is whole"
    assert str(raised.value) == f"data={path.name!r}: {rule}"
    (note,) = raised.value.__notes__
    assert isinstance(note, ChargeNote)
    assert len(entries(ledger)) == 1
    assert not readers()


def test_an_engine_that_reads_elsewhere_does_not_begin(ledger, path, tmp_path, monkeypatch):
    class Elsewhere:
        fold, map_blocks = LocalEngine.fold, LocalEngine.map_blocks

    monkeypatch.setattr(ParquetSource, "begun", lambda *_: pytest.fail("read by the driver"))
    with workflow.prepare(path, CONFIG, **given(ledger, tmp_path, engine=Elsewhere())):
        pass
    dask = pytest.importorskip("adumbra.engine.dask")
    assert not hasattr(dask.DaskEngine, "begin")


LATE = ("adumbra.prepared", "sqlalchemy", "scipy", "pyarrow.compute", "cryptography", "jinja2")
START = f"""
import sys
import adumbra as ad
from adumbra.engine.local import LocalEngine

def begin(self, source):
    print("begun", [name for name in {LATE} if name in sys.modules])

LocalEngine.begin = begin
path, ledger, out = sys.argv[1:4]
sys.modules.update(dict.fromkeys(sys.argv[4:]))  # each cannot be imported
given = dict(schema=ad.Schema.numeric(3, -1.0, 1.0), ledger=ledger, population="people", out=out)
try:
    ad.release(path, ad.DPProConfig(n_components=2, epsilon=0.5, delta=1e-6), **given)
except ImportError as fault:
    print("refused", fault.name)
"""


@pytest.mark.parametrize("broken", [[], ["pyarrow.compute"], ["sqlalchemy"]])
def test_rows_are_begun_before_most_is_imported_and_all_of_that_before_the_charge(
    ledger, path, tmp_path, broken
):
    call = [sys.executable, "-c", START, path, tmp_path / "ledger.db", tmp_path / "out", *broken]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"begun {broken}", *(f"refused {name}" for name in broken)]
    assert len(entries(ledger)) == (0 if broken else 1)
