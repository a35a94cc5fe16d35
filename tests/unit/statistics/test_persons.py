"""What one person can move: every statistic against random persons, and the bound is attained."""

import numpy as np
import pytest

from adumbra.data.bounds import bound_rows
from adumbra.data.persons import PersonRows, keep_rows, weigh_rows
from adumbra.data.sources import SetBatch
from adumbra.engine.local import add_rows
from adumbra.errors import Unsupported
from adumbra.relations import Neighbours, Reach
from adumbra.statistics.base import Sensitivity, reach_sensitivity
from adumbra.statistics.box_moments import BoxMoments, BoxShape, box_rows
from adumbra.statistics.class_sums import CountedGram, CountedSum, SpreadRows, SpreadSum
from adumbra.statistics.counts import ItemCounts, Norm, TruncatedCounts, item_rows
from adumbra.statistics.histograms import Histograms, cell_rows
from adumbra.statistics.lengths import LengthHistogram
from adumbra.statistics.moments import UNIT_LIMIT, BlockGram, Gram, RowSum

REPLACED, GROWN = Neighbours.REPLACE_PERSON, Neighbours.ADD_REMOVE_PERSON
BOX = BoxShape((0, 1), (slice(2, 4),))


def unit_rows(values, labels=None):
    return bound_rows(np.asarray(values, float), 1.0, labels=labels)


def box(values):
    rows = np.zeros((len(values), 4))
    rows[:, :2] = np.asarray(values)[:, :2] / 2
    rows[:, 2] = np.asarray(values)[:, 0] > 0
    rows[:, 3] = 1 - rows[:, 2]
    return box_rows(rows, BOX)


def sets(values):
    rows = [np.flatnonzero(row > 0) for row in np.asarray(values)]
    pointers = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    return item_rows(
        SetBatch(0, pointers, np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64), 3)
    )


def classes(values):
    return (np.asarray(values)[:, 2] > 0).astype(np.int64)


def spread(values):
    return SpreadRows(unit_rows(values, classes(values)), np.full(len(values), 2.0**14))


def cells(values):
    return cell_rows((np.asarray(values) > 0).astype(np.int64), (2, 2, 2))


def weighted(values):
    return unit_rows(values, classes(values))


STATISTICS = {
    "sum": (RowSum(width=3), unit_rows),
    "gram": (Gram(width=3), unit_rows),
    "block gram": (BlockGram(blocks=(2,), tail=1, limit=UNIT_LIMIT), lambda values: [unit_rows(values)]),
    "counted sum": (CountedSum(width=3, classes=2), weighted),
    "pooled counted sum": (CountedSum(width=3), weighted),
    "spread sum": (SpreadSum(width=3, classes=2), spread),
    "counted gram": (CountedGram(width=3, classes=2, apart=False), weighted),
    "class grams": (CountedGram(width=3, classes=2, apart=True), weighted),
    "histograms": (Histograms(cells=(2, 2, 2)), cells),
    "counts": (ItemCounts(width=3), sets),
    "cut counts": (TruncatedCounts(width=3, length=2, norm=Norm.L1), sets),
    "lengths": (LengthHistogram(longest=2), sets),
}


def total(name, values):
    statistic, prepare = STATISTICS[name]
    found = statistic.add(statistic.zero(), prepare(values)) if len(values) else statistic.zero()
    return found.astype(float) * 2.0**statistic.exponent


def moved(name, change):
    """L1 of the released numbers; of a Gram, its upper triangle."""
    if name in ("gram", "counted gram", "class grams"):
        change = change[..., *np.triu_indices(change.shape[-1])]
    return np.abs(change).sum()


def persons(rng, most, *, corners):
    rows = rng.choice([-1.0, 1.0], (int(rng.integers(0, most + 1)), 3)) / np.sqrt(3)
    if corners and len(rows):
        rows[:] = rows[0]
    return rows if rng.random() < 0.5 else rows * rng.random((len(rows), 1))


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("relation", [REPLACED, GROWN])
def test_no_person_moves_a_sum_farther_than_declared(name, relation):
    rng, most = np.random.default_rng(5), 4
    bound = reach_sensitivity(STATISTICS[name][0].sensitivity, Reach(relation, most)).l1
    farthest = 0.0
    for turn in range(150):
        before = persons(rng, most, corners=turn % 2 == 0)
        after = persons(rng, most, corners=turn % 2 == 0) if relation is REPLACED else np.zeros((0, 3))
        farthest = max(farthest, moved(name, total(name, before) - total(name, after)))
    assert farthest <= bound * (1 + 1e-12)
    assert farthest > bound / most  # a bound for one row would be broken


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("relation", [REPLACED, GROWN])
def test_rows_at_a_part_of_their_weight_keep_the_bound(name, relation):
    """All rows of a person, at weights that add up to at most m."""
    rng, most, bits = np.random.default_rng(7), 4, 2
    statistic, prepare = STATISTICS[name]
    bound = reach_sensitivity(statistic.sensitivity, Reach(relation, most)).l1
    farthest = 0.0

    def weighed(values):
        words = np.ones((len(values), 2), np.uint64)
        marks = rng.integers(0, 2**60, len(values)).astype(np.uint64)
        rows = PersonRows(words, marks, np.full(len(values), 3, np.int64), values.reshape(-1))
        bounded = keep_rows(rows, most << bits)
        total = statistic.zero()
        for row, lighter in zip(
            bounded.rows.values.reshape(-1, 3), weigh_rows(bounded, bits), strict=True
        ):
            total = add_rows(statistic, total, prepare(row[None]), 1 << int(bits - lighter))
        return total.astype(float) * 2.0 ** (statistic.exponent - bits)

    for turn in range(60):
        before = persons(rng, 3 * most << bits, corners=turn % 2 == 0)
        after = persons(rng, 9, corners=True) if relation is REPLACED else np.zeros((0, 3))
        farthest = max(farthest, moved(name, weighed(before) - weighed(after)))
    assert farthest <= bound * (1 + 1e-12)
    assert farthest > bound / most  # a bound for one row would be broken


@pytest.mark.parametrize("most", [1, 5])
def test_equal_rows_attain_the_bound(most):
    corner = np.ones((most, 3)) / np.sqrt(3)
    for name, tight in (("histograms", 1.0), ("counts", 1.0), ("sum", 0.999), ("lengths", 1.0)):
        statistic = STATISTICS[name][0]
        for relation, other in ((GROWN, corner[:0]), (REPLACED, -corner)):
            if name in ("counts", "lengths") and relation is REPLACED:
                continue  # the worst pair of sets is disjoint, not opposite
            bound = reach_sensitivity(statistic.sensitivity, Reach(relation, most)).l1
            assert moved(name, total(name, corner) - total(name, other)) >= tight * bound


def test_a_replaced_person_may_also_leave_rows_out():
    """Where one row replaced moves less than one row more, the larger one counts."""

    def of_row(neighbours):
        small = neighbours is Neighbours.REPLACE_ONE
        return Sensitivity(l1=1.0 if small else 3.0, l2=5.0 if small else 2.0)

    assert reach_sensitivity(of_row, Reach(REPLACED, 2)) == Sensitivity(l1=6.0, l2=10.0)
    assert reach_sensitivity(of_row, Reach(GROWN, 2)) == Sensitivity(l1=6.0, l2=4.0)
    assert reach_sensitivity(of_row, Reach(Neighbours.REPLACE_ONE)) == of_row(Neighbours.REPLACE_ONE)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("relation", [REPLACED, GROWN])
def test_a_row_sensitivity_is_never_taken_for_a_person(name, relation):
    with pytest.raises(Unsupported):
        STATISTICS[name][0].sensitivity(relation)


@pytest.mark.parametrize("relation", [REPLACED, GROWN])
def test_box_moments_release_their_count_and_cover_it(relation):
    statistic, most, rng = BoxMoments(BOX), 3, np.random.default_rng(6)
    rows, columns, kinds = statistic.coordinates(relation)
    assert 3 in kinds  # the count, which a person moves
    bound = reach_sensitivity(statistic.sensitivity, Reach(relation, most)).l1
    farthest = 0.0
    for _ in range(300):
        before, after = persons(rng, most, corners=True), persons(rng, most, corners=True)
        after = after if relation is REPLACED else after[:0]
        sums = [
            statistic.add(statistic.zero(), box(one)) if len(one) else statistic.zero()
            for one in (before, after)
        ]
        change = (sums[0] - sums[1])[rows, columns].astype(float) * 2.0**statistic.exponent
        farthest = max(farthest, np.abs(change).sum())
    assert bound / most < farthest <= bound
