"""Attack the weighted sensitivity of box moments: never exceeded, and reached."""

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.statistics.box_moments import BoxMoments
from support.components import ADD, REPLACE, box_pairs, box_row, box_shape

SHAPES = [(1, 0), (4, 0), (9, 0), (0, 3), (1, 1), (4, 1), (3, 3), (2, 8)]


def weights_of(p1, p2, strong=1, first=1):
    """Numbers count 1 (the first more), groups of two levels 1, the constant `strong`."""
    numbers = [4 * first, *[4] * (p1 - 1)] if p1 else []
    return (*numbers, *[1] * 2 * p2, strong)


def length(statistic, neighbours, before, after):
    """The weighted L2 change of what is released, over its bound."""
    values = [
        statistic.zero() if one is None else statistic.add(statistic.zero(), one)
        for one in (before, after)
    ]
    places = statistic.coordinates(neighbours)
    change = (values[1] - values[0])[places[0], places[1]] * 2.0**statistic.exponent
    isometric = change / statistic.factors(places)
    return np.sqrt(np.square(isometric).sum()) / statistic.sensitivity(neighbours).l2


@pytest.mark.parametrize(("strong", "first"), [(1, 1), (3, 1), (2, 5), (40, 1)])
@pytest.mark.parametrize(("p1", "p2"), SHAPES)
def test_hostile_pairs_never_exceed_the_weighted_bound(p1, p2, strong, first):
    shape = box_shape(p1, p2)
    statistic = BoxMoments(shape, weights=weights_of(p1, p2, strong, first))
    for before, after in box_pairs(shape, np.random.default_rng(p1 * 100 + p2), 40):
        assert length(statistic, REPLACE, before, after) <= 1.0
        assert length(statistic, ADD, None, after) <= 1.0


@pytest.mark.parametrize(("p1", "p2", "strong", "flipped"), [(4, 0, 2, 3), (9, 0, 3, 6), (9, 1, 3, 6)])
def test_explicit_pairs_reach_the_weighted_bound(p1, p2, strong, flipped):
    """Signs that turn the row at right angles; 98 %, since a dummy's square is not released."""
    shape = box_shape(p1, p2)
    statistic = BoxMoments(shape, weights=weights_of(p1, p2, strong))
    x = np.full(p1, 0.5)
    y = np.where(np.arange(p1) < flipped, -x, x)
    first, second = box_row(shape, x, [0] * p2), box_row(shape, y, [1] * p2)
    assert 0.98 <= length(statistic, REPLACE, first, second) <= 1.0
    assert 0.98 <= length(statistic, ADD, None, first) <= 1.0


def test_the_unweighted_bound_would_be_too_small():
    """Noise of the weighted factors at the sensitivity of equal columns: the same pair passes it."""
    shape = box_shape(4, 0)
    plain, weighted = BoxMoments(shape), BoxMoments(shape, weights=weights_of(4, 0, 2))
    x = np.full(4, 0.5)
    y = np.array([-0.5, -0.5, -0.5, 0.5])
    share = length(weighted, REPLACE, box_row(shape, x, []), box_row(shape, y, []))
    assert share * weighted.sensitivity(REPLACE).l2 > 2.0 * plain.sensitivity(REPLACE).l2


def test_a_huge_constant_costs_little_under_replace_one():
    """Its own entry does not move: what is left is about twice its weight times the rest."""
    shape = box_shape(1, 0)
    bound = BoxMoments(shape, weights=(4, 10**4)).sensitivity(REPLACE).l2
    assert bound == pytest.approx(2.0 * 10**2 * np.sqrt(2.0), rel=1e-3)


@pytest.mark.parametrize("weights", [(4,), (4, 0), (4, 1, 1)])
def test_weights_that_do_not_fit_are_refused(weights):
    with pytest.raises(InvalidInput, match="weights"):
        BoxMoments(box_shape(1, 0), weights=weights)
    with pytest.raises(InvalidInput, match="weights"):
        BoxMoments(box_shape(1, 0, classes=2), weights=(4, 1, 1))


@pytest.mark.parametrize(("p1", "p2"), SHAPES)
def test_factors_are_one_over_the_weights_and_never_less(p1, p2):
    shape = box_shape(p1, p2)
    statistic = BoxMoments(shape, weights=weights_of(p1, p2, 3))
    places = statistic.coordinates(ADD)
    roots = np.sqrt(np.array(statistic.weights, float))
    wanted = roots[places[0]] * roots[places[1]]
    wanted[places[0] != places[1]] *= np.sqrt(2.0)
    product = statistic.factors(places) * wanted
    assert np.all(product >= 1.0)
    assert np.all(product < 1.0 + 1e-14)
    unit = statistic.roundings(ADD)[1]
    assert unit == pytest.approx(np.sqrt(np.square(wanted).sum()), rel=1e-12)
