"""Box rows and their exact moments: total on any floats, exact sums, nothing released twice."""

import numpy as np
import pytest

from adumbra.data.encode import Encoder
from adumbra.errors import InvalidInput
from adumbra.numerics import ROW_BITS
from adumbra.statistics.box_moments import (
    ONE,
    BoxMoments,
    BoxRows,
    Kind,
    box_rows,
    complete,
    shape_of,
    sigma_factors,
)
from support.components import ADD, REPLACE, box_shape, mixed


def hostile(shape, rows, rng):
    """Encoded rows with everything that floats can be."""
    x = rng.normal(scale=2, size=(rows, shape.width))
    wild = rng.random(x.shape) < 0.3
    x[wild] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.5, -0.5], wild.sum())
    return x


@pytest.mark.parametrize("classes", [0, 3])
def test_any_floats_end_inside_the_box(classes):
    rng, shape = np.random.default_rng(0), box_shape(3, 2, classes, levels=4)
    labels = rng.integers(-5, 9, 500) if classes else None
    units = box_rows(hostile(shape, 500, rng), shape, labels).units
    assert np.all(units == np.rint(units))
    assert np.abs(units[:, :3]).max() <= ONE // 2
    for group in (*shape.groups, slice(shape.width, shape.size)):
        assert np.all(np.isin(units[:, group], [0, ONE]))
        assert np.all(units[:, group].sum(axis=1) == ONE)


def test_values_in_the_box_keep_their_place():
    shape = box_shape(2, 1, 2)
    x = np.array([[0.25, -0.5, 0.0, 1.0], [0.5, 0.0, 1.0, 0.0]])
    units = box_rows(x, shape, np.array([1, 0])).units / ONE
    assert np.array_equal(units, np.column_stack([x, [0, 1], [1, 0]]))


def test_the_fold_equals_an_integer_reference():
    rng, shape = np.random.default_rng(1), box_shape(3, 2, 2, levels=3)
    rows = box_rows(hostile(shape, 300, rng), shape, rng.integers(0, 2, 300))
    statistic = BoxMoments(shape)
    total = statistic.add(statistic.add(statistic.zero(), rows), rows)
    whole = rows.units.astype(np.int64)
    assert np.array_equal(total, 2 * whole.T @ whole)
    assert statistic.exponent == -2 * ROW_BITS


def test_rows_of_another_shape_and_huge_blocks_are_refused():
    statistic = BoxMoments(box_shape(1, 0))
    with pytest.raises(InvalidInput, match="different tables"):
        statistic.add(statistic.zero(), box_rows(np.zeros((1, 2)), box_shape(2, 0)))
    with pytest.raises(InvalidInput, match="smaller blocks"):
        statistic.add(statistic.zero(), BoxRows(np.broadcast_to(0.0, (2**23, 2)), box_shape(1, 0)))


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("classes", [0, 3])
def test_every_moment_is_released_once(neighbours, classes):
    shape = box_shape(3, 2, classes, levels=4)
    rows, columns, kinds = BoxMoments(shape).coordinates(neighbours)
    assert len(set(zip(rows, columns, strict=True))) == len(rows)
    assert np.all(rows <= columns)
    count = np.bincount(kinds, minlength=4)
    assert BoxMoments(shape).kind_counts(neighbours) == tuple(count)
    assert count[Kind.SQUARE] == 3
    assert count[Kind.CROSS] == 3 + 3 * 8 + 16
    assert count[Kind.TOTAL] == 11 * max(classes, 1)
    assert count[Kind.COUNT] == (classes or (0 if neighbours is REPLACE else 1))


def test_released_coordinates_hold_the_whole_matrix():
    """Dropped entries are duplicates or zeros, so exact coordinates rebuild the exact matrix."""
    rng, shape = np.random.default_rng(2), box_shape(2, 2, 3, levels=3)
    statistic = BoxMoments(shape)
    exact = statistic.add(
        statistic.zero(), box_rows(hostile(shape, 50, rng), shape, rng.integers(0, 3, 50))
    )
    places = statistic.coordinates(REPLACE)
    assert np.array_equal(complete(exact[places[0], places[1]].astype(float), places, shape), exact)


def test_noise_factors_are_isometric_and_roundings_count_every_coordinate():
    shape = box_shape(5, 5, 2)
    assert sigma_factors(shape) == pytest.approx([1.0, 0.5**0.5, 0.5**0.5, 1.0], rel=1e-12)
    assert np.all(sigma_factors(shape) ** 2 * [1.0, 2.0, 2.0, 1.0] >= 1.0)
    statistic = BoxMoments(shape)
    l1, l2 = statistic.roundings(REPLACE)
    kinds = statistic.coordinates(REPLACE)[2]
    assert l1 == len(kinds)
    assert l2 == pytest.approx(np.sqrt(np.sum(np.array([1.0, 2.0, 2.0, 1.0])[kinds])))


def test_the_shape_of_an_encoder():
    encoder = Encoder(mixed())
    shape = shape_of(encoder, classes=3)
    assert (shape.width, shape.size) == (encoder.width, encoder.width + 3)
    with pytest.raises(InvalidInput, match="centred"):
        shape_of(Encoder(mixed(), centred=False))
