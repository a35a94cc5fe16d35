"""Laws of item-set statistics: any split gives the same bits; neighbours reach the sensitivity."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.sources import SetBatch
from adumbra.relations import Neighbours
from adumbra.statistics.counts import ItemCounts, Norm, Stacked, TruncatedCounts, item_rows
from adumbra.statistics.lengths import LengthHistogram, tail_counts

WIDTH = 12
rows_of_items = st.lists(st.lists(st.integers(-2, WIDTH + 2), max_size=30), max_size=20)
row_of_items = st.lists(st.integers(-2, WIDTH + 2), max_size=30)


def batch_of(rows):
    lengths = [len(row) for row in rows]
    indices = np.array([item for row in rows for item in row], np.int64)
    return SetBatch(0, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), indices, WIDTH)


def total_of(statistic, *parts):
    total = statistic.zero()
    for rows in parts:
        total = statistic.add(total, item_rows(batch_of(rows)))
    return total


def statistics():
    return [
        ItemCounts(width=WIDTH),
        LengthHistogram(longest=4),
        Stacked(LengthHistogram(longest=4), ItemCounts(width=WIDTH)),
        *(TruncatedCounts(width=WIDTH, length=m, norm=norm) for norm in Norm for m in (1, 3, 11)),
    ]


@given(rows_of_items, st.integers(0, 20))
@settings(deadline=None)
def test_any_split_and_order_gives_the_same_bits(rows, cut):
    for statistic in statistics():
        whole = total_of(statistic, rows)
        assert (whole == total_of(statistic, rows[cut:], rows[:cut])).all()
        assert (whole == total_of(statistic, *([row] for row in reversed(rows)))).all()


@given(rows_of_items, row_of_items, row_of_items)
@settings(max_examples=100, deadline=None)
def test_no_row_moves_a_statistic_beyond_its_sensitivity(rows, first, second):
    pairs = [
        (Neighbours.ADD_REMOVE, rows, [*rows, first]),
        (Neighbours.REPLACE_ONE, [*rows, first], [*rows, second]),
    ]
    for relation, before, after in pairs:
        for statistic in statistics():
            moved = (total_of(statistic, after) - total_of(statistic, before)) * 2.0**statistic.exponent
            allowed = statistic.sensitivity(relation)
            is_l2 = getattr(statistic, "norm", None) is Norm.L2
            if not is_l2:
                assert np.abs(moved).sum() <= allowed.l1
            if getattr(statistic, "norm", None) is not Norm.L1:
                assert np.sqrt(np.square(moved).sum()) <= allowed.l2


def test_some_rows_reach_the_sensitivity():
    half, other = list(range(6)), list(range(6, 12))
    for length in (1, 2, 5):
        for norm, read in ((Norm.L1, "l1"), (Norm.L2, "l2")):
            statistic = TruncatedCounts(width=WIDTH, length=length, norm=norm)
            for relation, before, after in (
                (Neighbours.ADD_REMOVE, [], [half]),
                (Neighbours.REPLACE_ONE, [half], [other]),
            ):
                moved = (
                    total_of(statistic, after) - total_of(statistic, before)
                ) * 2.0**statistic.exponent
                reached = np.abs(moved).sum() if norm is Norm.L1 else np.sqrt(np.square(moved).sum())
                assert reached >= 0.999 * getattr(statistic.sensitivity(relation), read)


@given(rows_of_items, row_of_items, row_of_items)
@settings(deadline=None)
def test_the_tail_moves_one_way_under_either_relation(rows, first, second):
    statistic = LengthHistogram(longest=6)
    for before, after in ((rows, [*rows, first]), ([*rows, first], [*rows, second])):
        moved = tail_counts(total_of(statistic, after)) - tail_counts(total_of(statistic, before))
        assert set(moved.tolist()) <= {0, 1} or set(moved.tolist()) <= {0, -1}
