"""Attack the sensitivity of one-way histograms: never exceeded, and reached."""

import numpy as np
import pytest

from adumbra.mechanisms.moments.chosen import MOST_CELLS, SCORE_BITS, score, score_range
from adumbra.relations import Neighbours, Reach
from adumbra.statistics.histograms import Histograms, cell_rows
from adumbra.statistics.joint_tables import JointTables, code_rows, table_sensitivity


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


SIZES = (3, 2, 4, 2)
CLIQUES = ((0, 1), (1, 3), (0, 1, 2), (0, 2, 3))


def exact_tables(rows):
    statistic = JointTables(sizes=SIZES, cliques=CLIQUES)
    codes = code_rows(np.asarray(rows, np.int64).reshape(-1, 4), SIZES)
    return statistic.split(statistic.add(statistic.zero(), codes))


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_joint_tables_move_by_one_cell_for_each_row(neighbours):
    rng = np.random.default_rng(1)
    bound, worst = table_sensitivity(neighbours), 0.0
    for _ in range(200):
        pair = rng.integers(-1, 5, size=(2, 4))
        other = pair[1:] if neighbours is Neighbours.REPLACE_ONE else np.empty((0, 4))
        for first, second in zip(exact_tables(pair[:1]), exact_tables(other), strict=True):
            change = (first - second).astype(float)
            assert np.abs(change).sum() <= bound.l1
            assert np.linalg.norm(change) <= bound.l2
            worst = max(worst, np.abs(change).sum())
    assert worst == bound.l1


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_scores_of_neighbours_move_by_at_most_the_declared_range(neighbours):
    """Never more for hostile tables and hostile expectations, and nearly as much for some."""
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(300):
        base = rng.integers(0, 2, size=(int(rng.integers(1, 6)), 4))
        other = base.copy() if neighbours is Neighbours.REPLACE_ONE else base[1:]
        if neighbours is Neighbours.REPLACE_ONE:
            other[0] = rng.integers(-1, 5, size=4)
        shown = [np.abs(rng.normal(scale=2.0, size=len(t))) for t in exact_tables(base)]
        moved = [
            score(first, expected, 1.0, 100) - score(second, expected, 1.0, 100)
            for first, second, expected in zip(
                exact_tables(base), exact_tables(other), shown, strict=True
            )
        ]
        spread = (max(moved) - min(moved)) * 2.0**-SCORE_BITS
        assert spread <= score_range(Reach(neighbours))
        worst = max(worst, spread)
    assert worst > 0.7 * score_range(Reach(neighbours))


@pytest.mark.parametrize("shown", [1e18, 1e30, 1e300, -1e300])
def test_a_score_stays_in_64_bits_whatever_the_noisy_rows_show(shown):
    """The most rows that a schema of moments allows, in the widest table; a change is still exact."""
    most = (2**63 - 1) // (4**15)
    table = np.zeros(MOST_CELLS, np.int64)
    other = table.copy()
    table[0], other[1] = most, most
    cells = np.full(MOST_CELLS, shown)
    found = score(table, cells, 1.0, most), score(other, cells, 1.0, most)
    assert all(abs(one) < 2**62 for one in found)  # what a selection takes
    assert found[0] == found[1]
    wanted = min(max(int(shown), 0), most) * 2**SCORE_BITS
    exact = abs(most * 2**SCORE_BITS - wanted) + (MOST_CELLS - 1) * wanted
    assert 0 <= exact - found[0] < 2 * MOST_CELLS * 2**SCORE_BITS  # less the noise of one measurement
