"""The moments synthesizer: public rules, every kind of table, what it keeps of the data."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from adumbra import workflow
from adumbra.data.sources import SetBatch
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.moments import design as moments_plan
from adumbra.mechanisms.moments import plan as moments_costs
from adumbra.mechanisms.moments import release as moments
from adumbra.mechanisms.moments import rows as moments_rows
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.mechanisms.moments.forecast import READ, left
from adumbra.mechanisms.moments.plan import settle
from adumbra.postprocess import decode
from adumbra.postprocess.moments import model as moments_model
from adumbra.postprocess.moments.design import number_edges
from adumbra.postprocess.moments.sampling import synthesize
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.moments import ADD, items_schema, mixed_schema, mixed_table, numbers_schema, run

LOUD = MomentsConfig(
    epsilon=500.0, delta=1e-6
)  # hardly any noise: what is left is the model's own error


def with_rows(schema, rows):
    return replace(schema, rows=rows)


def shares(column, levels):
    values = column.to_pylist()
    return np.array([sum(v == level for v in values) for level in levels]) / len(values)


@pytest.mark.parametrize("numbers", ["bins", "scores"])
def test_a_mixed_table_keeps_marginals_types_and_dependence(numbers):
    table, schema = mixed_table(4000), mixed_schema()
    config = MomentsConfig(epsilon=500.0, delta=1e-6, numbers=numbers)
    data = run(table, schema, config).tables["data"]
    assert data.num_rows == 4000
    assert data.column_names == list(schema.names)
    assert data.schema.field("age").type == pa.int64()
    assert data.schema.field("smoker").type == pa.bool_()
    for name, levels in (("region", ["a", "b", "c", None]), ("risk", ["low", "high"])):
        real, fake = shares(table[name], levels), shares(data[name].cast(pa.string()), levels)
        assert np.abs(real - fake).sum() / 2 < 0.03, name
    age, income = data["age"].to_numpy(), data["income"].to_numpy()
    assert age.min() >= 0
    assert age.max() <= 99
    assert abs(np.mean(income == 0.0) - np.mean(table["income"].to_numpy() == 0.0)) < 0.03
    real = np.corrcoef(table["age"].to_numpy(), table["income"].to_numpy())[0, 1]
    attenuation = 0.25 if numbers == "bins" else 0.1  # ranks within a bin are drawn at random
    assert abs(np.corrcoef(age, income)[0, 1] - real) < attenuation
    high = np.array(data["risk"].to_pylist()) == "high"
    gap = np.mean(table["age"].to_numpy()[np.array(table["risk"].to_pylist()) == "high"])
    assert abs(age[high].mean() - gap) < 3.0


def test_numbers_inside_generous_bounds_keep_their_place_beside_categories():
    """In units of their bounds they hardly vary: they drowned, and were drawn from the others."""
    rng = np.random.default_rng(5)
    n = 20_000
    x = rng.normal(size=(n, 4))
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    bounds = ((0.0, 400.0), (0.0, 300.0), (0.0, 20.0), (20.0, 45.0))
    values = x * [12.0, 18.0, 1.0, 0.5] + [70.0, 80.0, 5.0, 37.0]
    table = pa.table(
        {f"x{i}": values[:, i] for i in range(4)}
        | {c: rng.choice(list("uvwx"), n, p=[0.4, 0.3, 0.2, 0.1]) for c in "ab"}
    )
    columns = [
        Column(name=f"x{i}", kind=Kind.NUMBER, lower=low, upper=high)
        for i, (low, high) in enumerate(bounds)
    ]
    columns += [Column(name=c, kind=Kind.CATEGORY, categories=tuple("uvwx")) for c in "ab"]
    schema = Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    data = run(table, schema, MomentsConfig(epsilon=2.0)).tables["data"]
    fake = np.column_stack([data[f"x{i}"].to_numpy() for i in range(4)])
    gap = np.abs(np.corrcoef(fake.T) - np.corrcoef(values.T))
    assert gap.max() < 0.25  # it was 0.9
    assert np.abs((fake.mean(axis=0) - values.mean(axis=0)) / values.std(axis=0)).max() < 0.25


@pytest.mark.parametrize("numbers", ["bins", "scores"])
def test_missing_numbers_come_back_at_their_rate_and_where_they_belong(numbers):
    rng = np.random.default_rng(4)
    sick = rng.random(6000) < 0.4
    level = rng.normal(size=6000) * 10.0 + 120.0
    pressure = np.where(sick & (rng.random(6000) < 0.5), np.nan, level)
    age = pa.array([None if r < 0.1 else 40 for r in rng.random(6000)], pa.int64())
    table = pa.table({"pressure": pressure, "age": age, "sick": sick})
    columns = (
        Column(name="pressure", kind=Kind.NUMBER, lower=0.0, upper=300.0, missing="null"),
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120, missing="null"),
        Column(name="sick", kind=Kind.BOOLEAN),
    )
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="sick")
    config = MomentsConfig(epsilon=20.0, numbers=numbers)
    data = run(table, schema, config).tables["data"]
    lacks = data["pressure"].is_null().to_numpy()
    fake = data["sick"].to_numpy()
    assert abs(lacks[fake].mean() - 0.5) < 0.06
    assert lacks[~fake].mean() < 0.04
    assert abs(data["age"].null_count / 6000 - 0.1) < 0.02
    values = data["pressure"].drop_null().to_numpy()
    assert abs(values.mean() - 120.0) < 2.0
    assert values.max() <= 300.0
    assert data.schema.field("age").type == pa.int64()
    assert set(workflow.plan(config, schema).details["one_way_total_variation"]) == {"pressure", "age"}
    classes = Column(name="sick", kind=Kind.INTEGER, lower=0, upper=1, missing="null")
    whole = Schema(
        columns=(*columns[:2], classes), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="sick"
    )
    with pytest.raises(InvalidInput, match="a class cannot be missing"):
        workflow.plan(config, whole)


def test_a_table_without_a_label_buys_no_histogram_of_classes():
    plain, labelled = numbers_schema(3), numbers_schema(3, classes=2)
    assert len(design(LOUD, with_rows(plain, 100)).cells) == 3
    assert len(design(LOUD, with_rows(labelled, 100)).cells) == 4


def test_numbers_have_finer_cells_where_noise_is_low():
    few, many = (
        design(MomentsConfig(epsilon=1.0), with_rows(numbers_schema(3), n)) for n in (1_000, 1_000_000)
    )
    assert few.features[0].cells == moments_plan.SCORE_CELLS + 2
    assert many.features[0].cells == moments_plan.MOST_SCORE_CELLS + 2


@pytest.mark.parametrize(("rows", "is_picked"), [(100, True), (400, True), (512, False), (1500, False)])
def test_rows_show_the_model_s_margins_unless_they_are_very_few(rows, is_picked):
    table, schema = mixed_table(3000), mixed_schema()
    model = moments.model_of(settle(LOUD, with_rows(schema, 3000)), run(table, schema, LOUD).arrays)
    wanted = model.marginals.class_shares * rows
    off = []
    for seed in range(5):
        made = synthesize(model, rows, seed)
        assert made.num_rows == rows
        counts = shares(made["risk"], ("low", "high")) * rows
        off.append(np.abs(counts - wanted).max())
    assert (max(off) > 1.0) == is_picked


def test_a_few_rows_are_drawn_from_the_whole_law():
    rng = np.random.default_rng(2)
    labels = rng.integers(1, 3, 3000)
    x = np.clip(rng.normal(size=(3000, 2)) * 0.3, -1, 1)
    schema = numbers_schema(2, classes=2)
    draft = run(np.column_stack([x, labels]), schema, LOUD)
    model = moments.model_of(settle(LOUD, with_rows(schema, 3000)), draft.arrays)
    single = [synthesize(model, 1, seed) for seed in range(40)]
    assert {t["y"][0].as_py() for t in single} == {1, 2}
    spread = np.std([t["x0"][0].as_py() for t in single])
    assert 0.15 < spread < 0.5


def test_numbers_with_classes_keep_class_means_and_correlations():
    rng = np.random.default_rng(1)
    labels = rng.integers(1, 4, 6000)
    hidden = rng.normal(size=6000)
    x = 0.2 * hidden[:, None] * np.array([1, 1, -1, 0, 0]) + 0.1 * rng.normal(size=(6000, 5))
    x[:, 3] += 0.2 * (labels == 2)
    schema = numbers_schema(5, classes=3)
    data = run(np.column_stack([np.clip(x, -1, 1), labels]), schema, LOUD).tables["data"]
    fake = np.column_stack([data[f"x{i}"].to_numpy() for i in range(5)])
    classes = data["y"].to_numpy()
    assert abs(np.corrcoef(fake[:, 0], fake[:, 2])[0, 1] + 0.8) < 0.1
    assert abs(fake[classes == 2, 3].mean() - 0.2) < 0.03
    assert abs(fake[classes == 1, 3].mean()) < 0.03


def test_no_label_a_numeric_target_and_a_label_with_many_levels_are_ordinary_columns():
    plain = numbers_schema(3)
    assert design(LOUD, with_rows(plain, 100)).classes == 1
    columns = plain.columns
    target = Schema(columns=columns, unit=Unit.ROW, neighbours=plain.neighbours, label="x2")
    assert design(LOUD, with_rows(target, 100)).label is None
    data = run(np.random.default_rng(0).uniform(-1, 1, (300, 3)), target, LOUD).tables["data"]
    assert data.column_names == ["x0", "x1", "x2"]
    wide = Column(name="code", kind=Kind.INTEGER, lower=0, upper=500)
    many = Schema(columns=(*columns, wide), unit=Unit.ROW, neighbours=plain.neighbours, label="code")
    assert design(LOUD, with_rows(many, 100)).label is None


def test_item_sets_go_through_the_same_door():
    rng = np.random.default_rng(3)
    together = rng.random((3000, 1)) < 0.3
    hits = np.hstack([together, together, rng.random((3000, 3)) < 0.1]).astype(float)
    data = run(csr_array(hits), items_schema(5), LOUD).tables["data"]
    rows = data["items"].to_pylist()
    first = np.array([1 in row for row in rows])
    second = np.array([2 in row for row in rows])
    assert abs(first.mean() - 0.3) < 0.03
    assert np.mean(first & second) > 0.2
    assert all(set(row) <= {1, 2, 3, 4, 5} for row in rows)


def test_add_remove_needs_a_number_of_rows_and_shows_none():
    schema = mixed_schema(ADD)
    with pytest.raises(InvalidInput, match="synthetic_rows=None: the number of rows is private"):
        workflow.plan(MomentsConfig(epsilon=1.0), schema)
    config = MomentsConfig(epsilon=50.0, synthetic_rows=77, expected_rows=1000)
    draft = run(mixed_table(1000), schema, config)
    assert draft.tables["data"].num_rows == 77
    shapes = {name: value.shape for name, value in draft.arrays.items()}
    other = run(mixed_table(1000), schema, config, seed=0)
    assert {name: value.shape for name, value in other.arrays.items()} == shapes


def test_tiny_and_empty_tables_never_fail():
    schema = mixed_schema(ADD)
    for rows in (0, 1, 3):
        table = mixed_table(3).slice(0, rows)
        for delta in (1e-6, 0.0):
            config = MomentsConfig(epsilon=0.1, delta=delta, synthetic_rows=20)
            assert run(table, schema, config).tables["data"].num_rows == 20


def test_pure_epsilon_works():
    config = MomentsConfig(epsilon=900.0, delta=0.0)
    draft = run(mixed_table(3000), mixed_schema(), config)
    real = shares(mixed_table(3000)["job"], ["x", "y", "z"])
    fake = shares(draft.tables["data"]["job"].cast(pa.string()), ["x", "y", "z"])
    assert np.abs(real - fake).sum() / 2 < 0.03
    assert {noise.distribution for noise in draft.noise} == {"laplace", "gumbel"}


def test_wide_tables_are_cut_into_blocks(monkeypatch):
    monkeypatch.setattr(moments_costs, "BLOCK_WIDTH", 4)
    monkeypatch.setattr(moments_rows, "_CHUNK_VALUES", 200)
    monkeypatch.setattr(decode, "BLOCK_VALUES", 1)
    monkeypatch.setattr(moments_model, "_WIDE", 5)
    rng = np.random.default_rng(5)
    x = np.clip(0.3 * rng.normal(size=(5000, 1)) + 0.1 * rng.normal(size=(5000, 10)), -1, 1)
    schema = numbers_schema(10, classes=2)
    data = np.column_stack([x, rng.integers(1, 3, 5000)])
    planned = workflow.plan(LOUD, schema)
    assert planned.details["blocks"] == [4, 3, 3]
    assert any("blocks of neighbouring columns" in note for note in planned.notes)
    fake = run(data, schema, LOUD).table()
    first, second = fake["x0"].to_numpy(), fake["x1"].to_numpy()
    assert np.corrcoef(first, second)[0, 1] > 0.7


def test_plan_predicts_marginals_rank_and_shares():
    schema = mixed_schema()
    planned = workflow.plan(MomentsConfig(epsilon=1.0, expected_rows=50_000), schema)
    assert set(planned.details["one_way_total_variation"]) == {
        "age",
        "income",
        "smoker",
        "region",
        "job",
    }
    columns = planned.details["one_way_total_variation"]
    worst = max(columns, key=columns.__getitem__)
    mean = planned.expected["one_way_total_variation_mean"]
    assert 0.0 < mean < 0.1
    assert mean == pytest.approx(np.mean(list(columns.values())))
    assert planned.expected["one_way_total_variation_worst"] == columns[worst] > mean
    (said,) = [note for note in planned.notes if "shares of values" in note]
    assert (
        f"{mean:.2g} in the mean over columns, {columns[worst]:.2g} in the worst one, {worst} " in said
    )
    assert not any("up to" in note for note in planned.notes)
    assert planned.expected["surviving_rank"] >= 1
    assert sum(planned.details["shares"].values()) == pytest.approx(1.0)
    tighter = workflow.plan(MomentsConfig(epsilon=0.1, expected_rows=50_000), schema)
    assert tighter.expected["count_sigma"] > 5 * planned.expected["count_sigma"]
    pure = workflow.plan(MomentsConfig(epsilon=1.0, delta=0.0), schema)
    assert pure.guarantee.is_pure
    assert any("Pure epsilon" in note for note in pure.notes)


def test_one_wide_category_is_the_worst_column_and_not_the_mean():
    """The figure that plans gave as `up to` was the mean: here a small part of the worst column's."""
    numbers = numbers_schema(12).columns
    codes = Column(name="code", kind=Kind.CATEGORY, categories=tuple(f"c{i}" for i in range(600)))
    schema = replace(numbers_schema(12), columns=(*numbers, codes))
    planned = workflow.plan(MomentsConfig(epsilon=1.0, expected_rows=20_000), schema)
    mean = planned.expected["one_way_total_variation_mean"]
    worst = planned.expected["one_way_total_variation_worst"]
    assert worst == planned.details["one_way_total_variation"]["code"] > 4 * mean
    assert any(f"{worst:.2g} in the worst one, code (" in note for note in planned.notes)


def test_the_prediction_of_a_marginal_is_met():
    """Mean error over noise draws against the plan, for a category (no denoising there)."""
    config = MomentsConfig(epsilon=1.0, expected_rows=3000)
    table, schema = mixed_table(3000), mixed_schema()
    expected = workflow.plan(config, schema).details["one_way_total_variation"]["region"]
    real = shares(table["region"], ["a", "b", "c", None])
    errors = []
    for seed in range(4):
        data = run(table, schema, config, seed=seed).tables["data"]
        fake = shares(data["region"].cast(pa.string()), ["a", "b", "c", None])
        errors.append(np.abs(real - fake).sum() / 2)
    assert 0.3 * expected < np.mean(errors) < 2.0 * expected


def test_the_plan_says_how_many_rows_it_assumes():
    def said(neighbours=Neighbours.REPLACE_ONE, rows=None, **keywords):
        schema = Schema.numeric(3, 0.0, 1.0, neighbours=neighbours, rows=rows)
        return [
            n
            for n in workflow.plan(MomentsConfig(epsilon=1.0, **keywords), schema).notes
            if "Assumes" in n
        ]

    assert said(rows=5000) == []
    assert said(expected_rows=7000) == ["Assumes 7,000 rows (expected_rows)."]
    (guessed,) = said()
    assert guessed.startswith("Assumes 10,000 rows (a guess): declare rows in the schema, ")
    assert "or give -o expected_rows=N (expected_rows=N in Python)" in guessed
    (private,) = said(neighbours=Neighbours.ADD_REMOVE, synthetic_rows=10)
    assert "(a guess): give -o expected_rows=N" in private  # there `rows` may not be declared


@pytest.mark.parametrize(("rows", "width"), [(50, 3000), (1, 2), (20, 12)])
def test_a_hopeless_release_is_said_first_and_bluntly(rows, width):
    planned = workflow.plan(MomentsConfig(epsilon=1.0), Schema.numeric(width, 0.0, 1.0, rows=rows))
    count = "1 row" if rows == 1 else f"{rows} rows"
    assert planned.notes[0].startswith(f"At epsilon=1 and {count} the release will be mostly noise: ")
    for fine in (Schema.numeric(1000, 0.0, 1.0, rows=4000), Schema.numeric(5, 0.0, 1.0, rows=2000)):
        notes = workflow.plan(MomentsConfig(epsilon=1.0), fine).notes
        assert not any("mostly noise" in note for note in notes)


def test_columns_that_look_alike_are_forecast_as_they_turn_out():
    """Wide tables: the error of one histogram by itself is far above what smoothing leaves."""
    rng = np.random.default_rng(4)
    data = np.clip(rng.normal(0.0, 0.3, (2000, 150)), -1, 1)
    schema, config = numbers_schema(150), MomentsConfig(epsilon=1.0, expected_rows=2000)
    planned = workflow.plan(config, schema)
    most = planned.expected["one_way_total_variation_mean"]
    least = planned.expected["one_way_total_variation_mean_if_columns_are_alike"]
    fake = run(data, schema, config).tables["data"]
    edges = np.linspace(-1, 1, 17)
    errors = []
    for j, name in enumerate(fake.column_names):
        real, drawn = (np.histogram(v, edges)[0] / 2000 for v in (data[:, j], fake[name].to_numpy()))
        errors.append(np.abs(real - drawn).sum() / 2)
    assert least < 0.2 * most  # one is read as it is, the other a twelfth of it
    assert 0.5 * least < np.mean(errors) < 0.5 * most


def test_no_more_directions_survive_than_predicted():
    rng = np.random.default_rng(8)
    basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    config = MomentsConfig(epsilon=1.0, expected_rows=20_000)
    schema = numbers_schema(60)
    predicted = workflow.plan(config, schema).expected["surviving_rank"]
    for rank in (3, 40):  # a few strong directions are found; many weak ones only as far as predicted
        hidden = rng.normal(size=(20_000, rank)) @ basis[:rank] * 0.25 * np.sqrt(60 / rank)
        found = run(np.clip(hidden, -1, 1), schema, config).facts["surviving_rank"]
        assert found <= predicted
        assert rank > 3 or found == 3


def test_further_labels_are_kept_with_the_first():
    """One label splits the rows; others are columns whose dependence on it and on numbers is kept."""
    rng = np.random.default_rng(9)
    first, second = rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)
    x = np.clip(0.3 * first - 0.3 * (second == 2) + 0.1 * rng.normal(size=4000), -1, 1)
    columns = (
        *numbers_schema(1).columns,
        Column(name="first", kind=Kind.CATEGORY, categories=("n", "y")),
        Column(name="second", kind=Kind.CATEGORY, categories=("a", "b", "c")),
    )
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="first")
    table = pa.table(
        {"x0": x, "first": np.array(["n", "y"])[first], "second": np.array(["a", "b", "c"])[second]}
    )
    made = run(table, schema, LOUD).tables["data"]
    values = made["x0"].to_numpy()
    is_first = np.array(made["first"].to_pylist()) == "y"
    is_second = np.array(made["second"].to_pylist()) == "c"
    assert abs(values[is_first].mean() - values[~is_first].mean() - 0.3) < 0.08
    # decoding a strong dependence of a category weakens it: a third of the gap is left at least
    assert -0.35 < values[is_second].mean() - values[~is_second].mean() < -0.1


def test_missing_values_come_back_at_their_private_rate():
    table, schema = mixed_table(20_000), mixed_schema()
    made = run(table, schema, MomentsConfig(epsilon=1.0)).tables["data"]
    assert table["region"].null_count > 100
    assert abs(made["region"].null_count - table["region"].null_count) < 200


def test_rules_use_public_numbers():
    schema = mixed_schema()
    assert design(MomentsConfig(epsilon=1.0), with_rows(schema, 100_000)).features[0].is_levels
    assert not design(MomentsConfig(epsilon=1.0), with_rows(schema, 50)).features[0].is_levels
    quantiles = [
        design(MomentsConfig(epsilon=1.0), with_rows(schema, n)).quantile
        for n in (10_000, 100_000, 300_000, 10_000_000)
    ]
    assert quantiles == sorted(quantiles)
    assert set(quantiles) == set(moments_plan.CLIP_QUANTILES)
    config = MomentsConfig(epsilon=1.0, table_share=0.0)
    shares = [design(config, with_rows(schema, n)).shares for n in (5, 1000, 100_000)]
    # by class and over all classes: both are more where pairs are loud or noise, the second most of all
    assert [one[0] + one[3] for one in shares] == pytest.approx([0.8, 0.8, 0.7])
    assert [one[3] / (one[0] + one[3]) for one in shares] == pytest.approx([0.65, 0.65, 0.45])

    named = tuple(f"c{i}" for i in range(11))
    many = replace(schema, columns=(*schema.columns[:-1], replace(schema.columns[-1], categories=named)))
    parts = [design(config, with_rows(many, n)).shares for n in (5, 100_000)]
    # of eleven classes, so much that a half (or three quarters) of all precision is of their sums
    known = [one[3] / (one[0] + one[3]) for one in parts]
    assert [part + (1.0 - part) / 11.0 for part in known] == pytest.approx([0.75, 0.5])

    def of_numbers(columns):
        config = MomentsConfig(epsilon=1.0, table_share=0.0)
        sized = [with_rows(numbers_schema(columns), n) for n in (5, 1000, 100_000)]
        return [design(config, one).shares[0] for one in sized]

    assert of_numbers(8) == [0.75] * 3  # few columns share no shape, and their Gram needs little
    assert of_numbers(9) == of_numbers(32) == [0.6] * 3
    some, wide = of_numbers(40), of_numbers(80)
    assert [some[0], wide[0]] == [0.3, 0.3]  # where pairs are noise
    assert 0.25 <= some[1] < some[2] <= 0.4
    assert 0.0 < wide[1] < wide[2] <= 0.4  # less where histograms drown
    assert design(MomentsConfig(epsilon=0.01), with_rows(schema, 300)).quantile == 0.5
    half = MomentsConfig(epsilon=1.0, marginal_share=0.5)
    assert design(half, with_rows(schema, 1000)).shares == pytest.approx((0.275, 0.02, 0.48, 0.225))
    plain = replace(schema, label=None)  # nothing is by class
    assert design(half, with_rows(plain, 1000)).shares == (0.5, 0.02, 0.48)
    assert design(MomentsConfig(epsilon=1.0, expected_rows=123), with_rows(schema, None)).rows == 123
    assert design(MomentsConfig(epsilon=1.0), with_rows(schema, None)).rows == moments_plan.ROWS_GUESS


@pytest.mark.parametrize("is_fine", [True, False])
@pytest.mark.parametrize("is_integer", [True, False])
def test_every_value_has_its_cell_and_bounds_have_their_own(is_fine, is_integer):
    for lower, upper in ((0.0, 1000.0), (-5.0, 3.0), (10_000.0, 1_500_000.0)):
        edges = number_edges(lower, upper, 16, is_integer=is_integer, is_fine=is_fine)
        assert np.all(np.diff(edges) > 0)
        values = np.array([lower, upper])
        assert moments_rows.cut(values, edges).tolist() == [0, len(edges) - 2]
        nearby = np.array([lower + 1.0, upper - 1.0]) if is_integer else np.array([lower + 1e-6])
        assert not set(moments_rows.cut(nearby, edges)) & {0, len(edges) - 2}
    with pytest.raises(InvalidInput, match="lower below upper"):
        number_edges(1.0, 1.0, 16, is_integer=False, is_fine=False)


def test_narrow_cells_beside_categories_are_for_quiet_histograms():
    """32 cells and half powers of two, or 16 and whole powers, by public numbers alone."""
    schema, config = mixed_schema(), MomentsConfig(epsilon=1.0, numbers="bins")
    loud, quiet = (design(config, with_rows(schema, rows)) for rows in (2_000, 200_000))
    assert (loud.parts, quiet.parts) == (16, 32)
    for few, many in zip(loud.columns, quiet.columns, strict=True):
        assert few.cells <= many.cells
    assert sum(loud.cells) < 0.6 * sum(quiet.cells)
    more = replace(config, epsilon=100.0)
    assert design(more, with_rows(schema, 2_000)).parts == 32
    coarse = number_edges(0.0, 1024.0, 16, is_integer=False, is_fine=True)
    assert {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 192.0} <= set(coarse.tolist())
    assert len(coarse) < len(number_edges(0.0, 1024.0, 32, is_integer=False, is_fine=True))
    assert len(number_edges(0.0, 99.0, 16, is_integer=True, is_fine=True)) < 30
    assert len(number_edges(0.0, 30.0, 16, is_integer=True, is_fine=True)) == 32  # one cell a value


def test_a_model_is_rebuilt_from_the_released_arrays_alone():
    table, schema = mixed_table(500), mixed_schema()
    config = MomentsConfig(epsilon=3.0, sample_seed=4)
    draft = run(table, schema, config)
    model = moments.model_of(settle(config, with_rows(schema, 500)), dict(draft.arrays))
    assert synthesize(model, 500, 4).equals(draft.tables["data"])
    assert synthesize(model, 10, 5).num_rows == 10
    broken = {**draft.arrays, "gram": draft.arrays["gram"][:-1]}
    with pytest.raises(InvalidInput, match="does not fit the marginals"):
        moments.model_of(settle(config, with_rows(schema, 500)), broken)


def test_values_outside_their_columns_count_nowhere():
    schema = mixed_schema()
    decided = design(LOUD, with_rows(schema, 1000))
    table = mixed_table(5)
    from adumbra.data.opening import open_source

    batch = next(open_source(table, schema).batches(4096))
    hostile = batch.values.copy()
    hostile[0, 3], hostile[1, 5] = 99.0, -7.0
    rows = moments_rows.cell_block(type(batch)(0, hostile), decided, 0.0)
    whole = moments_rows.cell_block(batch, decided, 0.0)
    assert len(rows.places) < len(whole.places)
    dense = moments_rows.values_of(SetBatch(0, np.array([0, 2]), np.array([1, 7]), 3))
    assert dense.tolist() == [[0.0, 1.0, 0.0]]


def test_what_has_no_proof_or_makes_no_sense_is_refused():
    element = Schema(
        columns=numbers_schema(2).columns, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT
    )
    with pytest.raises(Unsupported, match="unit=element"):
        workflow.plan(MomentsConfig(epsilon=1.0), element)
    only = Schema(
        columns=(Column(name="y", kind=Kind.BOOLEAN),),
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
        label="y",
    )
    with pytest.raises(InvalidInput, match="the label is the only one"):
        workflow.plan(MomentsConfig(epsilon=1.0), only)
    for wrong, message in (
        ({"synthetic_rows": 0}, "synthetic_rows=0"),
        ({"expected_rows": 0}, "expected_rows=0"),
        ({"marginal_share": 1.0}, "marginal_share"),
        ({"numbers": "ranks"}, "numbers=ranks"),
        ({"sample_seed": -1}, "sample_seed"),
        ({"epsilon": 0.0}, "epsilon"),
    ):
        with pytest.raises(InvalidInput, match=message):
            MomentsConfig(**{"epsilon": 1.0, **wrong})


def test_categories_alone_need_no_numbers():
    columns = mixed_schema().columns[3:5]
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    data = run(mixed_table(1500).select(["region", "job"]), schema, LOUD).tables["data"]
    real = shares(mixed_table(1500)["region"], ["a", "b", "c", None])
    assert np.abs(shares(data["region"].cast(pa.string()), ["a", "b", "c", None]) - real).max() < 0.03


def test_rounds_of_calibration_follow_the_kinds_and_the_width():
    number = moments_model.Block(start=0, width=1, shares=np.ones(18) / 18, values=np.ones(18))
    pair = moments_model.Block(start=0, width=1, shares=np.ones(2) / 2, values=np.ones(2))
    level = moments_model.Block(start=0, width=3, shares=np.ones((2, 3)) / 3, values=np.empty(0))
    assert moments_model._rounds((number, level), 30) == 6
    assert moments_model._rounds((number, level), 4000) == 1
    assert moments_model._rounds((number,) * 20, 20) == 1
    assert moments_model._rounds((number,) * 300, 300) == 0
    assert moments_model._rounds((pair,) * 300, 300) == 1


def test_kept_rows_and_read_rows_give_the_same_release(monkeypatch):
    schema = mixed_schema()
    config = MomentsConfig(epsilon=1.0, delta=1e-6, synthetic_rows=50)
    planned = workflow.plan(config, schema)

    def drawn():
        grant = recording_grant(NoiseRecord(), 7, planned.guarantee, planned.purposes)
        return run(mixed_table(500), schema, config, grant=grant)

    kept = drawn()
    monkeypatch.setattr(moments, "KeptSource", lambda source, _most: source)
    read = drawn()
    assert kept.tables["data"].equals(read.tables["data"])
    assert all(np.array_equal(kept.arrays[name], read.arrays[name]) for name in kept.arrays)


def test_a_share_that_is_noise_alone_is_refused():
    with pytest.raises(InvalidInput, match="marginal_share=1e-10: must lie between 0.001 and 0.95"):
        MomentsConfig(epsilon=1.0, marginal_share=1e-10)


def test_a_forecast_counts_what_reading_takes_out_of_the_noise():
    """Noise alone would be wrong by .5 and more; releases of such tables were wrong by half of that."""
    assert left(0.01) == pytest.approx(0.01, rel=0.02)
    assert left(0.6) == pytest.approx(0.3)
    errors = np.linspace(0.0, 20.0, 200)
    assert np.all(np.diff([left(error) for error in errors]) > 0)
    schema = replace(mixed_schema(), rows=300)
    planned = workflow.plan(MomentsConfig(epsilon=0.1), schema)
    assert max(planned.details["one_way_total_variation"].values()) < READ
