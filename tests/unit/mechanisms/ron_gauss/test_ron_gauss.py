import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data import sources
from adumbra.data.encode import Encoder
from adumbra.data.opening import open_source
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.ron_gauss import RONGaussConfig, sums
from adumbra.mechanisms.ron_gauss.plan import settle as settle_method
from adumbra.numerics import coarsen
from adumbra.postprocess.matrices import regression_covariance
from adumbra.postprocess.ron_gauss.centre import centre_of
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.grant import open_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.workflow import plan
from support.methods import draw

ROWS = 3000


def schema(label="kind", neighbours=Neighbours.REPLACE_ONE, rows=ROWS, unit=Unit.ROW):
    columns = [Column(name=f"x{j}", kind=Kind.NUMBER, lower=-2.0, upper=2.0) for j in range(6)]
    columns += [
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="sex", kind=Kind.CATEGORY, categories=("f", "m")),
        Column(name="kind", kind=Kind.CATEGORY, categories=("a", "b", "never")),
        Column(name="score", kind=Kind.NUMBER, lower=0.0, upper=10.0),
    ]
    public = rows if neighbours is not Neighbours.ADD_REMOVE else None
    return Schema(columns=tuple(columns), label=label, unit=unit, neighbours=neighbours, rows=public)


def table():
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal(ROWS)
    columns = {f"x{j}": 0.5 * hidden + 0.3 * rng.standard_normal(ROWS) for j in range(6)}
    columns["age"] = rng.integers(0, 101, ROWS)
    columns["sex"] = np.where(hidden > 0, "f", "m")
    columns["kind"] = np.where(hidden > 0.3, "a", "b")
    columns["score"] = np.clip(5 + 3 * hidden, 0, 10)
    return pa.table(columns)


def settle(config, declared):
    parts = settle_method(config, declared).parts
    return parts.space, parts.scales


def run(config, declared, engine=None):
    planned = plan(config, declared)
    grant = open_grant("test", planned.guarantee, planned.purposes, "")
    draft = draw(open_source(table(), declared), config, grant=grant, engine=engine or LocalEngine())
    return planned, draft


MODES = {"unsupervised": None, "supervised": "score", "gmm": "kind"}


@pytest.mark.parametrize(
    ("mode", "neighbours", "delta", "centring"),
    list(
        itertools.product(
            MODES, (Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE), (0.0, 1e-6), ("private", "public")
        )
    ),
)
def test_every_mode_relation_and_currency_releases_rows_in_the_schema(mode, neighbours, delta, centring):
    declared = schema(MODES[mode], neighbours)
    config = RONGaussConfig(
        epsilon=8.0, delta=delta, mode=mode, centring=centring, n_components=4, synthetic_rows=500
    )
    planned, draft = run(config, declared)
    rows = draft.tables["data"]
    assert rows.num_rows == 500
    assert set(rows.column_names) == set(declared.names)
    assert rows["x0"].to_numpy().min() >= -2.0
    assert rows["age"].type == pa.int64()
    assert planned.guarantee.neighbours is neighbours
    assert planned.guarantee.is_pure == (delta == 0)
    assert draft.arrays["covariances"].shape[1:] == (5, 5) if mode == "supervised" else (4, 4)
    for covariance in draft.arrays["covariances"]:
        assert np.linalg.eigvalsh(covariance).min() >= -1e-12


@pytest.mark.parametrize(
    ("covariance", "neighbours", "delta", "output"),
    list(
        itertools.product(
            ("class", "tied", "sphere"),
            (Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE),
            (0.0, 1e-6),
            ("columns", "projected"),
        )
    ),
)
def test_every_covariance_of_a_mixture_keeps_the_classes_apart(covariance, neighbours, delta, output):
    config = RONGaussConfig(
        epsilon=60.0,
        delta=delta,
        mode="gmm",
        covariance=covariance,
        n_components=6,
        synthetic_rows=3000,
        output=output,
    )
    planned, draft = run(config, schema("kind", neighbours))
    assert planned.notes[-1 if delta == 0 or covariance == "sphere" else -2].startswith(
        "Each class" if covariance == "class" else "All classes share one"
    )
    means, covariances = draft.arrays["means"], draft.arrays["covariances"]
    placed = draft.arrays["centres"] @ draft.arrays["projection"] + means
    gap = placed[0] - placed[1]
    assert gap @ gap > 4 * np.trace(covariances[0]) / 6  # class a lies away from class b
    assert (np.array_equal(covariances[0], covariances[1])) == (covariance != "class")
    if covariance == "sphere":
        assert np.allclose(covariances[0], covariances[0][0, 0] * np.eye(6))
    assert draft.facts["covariance"] == covariance
    assert draft.arrays["counts"][:2] == pytest.approx([1150, 1850], abs=120)
    assert draft.arrays["counts"][2] < 120  # nobody is in the class `never`
    assert draft.tables["data"].num_rows == 3000


def test_the_noise_is_calibrated_to_the_letter():
    config = RONGaussConfig(epsilon=1.0, delta=1e-6, mode="gmm", n_components=4, covariance="tied")
    _, settled = settle(config, schema())
    mu = mu_of(1.0, 1e-6)
    for purpose, share, bound in (("mean", 0.3, 4.25**0.5), ("gram", 0.7, 8**0.5)):
        wanted = bound / (mu * math.sqrt(share))
        assert settled.by_purpose[purpose].scale == pytest.approx(wanted, rel=1e-5)
        assert settled.by_purpose[purpose].scale >= wanted * (1 - 1e-12)
    pure = RONGaussConfig(epsilon=1.0, delta=0.0, n_components=4, rescale="normalise")
    _, settled = settle(pure, schema(None))
    width = 8 + 5  # numbers, and one-hot groups of 2 and 3
    assert settled.by_purpose["mean"].scale == pytest.approx(2 * width**0.5 / 0.3, rel=1e-5)
    assert settled.by_purpose["gram"].scale == pytest.approx(
        min(14**0.5, 4 / 2**0.5 + 1) / 0.7, rel=1e-5
    )
    assert set(settled.by_purpose) == {"mean", "gram"}
    short = RONGaussConfig(epsilon=1.0, delta=0.0, n_components=4, output="projected")
    _, settled = settle(short, schema(None))
    assert settled.by_purpose["mean"].scale == pytest.approx(4.5 / 0.05, rel=1e-5)


@pytest.mark.parametrize(
    ("neighbours", "bound"), [(Neighbours.REPLACE_ONE, 2.0), (Neighbours.ADD_REMOVE, 2**0.5)]
)
@pytest.mark.parametrize("mode", ["unsupervised", "gmm"])
def test_rows_of_length_1_buy_no_spread_and_keep_their_means(mode, neighbours, bound):
    declared = schema(MODES[mode], neighbours)
    covariance = "tied" if mode == "gmm" else "auto"
    config = RONGaussConfig(
        epsilon=1.0, mode=mode, n_components=4, rescale="normalise", covariance=covariance
    )
    space, settled = settle(config, declared)
    wanted = bound / (mu_of(1.0, 1e-6) * 0.3**0.5)
    assert settled.by_purpose["mean"].scale == pytest.approx(wanted, rel=1e-5)
    assert settled.by_purpose["mean"].scale >= wanted * (1 - 1e-12)
    _, draft = run(replace(config, epsilon=900.0, delta=1e-2), declared)
    (batch,) = open_source(table(), declared).batches(4096)
    encoder = Encoder(declared)
    encoded = encoder.encode(batch) / space.norm
    groups = [np.ones(ROWS, bool)]
    if mode == "gmm":
        groups = [encoder.labels(batch) == code for code in range(2)]
    for found, group in zip(draft.arrays["centres"], groups, strict=False):
        assert found == pytest.approx(encoded[group].mean(axis=0), abs=2e-3)


def test_plan_and_card_state_the_noise_on_and_off_the_diagonal():
    planned, draft = run(RONGaussConfig(epsilon=5.0, delta=1e-6, n_components=4), schema(None))
    lines = {line.purpose: line.scale for line in planned.noise}
    assert set(lines) == {"mean", "gram", "gram, entries off the diagonal"}
    assert lines["gram, entries off the diagonal"] == pytest.approx(lines["gram"] / 2**0.5)
    assert planned.purposes == ("mean", "gram")  # one noise call all the same
    assert any("1/sqrt(2)" in note for note in planned.notes)
    assert draft.noise == ()  # the plan's lines are the card's
    pure = plan(RONGaussConfig(epsilon=5.0, delta=0.0, n_components=4), schema(None))
    assert [line.purpose for line in pure.noise] == ["mean", "gram"]  # Laplace: one scale for all
    sphere = RONGaussConfig(epsilon=5.0, delta=1e-6, n_components=4, mode="gmm", covariance="sphere")
    assert [line.purpose for line in plan(sphere, schema()).noise] == ["mean", "gram"]


def test_a_supervised_pure_gram_uses_the_smaller_bound():
    config = RONGaussConfig(
        epsilon=1.0, delta=0.0, mode="supervised", n_components=10, centring="public"
    )
    _, settled = settle(config, schema("score"))
    root = 10**0.5
    blocks = min(65**0.5, 10 / 2**0.5 + 1) + 2 * (0.5 * root + 0.25 * root) + 0.25 + 2 * 0.125
    limit = 1 + 0.25 + 0.0625
    assert settled.by_purpose["gram"].scale == pytest.approx(
        min(blocks, limit * 90**0.5, limit * (12 / 2**0.5 + 1)), rel=1e-4
    )


def exact_noise(value, purpose, settled, _grant, _weights=None):
    return coarsen(value, settled.by_purpose[purpose].exponent).to_float()


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("mode", MODES)
def test_kept_rows_and_read_rows_give_the_same_release(mode, neighbours, monkeypatch):
    monkeypatch.setattr(sums, "_noisy", exact_noise)
    config = RONGaussConfig(epsilon=8.0, delta=1e-6, mode=mode, n_components=4)
    read, again = [], sums._Reader.second
    monkeypatch.setattr(sums._Reader, "second", lambda *x: read.append(limit) or again(*x))
    shown = []
    counting = LocalEngine(progress=lambda stage, done, _total: done or shown.append(stage))
    arrays = []
    for limit in (sums.KEPT_BYTES, 0):
        monkeypatch.setattr(sums, "KEPT_BYTES", limit)
        declared = schema(MODES[mode], neighbours)
        arrays.append(run(config, declared, counting)[1].arrays)
    stages = [stage for stage, _ in itertools.groupby(shown)]  # a private number of rows shows no part
    assert stages == 2 * ["private mean", "second moments"]
    assert set(read) == {0}  # rows that were kept are not read again
    for name in arrays[0]:
        assert np.array_equal(arrays[0][name], arrays[1][name])


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_wide_table_in_slices_give_the_same_release(mode, monkeypatch):
    """Classes and targets go along with their rows; a table of one slice is the other form."""
    monkeypatch.setattr(sums, "_noisy", exact_noise)
    config = RONGaussConfig(epsilon=8.0, delta=1e-6, mode=mode, n_components=4)
    arrays, sizes, joined = [], [], sums._joined
    monkeypatch.setattr(sums, "_joined", lambda found: sizes.append(len(found)) or joined(found))
    for values in (sources.SLICE_VALUES, 200):
        monkeypatch.setattr(sources, "SLICE_VALUES", values)
        arrays.append(run(config, schema(MODES[mode]))[1].arrays)
    assert min(sizes) == 1 < max(sizes)
    for name in arrays[0]:
        np.testing.assert_array_equal(arrays[0][name], arrays[1][name])


def test_a_kept_block_is_never_cut():
    block = sums.Projected(np.zeros((3, 2), np.float32), None, None)
    assert block.slice(0, 3) is block
    with pytest.raises(InvalidInput, match="a kept block is whole"):
        block.slice(0, 2)


def test_without_noise_the_moments_are_those_of_the_rows(monkeypatch):
    """Clipping far out and an exact statistic: means and covariances of the projected rows."""
    monkeypatch.setattr(sums, "_noisy", exact_noise)
    config = RONGaussConfig(
        epsilon=900.0, delta=1e-6, mode="gmm", n_components=5, clip_factor=16.0, covariance="class"
    )
    _, draft = run(config, schema())
    space, _ = settle(config, schema())
    source = open_source(table(), schema())
    (batch,) = source.batches(4096)
    encoder = Encoder(schema())
    rows = encoder.encode(batch) / space.norm @ space.matrix().to_float()
    labels = encoder.labels(batch)
    shift = draft.arrays["centres"] @ space.matrix().to_float()
    for code in (0, 1):
        mean = shift[code] + draft.arrays["means"][code]
        assert mean == pytest.approx(rows[labels == code].mean(axis=0), abs=2e-3)
        wanted = np.cov(rows[labels == code].T, bias=True)
        assert draft.arrays["covariances"][code] == pytest.approx(wanted, abs=2e-3)


def test_a_drowned_mean_is_not_believed():
    space, settled = settle(RONGaussConfig(epsilon=0.01, delta=1e-6, n_components=4), schema(None))
    rng = np.random.default_rng(0)
    deviation = settled.deviation("mean")
    noisy = deviation * rng.standard_normal(space.mean_width + 2)
    centre = centre_of(space, noisy, deviation, 50)
    assert np.linalg.norm(centre.means) < 0.6 * np.linalg.norm(noisy[:-2] / 50)
    assert 0 < centre.clip <= 2 * space.radius
    still = centre_of(space, np.zeros(space.mean_width + 2), deviation, 50)
    assert np.linalg.norm(still.means) == 0
    assert still.clip > 0


def test_slopes_are_those_of_a_ridge_at_the_edge():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4000, 3)) * [1.0, 0.5, 1e-3]
    y = x @ [0.3, -0.4, 0.0] + 0.1 * rng.standard_normal(4000)
    joint = np.cov(np.c_[x, y].T)
    made = regression_covariance(joint, edge=0.01)
    assert np.linalg.eigvalsh(made).min() > 0
    assert np.linalg.solve(made[:-1, :-1], made[:-1, -1]) == pytest.approx([0.3, -0.4, 0.0], abs=0.02)
    assert made[2, 2] == pytest.approx(0.02)  # a variance below the edge is raised to twice the edge
    assert made[-1, -1] == pytest.approx(joint[-1, -1], rel=0.05)
    drowned = joint.copy()
    drowned[-1, -1] = -1.0  # noise may do that to a variance
    assert np.linalg.eigvalsh(regression_covariance(drowned, edge=0.01)).min() > 0


@pytest.mark.parametrize(
    ("delta", "rows", "classes", "wanted"),
    [
        (0.0, 1_000, 20, "sphere"),  # Laplace noise and few rows a class: no Gram is bought
        (1e-6, 1_000, 20, "tied"),
        (1e-6, 5_000_000, 2, "class"),
        (0.0, None, 20, "tied"),  # the number of rows is not public
    ],
)
def test_the_covariance_of_a_mixture_is_chosen_from_public_numbers(delta, rows, classes, wanted):
    features = Schema.numeric(60, 0.0, 1.0).columns
    label = Column(name="y", kind=Kind.CATEGORY, categories=tuple(map(str, range(classes))))
    relation = Neighbours.REPLACE_ONE if rows else Neighbours.ADD_REMOVE
    declared = Schema(
        columns=(*features, label), label="y", unit=Unit.ROW, neighbours=relation, rows=rows
    )
    config = RONGaussConfig(
        epsilon=1.0, delta=delta, mode="gmm", n_components="auto" if rows else 8, output="projected"
    )
    space, _ = settle(config, declared)
    assert space.covariance == wanted


def test_the_model_finds_what_is_there_when_there_is_budget():
    config = RONGaussConfig(epsilon=900.0, delta=1e-2, mode="gmm", n_components=9, synthetic_rows=4000)
    _, draft = run(config, schema())
    rows = draft.tables["data"].to_pandas()
    counts = rows["kind"].value_counts()
    real = table().to_pandas()
    assert counts["a"] / 4000 == pytest.approx((real["kind"] == "a").mean(), abs=0.03)
    assert counts.get("never", 0) <= 4
    for label in ("a", "b"):
        got = rows.loc[rows["kind"] == label, "x0"].mean()
        assert got == pytest.approx(real.loc[real["kind"] == label, "x0"].mean(), abs=0.1)


def test_a_regression_on_synthetic_rows_works():
    config = RONGaussConfig(
        epsilon=900.0, delta=1e-2, mode="supervised", n_components=12, synthetic_rows=4000
    )
    _, draft = run(config, schema("score"))
    rows, real = draft.tables["data"].to_pandas(), table().to_pandas()
    columns = [f"x{j}" for j in range(6)]
    weights, *_ = np.linalg.lstsq(np.c_[rows[columns], np.ones(4000)], rows["score"], rcond=None)
    error = np.c_[real[columns], np.ones(ROWS)] @ weights - real["score"]
    assert np.sqrt((error**2).mean()) < 0.6 * real["score"].std()


def test_projected_rows_and_unit_rows():
    config = RONGaussConfig(
        epsilon=5.0,
        delta=1e-6,
        mode="gmm",
        n_components=3,
        output="projected",
        unit_rows=True,
        rescale="normalise",
    )
    _, draft = run(config, schema())
    assert draft.tables["data"].column_names == ["y1", "y2", "y3", "label"]
    assert draft.tables["data"].num_rows == ROWS
    config = RONGaussConfig(
        epsilon=5.0, delta=1e-6, mode="supervised", n_components=2, output="projected"
    )
    _, draft = run(config, schema("score"))
    assert draft.tables["data"].column_names == ["y1", "y2", "target"]


def test_add_remove_sizes_come_from_the_noisy_count():
    declared = schema(None, Neighbours.ADD_REMOVE)
    _, draft = run(RONGaussConfig(epsilon=9.0, delta=1e-6, n_components=2), declared)
    noisy = float(draft.arrays["counts"][0])
    assert noisy != round(noisy) or noisy != ROWS  # on the grid of the noise, not a count of rows
    assert draft.tables["data"].num_rows == round(noisy) == pytest.approx(ROWS, abs=60)


def test_the_plan_shows_noise_to_signal_and_picks_the_dimension_by_the_public_rule():
    planned = plan(RONGaussConfig(epsilon=1.0, delta=1e-6), schema(None))
    ratios = {
        row["n_components"]: row["noise_to_signal"]
        for row in planned.details["noise_to_signal_by_n_components"]
    }
    assert sorted(ratios.values()) == list(ratios.values())
    assert planned.expected["noise_to_signal"] == ratios[planned.expected["n_components"]]
    assert "Noise is" in planned.notes[0]
    drowned = plan(RONGaussConfig(epsilon=0.01, delta=1e-6, n_components=8), schema(None, rows=50))
    assert any("Noise would dominate" in note for note in drowned.notes)
    classes = plan(RONGaussConfig(epsilon=1.0, delta=0.0, mode="gmm", covariance="sphere"), schema())
    assert classes.notes[0].startswith("Noise moves the mean of an average class by")
    assert classes.expected["class_mean_noise"] > 0
    assert any(row["noise_to_signal"] > 0 for row in classes.details["noise_to_signal_by_n_components"])
    blind = plan(
        RONGaussConfig(epsilon=1.0, delta=1e-6, n_components=3), schema(None, Neighbours.ADD_REMOVE)
    )
    assert not any("Noise" in note for note in blind.notes)


def test_noise_to_signal_of_the_papers_table():
    """GFE's size, p=10, eps 0.7: at most .06 pure and .021 Gaussian; docs/explanation/ron-gauss.md."""
    wide = Schema.numeric(301, -1.0, 1.0, rows=27_936)
    for delta, most in ((0.0, 0.06), (1e-6, 0.021)):
        config = RONGaussConfig(
            epsilon=0.7, delta=delta, centring="public", n_components=10, row_norm=1.0
        )
        space, _ = settle(config, wide)
        # the centred Gram alone, without the constant that public centring puts beside it
        private = RONGaussConfig(epsilon=0.7, delta=delta, n_components=10, mean_share=1e-9)
        assert plan(private, wide).expected["noise_to_signal"] <= most
        assert space.private_centring is False


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"n_components": 0}, "n_components=0: must be auto or at least 1"),
        ({"mean_share": 0.0}, "mean_share=0.0: must lie between 0 and 1"),
        ({"mean_share": 1.0}, "mean_share=1.0: must lie between 0 and 1"),
        ({"clip_tail": 0.0}, "clip_tail=0.0: must lie between 0 and 1"),
        ({"clip_factor": 0.0}, "clip_factor=0.0: must be above 0"),
        ({"covariance": "sphere", "centring": "public"}, "covariance=sphere: needs the spread"),
        ({"synthetic_rows": 0}, "synthetic_rows=0: must be at least 1"),
        ({"expected_rows": -1}, "expected_rows=-1: must be at least 1"),
        ({"matrix_seed": -1}, "matrix_seed=-1: must be 0 or above"),
        ({"sample_seed": -1}, "sample_seed=-1: must be 0 or above"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"mode": "GMM"}, "mode='GMM': must be one of unsupervised, supervised, gmm"),
        ({"centring": "Private"}, "centring='Private': must be one of private, public"),
        ({"rescale": "normalize"}, "rescale='normalize': must be one of clip, normalise"),
    ],
)
def test_a_config_is_valid_once_built(change, text):
    with pytest.raises(InvalidInput, match=text):
        RONGaussConfig(**{"epsilon": 1.0, **change})


def test_what_has_no_proof_or_no_label_is_refused():
    with pytest.raises(Unsupported, match="unit=element: RON-Gauss clips whole rows"):
        plan(
            RONGaussConfig(epsilon=1.0, delta=0.0),
            Schema.numeric(3, 0, 1, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT),
        )
    with pytest.raises(InvalidInput, match="mode=gmm: needs a label"):
        plan(RONGaussConfig(epsilon=1.0, delta=0.0, mode="gmm"), schema(None))
    single = Column(name="kind", kind=Kind.CATEGORY, categories=("only",))
    columns = tuple(single if each.name == "kind" else each for each in schema().columns)
    with pytest.raises(InvalidInput, match="label=kind: has one value only"):
        plan(
            RONGaussConfig(epsilon=1.0, delta=0.0, mode="supervised"), replace(schema(), columns=columns)
        )
    with pytest.raises(InvalidInput, match="n_components=auto: needs the number of rows"):
        plan(RONGaussConfig(epsilon=1.0, delta=0.0), schema(None, Neighbours.ADD_REMOVE))
    with pytest.raises(InvalidInput, match="n_components=99: must be at most"):
        plan(RONGaussConfig(epsilon=1.0, delta=0.0, n_components=99), schema(None))
    with pytest.raises(InvalidInput, match=r"row_norm=-1\.0: must lie between"):
        plan(RONGaussConfig(epsilon=1.0, delta=0.0, n_components=2, row_norm=-1.0), schema(None))


def test_a_plan_of_many_columns_weighs_no_gram_of_all_of_them():
    columns = tuple(
        Column(name=f"x{at}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for at in range(30_000)
    )
    wide = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, rows=10**9)
    settled = settle_method(RONGaussConfig(epsilon=50.0, delta=1e-6), wide)
    assert 1 < settled.parts.space.components <= 4096
