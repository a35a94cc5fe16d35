"""JL + Laplace: refusals, the smallest proven scale, a matrix that leaves no trace."""

import json
import math

import numpy as np
import pytest

from adumbra import matrices, workflow
from adumbra.errors import InvalidInput, NoiseKeyReused
from adumbra.mechanisms.projection import forecast
from adumbra.mechanisms.projection import rows as projected
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.plan import (
    calibrate_laplace_rows,
    preview_projection,
    secret_projection,
)
from adumbra.postprocess.distances import DistanceModel
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.statistics.projection_sensitivity import element_sensitivity, l2_ball_l1
from support.projection import items, mixed, numbers, released

X = np.random.default_rng(0).uniform(-1, 3, size=(5000, 30))


def config(**options):
    return JLLaplaceConfig(**{"n_components": 6, "epsilon": 1.0, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0: must be at least 1"),
        ({"family": "fourier"}, "family=fourier: unknown; use auto or one of"),
        ({"delta": 1e-6}, "delta=1e-06: the guarantee is pure; leave it out, or use dppro"),
        ({"epsilon": -1.0}, "epsilon=-1"),
        ({"clip_tail": 1.5}, r"clip_tail=1\.5: must lie between 0 and 1"),
    ],
)
def test_a_config_is_valid_once_built(options, message):
    with pytest.raises(InvalidInput, match=message):
        config(**options)


def test_an_element_costs_one_over_epsilon_whatever_k_is():
    for k, epsilon in ((2, 1.0), (20, 1.0), (200, 0.5)):
        noise = workflow.plan(config(n_components=k, epsilon=epsilon), numbers(300, "element")).noise[0]
        assert noise.sensitivity == 1.0
        assert noise.scale == 1.0 / epsilon


def test_a_category_costs_the_farthest_pair_of_rows():
    planned = workflow.plan(config(), mixed("element"))
    assert planned.noise[0].sensitivity == 2.0
    assert any("The noise scale follows the secret matrix" in note for note in planned.notes)


def test_the_secret_matrix_settles_the_scale_of_a_dense_family():
    schema, setting = numbers(30, "element"), config(family="gaussian")
    planned = workflow.plan(setting, schema)
    _, draft = released(X[:10], schema, setting, seed=5)
    space = projected.row_space(schema, None)
    matrix = secret_projection(setting, space, fixed_grant(5, None, planned.purposes).key("matrix"))
    exact = element_sensitivity(matrix).l1
    assert exact <= draft.noise[0].sensitivity <= exact * (1 + 1e-6)
    assert draft.noise[0].scale != planned.noise[0].scale
    assert any("The noise scale follows the secret matrix" in note for note in planned.notes)


def test_rows_take_the_smallest_proven_sensitivity():
    schema = numbers(30)
    clipped = workflow.plan(config(), schema).noise[0]
    assert clipped.sensitivity == pytest.approx(
        2 * matrices.clip_radius("haar", 30, 6) * math.sqrt(6), rel=1e-9
    )
    # A count-sketch of 30 columns into 20 has max |R s|_2 = sqrt(30) < r sqrt(20): no clip is better.
    setting = config(family="sparse", n_components=20)
    space = projected.row_space(schema, None)
    noise = calibrate_laplace_rows(setting, space, preview_projection(setting, space))
    assert noise.radius is None
    assert noise.calibrated.sensitivity == pytest.approx(2 * math.sqrt(30), rel=1e-6)
    assert l2_ball_l1(preview_projection(setting, space), 2.0) == pytest.approx(2 * math.sqrt(30))
    assert released(X[:10], schema, setting)[0].shape == (10, 20)


def test_the_matrix_is_drawn_once_from_the_secret_and_never_leaves():
    schema = numbers(30, "element")
    space = projected.row_space(schema, None)
    planned = workflow.plan(config(), schema)
    assert planned.purposes == ("matrix", "rows")
    grant = fixed_grant(3, None, planned.purposes)
    first = secret_projection(config(), space, grant.key("matrix"))
    again = secret_projection(config(), space, grant.key("matrix"))
    assert np.array_equal(first.units, again.units)
    assert first.seed is None
    other = secret_projection(config(), space, fixed_grant(4, None, planned.purposes).key("matrix"))
    assert not np.array_equal(first.units, other.units)
    with pytest.raises(NoiseKeyReused):
        secret_projection(config(n_components=7), space, grant.key("matrix"))
    rows, draft = released(X, schema, config(), seed=3)
    assert draft.arrays == {}
    assert (list(draft.tables), list(draft.pending)) == ([], ["data"])
    text = json.dumps(draft.facts)
    assert "never written" in text
    assert "seed" not in text
    assert rows.shape == (5000, 6)


@pytest.mark.parametrize("unit", ["row", "element"])
def test_a_release_is_on_its_grid_with_the_variance_it_states(unit):
    rows, draft = released(X, numbers(30, unit), config())
    noise, model = draft.noise[0], DistanceModel.from_facts(draft.facts["distances"])
    assert np.array_equal(np.rint(rows / noise.grid), rows / noise.grid)
    assert model.noise.variance == pytest.approx(2 * noise.scale**2, rel=1e-6)
    assert model.noise.fourth == pytest.approx(12 * noise.scale**4, rel=1e-4)


def test_plans_compare_numbers_of_components():
    rows = workflow.plan(config(), numbers(30))
    assert rows.expected["best_n_components"] == 1.0  # the noise of a row grows with k
    cells = workflow.plan(config(epsilon=20.0, distance_guess=4.0), numbers(30, "element"))
    assert cells.expected["best_n_components"] == 30.0
    assert cells.expected["guessed_squared_distance"] == 4.0
    dense = workflow.plan(config(family="rademacher"), numbers(30, "element"))
    assert dense.noise[0].sensitivity == pytest.approx(math.sqrt(6), rel=1e-5)
    assert not any("The secret matrix settles" in note for note in dense.notes)
    whole = workflow.plan(config(family="identity", n_components=30), numbers(30, "element"))
    assert whole.expected["best_n_components"] == 30.0
    sets = workflow.plan(config(), items(5, "element"))
    assert sets.expected["guessed_squared_distance"] == 5.0
    mixture = workflow.plan(config(), mixed())
    assert mixture.expected["guessed_squared_distance"] == pytest.approx(2 / 6 + 2 * (1 - 1 / 4) + 1 / 2)
    with pytest.raises(InvalidInput, match="distance_guess=0: must be above 0"):
        workflow.plan(config(distance_guess=0), numbers(30))


def test_a_plan_says_when_no_projection_is_better():
    def notes(schema, **options):
        return " ".join(workflow.plan(config(**options), schema).notes)

    better = "No projection at all is better still: family=identity, n_components=30"
    assert better in notes(numbers(30, "element"), epsilon=8.0)
    assert better not in notes(numbers(30, "element"), epsilon=0.5)
    assert better not in notes(numbers(30, "element"), epsilon=8.0, family="identity", n_components=30)
    gaussian = workflow.plan(DPProConfig(n_components=6, epsilon=90.0, delta=1e-6), mixed("element"))
    assert any("family=identity, n_components=7" in note for note in gaussian.notes)


def test_the_ladder_of_components_ends_at_the_width():
    assert forecast.component_ladder(1, "haar") == [1]
    ladder = forecast.component_ladder(1000, "haar")
    assert ladder[:5] == [1, 2, 3, 4, 5]
    assert ladder[-1] == 1000
    assert len(ladder) < 120


def test_a_squared_distance_at_k_20_epsilon_1_and_rho2_4_has_variance_below_1300():
    schema = numbers(100, "element")
    _, draft = released(X[:1].repeat(4, axis=1)[:, :100], schema, config(n_components=20))
    model = DistanceModel.from_facts(draft.facts["distances"])
    assert float(model.variance(np.array(4.0))) <= 1.3e3
