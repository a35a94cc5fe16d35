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
