"""Attack the sensitivity of one-way histograms: never exceeded, and reached."""

import numpy as np
import pytest

from adumbra.relations import Neighbours
from adumbra.statistics.histograms import Histograms, cell_rows


def table_of(statistic, rows):
    return statistic.add(statistic.zero(), cell_rows(np.asarray(rows, np.int64), statistic.cells))


@pytest.mark.parametrize("columns", [1, 2, 7, 40])
def test_hostile_rows_never_exceed_and_disjoint_rows_reach_the_bound(columns):
    rng = np.random.default_rng(columns)
    statistic = Histograms(cells=tuple(int(c) for c in rng.integers(2, 9, size=columns)))
    replace = statistic.sensitivity(Neighbours.REPLACE_ONE)
    add = statistic.sensitivity(Neighbours.ADD_REMOVE)
    for _ in range(200):
        pair = rng.integers(-2, 11, size=(2, 1, columns))
        change = (table_of(statistic, pair[0]) - table_of(statistic, pair[1])).astype(float)
        assert np.abs(change).sum() <= replace.l1
        assert np.linalg.norm(change) <= replace.l2
        one = table_of(statistic, pair[0]).astype(float)
        assert one.sum() <= add.l1
        assert np.linalg.norm(one) <= add.l2
    first, second = np.zeros((1, columns)), np.ones((1, columns))
    change = (table_of(statistic, first) - table_of(statistic, second)).astype(float)
    assert np.abs(change).sum() == replace.l1
    assert np.linalg.norm(change) >= 0.999999 * replace.l2
    assert table_of(statistic, first).sum() == add.l1
