"""Attack the sensitivity of a part of a Gram, with classes in the tail."""

import numpy as np
import pytest

from adumbra.data.bounds import bound_rows, with_classes
from adumbra.numerics import ROW_BITS
from adumbra.relations import Neighbours
from adumbra.statistics.moments import BlockGram
from support.neighbours import hostile_rows

UNITS = 20_000
LIMIT = 4**ROW_BITS + UNITS**2


def released(statistic, x, label):
    with np.errstate(all="ignore"):
        rows = with_classes(bound_rows(x[None, :], 1.0, labels=np.array([label])), 3, UNITS)
    return statistic.add(statistic.zero(), [rows]).astype(float) * 2.0**statistic.exponent


def norms(statistic, change):
    return np.abs(change).sum(), np.linalg.norm(change / statistic.noise_weights())


@pytest.mark.parametrize("blocks", [(5,), (2, 3), (1, 1, 8)])
def test_hostile_pairs_never_exceed_the_bound_of_the_whole_gram(blocks):
    statistic = BlockGram(blocks=blocks, tail=3, limit=LIMIT)
    replace = statistic.sensitivity(Neighbours.REPLACE_ONE)
    add = statistic.sensitivity(Neighbours.ADD_REMOVE)
    rng = np.random.default_rng(1)
    for _ in range(200):
        x, y = hostile_rows(sum(blocks), rng), hostile_rows(sum(blocks), rng)
        first = released(statistic, x, int(rng.integers(-1, 4)))
        second = released(statistic, y, int(rng.integers(-1, 4)))
        l1, l2 = norms(statistic, first - second)
        assert l1 <= replace.l1
        assert l2 <= replace.l2 * (1 + 1e-12)
        l1, l2 = norms(statistic, first)
        assert l1 <= add.l1
        assert l2 <= add.l2 * (1 + 1e-12)


def test_an_extremal_pair_reaches_the_bound():
    statistic = BlockGram(blocks=(4,), tail=3, limit=LIMIT)
    x, y = np.eye(4)[0], np.eye(4)[1]
    first, second = released(statistic, x, 0), released(statistic, y, 1)
    bound = statistic.sensitivity(Neighbours.REPLACE_ONE).l2
    assert norms(statistic, first - second)[1] >= 0.99 * bound
    bound = statistic.sensitivity(Neighbours.ADD_REMOVE).l2
    assert norms(statistic, first)[1] >= 0.99 * bound


WEIGHT = 0.3  # of the class beside categories


def outside_categories(x, label, levels):
    """The Gram of one augmented row without the products of levels of the same category."""
    row = np.append(x, WEIGHT * np.eye(3)[label])
    gram = np.outer(row, row)
    for start in range(0, len(x), levels):
        gram[start : start + levels, start : start + levels] = 0.0
    return gram


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_without_products_inside_categories_add_remove_has_the_bound_of_decision_0037(categories):
    bound = np.sqrt((1.0 + WEIGHT**2) ** 2 - 1.0 / categories)
    rng = np.random.default_rng(2)
    for _ in range(200):
        x = rng.standard_normal(3 * categories) * rng.choice([0.01, 1.0, 10.0], 3 * categories)
        gram = outside_categories(x / np.linalg.norm(x), 0, 3)
        assert np.linalg.norm(gram) <= bound * (1 + 1e-12)
    even = np.tile(np.eye(3)[0], categories) / np.sqrt(categories)
    assert np.linalg.norm(outside_categories(even, 0, 3)) == pytest.approx(bound)


def test_without_products_inside_categories_replace_one_keeps_its_bound():
    """Two rows of two categories whose levels have released shares of 1/2, 1/2 and 0."""
    shares = np.array([0.5, 0.5, 0.0])
    first, second = np.eye(3)[0] - shares, np.eye(3)[1] - shares
    gap = outside_categories(np.append(first, first), 0, 3)
    gap -= outside_categories(np.append(first, second), 1, 3)
    assert np.linalg.norm(gap) == pytest.approx(np.sqrt(2.0) * (1.0 + WEIGHT**2))
