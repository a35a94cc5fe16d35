import numpy as np
import pytest

from adumbra.data.bounds import (
    augment,
    bound_elements,
    bound_rows,
    clip_projected,
    project,
    with_classes,
    with_constant,
)
from adumbra.errors import InvalidInput
from adumbra.matrices import ProjectionMatrix
from adumbra.numerics import MATRIX_BITS, ROW_BITS


def matrix(units):
    return ProjectionMatrix(
        units=np.asarray(units, float), exponent=-MATRIX_BITS, family="gaussian", seed=0
    )


def test_short_rows_are_only_rounded():
    x = np.array([[0.1, -0.2, 0.0], [0.3, 0.3, 0.3]])
    rows = bound_rows(x, 1.0)
    assert np.array_equal(rows.units, np.rint(x * 2**ROW_BITS))
    assert rows.limit == 4**ROW_BITS


def test_long_rows_keep_their_direction_and_end_just_inside():
    x = np.array([[30.0, 40.0], [0.0, 1e-3]])
    rows = bound_rows(x, 5.0)
    length = np.sqrt((rows.units**2).sum(axis=1)) / 2**ROW_BITS
    assert 0.9997 < length[0] <= 1.0
    assert rows.units[0, 1] / rows.units[0, 0] == pytest.approx(4 / 3, rel=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_no_float_breaks_the_bound_or_raises(bad):
    x = np.full((3, 4), 0.1)
    x[1, 2] = bad
    with np.errstate(over="ignore", invalid="ignore"):
        rows = bound_rows(x, 1.0)
    assert np.isfinite(rows.units).all()
    assert (np.einsum("ij,ij->i", rows.units, rows.units) <= rows.limit).all()
    assert np.array_equal(rows.units[0], rows.units[2])


def test_rows_on_the_sphere_are_hardly_shortened():
    x = np.random.default_rng(1).standard_normal((2000, 50))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rows = bound_rows(x, 1.0)
    squares = np.einsum("ij,ij->i", rows.units, rows.units)
    assert (squares <= rows.limit).all()
    assert np.sqrt(squares.min()) / 2**ROW_BITS > 0.9995


def test_rounding_that_pushes_a_row_out_is_taken_back():
    # every coordinate rounds up by almost one half: |z| exceeds the aim by sqrt(d)/2 units
    d = 10_000
    value = (np.floor(2**ROW_BITS / np.sqrt(d)) - 0.5 + 1e-9) / 2**ROW_BITS
    target = np.sqrt(d) * value
    rows = bound_rows(np.full((1, d), value), target * (1 - 1e-9))
    assert (rows.units**2).sum() <= rows.limit


@pytest.mark.parametrize("norm", [0.0, -1.0, np.nan, np.inf])
def test_a_norm_must_be_a_norm(norm):
    with pytest.raises(InvalidInput, match="norm=.*must be finite and above 0"):
        bound_rows(np.zeros((1, 1)), norm)


def test_elements_are_bounded_by_themselves_alone():
    x = np.array([[0.5, -0.5, 0.25], [np.nan, np.inf, -9.0]])
    got = bound_elements(x)
    half = 2 ** (ROW_BITS - 1)
    assert got.units.tolist() == [[half, -half, half / 2], [0, half, -half]]
    alone = bound_elements(x[:, 2:])
    assert np.array_equal(alone.units[:, 0], got.units[:, 2])


def test_augmented_columns_are_checked_as_integers():
    rows = bound_rows(np.zeros((2, 1)), 1.0, labels=np.array([1, 7]))
    assert with_constant(rows, 8).units.tolist() == [[0, 8], [0, 8]]
    assert with_constant(rows, 8).limit == 4**ROW_BITS + 64
    assert with_classes(rows, 2, 8).units.tolist() == [[0, 0, 8], [0, 0, 0]]
    for columns in (np.full((2, 1), 0.5), np.full((2, 1), 9.0)):
        with pytest.raises(InvalidInput, match="limit=64: appended columns must be integers"):
            augment(rows, columns, 64)
    with pytest.raises(InvalidInput, match="labels=None"):
        with_classes(bound_rows(np.zeros((2, 1)), 1.0), 2, 8)


@pytest.mark.parametrize("bound", [lambda x: bound_rows(x, 1.0), bound_elements])
def test_the_projection_is_the_integer_product(bound):
    rng = np.random.default_rng(2)
    rows = bound(rng.uniform(-0.5, 0.5, (64, 30)))
    units = np.rint(rng.standard_normal((30, 7)) * 2**MATRIX_BITS)
    got = project(rows, matrix(units))
    assert np.array_equal(got.astype(np.int64), rows.units.astype(np.int64) @ units.astype(np.int64))


@pytest.mark.parametrize("bound", [lambda x: bound_rows(x, 1.0), bound_elements])
def test_a_projection_that_could_round_is_refused(bound):
    rows = bound(np.zeros((1, 2**17)))
    with pytest.raises(InvalidInput, match="too long for exact products"):
        project(rows, matrix(np.full((2**17, 1), 2.0**30)))


@pytest.mark.parametrize("radius", [1.505, 0.3, 1.0, 7.0])
def test_clipped_rows_lie_in_the_ball_as_integers(radius):
    rng = np.random.default_rng(3)
    exact = np.rint(rng.standard_normal((500, 20)) * radius * 2.0**33)
    value = clip_projected(exact, -35, radius)
    squares = [sum(int(u) ** 2 for u in row) for row in value.units]
    assert max(squares) * 4.0**value.exponent <= radius**2
    assert np.sqrt(max(squares)) * 2.0**value.exponent > radius * 0.9999
    inside = np.linalg.norm(exact, axis=1) * 2.0**-35 < radius * 0.999
    assert np.abs(value.to_float()[inside] - exact[inside] * 2.0**-35).max(initial=0) <= value.grid / 2


def test_a_radius_must_be_a_radius():
    with pytest.raises(InvalidInput, match="radius=0.0"):
        clip_projected(np.zeros((1, 1)), 0, 0.0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_that_may_be_overwritten_end_the_same(order):
    x = np.array(np.random.default_rng(0).standard_normal((50, 7)), order=order)
    kept = bound_rows(x.copy(order="K"), 2.0)
    assert np.array_equal(bound_rows(x, 2.0, owned=True).units, kept.units)
