"""Rows of the moments synthesizer show the pair tables of their Gram: kinds of columns, the rule."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from adumbra import workflow
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.mechanisms.moments import chosen as joint
from adumbra.mechanisms.moments import release as moments
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.mechanisms.moments.plan import settle
from adumbra.postprocess.moments import model as moments_model
from adumbra.postprocess.moments import sampling
from adumbra.postprocess.moments.bayes import counts_posterior, sparse_signal, stands_alone
from adumbra.postprocess.moments.classes import ByClass, adding_up
from adumbra.postprocess.moments.classes import conditional as laws_by_class
from adumbra.postprocess.moments.goal import owners_of
from adumbra.postprocess.moments.laws import CellNoise, Noisy, read_marginals, with_pooled
from adumbra.postprocess.moments.tables import codes_of, measure, read_codes
from adumbra.relations import Neighbours, Unit
from adumbra.schema.orders import Order
from adumbra.schema.schema import Column, Kind, Schema
from support.moments import items_schema, mixed_schema, mixed_table, numbers_schema, run

NAMES = ("first", "second", "even", "two", "group")
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
LOUD = MomentsConfig(epsilon=100.0, delta=1e-6, numbers="bins")


def crossed(rows=6000, seed=0):
    """Two categories tied crosswise, a number that one of them decides and that is often missing."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 5, rows)
    second = np.where(rng.random(rows) < 0.9, (2 * first) % 5, rng.integers(0, 5, rows))
    low = np.where(second % 2 == 0, 20, 60) + rng.integers(0, 15, rows)
    is_missing = (first == 4) & (rng.random(rows) < 0.8)
    names = np.array(list("abcde"), object)
    columns = (
        Column(name="first", kind=Kind.CATEGORY, categories=tuple("abcde")),
        Column(name="second", kind=Kind.CATEGORY, categories=tuple("abcde")),
        Column(name="low", kind=Kind.INTEGER, lower=0, upper=100, missing="null"),
        Column(name="high", kind=Kind.INTEGER, lower=0, upper=200),
        Column(name="even", kind=Kind.BOOLEAN),
        Column(name="two", kind=Kind.INTEGER, lower=0, upper=1),
        Column(name="group", kind=Kind.CATEGORY, categories=("x", "y", "z")),
    )
    table = pa.table(
        {
            "first": names[first],
            "second": names[second],
            "low": pa.array(low, mask=is_missing),
            "high": low + rng.integers(0, 90, rows),
            "even": first % 2 == 0,
            "two": ((first + second) % 2).astype(np.int64),
            "group": np.array(list("xyz"), object)[np.minimum(first // 2, 2)],
        }
    )
    orders = (Order(lower="low", upper="high"),)
    return table, Schema(columns=columns, unit=Unit.ROW, neighbours=REPLACE, constraints=orders)


def distance(left, right, names):
    """The total variation of a pair table."""
    both = [
        t.select(list(names)).to_pandas().astype(str).value_counts(normalize=True) for t in (left, right)
    ]
    return float(both[0].sub(both[1], fill_value=0.0).abs().sum() / 2.0)


@pytest.fixture(scope="module", params=[None, "group"])
def drawn(request):
    table, schema = crossed()
    schema = replace(schema, rows=table.num_rows, label=request.param)
    draft = run(table, schema, LOUD)
    return table, schema, draft, moments.model_of(settle(LOUD, schema), draft.arrays)


def test_rows_show_pair_tables_that_a_normal_law_cannot(drawn):
    table, _, draft, model = drawn
    plain = sampling.synthesize(replace(model, goal=None), table.num_rows, 0)
    before, after = (
        np.array([distance(table, made, pair) for pair in combinations(NAMES, 2)])
        for made in (plain, draft.tables["data"])
    )
    assert after.max() < 0.05
    assert after.mean() < 0.6 * before.mean()
    for name in ("first", "second", "group"):
        assert distance(table, draft.tables["data"], [name]) < 0.01


def test_declared_orders_types_and_missing_values_survive_the_moves(drawn):
    table, schema, draft, _ = drawn
    data = draft.tables["data"]
    assert data.column_names == list(schema.names)
    frame = data.to_pandas()
    both = frame[frame["low"].notna()]
    assert (both["low"] <= both["high"]).all()
    assert set(frame["two"]) == {0, 1}
    assert frame["low"].dropna().between(0, 100).all()
    real = table.to_pandas()
    for level in ("a", "e"):
        gap = frame["low"].isna()[frame["first"] == level].mean()
        assert abs(gap - real["low"].isna()[real["first"] == level].mean()) < 0.06


def test_rows_of_the_model_are_measured_as_private_rows_are(drawn):
    """The Gram of coded rows is that of the same rows as a table, to the lattice's rounding."""
    _, schema, draft, model = drawn
    blocks, radius = model.latent.blocks, float(draft.arrays["radius"][0])
    codes = read_codes(model.design, model.centre, blocks, model.marginals.class_shares)
    free = replace(model, schema=replace(schema, constraints=(), rows=5000), goal=None)
    rng = np.random.default_rng([7, 2, 0])
    decoded = sampling.sample(free.latent, 5000, rng)
    rows = codes_of(codes.codes, decoded, blocks)
    shown = measure(codes, rows, radius)
    table = sampling.synthesize(free, 5000, 7)
    settled = settle(LOUD, schema)
    lower = moments._label_lower(settled)
    gram, _ = settled.parts.gram_of(len(model.centre.means))
    total = gram.zero()
    for batch in open_source(table, free.schema).batches(4096):
        total = gram.add(total, moments.bounded_block(batch, model.design, model.centre, lower, radius))
    (block,), *_ = gram.unpack(total * 2.0**gram.exponent)
    assert np.allclose(block * radius**2 / 5000, shown.gram, atol=2e-3)


def test_any_number_of_rows_and_any_seed_are_fine(drawn):
    *_, model = drawn
    assert [sampling.synthesize(model, n, 1).num_rows for n in (1, 5000)] == [1, 5000]
    first, second = (sampling.synthesize(model, 400, seed) for seed in (1, 2))
    assert not first.equals(second)
    assert first.equals(sampling.synthesize(model, 400, 1))


def test_item_sets_show_their_pairs():
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, 8000)
    hits = rng.random((8000, 6)) < 0.15
    hits[np.arange(8000), kind] = True
    hits[np.arange(8000), (kind + 1) % 3] = False  # items that exclude one another
    lists = pa.table({"items": [list(np.flatnonzero(row) + 1) for row in hits]})
    schema = replace(items_schema(6), rows=8000)
    loud = replace(LOUD, numbers="auto")
    draft = run(lists, schema, loud)
    model = moments.model_of(settle(loud, schema), draft.arrays)
    assert model.goal is not None

    def pairs(table):
        rows = np.zeros((table.num_rows, 7))
        for place, items in enumerate(table["items"].to_pylist()):
            rows[place, items] = 1.0
        return (rows.T @ rows / table.num_rows)[1:, 1:]

    plain = sampling.synthesize(replace(model, goal=None), 8000, 0)
    gaps = [np.abs(pairs(made) - pairs(lists)).max() for made in (plain, draft.tables["data"])]
    assert gaps[1] < 0.5 * gaps[0]
    assert gaps[1] < 0.01


def test_which_tables_are_refined_is_public():
    def rule(schema, **options):
        decided = design(MomentsConfig(epsilon=1.0, **options), replace(schema, rows=20_000))
        return decided.is_refined

    assert rule(mixed_schema())
    config = MomentsConfig(epsilon=1.0)
    planned = settle(config, replace(mixed_schema(), rows=20_000)).plan
    assert planned.details["refined"] is True
    assert any("this costs no budget" in note for note in planned.notes)
    assert not rule(mixed_schema(), numbers="scores")
    assert not rule(numbers_schema(5))
    quiet, loud = (
        design(MomentsConfig(epsilon=e, numbers="bins"), replace(mixed_schema(), rows=2000)).is_refined
        for e in (8.0, 0.02)
    )
    assert quiet
    assert not loud  # pair tables would follow noise
    assert rule(items_schema(100))
    assert not rule(items_schema(300))  # a row would take columns x codes steps


def test_where_pairs_are_noise_one_way_laws_get_most_of_the_budget():
    """They got 35 % or less, and rows were further from the data than independent columns."""

    def share(levels, epsilon, rows):
        names = tuple(f"v{i}" for i in range(levels))
        columns = tuple(Column(name=f"c{i}", kind=Kind.CATEGORY, categories=names) for i in range(12))
        schema = Schema(columns=columns, unit=Unit.ROW, neighbours=REPLACE, rows=rows)
        return design(MomentsConfig(epsilon=epsilon, table_share=0.0), schema).shares[0]

    assert [share(levels, 0.1, 3000) for levels in (3, 16, 200)] == [0.7, 0.7, 0.7]
    assert share(3, 1.0, 100_000) == 0.35
    asked = MomentsConfig(epsilon=0.1, marginal_share=0.2)
    assert design(asked, replace(mixed_schema(label=None), rows=300)).shares[0] == 0.2


@pytest.mark.parametrize(
    ("truth", "sigma", "most"),
    [
        (np.full(18, 500.0), 700.0, 0.1),  # projected alone: 0.41
        (np.append(np.zeros(38), [8000.0, 1000.0]), 150.0, 0.03),  # projected alone: 0.037
        (np.array([50.0, 200.0, 400.0, 250.0, 100.0]), 1.0, 0.003),  # as it is
    ],
)
def test_counts_of_one_histogram_are_read_at_their_noise(truth, sigma, most):
    rng, total = np.random.default_rng(6), float(truth.sum())
    errors = []
    for _ in range(40):
        found = counts_posterior(truth + sigma * rng.normal(size=len(truth)), sigma, total)
        assert np.isclose(found.sum(), total)
        assert found.min() >= 0.0
        errors.append(np.abs(found - truth).sum() / (2.0 * total))
    assert np.mean(errors) < most


def test_counts_without_noise_or_of_one_cell_are_kept():
    assert counts_posterior(np.array([7.0]), 3.0, 5.0).tolist() == [5.0]
    assert counts_posterior(np.array([2.0, 3.0, 0.0]), 0.0, 5.0).tolist() == [2.0, 3.0, 0.0]
    lost = counts_posterior(np.array([-1e6, -2e6, 3e6]), 1.0, 0.0)
    assert np.all(lost == 0.0)


def test_a_number_among_few_is_not_emptied_to_its_lucky_cells():
    """At a small budget one of 32 cells passed the threshold, and nearly all rows went there."""
    rng = np.random.default_rng(9)
    schema = Schema(
        columns=(
            Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
            Column(name="sex", kind=Kind.BOOLEAN),
            Column(name="area", kind=Kind.CATEGORY, categories=("a", "b", "c")),
        ),
        unit=Unit.ROW,
        neighbours=REPLACE,
        rows=6000,
    )
    decided = design(MomentsConfig(epsilon=0.1), schema)
    worst = 0.0
    for _ in range(20):
        noisy = [
            np.full(cells, 6000.0 / cells) + 400.0 * rng.normal(size=cells) for cells in decided.cells
        ]
        law = read_marginals(decided, Noisy(noisy, 400.0), Noisy(), 6000).laws[0]
        worst = max(worst, float(law.max()))
    assert worst < 0.2


def by_class(sigma, classes):
    """The noise of cells that were counted by class alone."""
    return CellNoise.of_both(sigma, math.inf, classes)


def conditional(joint, shares, total, noise, widths=None):
    """The law of each class, of a column that shares its levels with no other."""
    whole = counts_posterior(joint.sum(axis=0), noise.pooled, total, widths)
    column = ByClass(joint, shares * total, whole / total, widths)
    return laws_by_class([column], noise.own, noise.own)[0]


def test_counts_by_class_take_in_those_over_all_classes():
    """Least squares: the noise of every sum is what both releases together allow."""
    rng = np.random.default_rng(6)
    truth = np.array([[50.0, 30.0, 20.0], [10.0, 80.0, 60.0]])
    noise = CellNoise.of_both(6.0, 4.0, 2)
    joint = truth + 6.0 * rng.normal(size=(4000, 2, 3))
    pooled = truth.sum(axis=0) + 4.0 * rng.normal(size=(4000, 3))
    pairs = zip(joint, pooled, strict=True)
    both = np.array([with_pooled(a.ravel(), b, noise).reshape(2, 3) for a, b in pairs])
    assert np.allclose(both.mean(axis=0), truth, atol=0.5)
    assert noise.own == pytest.approx((both - truth).std(), rel=0.03)
    assert noise.own < 0.8 * 6.0
    sums = (both - truth).sum(axis=1)
    assert noise.pooled == pytest.approx(sums.std(), rel=0.03)
    assert noise.pooled < min(4.0, 6.0 * math.sqrt(2.0))
    number = [with_pooled(a[0], b, noise) - b for a, b in zip(joint[:, :1], joint[:, 1], strict=True)]
    assert np.mean(number) == pytest.approx((1 - noise.weights[1]) * -50 / 3, abs=0.3)
    alone = by_class(6.0, 2)
    assert (alone.single, alone.own) == pytest.approx((6.0, 6.0))
    assert alone.pooled == pytest.approx(6.0 * math.sqrt(2.0))
    assert alone.weights == (0.0, 0.0)


def test_laws_of_many_classes_add_up_to_the_law_of_all():
    """Counts below none were raised to none in every class: together they showed another law."""
    rng = np.random.default_rng(7)
    shares = np.arange(1.0, 10.0) / 45.0
    truth, gaps = rng.dirichlet(np.full(12, 0.5)), []
    for _ in range(20):
        noise = CellNoise.of_both(60.0, 20.0, 9)
        joint = np.outer(shares, truth) * 5000.0 + 60.0 * rng.normal(size=(9, 12))
        pooled = truth * 5000.0 + 20.0 * rng.normal(size=12)
        both = with_pooled(joint.ravel(), pooled, noise).reshape(9, 12)
        whole = counts_posterior(both.sum(axis=0), noise.pooled, 5000.0) / 5000.0
        laws = laws_by_class([ByClass(both, shares * 5000.0, whole, None)], 60.0, noise.own)[0]
        assert np.allclose(laws.sum(axis=1), 1.0)
        gaps.append(np.abs(shares @ laws - whole).max())
    assert max(gaps) < 1e-3


def test_a_cell_that_no_class_shows_has_the_rows_that_all_together_have():
    counts, expected = np.array([[3.0, 0.0], [2.0, 0.0]]), np.array([[2.0, 1.0], [2.0, 0.0]])
    laws = adding_up(counts, expected)
    assert np.allclose(np.array([3.0, 2.0]) / 5.0 @ laws, [0.8, 0.2], atol=1e-4)
    empty = adding_up(np.array([[3.0, 1.0], [0.0, 0.0]]), np.array([[3.0, 1.0], [0.0, 0.0]]))
    assert np.allclose(empty, [[0.75, 0.25], [0.75, 0.25]])  # a class without rows is like all


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_histograms_over_all_classes_are_paid_for_and_halve_the_noise_of_one_way_laws(neighbours):
    schema, table = mixed_schema(neighbours), mixed_table(1500)
    config = MomentsConfig(epsilon=0.3, synthetic_rows=1500, expected_rows=1500)
    draft = run(table, schema, config)
    settled = settle(config, schema)
    cells = settled.parts.design.pooled_cells
    assert draft.arrays["one_way"].shape == (sum(cells),)
    (line,) = [noise for noise in draft.noise if noise.purpose == "one_way"]
    steps = 2 if neighbours is REPLACE else 1
    assert line.sensitivity == pytest.approx(math.sqrt(steps * len(cells)))
    lone = {name: values for name, values in draft.arrays.items() if name != "one_way"}
    sigmas = [moments.read_first(settled, a)[0].pooled_sigma for a in (draft.arrays, lone)]
    assert sigmas[0] < 0.55 * sigmas[1]
    assert "over all classes" in " ".join(settled.plan.notes)


def test_a_category_that_drowns_is_drawn_to_the_uniform_law():
    """It was projected noise: further from the data than a guess."""
    rng = np.random.default_rng(2)
    truth, sigma = np.array([260.0, 255.0, 250.0, 245.0, 240.0, 250.0]), 200.0
    errors, guess = [], np.abs(truth / 1500.0 - 1.0 / 6.0).sum()
    for _ in range(60):
        noisy = (truth + sigma * rng.normal(size=6))[None]
        law = conditional(noisy, np.ones(1), 1500.0, by_class(sigma, 1))[0]
        assert np.isclose(law.sum(), 1.0)
        errors.append(np.abs(law - truth / 1500.0).sum())
    assert np.mean(errors) < 0.4  # projected alone: 0.56
    assert guess < 0.05
    sharp = np.array([[1400.0, 20.0, 20.0, 20.0, 20.0, 20.0]])
    kept = conditional(sharp, np.ones(1), 1500.0, by_class(1.0, 1))
    assert np.allclose(kept, sharp / 1500.0, atol=1e-4)


def test_classes_borrow_the_law_of_all_where_their_cells_drown():
    """Five classes that hardly differ, and one cell where they do."""
    rng = np.random.default_rng(3)
    shares = np.full(5, 0.2)
    truth = np.tile(np.array([400.0, 300.0, 200.0, 60.0, 40.0]), (5, 1))
    truth[2] = [100.0, 600.0, 200.0, 60.0, 40.0]
    errors = []
    for _ in range(60):
        law = conditional(truth + 60.0 * rng.normal(size=(5, 5)), shares, 5000.0, by_class(60.0, 5))
        assert np.allclose(law.sum(axis=1), 1.0)
        errors.append(np.abs(law - truth / 1000.0).sum() / 10.0)
    assert np.mean(errors) < 0.085  # by a fixed weight: 0.094
    lonely = conditional(
        np.array([[50.0, 30.0, 20.0], [0.0, 0.0, 0.0]]), np.array([1.0, 0.0]), 100.0, by_class(1.0, 2)
    )
    assert np.allclose(lonely.sum(axis=1), 1.0)


@pytest.mark.parametrize("sigma", [10.0, 100.0, 400.0])
def test_columns_that_declare_the_same_levels_share_a_law(sigma):
    """Twelve questions on one scale: nearer to the truth, and others are left as they were."""
    rng, scale = np.random.default_rng(8), ("never", "seldom", "often", "always", "?")
    columns = [Column(name=f"q{i}", kind=Kind.CATEGORY, categories=scale) for i in range(12)]
    columns.append(Column(name="own", kind=Kind.CATEGORY, categories=("a", "b", "c", "d", "e")))
    schema = Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=REPLACE, rows=2000)
    apart = tuple(replace(c, categories=tuple(f"{c.name} {x}" for x in scale)) for c in columns)
    truth = rng.dirichlet(np.array([50.0, 30.0, 15.0, 4.0, 1.0]), 13)

    def laws(chosen, noise):
        decided = design(MomentsConfig(epsilon=1.0), replace(schema, columns=chosen))
        counts = [2000.0 * row + sigma * own for row, own in zip(truth, noise, strict=True)]
        return np.stack(read_marginals(decided, Noisy(counts, sigma), Noisy(), 2000).laws)[:, 0]

    errors = []
    for _ in range(40):
        noise = rng.normal(size=truth.shape)
        found = [laws(chosen, noise) for chosen in (schema.columns, apart)]
        assert np.allclose(found[0].sum(axis=1), 1.0)
        assert np.array_equal(found[0][12], found[1][12])
        errors.append([np.abs(one[:12] - truth[:12]).sum(axis=1).mean() for one in found])
    shared, alone = np.mean(errors, axis=0)
    assert shared < (1.02 if sigma < 50.0 else 0.75) * alone


def test_a_number_follows_its_neighbouring_cells_where_noise_is_loud():
    """A smooth law and a smooth difference of classes, of which single cells tell nothing."""
    rng = np.random.default_rng(4)
    cells, sigma, total = np.arange(80), 200.0, 20_000.0
    shares = np.array([0.7, 0.3])
    humps = np.stack([np.exp(-(((cells - middle) / 15.0) ** 2)) for middle in (25.0, 45.0)])
    truth = humps / humps.sum(axis=1, keepdims=True)
    errors, noise = {True: [], False: []}, by_class(sigma, 2)
    for _ in range(12):
        noisy = truth * shares[:, None] * total + sigma * rng.normal(size=truth.shape)
        for is_ordered, found in errors.items():
            law = conditional(noisy, shares, total, noise, np.ones(80) if is_ordered else None)
            assert np.allclose(law.sum(axis=1), 1.0)
            found.append(np.abs(law - truth).sum() / 4.0)
    assert np.mean(errors[True]) < 0.2
    assert np.mean(errors[False]) > 0.35


def test_a_number_with_most_rows_in_one_cell_is_no_smooth_law():
    rng, sigma = np.random.default_rng(5), 60.0
    truth = np.zeros(60)
    truth[[0, 20, 40]] = [9000.0, 700.0, 300.0]
    widths = np.append(np.nextafter(0.0, 1.0), np.ones(59))
    for _ in range(10):
        noisy = truth + sigma * rng.normal(size=60)
        plain, found = (counts_posterior(noisy, sigma, 10_000.0, w) for w in (None, widths))
        assert np.array_equal(plain, found)


@pytest.mark.parametrize("fall", [16.0, 4.0, -4.0])
def test_amounts_that_fall_from_the_lower_bound_on_are_read_around_such_a_law(fall):
    """Most cells of an amount are nearly empty; around an even density noise filled them."""
    rng, sigma, total = np.random.default_rng(13), 120.0, 6000.0
    edges = np.union1d(np.linspace(0.0, 1.0, 33), 2.0 ** -np.arange(1.0, 10.0))
    truth = total * np.diff(np.exp(-fall * edges)) / (np.exp(-fall) - 1.0)
    errors = []
    for _ in range(20):
        noisy = truth + sigma * rng.normal(size=len(truth))
        laws = (counts_posterior(noisy, sigma, total, w) for w in (None, np.diff(edges)))
        errors.append([np.abs(law - truth).sum() / (2.0 * total) for law in laws])
    plain, found = np.mean(errors, axis=0)
    assert found < 0.06  # around an even density: 0.10 to 0.14
    assert found < 0.5 * plain


def test_a_lone_cell_far_from_where_amounts_crowd_is_kept():
    rng, sigma, total = np.random.default_rng(15), 20.0, 30_000.0
    truth = np.zeros(40)
    truth[:8] = [27_000.0, 1200.0, 800.0, 400.0, 200.0, 100.0, 60.0, 40.0]
    truth[-2] = 200.0
    widths = np.append(1e-12, np.ones(39))
    for _ in range(10):
        found = counts_posterior(truth + sigma * rng.normal(size=40), sigma, total, widths)
        assert found[-2] == pytest.approx(200.0, abs=4.0 * sigma)


def test_one_cell_far_beyond_the_noise_is_kept_and_the_others_are_drawn_in():
    """One strength for all cells halved it, or left the noise of the others."""
    rng, sigma = np.random.default_rng(8), 20.0
    expected = np.full((1, 60), 120.0)
    truth = np.zeros((1, 60))
    truth[0, 7] = -120.0
    seen = truth + sigma * rng.normal(size=truth.shape)
    likely, found = sparse_signal(seen, expected, sigma**2)
    assert likely > 0.0
    assert abs(found[0, 7] - seen[0, 7]) < 0.75 * sigma
    assert np.abs(np.delete(found, 7)).mean() < 0.2 * np.abs(np.delete(seen, 7)).mean()


def test_numbers_are_cut_into_bins_beside_fewer_categories_where_pairs_are_heard():
    numbers = [Column(name=f"n{i}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for i in range(3)]
    area = Column(name="area", kind=Kind.CATEGORY, categories=("a", "b", "c"))

    def is_binned(columns, rows):
        schema = Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=REPLACE, rows=rows)
        return design(MomentsConfig(epsilon=1.0), schema).is_binned

    assert is_binned([*numbers, area], 20_000)
    assert not is_binned([*numbers, area], 300)
    assert is_binned([numbers[0], area], 300)
    assert not is_binned(numbers, 20_000)


def test_the_bounds_and_the_atoms_of_a_number_stand_alone():
    widths = np.array([1e-300, 2.0, 2.0, 1e-300, 2.0, 1e-300])
    assert stands_alone(widths).tolist() == [True, False, False, True, False, True]
    assert stands_alone(np.ones(3)).tolist() == [True, False, True]


def test_pairs_of_levels_alone_are_shortened_less_where_noise_is_low():
    """Clipping bends pair tables; rows that show the Gram would show the bend."""

    def quantile(schema, epsilon):
        return design(MomentsConfig(epsilon=epsilon), replace(schema, rows=27_000)).quantile

    few = items_schema(20)
    assert [quantile(few, e) for e in (0.1, 1.0, 20.0)] == [0.5, 0.9, 0.99]
    assert quantile(items_schema(200), 1.0) == 0.5
    assert quantile(items_schema(300), 8.0) == 0.5  # not refined: by the rule of other tables
    mixed = crossed()[1]
    assert quantile(mixed, 1.0) == 0.3  # rows are moved to show pair tables: less noise, more bend


PAID = MomentsConfig(epsilon=20.0, delta=1e-6, numbers="bins", table_share=0.5)


@pytest.fixture(scope="module")
def measured():
    """The crossed table with three more columns, of which one is the parity of the others."""
    table, schema = crossed(4000)
    rng = np.random.default_rng(9)
    left, right, flipped = (rng.random(4000) < part for part in (0.5, 0.5, 0.05))
    bits = {"left": left, "right": right, "parity": left ^ right ^ flipped}
    for name, bit in bits.items():
        table = table.append_column(name, pa.array(bit))
    columns = (*schema.columns, *(Column(name=name, kind=Kind.BOOLEAN) for name in bits))
    schema = replace(schema, columns=columns, rows=4000)
    return table, schema, run(table, schema, PAID)


def test_chosen_tables_are_measured_and_shown(measured):
    table, schema, draft = measured
    named = draft.facts["measured_tables"]
    assert named
    assert len(named) <= settle(PAID, schema).plan.details["chosen_tables"]
    assert all(len(set(names)) == len(names) in {2, 3} for names in named)
    assert len({tuple(names) for names in named}) == len(named)
    free = run(table, schema, replace(PAID, table_share=0.0)).tables["data"]
    data = draft.tables["data"]
    worst = [distance(table, made, ("left", "right", "parity")) for made in (free, data)]
    assert worst[1] < 0.05 < 0.2 < worst[0]  # no pair tells of it
    frame = data.to_pandas()
    both = frame[frame["low"].notna()]
    assert (both["low"] <= both["high"]).all()


def test_whoever_has_the_arrays_has_the_model_and_its_rows(measured):
    _, schema, draft = measured
    model = moments.model_of(settle(PAID, schema), dict(draft.arrays))
    assert sampling.synthesize(model, 4000, 0).equals(draft.tables["data"])
    assert len(model.goal.triples) > 0
    broken = dict(draft.arrays) | {"tables": draft.arrays["tables"][:-1]}
    with pytest.raises(InvalidInput, match="tables: do not fit the marginals"):
        moments.model_of(settle(PAID, schema), broken)


def test_which_tables_are_measured_at_all_is_public():
    def rule(schema, rows, **options):
        return design(MomentsConfig(**options), replace(schema, rows=rows)).chosen

    mixed = mixed_schema(label=None)
    assert rule(mixed, 20_000, epsilon=1.0) is not None
    assert rule(mixed_schema(), 20_000, epsilon=1.0) is None  # histograms by class are pair tables
    assert rule(mixed_schema(), 200_000, epsilon=1.0) is not None
    assert rule(mixed, 20_000, epsilon=1.0, table_share=0.0) is None
    assert rule(mixed, 1_000, epsilon=0.5) is None  # their noise would cost more than they tell
    assert rule(items_schema(90), 50_000, epsilon=1.0) is None  # too many columns
    asked = rule(mixed, 1_000, epsilon=0.5, numbers="bins", table_share=0.3)
    assert asked.share == 0.3
    numbers = numbers_schema(5)
    assert rule(numbers, 20_000, epsilon=1.0) is not None
    assert rule(numbers, 1_000, epsilon=0.5) is None
    assert rule(numbers_schema(70), 10**6, epsilon=1.0) is None  # too many columns
    with pytest.raises(InvalidInput, match="table_share=0.3: joint tables need at most 131,072 columns"):
        rule(numbers_schema(200), 1_000, epsilon=1.0, table_share=0.3)
    with pytest.raises(InvalidInput, match="table needs two columns, and there is one; leave it out"):
        rule(numbers_schema(1), 1_000, epsilon=1.0, table_share=0.3)
    with pytest.raises(InvalidInput, match="table_share=1.5"):
        MomentsConfig(epsilon=1.0, table_share=1.5)
    off, on = (settle(MomentsConfig(epsilon=e), replace(mixed, rows=20_000)).plan for e in (0.05, 1.0))
    assert any("chosen privately and measured" in note for note in on.notes)
    assert not any("chosen privately and measured" in note for note in off.notes)
    assert on.expected["chosen_table_sigma"] > 0
    assert "chosen_table_sigma" not in off.expected


def test_codes_nest_in_the_columns_of_the_gram(measured):
    _, schema, draft = measured
    goal = moments.model_of(settle(PAID, schema), dict(draft.arrays)).goal
    finer = [b.levels - a.levels for a, b in zip(goal.coarse.columns, goal.codes.columns, strict=True)]
    assert max(finer) > 0 <= min(finer)
    for before, after in zip(goal.coarse.columns, goal.codes.columns, strict=True):
        owners = owners_of(before, after)
        assert np.array_equal(owners[after.cells], before.cells)


def ring(rows):
    """Two numbers on a ring (no correlation tells of it), one that may be missing, and a label."""
    rng = np.random.default_rng(11)
    angle, is_far = rng.uniform(0.0, 2.0 * np.pi, rows), rng.random(rows) < 0.5
    length = np.where(is_far, 2.0, 1.0) + rng.normal(0.0, 0.1, rows)
    gone = rng.random(rows) < 0.3
    table = pa.table(
        {
            "x": np.clip(length * np.cos(angle), -3.0, 3.0),
            "y": np.clip(length * np.sin(angle), -3.0, 3.0),
            "z": pa.array(rng.uniform(0.0, 1.0, rows), mask=gone),
            "far": is_far,
        }
    )
    columns = (
        Column(name="x", kind=Kind.NUMBER, lower=-3.0, upper=3.0),
        Column(name="y", kind=Kind.NUMBER, lower=-3.0, upper=3.0),
        Column(name="z", kind=Kind.NUMBER, lower=0.0, upper=1.0, missing="null"),
        Column(name="far", kind=Kind.BOOLEAN),
    )
    return table, Schema(columns=columns, unit=Unit.ROW, neighbours=REPLACE, rows=rows, label="far")


def test_more_tables_are_measured_where_noise_is_low_and_few_columns_bear_more_of_it():
    def tables(columns, rows, **options):
        decided = design(MomentsConfig(**options), replace(numbers_schema(columns), rows=rows))
        return decided.chosen.tables if decided.chosen is not None else 0

    # 10 of 10 pairs of 5 columns are measured at a noise at which 24 of 66 pairs of 12 are not
    noise = {"epsilon": 1.0, "delta": 1e-6}
    assert (tables(5, 6_000, **noise), tables(12, 9_000, **noise)) == (10, 0)
    assert tables(12, 20_000, **noise) == 24
    assert tables(12, 200_000, **noise) == 48
    # triples of 32 codes are no candidates: what could never be chosen is not paid for
    assert tables(5, 200_000, **noise) == 10
    # the Gram holds all pair tables of categories without a class: two per column
    plain = [
        Column(name=f"c{i}", kind=Kind.CATEGORY, categories=("a", "b", "c", "d")) for i in range(12)
    ]
    schema = Schema(columns=tuple(plain), unit=Unit.ROW, neighbours=REPLACE, rows=200_000)
    assert design(MomentsConfig(**noise), schema).chosen.tables == 24
    assert design(MomentsConfig(**noise), replace(schema, label="c0")).chosen.tables == 48
    quiet = {**noise, "epsilon": 100.0}  # even beside the Gram's pair tables four per column tell more
    assert design(MomentsConfig(**quiet), schema).chosen.tables == 48


def test_tables_run_out_where_all_levels_of_a_column_are_rare():
    """Three pairs are paid for; levels too rare to stand out are one code, so that one pair is left."""
    rng, few = np.random.default_rng(6), ("a", "b", "c")
    many = tuple(f"z{i}" for i in range(60))
    columns = tuple(
        Column(name=name, kind=Kind.CATEGORY, categories=levels)
        for name, levels in {"x": few, "y": few, "z": many}.items()
    )
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=REPLACE, rows=600)
    table = pa.table({c.name: rng.choice(c.categories, 600) for c in columns})
    config = MomentsConfig(epsilon=2.0, table_share=0.3)
    assert settle(config, schema).plan.details["chosen_tables"] == 3
    assert run(table, schema, config).facts["measured_tables"] == [["x", "y"]]


def test_numbers_as_scores_show_measured_tables_too():
    """No moment tells of a ring; the rows show it once a table of both numbers is measured."""
    table, schema = ring(6000)
    config = MomentsConfig(epsilon=20.0, delta=1e-6)
    decided = settle(config, schema)
    assert not decided.parts.design.is_refined
    assert decided.parts.design.chosen is not None
    assert any("but for measured tables" in note for note in decided.plan.notes)
    draft = run(table, schema, config)
    assert ["x", "y"] in draft.facts["measured_tables"] or ["x", "y", "far"] in draft.facts[
        "measured_tables"
    ]

    def inside(made):
        frame = made.to_pandas()
        assert frame["x"].between(-3.0, 3.0).all()
        assert abs(frame["z"].isna().mean() - 0.3) < 0.03
        return float((np.hypot(frame["x"], frame["y"]) < 0.6).mean())

    free = run(table, schema, replace(config, table_share=0.0))
    assert inside(table) < 0.001
    assert inside(draft.tables["data"]) < 0.03 < 0.05 < inside(free.tables["data"])
    model = moments.model_of(decided, dict(draft.arrays))
    assert sampling.synthesize(model, 6000, 0).equals(draft.tables["data"])


def test_a_number_that_is_not_moved_keeps_its_value():
    """Only values whose code changes are drawn again, and they stay inside the new code."""
    values, cells = np.array([0.05, 0.15, 0.25, 0.35]), np.array([0, 0, 1, 1])
    edges = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    law = (np.array([0.1, 0.2, 0.3, 0.4]), edges[:-1], edges[1:])
    sampling._refill(values, np.array([-1, 1, -1, 0]), cells, law, np.random.default_rng(0))
    assert values[0] == 0.05
    assert values[2] == 0.25
    assert 0.2 <= values[1] <= 0.4
    assert 0.0 <= values[3] <= 0.2


def test_candidates_are_bounded_in_number_and_in_cells():
    many = joint.candidates((2,) * 60, 1.0, 1e6, 0)
    assert len(many) == joint.MOST_CANDIDATES < math.comb(60, 2)
    large = joint.candidates((60,) * 60, 1e-3, 1e9, 0)
    assert 0 < sum(60 ** len(clique) for clique in large) <= joint.MOST_COUNTED
    assert set(joint.candidates((2,) * 9, 1.0, 1e6, 0)) >= set(combinations(range(9), 2))


@pytest.mark.parametrize(("columns", "is_kept"), [(6, False), (14, True)])
def test_second_moments_are_kept_where_few_pairs_are_measured(columns, is_kept, monkeypatch):
    """With most pairs measured these say it all, and kept moments would only hold rows back."""
    asked = []
    found = moments_model.code_scores
    monkeypatch.setattr(moments_model, "code_scores", lambda *told: asked.append(1) or found(*told))
    schema, rows = numbers_schema(columns), 20_000
    data = np.clip(np.random.default_rng(2).normal(0.0, 0.4, (rows, columns)), -1.0, 1.0)
    config = MomentsConfig(epsilon=8.0, expected_rows=rows, synthetic_rows=500)
    planned = workflow.plan(config, schema)
    tables, pairs = planned.details["chosen_tables"], columns * (columns - 1) // 2
    assert tables > 0
    assert (3 * tables < 2 * pairs) == is_kept
    run(data, schema, config)
    assert bool(asked) == is_kept
