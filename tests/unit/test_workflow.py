import datetime as dt
import re
import stat
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra import workflow
from adumbra.answers import askable
from adumbra.data.opening import open_source
from adumbra.data.sources import WatchedSource
from adumbra.engine.local import LocalEngine
from adumbra.errors import (
    AdumbraError,
    BudgetRefused,
    ChargeNote,
    InvalidInput,
    LedgerError,
    Unsupported,
    VerificationFailed,
)
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Population, State, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.release import artifact
from adumbra.release.storage import require_place
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema

SCHEMA = Schema(
    columns=(
        Column(name="a", kind=Kind.NUMBER, lower=-1.0, upper=1.0),
        Column(name="b", kind=Kind.CATEGORY, categories=("x", "y", "z")),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
)
CONFIG = DPProConfig(n_components=2, epsilon=0.5, delta=1e-6)


def table(seed=0, rows=5000):
    rng = np.random.default_rng(seed)
    return pa.table(
        {"a": rng.uniform(-1, 1, rows), "b": np.array(["x", "y", "z"])[rng.integers(0, 3, rows)]}
    )


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as book:
        for name in ("people", "others"):
            book.register(Population(name, Unit.ROW, Neighbours.REPLACE_ONE, 2.0, 1e-6))
        yield book


def run(ledger, out, data=None, population="people", **keywords):
    rows = table() if data is None else data
    return workflow.release(
        rows, CONFIG, schema=SCHEMA, ledger=ledger, population=population, out=out, **keywords
    )


def test_a_release_is_paid_sealed_published_and_loadable(ledger, tmp_path):
    made = run(ledger, tmp_path / "out", about={"title": "A test"}, before_dp="none")
    assert made.data.num_rows == 5000
    assert made.card["about"]["population"] == "people"
    assert made.card["before_dp"] == "none"
    (statement,) = ledger.show("people")
    assert [entry.state for entry in statement.entries] == [State.PUBLISHED]
    assert ad.load(tmp_path / "out").guarantee == made.guarantee
    assert not list(tmp_path.glob(".out*"))  # nothing staged is left


def test_what_was_hashed_while_it_was_written_is_not_hashed_again(ledger, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(artifact, "_hash", lambda path: read.append(path.name) or "0" * 64)
    made = run(ledger, tmp_path / "out")
    assert read == []
    with pytest.raises(VerificationFailed, match="its hash is not the card's"):
        ad.load(tmp_path / "out")
    assert read == [file.rpartition("/")[2] for file in made.card["files"]]


def test_a_ledger_may_be_given_by_its_path(ledger, tmp_path):
    run(tmp_path / "ledger.db", tmp_path / "out")
    (statement,) = ledger.show("people")
    assert len(statement.entries) == 1


def test_the_same_rows_under_another_name_are_seen_by_the_steward(ledger, tmp_path):
    run(ledger, tmp_path / "one")
    shuffled = table().take(np.random.default_rng(1).permutation(5000))
    run(ledger, tmp_path / "two", shuffled, population="others")
    (overlap, *_) = ledger.show("people")[0].overlaps or ledger.show("others")[0].overlaps
    assert overlap.is_same


def test_data_that_changes_while_it_is_read_is_not_published(ledger, tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(table(), path)

    def meddle(stage, done, total):
        if done == 0:
            pq.write_table(table(rows=6000), path)

    with pytest.raises(LedgerError, match="the data changed while read; nothing is published"):
        run(ledger, tmp_path / "out", str(path), engine=LocalEngine(progress=meddle))
    assert not (tmp_path / "out").exists()
    (statement,) = ledger.show("people")
    assert [entry.state for entry in statement.stranded] == [State.DRAWN]  # charged all the same


def test_data_that_changes_while_it_is_prepared_is_refused_before_the_charge(
    ledger, tmp_path, monkeypatch
):
    path = tmp_path / "table.parquet"
    pq.write_table(table(), path)

    def meddle():
        pq.write_table(table(rows=6000), path)
        return LocalEngine()

    monkeypatch.setattr(workflow, "LocalEngine", meddle)
    with pytest.raises(InvalidInput, match="changed since the release was prepared"):
        run(ledger, tmp_path / "out", str(path))
    assert ledger.show("people")[0].entries == ()


LONG = "x" * 240  # fits by itself, but not with the name of its staging folder


class Foreign:
    """An engine of something else, as SQLAlchemy's, whose `begin` takes no rows."""

    def begin(self):
        """Begin a transaction."""


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"population": "nobody"}, "population=nobody: not registered"),
        (
            {"about": {"author": "x"}},
            "about=['author']: is not a part of a card; known are curator, date, ",
        ),
        ({"about": {5: "x"}}, "about=[5]: is not a part of a card"),
        ({"about": "a test"}, "about='a test': must be a table of curator, date, "),
        ({"about": {"why": dt.date(2026, 1, 1)}}, "card.about.why: a date has no place in a card"),
        ({"about": {"title": 5}}, "card.json at about/title: breaks the rule `type`"),
        ({"about": {"title": float("nan")}}, "card.about.title: holds a number that is not finite"),
        ({"about": {"date": "soon"}}, "card.json at about/date: breaks the rule `pattern`"),
        ({"before_dp": 7}, "card.json at before_dp: breaks the rule `type`"),
        ({"before_dp": "x" * 20_001}, "card.json at before_dp: breaks the rule `maxLength`"),
        ({"before_dp": "\ud800"}, "holds text that is not Unicode"),
        ({"engine": "local"}, "engine of type str: use LocalEngine()"),
        ({"engine": Foreign()}, "engine of type Foreign: use LocalEngine()"),
        ({"place": "taken"}, "taken: exists already; choose a new folder"),
        ({"place": "link"}, "link: exists already; choose a new folder"),
        ({"place": "ledger.db/deeper/out"}, "no folder can be made there (Not a directory)"),
        ({"place": "link/out"}, "no folder can be made there (File exists)"),
        ({"place": "/proc/foo/bar"}, "no folder can be made there (No such file or directory)"),
        ({"place": LONG}, "no folder can be made there (File name too long)"),
        ({"place": "nul\0"}, "no folder can be made there (not a path)"),
        ({"place": "card/out"}, "card/out: lies inside the release "),
        ({"place": "card/deep/er/out"}, "which would no longer verify; choose a folder beside it"),
        ({"place": "to-card/out"}, "to-card/out: lies inside the release "),
    ],
)
def test_what_can_be_refused_for_nothing_is_not_charged(ledger, tmp_path, keywords, text):
    (tmp_path / "taken").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "card").mkdir()
    (tmp_path / "card/card.json").write_text('{\n  "format": "adumbra-release/2"\n}\n')
    (tmp_path / "to-card").symlink_to(tmp_path / "card")
    given = dict(keywords)
    out = tmp_path / given.pop("place", "out")
    here = sorted(tmp_path.rglob("*"))
    before, spent = ledger.head(), ledger.show("people")[0].spent_units
    with pytest.raises(AdumbraError, match=re.escape(text)) as refused:
        run(ledger, out, **given)
    assert (ledger.head(), ledger.show("people")[0].spent_units) == (before, spent)
    assert sorted(tmp_path.rglob("*")) == here
    assert not hasattr(refused.value, "__notes__")  # nothing is charged, so nothing is said of it


@pytest.mark.parametrize("broken", ["scipy.special", "jinja2"])
def test_a_library_that_cannot_be_loaded_is_refused_before_the_charge(
    ledger, tmp_path, monkeypatch, broken
):
    """Both are imported while rows are read, or after: too late for a release that was paid."""
    before, asked = ledger.head(), ad.MomentsConfig(epsilon=0.5)
    monkeypatch.setitem(sys.modules, broken, None)  # importing it raises
    with pytest.raises(Unsupported, match=f"{broken}: cannot be imported"):
        workflow.release(
            table(), asked, schema=SCHEMA, ledger=ledger, population="people", out=tmp_path / "out"
        )
    assert ledger.head() == before


def test_item_sets_need_one_library_more_and_tables_do_not(ledger, tmp_path, monkeypatch):
    """Sparse rows are made of item sets after the charge; a table is not made to load what they need."""
    sets = Schema(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=ItemSpec(upper=9))
    (tmp_path / "sets.dat").write_text("1 2\n3\n" * 50)
    config, before = ad.MomentsConfig(epsilon=0.5), ledger.head()
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    asked = {"schema": sets, "ledger": ledger, "population": "people"}
    with pytest.raises(Unsupported, match="scipy.sparse: cannot be imported"):
        workflow.release(tmp_path / "sets.dat", config, out=tmp_path / "out", **asked)
    assert ledger.head() == before
    assert run(ledger, tmp_path / "table").data.num_rows == 5000


def test_a_name_that_no_card_can_hold_is_refused_before_the_charge(ledger, tmp_path):
    odd = Column(name="b\udcff", kind=Kind.NUMBER, lower=0.0, upper=1.0)
    config = ad.MomentsConfig(epsilon=0.5)
    before = ledger.head()
    with pytest.raises(InvalidInput, match="not Unicode"):
        workflow.release(
            np.zeros((10, 1)),
            config,
            schema=replace(SCHEMA, columns=(odd,)),
            ledger=ledger,
            population="people",
            out=tmp_path / "out",
        )
    assert ledger.head() == before


def test_a_place_that_is_fit_is_left_as_it_was(tmp_path):
    (tmp_path / "card.json").write_text('{"format": "something else"}')
    (tmp_path / "there").mkdir()
    for out in ("out", "new/deeper/out", "there/out", "x" * 200):
        require_place(tmp_path / out)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["card.json", "there"]


def test_a_dry_check_refuses_as_the_release_would_and_charges_nothing(ledger, tmp_path):
    def check(epsilon, population="people", out="out", **words):
        config = replace(CONFIG, epsilon=epsilon)
        given = {"ledger": ledger, "population": population, "out": tmp_path / out}
        workflow.prepare(table(), config, schema=SCHEMA, **given, **words).close()

    before = ledger.head()
    check(2.0)
    with pytest.raises(BudgetRefused, match=r"epsilon=2.1 asked, 2.0 left of 2.0 at delta=1e-06") as no:
        check(2.1)
    assert (no.value.asked, no.value.left, no.value.largest) == (2.1, 2.0, 2.0)
    with pytest.raises(InvalidInput, match="population=nobody: not registered"):
        check(1.0, "nobody")
    with pytest.raises(InvalidInput, match="no folder can be made there"):
        check(1.0, out="ledger.db/out")
    with pytest.raises(InvalidInput, match="before_dp: breaks the rule `type`"):
        check(1.0, before_dp=7)
    assert ledger.head() == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_whatever_stops_a_release_after_its_charge_says_what_stays_charged(ledger, tmp_path, stop):
    def interrupt(_stage, _done, _total):
        raise stop

    with pytest.raises(stop) as stopped:
        run(ledger, tmp_path / "out", engine=LocalEngine(threads=1, progress=interrupt))
    (entry,) = ledger.show("people")[0].stranded
    remedy = "its noise is never drawn again; `adumbra release` once more is a new charge"
    (note,) = stopped.value.__notes__
    assert note == f"entry={entry.id}: is drawn and stays charged; {remedy}"
    assert isinstance(note, ChargeNote)


def prepared(ledger, out, config=CONFIG, **keywords):
    given = {"schema": SCHEMA, "ledger": ledger, "population": "people", "out": out}
    return workflow.prepare(table(), config, **given | keywords)


def test_what_stops_the_reading_of_a_published_release_says_what_is_charged(
    ledger, tmp_path, monkeypatch
):
    def stop(_release):
        raise KeyboardInterrupt

    monkeypatch.setattr(askable, "askable", stop)
    with pytest.raises(KeyboardInterrupt) as stopped:
        run(ledger, tmp_path / "out")
    (entry,) = ledger.show("people")[0].entries
    assert entry.state is State.PUBLISHED
    assert [note.split(" and ")[0] for note in stopped.value.__notes__] == [
        f"entry={entry.id}: is published"
    ]


def test_a_second_try_has_the_fingerprint_of_all_rows(ledger, tmp_path):
    run(ledger, tmp_path / "one", population="others")
    stops = [RuntimeError]

    def fail_at_the_end(_stage, done, total):
        if done == total and stops:
            raise stops.pop()

    once = prepared(ledger, tmp_path / "out", engine=LocalEngine(threads=1, progress=fail_at_the_end))
    with pytest.raises(RuntimeError):
        once.commit()
    once.commit()
    (overlap, *_) = ledger.show("people")[0].overlaps
    assert overlap.is_same


def test_nothing_is_paid_after_close(ledger, tmp_path):
    for given in (ledger, tmp_path / "ledger.db"):
        release = prepared(given, tmp_path / "out")
        release.close()
        with pytest.raises(InvalidInput, match="release: was closed; prepare it again"):
            replace(release, before_dp="none").commit()
    assert ledger.show("people")[0].entries == ()


def test_a_request_that_the_log_cannot_hold_is_refused_at_once(ledger):
    guarantee = workflow.plan(CONFIG, SCHEMA).guarantee
    ledger.check("people", guarantee, {"seed": 2**53 - 1})
    with pytest.raises(InvalidInput, match="integers below 2"):
        ledger.check("people", guarantee, {"seed": 2**53})


def test_unknown_configs_are_refused():
    with pytest.raises(
        InvalidInput, match="config of type object: not a config; use one of AnswersConfig, BoundsConfig"
    ):
        workflow.plan(object(), SCHEMA)


def test_a_watched_source_shows_each_row_once_and_changes_nothing():
    source = open_source(table(), SCHEMA)
    seen = []
    watched = WatchedSource(source, seen.append)
    first = np.concatenate([batch.values for batch in watched.batches(4096)])
    assert watched.is_seen
    again = np.concatenate([batch.values for batch in watched.batches(4096)])
    assert np.array_equal(first, again)
    shown = np.concatenate(seen)
    assert shown.shape == (5000, 2)
    assert shown.min() >= 0
    assert shown.max() <= 2**15
    assert watched.schema.rows == 5000  # public under replace-one, so a plan may use it
    assert (watched.schema.columns, watched.width, watched.public_rows(), watched.pin()) == (
        source.schema.columns,
        source.width,
        source.public_rows(),
        source.pin(),
    )
    partial = WatchedSource(source, lambda rows: pytest.fail("a part of the rows is no whole pass"))
    assert sum(len(batch) for batch in partial.batches(4096, 4096)) == 904
    assert not partial.is_seen


def test_a_schema_may_be_a_path_and_nothing_else(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(Schema.numeric(3, 0.0, 1.0).to_toml(), encoding="utf-8")
    config = DPProConfig(n_components=2, epsilon=1.0, delta=1e-6)
    wanted = workflow.plan(config, Schema.numeric(3, 0.0, 1.0))
    assert workflow.plan(config, path) == workflow.plan(config, str(path)) == wanted
    for wrong in ({"a": 1}, None, 3):
        with pytest.raises(InvalidInput, match="give a Schema, or the path of a file"):
            workflow.plan(config, wrong)
        with pytest.raises(InvalidInput, match="or the path of a file"):
            workflow.release(
                np.ones((2, 3)), config, schema=wrong, ledger="l", population="p", out=tmp_path / "o"
            )


def test_file_times_tell_the_day_only(ledger, tmp_path):
    """Finer ones tell the hour, and how long each part took."""
    run(ledger, tmp_path / "out")
    folder = tmp_path / "out"
    status = [folder.stat(), *(path.stat() for path in folder.rglob("*"))]
    times = {one.st_mtime_ns for one in status}
    times |= {one.st_atime_ns for one in status if stat.S_ISREG(one.st_mode)}  # listing reads a folder
    assert len(status) >= 5
    assert len(times) == 1
    assert times.pop() % (86_400 * 10**9) == 0
