"""Attack the constants of sums beside counts, bins and the labelled Gram."""

import numpy as np
import pytest

from adumbra.data.bounds import augment, bound_rows, with_constant
from adumbra.errors import Unsupported
from adumbra.numerics import ROW_BITS
from adumbra.relations import Neighbours
from adumbra.statistics.class_sums import (
    BinCounts,
    CountedSum,
    count_sensitivity,
    counted_sum_sensitivity,
    labelled_gram_l1,
)
from adumbra.statistics.moments import UNIT_LIMIT, Gram, upper_triangle
from support.neighbours import equal_coordinates, hostile_rows, two_type_pair

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE


def row(x, label=None):
    with np.errstate(all="ignore"):
        labels = None if label is None else np.array([label])
        return bound_rows(np.asarray(x, float)[None, :], 1.0, labels=labels)


def change(statistic, before, after):
    zero = statistic.zero()
    values = [
        zero if rows is None else statistic.add(statistic.zero(), rows) for rows in (before, after)
    ]
    difference = (values[1] - values[0]).astype(float) * 2.0**statistic.exponent
    return np.abs(difference).sum(), np.sqrt((difference**2).sum())


@pytest.mark.parametrize("p", [1, 4, 30])
@pytest.mark.parametrize("classes", [None, 3])
def test_hostile_rows_never_exceed_the_bounds(p, classes):
    rng = np.random.default_rng(p)
    statistic = CountedSum(width=p, classes=classes)
    for _ in range(200):
        labels = (None, None) if classes is None else tuple(rng.integers(0, 4, 2))  # 3 is no class
        x, y = row(hostile_rows(p, rng), labels[0]), row(hostile_rows(p, rng), labels[1])
        for relation, pair in ((REPLACE, (x, y)), (ADD, (None, x))):
            bound = statistic.sensitivity(relation)
            l1, l2 = change(statistic, *pair)
            assert l1 <= bound.l1
            assert l2 <= bound.l2


@pytest.mark.parametrize("p", [1, 4, 30])
def test_extremal_rows_reach_the_bounds(p):
    equal = equal_coordinates(p)
    plain, classes = CountedSum(width=p), CountedSum(width=p, classes=2)
    for statistic, pair, relation in (
        (plain, (row(-equal), row(equal)), REPLACE),
        (plain, (None, row(equal)), ADD),
        (classes, (row(equal, 0), row(equal, 1)), REPLACE),
        (classes, (None, row(equal, 1)), ADD),
    ):
        bound = statistic.sensitivity(relation)
        l1, l2 = change(statistic, *pair)
        assert l1 >= 0.99 * bound.l1
        assert l2 >= 0.99 * bound.l2
    bins = BinCounts(bins=5)
    assert change(bins, np.array([1]), np.array([4])) == (2.0, pytest.approx(2**0.5))
    assert change(bins, None, np.array([2])) == (1.0, 1.0)
    assert bins.sensitivity(REPLACE).l1 == 2.0
    assert bins.sensitivity(ADD).l2 == 1.0


def test_bins_outside_are_counted_nowhere():
    bins = BinCounts(bins=3)
    assert bins.add(bins.zero(), np.array([-1, 0, 2, 2, 3])).tolist() == [1, 0, 2]


@pytest.mark.parametrize("p", [2, 5, 10])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_the_labelled_gram_is_never_exceeded(p, relation):
    rng = np.random.default_rng(p)
    weight = 2 ** (ROW_BITS - 1)
    bound = labelled_gram_l1(p, 0.5, 0.5, relation)
    gram = Gram(width=p + 2, limit=UNIT_LIMIT + 2 * weight**2)

    def labelled(x, y):
        return with_constant(augment(row(x), np.array([[np.rint(y * weight)]]), weight**2), weight)

    pairs = [tuple(hostile_rows(p, rng) for _ in range(2)) for _ in range(150)]
    pairs += [
        two_type_pair(p),
        (equal_coordinates(p), -equal_coordinates(p)),
        (equal_coordinates(p), 0 * equal_coordinates(p)),
    ]
    best = 0.0
    for x, x2 in pairs:
        for y, y2 in ((1, -1), (1, 1), (0, 1), (-1, 1)):
            before = None if relation is ADD else labelled(x, y)
            values = [
                gram.zero() if rows is None else gram.add(gram.zero(), rows)
                for rows in (before, labelled(x2, y2))
            ]
            difference = upper_triangle(values[1] - values[0]).astype(float) * 2.0**gram.exponent
            best = max(best, np.abs(difference).sum())
    assert best <= bound
    assert best >= 0.6 * bound, best / bound


def test_element_changes_have_no_proof_here():
    for bound in (
        lambda: count_sensitivity(Neighbours.ONE_ELEMENT),
        lambda: counted_sum_sensitivity(3, Neighbours.ONE_ELEMENT, classes=False),
    ):
        with pytest.raises(Unsupported, match="neighbours=one-element"):
            bound()
