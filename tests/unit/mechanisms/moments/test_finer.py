"""Whole numbers that are counted in finer cells too: which, where, and what rows show of them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.mechanisms.moments import design as rules
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.mechanisms.moments.plan import settle
from adumbra.mechanisms.moments.release import model_of, read_first
from adumbra.postprocess.marginals import cell_limits
from adumbra.postprocess.moments.bayes import counts_posterior, crowded_counts, stand_apart
from adumbra.postprocess.moments.design import features_of, finer_edges
from adumbra.postprocess.moments.laws import finer_parents
from adumbra.postprocess.moments.sampling import synthesize
from adumbra.schema.schema import Column, Kind
from support.answers import ExactCells
from support.methods import settled_on
from support.moments import ADD, mixed_schema, mixed_table, run

ROWS, GAINS = 20_000, (3103, 7688, 15024)
QUIET = MomentsConfig(epsilon=4.0, delta=1e-6, synthetic_rows=ROWS, expected_rows=ROWS)


def gain_schema(missing=None, kind=Kind.INTEGER, upper=100_000):
    """The mixed table with an amount instead of its income."""
    gain = Column(name="income", kind=kind, lower=0, upper=upper, missing=missing)
    schema = mixed_schema(ADD)
    return replace(schema, columns=tuple(gain if c.name == "income" else c for c in schema.columns))


def gain_table(seed=0):
    """Most have no gain; one class has most of two amounts, the other one nearly all of the third."""
    rng, table = np.random.default_rng(seed), mixed_table(ROWS, seed)
    is_high = np.array(table["risk"].to_pylist()) == "high"
    chances = np.where(is_high[:, None], [0.6, 0.2, 0.02, 0.18], [0.8, 0.01, 0.18, 0.01])
    which = (rng.random((ROWS, 1)) > np.cumsum(chances, axis=1)[:, :3]).sum(axis=1)
    place = table.column_names.index("income")
    return table.set_column(place, "income", pa.array(np.array([0, *GAINS])[which]))


def shares_near(table):
    """The share of each class that has each amount, or one within three parts of a hundred of it."""
    values, risk = table["income"].to_numpy(), np.array(table["risk"].cast(pa.string()).to_pylist())
    near = [np.abs(values - gain) <= 0.03 * gain for gain in GAINS]
    return np.array([[np.mean(one[risk == level]) for one in near] for level in ("low", "high")])


@pytest.mark.parametrize(("low", "high"), [(0, 100_000), (-50, 400), (12_285, 1_490_400)])
def test_finer_cells_lie_inside_the_wide_ones_and_hold_whole_numbers(low, high):
    column = Column(name="income", kind=Kind.INTEGER, lower=low, upper=high)
    schema = replace(mixed_schema(ADD), columns=(*mixed_schema(ADD).columns[2:], column))
    (feature,) = (f for f in features_of(schema, None, is_binned=True, parts=32) if f.name == "income")
    edges = finer_edges(feature, 24)
    least, most = cell_limits(edges, is_integer=True)
    assert (least[0], most[-1]) == (low, high)
    assert np.all(least <= most)
    assert np.array_equal(least[1:], most[:-1] + 1)  # every whole number has one cell
    parents = finer_parents(feature, edges)
    first, last = cell_limits(feature.edges, is_integer=True)
    assert np.all((least >= first[parents]) & (most <= last[parents]))


def test_finer_cells_are_for_whole_numbers_beside_categories_with_a_class_and_little_noise():
    assert [place for place, _ in design(QUIET, gain_schema()).finer] == [1]
    for schema in (gain_schema(kind=Kind.NUMBER), gain_schema(upper=120), gain_schema(upper=2**51)):
        assert design(QUIET, schema).finer == ()
    for config in (replace(QUIET, epsilon=0.05), replace(QUIET, numbers="scores")):
        found = design(config, gain_schema())
        assert (found.finer, found.steps, "finer_cells" in found.facts()) == ((), 0, False)
    assert design(QUIET, replace(gain_schema(), label=None)).finer == ()


def test_many_such_columns_would_make_all_histograms_noisy(monkeypatch):
    monkeypatch.setattr(rules, "MOST_FINER", 0.1)
    found = design(QUIET, gain_schema())
    assert (found.finer, found.steps) == ((), 0)


def test_rows_show_the_amounts_that_rows_pile_up_on_in_the_class_that_has_them():
    table, schema = gain_table(), gain_schema()
    real = shares_near(table)
    draft = run(table, schema, QUIET)
    data = draft.table("data")
    assert draft.facts["finer_cells"] == rules.FINER_STEPS
    assert np.abs(shares_near(data) - real).max() < 0.02
    assert len(np.unique(data["income"].to_numpy())) < 50  # one value of a cell
    wide = run(table, schema, replace(QUIET, numbers="bins", marginal_share=0.7))
    assert wide.facts["finer_cells"] == rules.FINER_STEPS


def test_without_them_amounts_are_spread_over_their_wide_cells(monkeypatch):
    monkeypatch.setattr(rules, "MOST_FINER", 0.0)
    data = run(gain_table(), gain_schema(), QUIET).table("data")
    assert np.abs(shares_near(data) - shares_near(gain_table())).max() > 0.1


def test_a_smooth_number_keeps_its_wide_cells():
    rng = np.random.default_rng(0)
    table = mixed_table(ROWS)
    place = table.column_names.index("income")
    smooth = np.clip(50_000 + 9_000 * rng.normal(size=ROWS), 0, 100_000).astype(int)
    table = table.set_column(place, "income", pa.array(smooth))
    draft, settled = (
        run(table, gain_schema(), QUIET),
        settled_on(open_source(table, gain_schema()), QUIET),
    )
    marginals, _ = read_first(settled, dict(draft.arrays))
    assert len(settled.parts.design.finer) == 1
    assert marginals.finer == {}
    assert len(np.unique(draft.table("data")["income"].to_numpy())) > 1000


def test_cells_stand_apart_where_neighbours_are_unlike():
    widths, rng = np.ones(200), np.random.default_rng(0)
    peaks = np.where(np.arange(200) % 25 == 3, 1000.0, 0.0)
    hill = 8000.0 * np.exp(-((np.arange(200) - 90.0) ** 2) / 800.0) / 50.0
    noise = 20.0 * rng.normal(size=200)
    assert stand_apart(peaks + noise, 20.0, float(peaks.sum()), widths)
    assert not stand_apart(hill + noise, 20.0, float(hill.sum()), widths)
    assert stand_apart(hill, 0.0, float(hill.sum()), widths)  # no noise: as counted


def test_a_stretch_without_rows_stays_empty_beside_cells_where_rows_crowd():
    rng, exact = np.random.default_rng(1), np.zeros(50)
    exact[:14] = 20_000, 0, 30, 45, 40, 130, 300, 390, 290, 660, 0, 90, 445, 10
    exact[48] = 160
    total, tails = float(exact.sum()), []
    for _ in range(20):
        noisy = exact + 24.0 * rng.normal(size=50)
        read = crowded_counts(noisy, 24.0, total)
        assert abs(read.sum() - total) < 1e-6
        assert (read >= 0.0).all()
        assert np.abs(read - exact)[exact > 0].max() < 6.0 * 24.0
        tails.append([x[15:45].sum() for x in (read, counts_posterior(noisy, 24.0, total))])
    own, apart = np.mean(tails, axis=0)
    assert own < 0.6 * apart


@pytest.mark.parametrize(
    "noisy", [np.full(9, -1e12), np.r_[1e15, np.zeros(8)], np.zeros(9), np.zeros(1)]
)
@pytest.mark.parametrize("total", [1.0, 1e9])
def test_any_noise_gives_counts(noisy, total):
    read = crowded_counts(noisy, 3.0, total)
    assert np.isfinite(read).all()
    assert (read >= 0.0).all()
    assert read.sum() > 0.0


def test_laws_over_finer_cells_add_up_to_those_over_wide_ones():
    table, schema = gain_table(), gain_schema()
    draft, settled = run(table, schema, QUIET), settled_on(open_source(table, schema), QUIET)
    marginals, _ = read_first(settled, dict(draft.arrays))
    ((place, edges),) = settled.parts.design.finer
    parents = finer_parents(settled.parts.design.columns[place], edges)
    sums = np.stack([np.bincount(parents, row) for row in marginals.finer[place]])
    assert np.allclose(sums, marginals.laws[place], atol=1e-12)
    again = synthesize(model_of(settled, dict(draft.arrays)), ROWS, QUIET.sample_seed)
    assert again.equals(draft.table("data"))


def test_missing_amounts_are_in_no_finer_cell():
    table = gain_table()
    place = table.column_names.index("income")
    values = pa.array(table["income"].to_pylist()[:-5000] + [None] * 5000, pa.int64())
    schema = gain_schema(missing="null")
    exact = ExactCells(
        table.set_column(place, "income", values), schema, expected_rows=ROWS, synthetic_rows=9
    )
    ((_, edges),) = exact.design.finer
    start = sum(exact.design.cells[: len(exact.design.columns)])
    finer = exact.counts[start : start + 2 * (len(edges) - 1)]
    assert finer.sum() == ROWS - 5000
    data = run(table.set_column(place, "income", values), schema, QUIET).table("data")
    assert abs(data["income"].null_count - 5000) < 400


def test_the_plan_names_them_and_says_how_well_they_are_known():
    plan = settle(QUIET, gain_schema()).plan
    (note,) = (one for one in plan.notes if "finer cells" in one)
    assert "income" in note
    first = next(one for one in plan.noise if one.purpose == "marginals")
    assert plan.expected["finer_cell_sigma"] == first.scale
    assert f"{first.scale:.2g} rows" in note
    assert first.sensitivity == pytest.approx(np.sqrt(7.0))  # five columns, a class, and one finer
    assert "finer_cell_sigma" not in settle(QUIET, mixed_schema(ADD)).plan.expected


def test_whoever_holds_a_release_asks_it_and_draws_more_rows(tmp_path):
    table, schema = gain_table(), gain_schema()
    with ad.create_ledger(tmp_path / "ledger.db") as book:
        book.register(ad.Population("p", schema.unit, schema.neighbours, epsilon=9.0, delta=1e-4))
        pay = {"schema": schema, "ledger": book, "population": "p"}
        made = [ad.release(table, QUIET, **pay, out=tmp_path / name) for name in ("a", "b")]
    truth = table["age"].to_numpy().mean()
    release = ad.load(tmp_path / "a")
    assert release.card["facts"]["finer_cells"] == rules.FINER_STEPS
    for asked in (release, ad.combine(made)):
        answer = asked.mean("age")
        assert abs(answer.value - truth) < 6.2 * answer.std_error + 0.01
    assert np.abs(shares_near(ad.sample(release, 4000, sample_seed=3)) - shares_near(table)).max() < 0.1
    release = ad.load(tmp_path / "b")
    release.card["facts"] = release.card["facts"] | {"finer_cells": 7}
    with pytest.raises(ad.InvalidInput, match="does not fit"):
        release.mean("age")


def test_missing_amounts_do_not_blur_the_finer_cells():
    table = gain_table()
    place = table.column_names.index("income")
    values = table["income"].to_pylist()
    values[::2] = [None] * len(values[::2])
    table = table.set_column(place, "income", pa.array(values, pa.int64()))
    schema = gain_schema(missing="null")
    draft, settled = run(table, schema, QUIET), settled_on(open_source(table, schema), QUIET)
    marginals, _ = read_first(settled, dict(draft.arrays))
    ((column, edges),) = settled.parts.design.finer
    parents = finer_parents(settled.parts.design.columns[column], edges)
    for gain, kind in zip(GAINS, (1, 0, 1), strict=True):  # where the amount is frequent
        cell = int(np.searchsorted(edges, gain)) - 1
        whole = marginals.laws[column][kind, parents[cell]]
        assert marginals.finer[column][kind, cell] > 0.93 * whole, gain
