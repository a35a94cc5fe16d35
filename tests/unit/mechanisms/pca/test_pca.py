"""PCA publishing: refusals, bounds of a row, order kept, the mean against rows, one set of bits."""

import math
from dataclasses import replace

import numpy as np
import pytest

from adumbra import workflow
from adumbra.data.encode import Encoder
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.pca.config import PCAConfig, budget_parts
from adumbra.mechanisms.pca.forecast import mean_is_better, variance_limit
from adumbra.mechanisms.pca.plan import settle
from adumbra.mechanisms.pca.rows import LEAST_RADIUS, calibrate_rows
from adumbra.postprocess.subspace import Subspace, leading_subspace, shrinkage
from adumbra.privacy.conversion import mu_of
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from adumbra.statistics.box_moments import shape_of
from support.components import ADD, draft_of, mixed, released, table

BASE = {"n_components": 2, "epsilon": 1.0, "delta": 0.0}
GAUSSIAN = {**BASE, "delta": 1e-6}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": -1}, "n_components=-1"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"moments_share": 1.0}, "moments_share=1.0"),
        ({"clip_deviations": math.inf}, "clip_deviations=inf"),
        ({"clip_deviations": 0.0}, "clip_deviations=0.0"),
        ({"synthetic_rows": 0}, "synthetic_rows=0"),
        ({"sample_seed": -1}, "sample_seed=-1"),
    ],
)
def test_a_bad_config_is_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        PCAConfig(**{**BASE, **options})


def test_a_schema_without_proof_is_refused():
    with pytest.raises(Unsupported, match="add-remove"):
        workflow.plan(PCAConfig(**BASE), mixed(ADD))
    assert workflow.plan(PCAConfig(**BASE, output="sample"), mixed(ADD)).purposes == ("moments",)
    element = Schema.numeric(2, 0, 1, unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT)
    with pytest.raises(Unsupported, match="unit=element"):
        workflow.plan(PCAConfig(**BASE), element)
    with pytest.raises(InvalidInput, match="at most the 12"):
        workflow.plan(PCAConfig(n_components=13, epsilon=1.0, delta=0.0), mixed())


def test_the_budget_is_split_and_never_exceeded():
    moments, rows = budget_parts(PCAConfig(**BASE, moments_share=0.3))
    assert moments + rows <= 1.0
    assert moments == pytest.approx(0.3)
    moments, rows = budget_parts(PCAConfig(**GAUSSIAN, moments_share=0.3))
    assert moments**2 + rows**2 <= mu_of(1.0, 1e-6) ** 2
    assert budget_parts(PCAConfig(n_components=0, epsilon=1.0, delta=0.0)) == (1.0, 0.0)
    assert budget_parts(PCAConfig(**BASE, output="sample")) == (1.0, 0.0)


@pytest.mark.parametrize("bound", ["auto", "basis", "clip"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("shrink", [False, True])
def test_rows_keep_their_order_columns_and_types(bound, delta, shrink):
    schema, data = mixed(), table(5000)
    radius = {} if bound == "basis" else {"clip_deviations": 2.5}
    config = PCAConfig(n_components=9, epsilon=1000.0, delta=delta, bound=bound, shrink=shrink, **radius)
    out = released(draft_of(data, schema, config))
    assert out.column_names == list(schema.names)
    assert out.num_rows == 5000
    ours, theirs = out["n"].to_numpy(), data["n"].to_numpy()
    assert np.corrcoef(ours, theirs)[0, 1] > 0.5  # row i of the release is about row i of the table
    assert np.mean(np.array(out["flag"]) == np.array(data["flag"])) > 0.9


def test_the_mean_alone_is_one_row_for_all():
    out = released(draft_of(table(700), mixed(), PCAConfig(n_components=0, epsilon=1.0, delta=0.0)))
    assert out.num_rows == 700
    assert len(out.to_pandas().drop_duplicates()) == 1


def test_a_sample_follows_the_synopsis():
    draft = draft_of(
        table(20000), mixed(ADD), PCAConfig(n_components=8, epsilon=500.0, delta=0.0, output="sample")
    )
    out = released(draft)
    assert abs(out.num_rows - 20000) < 100
    real = np.clip(np.nan_to_num(table(20000)["a"].to_numpy(zero_copy_only=False), nan=5.0), 0, 10)
    assert out["a"].to_numpy().mean() == pytest.approx(real.mean(), abs=0.3)
    fixed = draft_of(table(100), mixed(), PCAConfig(**BASE, output="sample", synthetic_rows=17))
    assert released(fixed).num_rows == 17
    assert fixed.arrays["components"].shape[1] == 12


def test_a_basis_without_variance_releases_the_mean():
    """Noise can leave no positive direction: then there is nothing to noise, and no key is used."""
    schema = Schema.numeric(1, 0.0, 1.0)
    for seed in range(60):
        draft = draft_of(
            np.full((50, 1), 0.5), schema, PCAConfig(n_components=1, epsilon=1.0, delta=0.0), seed=seed
        )
        assert released(draft).num_rows == 50
        if draft.facts["components_found"] == 0:
            assert len(draft.noise) == 1
            return
    pytest.fail("no seed left the direction without variance")


def test_auto_takes_the_smaller_noise_and_the_card_shows_the_drawn_one():
    shape = shape_of(Encoder(Schema.numeric(6, 0, 1)))
    narrow = Subspace(np.zeros(6), np.eye(6)[:, :2], np.array([1e-3, 1e-3]))
    wide = Subspace(np.zeros(6), np.eye(6)[:, :2], np.array([0.2, 0.2]))
    assert calibrate_rows(PCAConfig(**BASE), shape, narrow).radius is not None
    assert calibrate_rows(PCAConfig(**BASE), shape, wide).radius is None
    basis = calibrate_rows(PCAConfig(**BASE, bound="basis"), shape, wide)
    assert basis.scale.scale == pytest.approx(2.0 / 0.5, rel=1e-6)  # two numbers, each moves by 1
    assert basis.variance == 2 * basis.scale.scale**2
    tiny = Subspace(np.zeros(6), np.eye(6)[:, :1], np.array([1e-30]))
    clipped = calibrate_rows(
        PCAConfig(n_components=1, epsilon=1.0, delta=0.0, bound="clip"), shape, tiny
    )
    assert clipped.radius == LEAST_RADIUS
    gaussian = calibrate_rows(PCAConfig(**GAUSSIAN, bound="clip"), shape, wide)
    assert gaussian.variance == gaussian.scale.scale**2
    draft = draft_of(table(500), mixed(), PCAConfig(**BASE))
    assert [noise.purpose for noise in draft.noise] == ["moments", "rows"]
    assert draft.noise[1].scale <= workflow.plan(PCAConfig(**BASE), mixed()).noise[1].scale


def test_the_same_bits_on_any_engine_and_layout():
    schema, data, config = mixed(), table(9000), PCAConfig(n_components=3, epsilon=1.0, delta=0.0)
    first = draft_of(data, schema, config, engine=LocalEngine(threads=1, rows_per_block=4096))
    second = draft_of(data, schema, config, engine=LocalEngine(threads=2, rows_per_block=8192))
    assert released(first).equals(released(second))


@pytest.mark.parametrize(
    ("config", "better"),
    [
        (PCAConfig(n_components=1, epsilon=5.6, delta=0.0, bound="basis"), True),
        (PCAConfig(n_components=1, epsilon=5.7, delta=0.0, bound="basis"), False),
        (PCAConfig(n_components=1, epsilon=16.9, delta=0.0, bound="clip"), True),
        (PCAConfig(n_components=1, epsilon=17.0, delta=0.0, bound="clip"), False),
        (PCAConfig(n_components=2, epsilon=17.0, delta=0.0, bound="clip"), True),
        (PCAConfig(n_components=3, epsilon=1.0, delta=1e-6), True),
        (PCAConfig(n_components=3, epsilon=100.0, delta=1e-6), False),
    ],
)
def test_the_plan_says_when_the_mean_is_better(config, better):
    assert mean_is_better(config) is better
    notes = workflow.plan(config, mixed()).notes
    assert any("k=0 has the smaller expected error" in note for note in notes) is better


def test_the_plan_of_shrunk_rows_and_of_no_rows():
    assert "shrunk" in workflow.plan(PCAConfig(**BASE, shrink=True), mixed()).notes[1]
    (mean,) = workflow.plan(
        PCAConfig(n_components=0, epsilon=1.0, delta=0.0), replace(mixed(), rows=1000)
    ).notes
    assert mean.startswith("The mean of each column is off by about ")
    assert variance_limit(Encoder(mixed(label=None))) == pytest.approx(3 / 4 + 3 / 4 + 2 / 3 + 1 / 2)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_plan_of_a_sample_says_how_wrong_it_will_be(delta):
    config = PCAConfig(n_components=2, epsilon=1.0, delta=delta, output="sample")
    (unknown,) = workflow.plan(config, mixed()).notes
    assert "declare rows in the schema, or plan with --data" in unknown
    assert workflow.plan(config, mixed(ADD)).notes == (
        "Errors fall as 1 / rows; how many there are is private here.",
    )
    few, many = (workflow.plan(config, replace(mixed(), rows=rows)) for rows in (20, 2 * 10**5))
    assert few.notes[-1].startswith("Directions would be noise alone")
    assert "so that at most 0 of 2 can be found" in few.notes[1]
    assert "so that at most 2 of 2 can be found" in many.notes[1]
    for name in ("mean_error", "second_moment_error", "spectral_edge"):
        assert few.expected[name] == pytest.approx(1e4 * many.expected[name])
    rows, schema = table(5000), mixed()
    planned = workflow.plan(config, replace(schema, rows=5000))
    drawn = [draft_of(rows, schema, config, seed=seed).arrays["mean"] for seed in range(3)]
    exact = draft_of(rows, schema, replace(config, epsilon=900.0)).arrays["mean"]
    spread = np.sqrt(np.mean([(each - exact) ** 2 for each in drawn]))
    assert 0.5 * planned.expected["mean_error"] < spread < 2.0 * planned.expected["mean_error"]


def test_every_line_of_noise_has_its_own_name():
    gauss = PCAConfig(n_components=2, epsilon=1.0, delta=1e-6, output="sample")
    for relation, counted in ((Neighbours.REPLACE_ONE, False), (ADD, True)):
        names = [noise.purpose for noise in workflow.plan(gauss, mixed(relation)).noise]
        assert names[0] == "moments, squares of a number"
        assert len(set(names)) == len(names)
        assert ("moments, counts" in names) is counted


def test_the_mean_really_is_better_below_the_threshold():
    """Box rows of the largest variance, one direction, no decoding: noise beats the variance saved."""
    x = np.random.default_rng(0).choice([-0.5, 0.5], (20000, 1))
    found = leading_subspace(np.zeros(1), np.array([[0.25]]), 1)
    shape = shape_of(Encoder(Schema.numeric(1, 0, 1)))
    for epsilon, better in ((5.5, True), (5.8, False)):
        config = PCAConfig(n_components=1, epsilon=epsilon, delta=0.0, bound="basis")
        noise = calibrate_rows(config, shape, found)
        assert bool(noise.variance > np.mean(x**2)) is better


def test_directions_end_where_variance_does():
    found = leading_subspace(np.zeros(3), np.diag([0.2, -0.1, 0.1]), 3)
    assert found.variances == pytest.approx([0.2, 0.1])
    assert np.all(found.directions.max(axis=0) > 0)
    assert leading_subspace(np.zeros(2), -np.eye(2), 2).directions.shape == (2, 0)
    with pytest.raises(InvalidInput, match="n_components=4"):
        leading_subspace(np.zeros(3), np.eye(3), 4)
    assert shrinkage(np.array([1.0, 3.0]), 1.0) == pytest.approx([0.5, 0.75])


@pytest.mark.parametrize(
    ("options", "proviso", "threshold"),
    [
        ({"bound": "basis"}, "whatever the data", "mu=2;"),
        ({"bound": "clip"}, "if the released variances are about right", "mu=6;"),
        (
            {"bound": "auto", "clip_deviations": 0.9},
            "if the released variances are about right",
            "mu=1.8;",
        ),
    ],
)
def test_the_note_on_the_mean_says_of_which_data_and_budgets_it_is_true(options, proviso, threshold):
    """It said `whatever the data` and `below mu=2` of clips too, which follow noisy variances."""
    config = PCAConfig(n_components=2, epsilon=1.0, **options)
    notes = settle(config, replace(Schema.numeric(4, 0, 1), rows=100)).plan.notes
    assert any(note.endswith(f"k=0 has the smaller expected error, {proviso}.") for note in notes)
    assert any(f"for every k below {threshold}" in note for note in notes)


@pytest.mark.parametrize("bound", ["basis", "clip", "auto"])
def test_rows_whose_noise_cannot_be_drawn_are_refused_by_the_plan(bound):
    """The moments could be drawn: so the plan passed, and the rows were refused after the charge."""
    schema = replace(Schema.numeric(3, 0, 1), rows=100)
    config = PCAConfig(n_components=3, epsilon=1e-9, delta=0.0, bound=bound, moments_share=0.9985)
    with pytest.raises(InvalidInput, match=r"epsilon: too small; one statistic .* 1.5e-12 of it"):
        settle(config, schema)
    assert settle(replace(config, moments_share=0.5), schema).plan.notes
