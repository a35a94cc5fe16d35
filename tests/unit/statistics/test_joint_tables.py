"""Joint tables of several columns: exact counts, rows without a code, declared shapes."""

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours
from adumbra.statistics.joint_tables import JointTables, code_rows, table_sensitivity

SIZES = (3, 2, 4)
CLIQUES = ((0, 1), (0, 2), (0, 1, 2))


def test_counts_equal_a_naive_loop():
    codes = np.random.default_rng(0).integers(-1, 5, size=(400, 3))
    statistic = JointTables(sizes=SIZES, cliques=CLIQUES)
    total = statistic.add(statistic.zero(), code_rows(codes[:150], SIZES))
    total = statistic.add(total, code_rows(codes[150:], SIZES))
    for clique, found in zip(CLIQUES, statistic.split(total), strict=True):
        wanted = np.zeros([SIZES[j] for j in clique], np.int64)
        for row in codes:
            own = tuple(int(row[j]) for j in clique)
            if all(0 <= code < SIZES[j] for code, j in zip(own, clique, strict=True)):
                wanted[own] += 1
        assert np.array_equal(found.reshape(wanted.shape), wanted)
    whole = code_rows(codes[:, :1] % 3, (3,))
    assert whole.is_whole
    assert not code_rows(codes, SIZES).is_whole


def test_shapes_are_declared():
    with pytest.raises(InvalidInput, match="need one column for each of 3"):
        code_rows(np.zeros((4, 2), np.int64), SIZES)
    with pytest.raises(InvalidInput, match="need at least one table"):
        JointTables(sizes=SIZES, cliques=())
    statistic = JointTables(sizes=SIZES, cliques=CLIQUES)
    with pytest.raises(InvalidInput, match="declared"):
        statistic.add(statistic.zero(), code_rows(np.zeros((4, 3), np.int64), (3, 3, 3)))
    assert statistic.exponent == 0
    assert statistic.cells == (6, 12, 24)


def test_the_price_of_one_table_does_not_grow_with_its_columns():
    add, replace = (table_sensitivity(n) for n in (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE))
    assert (add.l1, add.l2, replace.l1) == (1.0, 1.0, 2.0)
    assert replace.l2 == pytest.approx(2**0.5)
    three = JointTables(sizes=SIZES, cliques=CLIQUES).sensitivity(Neighbours.ADD_REMOVE)
    assert three.l1 == 3.0
