"""`adumbra evaluate`: releases against private rows, stamped, recorded, and never inside a release."""

import importlib.util
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra import workflow
from adumbra.errors import InvalidInput, Unsupported
from adumbra.evaluate import beside, learning, shape
from adumbra.evaluate.evaluation import WARNING
from adumbra.evaluate.tables import read_rows
from adumbra.mechanisms.methods import METHODS, method_of
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.privacy.ledger import Population, create_ledger, open_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Order, Schema
from support.cli import in_process
from support.page import Page
from support.pages import KINDS, release_of, rows_of

SCHEMA = Schema(
    columns=(
        Column(name="low", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="high", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="gap", kind=Kind.NUMBER, lower=0.0, upper=1.0, missing="null"),
        Column(name="<b>ill</b>", kind=Kind.CATEGORY, categories=("no", "yes", "rare")),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
    label="<b>ill</b>",
    constraints=(Order(lower="low", upper="high"),),
)
PLAIN = Schema(columns=SCHEMA.columns[:2], unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)


def table(rows, seed):
    rng = np.random.default_rng(seed)
    ill = rng.choice(3, rows, p=[0.6, 0.395, 0.005])
    low = np.clip(rng.normal(30 + 15 * ill, 8), 0, 90).astype(int)
    high = np.clip(low + rng.integers(0, 9, rows), 0, 99)
    gap = np.where(
        rng.random(rows) < 0.1, 0.0, np.clip(0.4 + low / 200 + rng.normal(0, 0.1, rows), 0, 1)
    )
    return pa.table({
        "low": low, "high": high, "gap": pa.array(gap, mask=rng.random(rows) < 0.2),
        "<b>ill</b>": np.array(["no", "yes", "rare"])[ill],
    })  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Members, people left out, two releases of the members, and one of another kind."""
    folder = tmp_path_factory.mktemp("evaluate")
    pq.write_table(table(1500, 0), folder / "members.parquet")
    pq.write_table(table(600, 1), folder / "others.parquet")
    with create_ledger(folder / "ledger.db") as ledger:
        ledger.register(Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 90.0, 1e-6))
        ledger.register(Population("q", Unit.ROW, Neighbours.REPLACE_ONE, 90.0, 1e-6))
    made = {
        "good": (MomentsConfig(epsilon=20.0, delta=1e-6, synthetic_rows=1500), SCHEMA),
        "poor": (MomentsConfig(epsilon=0.05, delta=1e-6, synthetic_rows=900), SCHEMA),
        "distances": (DPProConfig(n_components=2, epsilon=1.0, delta=1e-6), PLAIN),
    }
    for name, (config, schema) in made.items():
        workflow.release(
            folder / "members.parquet", config, schema=schema, ledger=folder / "ledger.db",
            population="p", out=folder / name, about={"title": "<script>alert(1)</script>"},
        )  # fmt: skip
    return folder


def run(place, *more):
    return in_process(
        "evaluate", place / "members.parquet", place / "good", place / "poor", "--rows", "1000", *more
    )


def test_a_stamped_page_with_figures_in_their_order(place):
    done = run(
        place,
        "--holdout",
        place / "others.parquet",
        "--shadows",
        "4",
        "--out",
        place / "e.html",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    found, text = json.loads(done.stdout), (place / "e.html").read_text()
    page = Page(text)
    assert page.faults() == []
    assert "<script>alert" in page.text  # as words
    assert page.text.count("NOT FOR RELEASE") >= 3
    assert WARNING in page.text
    assert (place / "e.html").stat().st_mode & 0o077 == 0
    assert [one["name"] for one in found["releases"]] == ["good", "poor"]
    good, poor = found["one_way"]["releases"]
    assert found["one_way"]["chance"]["mean"] < poor["mean"]
    assert good["mean"] < poor["mean"]
    pairs = found["pairs"]
    assert pairs["releases"][0]["mean"] < pairs["releases"][1]["mean"]
    assert pairs["chance"]["mean"] < pairs["independent"]["mean"]
    real, better, _, floor = (one["auc"] for one in found["classify"]["models"]["boosted trees"])
    assert real > 0.75 > floor
    assert better > floor  # 0.1 apart and more at epsilon 20; what epsilon 0.05 reaches is chance
    assert found["regress"]["models"]["ridge regression"][0] > 0.5
    assert abs(found["regress"]["models"]["ridge regression"][-1]) < 0.3
    assert found["clusters"]["ratios"][0] == 1.0
    assert found["impossible"] == {"real": 0.0, "releases": [0.0, 0.0]}
    assert [one["level"] for one in found["rare"]] == ["rare"]
    assert [(one["column"], one["value"]) for one in found["spikes"]] == [("gap", 0.0)]
    assert found["attacks"][0]["shadow_advantage"] is not None
    assert len(found["attacks"]) == 2
    judged = found["sdmetrics"]
    if importlib.util.find_spec("sdmetrics") is None:
        assert (judged["version"], "SDMetrics is not installed" in page.text) == (None, True)
    else:  # as in the developers' environment
        assert [sorted(one) for one in judged["scores"]] == [
            ["Column Pair Trends", "Column Shapes", "Overall"]
        ] * 2
        assert judged["scores"][0]["Overall"] > judged["scores"][1]["Overall"]
        assert f"SDMetrics {judged['version']}: Overall" in page.text
    cells = [value for tag, name, value in page.attributes if tag == "td" and name == "data-label"]
    assert len(cells) == page.tags.count("td")


def test_a_page_in_a_release_or_over_another_is_refused_before_rows_are_read(place):
    for inside in (place / "good" / "e.html", place / "poor" / "more.html"):
        done = run(place, "--out", inside)
        assert (done.returncode, "may never be published" in done.stderr) == (2, True)
    (place / "taken.html").write_text("precious")
    assert "exists already" in run(place, "--out", place / "taken.html").stderr
    assert (place / "taken.html").read_text() == "precious"
    found = ad.Evaluation(facts={"releases": []}, folders=(place / "good",))
    with pytest.raises(InvalidInput, match="may never be published"):
        found.save(place / "good" / "e.html")
    assert ad.verify(place / "good").files > 0


def test_the_ledger_tells_later_releases(place):
    entries = [ad.load(place / name).card["ledger"]["entry"] for name in ("good", "poor")]
    ad.evaluate(
        place / "members.parquet", [place / "good", place / "poor"], rows=100, ledger=place / "ledger.db"
    )
    with open_ledger(place / "ledger.db") as ledger:
        assert ledger.evaluated("p") == tuple(entries)
        assert ledger.evaluated("q") == ()
        assert ledger.verify().events > 0

    def prepared(population, **declared):
        return workflow.prepare(
            place / "members.parquet", MomentsConfig(epsilon=0.1), schema=PLAIN, population=population,
            ledger=place / "ledger.db", out=place / "later", **declared,
        )  # fmt: skip

    with prepared("p") as later:
        assert later.before_dp == (
            f"earlier releases were compared with the private rows ({', '.join(entries)}); "
            "else not declared"
        )
    with prepared("q") as other:
        assert other.before_dp == "not declared"
    with prepared("p", before_dp="nothing") as declared:
        assert declared.before_dp == "nothing"


def test_a_log_that_names_no_published_release_does_not_verify(tmp_path):
    from adumbra.privacy.ledger.rebuild import Book

    book = Book()
    with pytest.raises(KeyError):
        book.apply({"kind": "evaluate", "entry": "x", "digest": "d"}, {})
    book.entries["x"] = {"state": "sealed", "digest": "d"}
    with pytest.raises(InvalidInput, match="not a published release"):
        book.apply({"kind": "evaluate", "entry": "x", "digest": "d"}, {})
    with create_ledger(tmp_path / "l.db") as ledger, pytest.raises(InvalidInput, match="entry"):
        ledger.note_evaluation(["none-000001"])


def test_what_cannot_be_compared_is_refused(place):
    with pytest.raises(Unsupported, match="dppro releases projected rows, which have none of"):
        ad.evaluate(place / "members.parquet", place / "distances")
    with pytest.raises(InvalidInput, match="is in the release or in the schema, not in both"):
        ad.evaluate(place / "members.parquet", place / "good", schema=PLAIN)
    with pytest.raises(InvalidInput, match="name at least one"):
        ad.evaluate(place / "members.parquet", [])
    wider = Schema(
        columns=(Column(name="low", kind=Kind.INTEGER, lower=0, upper=50), *SCHEMA.columns[1:]),
        unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE,
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="'low' is declared unlike"):
        ad.evaluate(place / "members.parquet", place / "good", schema=wider)
    with pytest.raises(InvalidInput, match="at least 20 rows"):
        ad.evaluate(table(5, 0), place / "good")
    with pytest.raises(InvalidInput, match="shadows=2: must be 0, or at least 4"):
        ad.evaluate(table(50, 0), place / "good", holdout=table(50, 1), shadows=2)
    with pytest.raises(InvalidInput, match="rows=3"):
        ad.evaluate(table(50, 0), place / "good", rows=3)


def test_every_method_has_a_kind_of_page():
    assert {method_of(config).name for config, _ in KINDS.values()} == {one.name for one in METHODS}


REFUSED = {  # with the words that say where the errors of such a release are
    "moments-items": "its card gives the frequent items with their noise",
    "dppro": "`squared_distances` give the error of distances",
    "jl-laplace": "`squared_distances` give the error of distances",
    "answers": "`adumbra ask` gives its answers, each with an error bar",
    "bounds": "`adumbra schema fill` writes them to a schema",
    "top-k": "each count has its standard error beside it",
}


@pytest.fixture
def few_models(monkeypatch):
    monkeypatch.setattr(beside, "JUDGED_COLUMNS", 4)  # SDMetrics takes a fit for each pair of them
    for models in (learning.CLASSIFIERS, learning.REGRESSORS):  # trees take most of the time
        monkeypatch.delitem(models, "boosted trees")
    monkeypatch.delitem(learning.CLASSIFIERS, "random forest")


@pytest.mark.parametrize("name", KINDS)
def test_every_method_gets_a_page_or_a_clear_refusal(tmp_path, few_models, name):
    made, what = release_of(name, tmp_path / name), KINDS[name][1]
    if name in REFUSED:
        data = tmp_path / f"{name}.dat" if what == "items" else rows_of(what)
        with pytest.raises(Unsupported, match=REFUSED[name]):
            ad.evaluate(data, made)
        return
    found = ad.evaluate(rows_of(what), made, rows=100)
    facts = found.to_dict()
    assert facts["releases"][0]["rows"] >= 300
    assert (facts["classify"] is None) == (what == "numbers")  # no label, nothing to classify
    assert facts["regress"] is not None
    assert facts["pairs"]["releases"][0]["worst"] <= 1.0
    assert 0.0 < facts["sdmetrics"]["scores"][0]["Overall"] <= 1.0
    page = Page(found.to_html())
    assert page.faults() == []
    assert ("predicting ill" in page.text) == (what != "numbers")


def test_releases_of_different_methods_stand_side_by_side(tmp_path, few_models):
    made = [release_of(name, tmp_path / name) for name in ("lda", "ron-gauss-gmm")]
    found = ad.evaluate(rows_of("filled"), made, rows=100)
    assert [one["method"] for one in found.to_dict()["releases"]] == ["lda", "ron-gauss"]
    for values in found.to_dict()["regress"]["models"].values():
        assert len(values) == 4  # real rows, two releases, independent columns
    assert repr(found) == "Evaluation(lda, ron-gauss-gmm: NOT FOR RELEASE)"


def test_scores_of_others_and_their_crashes_are_shown(place):
    """SDMetrics is optional; what its branch makes is shown whether it is installed or not."""
    facts = ad.evaluate(place / "members.parquet", [place / "good", place / "poor"], rows=100).to_dict()
    scores = [{"Overall": 0.875, "Column Shapes": 0.75}, {"error": "SDMetrics stopped with KeyError"}]
    note = "SDMetrics judged 30 of 200 columns, evenly spaced"
    judged = {"version": "0.25.0", "scores": scores, "note": note, "why": ""}
    page = Page(ad.Evaluation(facts={**facts, "sdmetrics": judged}).to_html())
    assert re.search(r"SDMetrics 0.25.0: Overall ?1 is best ?– ?0.875 ?– ?–", page.text)
    assert "SDMetrics stopped with KeyError on poor." in page.text
    assert note in page.text


def test_a_notebook_shows_the_first_table_escaped(place):
    found = ad.evaluate(place / "members.parquet", ad.load(place / "good"), rows=100)
    shown = found._repr_html_()
    assert shown.lstrip().startswith("<div>")
    assert "NOT FOR RELEASE" in shown
    assert "<script" not in shown
    assert repr(found) == "Evaluation(good: NOT FOR RELEASE)"
    assert found.to_dict()["attacks"] is None


def test_pair_errors_are_those_of_counting_each_pair():
    rng = np.random.default_rng(3)
    real = np.stack([rng.integers(0, 100, 400), rng.integers(0, 100, 400), rng.random(400),
                     rng.integers(0, 3, 400)], axis=1).astype(float)  # fmt: skip
    other = real[rng.integers(0, 400, 300)]
    real[::7, 2] = SCHEMA.columns[2].fill  # missing
    cells = shape.PairCells.of(SCHEMA, real)
    found = cells.distances(cells.joint(real), cells.joint(other))
    codes = [
        [shape._pair_codes(SCHEMA.columns[at], cells.edges[at], part[:, at]) for at in range(4)]
        for part in (real, other)
    ]
    for i in range(4):
        for j in range(i + 1, 4):
            tables = [np.zeros((12, 12)), np.zeros((12, 12))]
            for part, counts in zip(codes, tables, strict=True):
                np.add.at(counts, (part[i], part[j]), 1.0 / len(part[i]))
            assert found[i, j] == pytest.approx(np.abs(tables[0] - tables[1]).sum() / 2, abs=1e-5)
    assert shape.worst_pairs(found, list(SCHEMA.names), 1)[0]["error"] == np.nanmax(found)
    same = cells.distances(cells.joint(real), cells.joint(real))
    assert np.nanmax(same) == 0.0


def test_many_columns_are_thinned_out_for_pairs(monkeypatch):
    monkeypatch.setattr(shape, "MOST_PAIR_CELLS", 14)
    cells = shape.PairCells.of(SCHEMA, np.random.default_rng(0).random((50, 4)))
    assert len(cells.columns) < 4
    assert cells.cells <= 14 + 7


def test_the_sample_of_a_large_table_is_uniform(monkeypatch):
    from adumbra.evaluate import tables

    monkeypatch.setattr(tables, "MOST_ROWS", 500)
    rows = 12_000
    values = pa.table({"low": np.arange(rows) // 121, "high": np.full(rows, 99)})
    found = read_rows("data", values, PLAIN)
    assert (len(found.values), found.counted) == (500, rows)
    # 500 of 12,000 rows without replacement: the mean of 0..99 has a standard error of 1.26.
    assert abs(found.values[:, 0].mean() - values["low"].to_numpy().mean()) < 6.5 * 1.26


def test_rows_of_persons_are_compared_row_by_row(tmp_path):
    head = (
        'format = "adumbra-schema/2"\n[table]\nunit = "person"\nneighbours = "add-remove-person"\n'
        'person = "id"\nmax_rows_per_person = 2\n'
    )
    columns = '[[groups]]\nnames = ["low", "high"]\nkind = "integer"\nlower = 0\nupper = 99\n'
    schema = Schema.parse(head + columns)
    rows = table(300, 0).select(["low", "high"]).append_column("id", pa.array(np.arange(300) // 2))
    with create_ledger(tmp_path / "l.db") as ledger:
        ledger.register(Population("p", schema.unit, schema.neighbours, 9.0, 1e-6))
    config = MomentsConfig(epsilon=5.0, delta=1e-6, synthetic_rows=200)
    made = workflow.release(
        rows, config, schema=schema, ledger=tmp_path / "l.db", population="p", out=tmp_path / "r"
    )
    found = ad.evaluate(rows, made, rows=100, holdout=rows).to_dict()
    assert found["attacks"][0]["shadow_advantage"] is None
    assert (found["rows"], found["releases"][0]["rows"]) == (300, 200)
