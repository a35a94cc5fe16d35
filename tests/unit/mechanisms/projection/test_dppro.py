"""DPPro and what it shares with JL + Laplace: refusals, calibration, plan, and exact products."""

import math

import numpy as np
import pytest
from published.projections import theorem_2_sigma
from scipy.stats import beta, chi2

from adumbra import matrices, workflow
from adumbra.data.bounds import clip_projected
from adumbra.data.sources import Batch
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, Unsupported
from adumbra.matrices import ProjectionMatrix
from adumbra.mechanisms.projection import rows as projected
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.mechanisms.projection.plan import public_projection
from adumbra.postprocess.distances import DistanceModel
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics.projection_sensitivity import element_sensitivity
from support.accounting import curve
from support.projection import PAIRS, SetSource, items, mixed, numbers, released, set_batch

X = np.random.default_rng(0).uniform(-1, 3, size=(5000, 30))


def config(**options):
    return DPProConfig(**{"n_components": 6, "epsilon": 1.0, "delta": 1e-5, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0: must be at least 1"),
        ({"family": "fourier"}, "family=fourier: unknown; use auto or one of"),
        ({"delta": 0.0}, "delta=0: DPPro's noise is Gaussian; give a delta, or use jl-laplace"),
        ({"epsilon": 0.0}, "epsilon=0"),
        ({"clip_tail": 0.0}, "clip_tail=0.0: must lie between 0 and 1"),
        ({"clip_tail": 1.0}, "clip_tail=1.0: must lie between 0 and 1"),
        ({"matrix_seed": -1}, "matrix_seed=-1: must be 0 or above"),
    ],
)
def test_a_config_is_valid_once_built(options, message):
    with pytest.raises(InvalidInput, match=message):
        config(**options)


def test_row_clipping_of_elements_is_refused_with_the_reason():
    with pytest.raises(
        Unsupported, match=r"row_norm=2\.0 with neighbours=one-element: shortening a row moves its other"
    ):
        workflow.plan(config(row_norm=2.0), numbers(30, "element"))


def test_a_private_number_of_rows_is_refused_with_the_reason():
    schema = Schema.numeric(3, 0.0, 1.0, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(
        Unsupported, match="a row-by-row release shows the number of rows; declare replace-one"
    ):
        workflow.plan(config(n_components=2), schema)


def test_row_norms_must_make_sense():
    for row_norm in (0.0, math.inf):
        with pytest.raises(InvalidInput, match="must be finite and above 0"):
            projected.row_space(numbers(3), row_norm)
    with pytest.raises(
        InvalidInput, match="item sets need one; row_norm=4 keeps rows of 16 items whole"
    ):
        projected.row_space(items(50), None)
    assert projected.row_space(items(50), 4).norm == 4.0
    assert projected.row_space(numbers(16), None).norm == 2.0  # sqrt(16 / 4): no row is longer
    assert projected.row_space(mixed(), None).norm == pytest.approx(math.sqrt(3 / 4 + 1))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (1.0, 1e-3), (8.0, 1e-9)])
@pytest.mark.parametrize("unit", ["row", "element"])
def test_sigma_is_the_analytic_gaussian_at_the_sensitivity_and_never_below(epsilon, delta, unit):
    schema = numbers(30, unit)
    setting = config(epsilon=epsilon, delta=delta, n_components=20)
    noise = workflow.plan(setting, schema).noise[0]
    mu = noise.sensitivity / noise.scale
    assert curve(mu, epsilon) <= delta
    assert curve(mu * (1 + 1e-9), epsilon) > delta
    space = projected.row_space(schema, None)
    lengths = np.linalg.norm(public_projection(setting, space).to_float(), axis=1)
    exact = lengths.max() if unit == "element" else 2 * matrices.clip_radius("haar", 30, 20)
    assert exact * (1 - 1e-15) <= noise.sensitivity <= exact * (1 + 1e-9)


def test_a_dense_matrix_pays_for_the_rounding_to_its_grid():
    schema, setting = numbers(30, "element"), config(family="sphere")
    noise = workflow.plan(setting, schema).noise[0]
    matrix = public_projection(setting, projected.row_space(schema, None))
    exact = element_sensitivity(matrix).l2
    assert noise.sensitivity >= exact + noise.grid * math.sqrt(6) * (1 - 1e-12)
    assert noise.sensitivity <= exact * (1 + 1e-7)


def test_at_epsilon_one_the_noise_is_3_731_sensitivities_where_theorem_2_asks_4_862():
    noise = workflow.plan(config(), numbers(30)).noise[0]
    assert round(noise.scale / noise.sensitivity, 3) == 3.731
    assert round(theorem_2_sigma(1.0, 1.0, 1e-5), 3) == 4.862


def test_radii_are_quantiles_of_their_laws():
    radius = matrices.clip_radius
    assert radius("gaussian", 100, 20) == pytest.approx(math.sqrt(chi2.ppf(0.999, 20) / 20), rel=1e-9)
    assert round(radius("gaussian", 100, 20), 3) == 1.505
    assert radius("sparse", 100, 20) == radius("gaussian", 100, 20)
    haar = math.sqrt(5 * beta.ppf(0.999, 10, 40))
    assert radius("haar", 100, 20) == pytest.approx(haar, rel=1e-9)
    assert radius("haar", 20, 20) == radius("identity", 20, 20) == 1.0
    with pytest.raises(InvalidInput, match="clip_tail=2: must lie between 0 and 1"):
        radius("haar", 100, 20, 2)


@pytest.mark.parametrize("radius", [0.7, 1.0, 1.3333, 4.0])
def test_the_clip_grid_is_the_one_that_the_clip_uses(radius):
    clipped = clip_projected(np.full((1, 2), 2.0**40), projected.EXACT_EXPONENT, radius)
    assert clipped.exponent == projected.clip_exponent(radius)


def test_families_follow_the_unit():
    choose = projected.default_family
    rows, cells = (projected.row_space(numbers(30, unit), None) for unit in ("row", "element"))
    assert choose("auto", rows, 30, grouped="sphere") == "haar"
    assert choose("auto", rows, 31, grouped="sphere") == "gaussian"
    assert choose("auto", cells, 6, grouped="sphere") == "sparse"
    categories = projected.row_space(mixed("element"), None)
    assert choose("auto", categories, 6, grouped="sphere") == "sphere"
    assert choose("gaussian", cells, 6, grouped="sphere") == "gaussian"


@pytest.mark.parametrize("unit", ["row", "element"])
def test_the_exact_value_is_the_integer_product(unit):
    schema = numbers(30, unit)
    space = projected.row_space(schema, None)
    matrix = public_projection(config(), space)
    exact = space.exact(Batch(0, X[:100]), matrix)
    scaled = (X[:100] + 1) / 4 - 0.5
    units = np.rint(scaled / space.norm * 2**15).astype(np.int64).astype(object)
    reference = units @ matrix.units.astype(np.int64).astype(object)
    assert np.array_equal(exact.astype(object), reference)


def test_one_hot_columns_have_range_one_under_the_element_unit():
    schema = mixed("element")
    space = projected.row_space(schema, None)
    identity = ProjectionMatrix(np.eye(space.width) * 2.0**20)
    values = np.array([[0.0, 2.0, 1.0, 1.0], [1.0, 0.0, -1.0, 0.0]])
    exact = space.exact(Batch(0, values), identity) * 2.0**-35
    assert np.array_equal(exact[0], [-0.5, -0.5, -0.5, 0.5, -0.5, 0.5, 0.5])
    assert np.array_equal(exact[1], [0.5, 0.5, -0.5, -0.5, -0.5, -0.5, -0.5])
    assert space.names == ("a", "c=p", "c=q", "c=r", "c=s", "b", "t=true")


@pytest.mark.parametrize("unit", ["row", "element"])
def test_two_levels_cost_one_coordinate(unit):
    """16 booleans, or categories of two levels, have the noise of 16 numbers."""
    pair = PAIRS[unit]
    flags = [Column(name=f"v{i}", kind=Kind.BOOLEAN) for i in range(8)]
    words = [Column(name=f"w{i}", kind=Kind.CATEGORY, categories=("p", "q")) for i in range(8)]
    schema = Schema(columns=(*flags, *words), unit=pair[0], neighbours=pair[1])
    setting = config(n_components=16, epsilon=1.0)
    planned, plain = (workflow.plan(setting, one) for one in (schema, numbers(16, unit)))
    assert planned.noise == plain.noise
    assert planned.details["family"] == plain.details["family"]
    data = np.tile([0.0, 1.0], (3, 8))
    space = projected.row_space(schema, None)
    identity = ProjectionMatrix(np.eye(16) * 2.0**20)
    exact = space.exact(Batch(0, data), identity) * 2.0**-35 * space.norm
    assert np.allclose(exact, data - 0.5, atol=2.0**-14 * space.norm)


def test_a_table_is_no_item_set():
    space = projected.row_space(items(4), 2.0)
    with pytest.raises(InvalidInput, match="a table where the schema declares item sets"):
        space.exact(Batch(0, np.ones((1, 4))), ProjectionMatrix(np.eye(4) * 2.0**20))


@pytest.mark.parametrize("unit", ["row", "element"])
def test_a_matrix_too_large_for_exact_products_is_refused_before_anything_is_paid(unit):
    width = 2**10 if unit == "element" else 2**17
    huge = ProjectionMatrix(np.full((width, 1), 2.0**30))
    schemas = [(items(width, unit), 2.0 if unit == "row" else None)]
    schemas += [(numbers(width, unit), None)] if unit == "element" else []
    for schema, row_norm in schemas:
        space = projected.row_space(schema, row_norm)
        with pytest.raises(InvalidInput, match="a column is too long for exact products"):
            space.largest(huge)
    small = ProjectionMatrix(np.full((3, 2), -(2.0**20)))
    assert projected.row_space(numbers(3, unit), None).largest(small) == 6.0


def test_a_huge_budget_keeps_the_grid_within_what_noise_takes():
    rows, _ = released(X[:5], numbers(30, "element"), config(epsilon=900.0, family="sphere"))
    assert rows.shape == (5, 6)


def test_the_natural_grid_is_as_coarse_as_the_matrix():
    def natural(*entries):
        return projected.natural_exponent(ProjectionMatrix(np.array([entries])))

    assert natural(2.0**20, -(2.0**20), 0.0) == -15
    assert natural(2.0**19, 2.0**20) == -16
    assert natural(3.0, 2.0**20) == -35
    assert natural(0.0, 0.0) == -35


@pytest.mark.parametrize("unit", ["row", "element"])
def test_a_release_is_on_its_grid_and_has_its_shape(unit):
    schema = numbers(30, unit)
    rows, draft = released(X, schema, config())
    noise = workflow.plan(config(), schema).noise[0]
    assert rows.shape == (5000, 6)
    assert np.array_equal(np.rint(rows / noise.grid), rows / noise.grid)
    assert draft.arrays["projection"].shape == (30, 6)
    model = DistanceModel.from_facts(draft.facts["distances"])
    assert model.unit == (1.0 if unit == "element" else math.sqrt(7.5))
    assert model.noise.variance == pytest.approx(noise.scale**2, rel=1e-6)
    assert rows.std() == pytest.approx(noise.scale, rel=0.2)


def test_threads_and_blocks_change_no_bit():
    first = released(X, numbers(30), config(), engine=LocalEngine(threads=1))[0]
    for engine in (LocalEngine(threads=2), LocalEngine(threads=2, rows_per_block=4096)):
        assert np.array_equal(released(X, numbers(30), config(), engine=engine)[0], first)


def test_item_sets_are_released_without_a_dense_row():
    dense = np.random.default_rng(1).random((6000, 50)) < 0.1
    for unit, row_norm in (("row", 3.0), ("element", None)):
        schema = items(50, unit)
        rows, draft = released(dense, schema, config(epsilon=500.0, row_norm=row_norm, n_components=50))
        model = DistanceModel.from_facts(draft.facts["distances"])
        kept = dense.sum(axis=1) <= 9
        expected = dense[kept].astype(float) @ draft.arrays["projection"] / model.unit
        error = rows[kept] - expected
        assert np.abs(error).max() < 8 * math.sqrt(model.noise.variance) + 1e-3
    assert len(SetSource(dense, items(50)).dense) == len(set_batch(dense)) == 6000


def test_a_tiny_budget_coarsens_the_grid_and_pays_for_it():
    schema = numbers(30)
    tiny = workflow.plan(config(epsilon=1e-3, delta=1e-18), schema).noise[0]
    usual = workflow.plan(config(), schema).noise[0]
    assert tiny.sensitivity >= usual.sensitivity
    rows, _ = released(X[:10], schema, config(epsilon=1e-3, delta=1e-18))
    assert np.array_equal(np.rint(rows / tiny.grid), rows / tiny.grid)


def test_the_plan_says_when_a_constant_is_better():
    drowned = workflow.plan(config(epsilon=1.0), numbers(30))
    assert any("At epsilon=1 a constant answers every distance better" in note for note in drowned.notes)
    clear = workflow.plan(config(epsilon=200.0), numbers(30, "element"))
    assert not any("a constant answers" in note for note in clear.notes)
    assert clear.expected["guessed_squared_distance"] == 5.0  # 30 numbers, 1/6 each
    for planned in (drowned, clear):
        assert planned.guarantee.mu is not None
        best = planned.expected["best_n_components"]
        table = {
            row["n_components"]: row["standard_error"]
            for row in planned.details["standard_error_by_n_components"]
        }
        assert table[best] == min(table.values())
        assert planned.expected["standard_error_of_a_squared_distance"] >= min(table.values()) * (
            1 - 1e-6
        )
