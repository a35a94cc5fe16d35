from fractions import Fraction

import numpy as np
import pytest

from adumbra.data.sources import SetBatch
from adumbra.errors import InvalidInput, Unsupported
from adumbra.relations import Neighbours
from adumbra.statistics.counts import (
    ItemCounts,
    Norm,
    Stacked,
    TruncatedCounts,
    count_sensitivity,
    item_rows,
    row_weights,
)
from adumbra.statistics.lengths import LengthHistogram, tail_counts


def batch_of(rows, width):
    lengths = [len(row) for row in rows]
    indices = np.array([item for row in rows for item in row], np.int64)
    return SetBatch(0, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), indices, width)


ROWS = [[0, 2, 4], [], [1], [0, 1, 2, 3, 4], [2]]


def test_counts_are_the_naive_loop():
    statistic = ItemCounts(width=6)
    total = statistic.add(statistic.zero(), item_rows(batch_of(ROWS, 6)))
    assert total.tolist() == [sum(j in row for row in ROWS) for j in range(6)]
    assert statistic.exponent == 0
    assert statistic.sensitivity(Neighbours.ADD_REMOVE).l1 == 6


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_truncated_counts_are_the_naive_loop(norm, length):
    statistic = TruncatedCounts(width=5, length=length, norm=norm, bits=10)
    total = statistic.add(statistic.zero(), item_rows(batch_of(ROWS, 5)))
    expected = np.zeros(5)
    for row in ROWS:
        share = min(Fraction(1), Fraction(length, max(len(row), 1)))
        weight = int(share * 2**10) if norm is Norm.L1 else int(np.sqrt(float(share) * 4**10))
        expected[row] += weight
    assert total.tolist() == expected.tolist()
    assert statistic.exponent == -10
    assert statistic.sensitivity(Neighbours.ADD_REMOVE).l1 == length


def test_repeats_disorder_and_strangers_are_defined_away():
    messy = batch_of([[3, 1, 3], [9, -2, 0], [], [4, 4]], 5)
    rows = item_rows(messy)
    assert [
        rows.indices[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ] == [
        [1, 3],
        [0],
        [],
        [4],
    ]
    assert rows.lengths.tolist() == [2, 1, 0, 1]


def test_clean_rows_pass_as_they_are_even_if_empty():
    for rows in (ROWS, [[], []], []):
        batch = batch_of(rows, 5)
        assert item_rows(batch).indices is batch.indices


def test_weights_reach_their_bound_on_integers():
    lengths = np.arange(0, 5000)
    for length in (1, 2, 3, 10, 77, 256):
        for bits in (0, 1, 15):
            l1 = row_weights(lengths, length, Norm.L1, bits)
            l2 = row_weights(lengths, length, Norm.L2, bits)
            assert (l1 * lengths <= length << bits).all()
            assert (l2 * l2 * lengths <= length << 2 * bits).all()
            assert (l1[: length + 1] == 1 << bits).all()
            assert (l2[: length + 1] == 1 << bits).all()
            long = lengths[length + 1 :]  # one more unit would break the bound
            assert ((l1[length + 1 :] + 1) * long > length << bits).all()
            assert ((l2[length + 1 :] + 1) ** 2 * long > length << 2 * bits).all()


def test_a_root_that_rounds_up_is_taken_down():
    # 25 2^30 / m is just below a square for these m, so the float root lands on the square.
    lengths = np.arange(1, 200_000)
    weights = row_weights(lengths, 25, Norm.L2, 15)
    assert (weights * weights * lengths <= 25 << 30).all()


def test_sensitivities_by_relation():
    for length in (1, 2, 10):
        added = count_sensitivity(length, Neighbours.ADD_REMOVE)
        replaced = count_sensitivity(length, Neighbours.REPLACE_ONE)
        assert (added.l1, replaced.l1) == (length, 2 * length)
        assert Fraction(added.l2) ** 2 >= length
        assert Fraction(replaced.l2) ** 2 >= 2 * length
        assert replaced.l2 < 1.4143 * added.l2
    with pytest.raises(Unsupported, match=r"neighbours=one-element: counts of sets are per row"):
        count_sensitivity(1, Neighbours.ONE_ELEMENT)


def test_public_arguments_are_checked():
    with pytest.raises(InvalidInput, match=r"length=0: must be at least 1"):
        TruncatedCounts(width=3, length=0, norm=Norm.L1)
    with pytest.raises(InvalidInput, match=r"bits=16: must lie between 0 and 15"):
        TruncatedCounts(width=3, length=1, norm=Norm.L1, bits=16)
    with pytest.raises(InvalidInput, match=r"exponent: stacked statistics need the same one"):
        Stacked(ItemCounts(width=3), TruncatedCounts(width=3, length=1, norm=Norm.L1))


def test_stacked_statistics_are_both():
    both = Stacked(LengthHistogram(longest=3), ItemCounts(width=5))
    total = both.add(both.zero(), item_rows(batch_of(ROWS, 5)))
    assert total.tolist() == [1, 2, 0, 1, 1, 2, 2, 3, 1, 2]
    assert both.exponent == 0
    assert both.sensitivity(Neighbours.ADD_REMOVE).l1 == 6


def test_lengths_and_their_tail():
    statistic = LengthHistogram(longest=3)
    total = statistic.add(statistic.zero(), item_rows(batch_of(ROWS, 5)))
    assert total.tolist() == [1, 2, 0, 1, 1]
    assert tail_counts(total).tolist() == [sum(len(row) > m for row in ROWS) for m in (1, 2, 3)]
    assert statistic.exponent == 0
    assert statistic.sensitivity(Neighbours.ADD_REMOVE).l1 == 1
    assert statistic.sensitivity(Neighbours.REPLACE_ONE).l1 == 2
    assert Fraction(statistic.sensitivity(Neighbours.REPLACE_ONE).l2) ** 2 >= 2
    with pytest.raises(Unsupported, match=r"neighbours=one-element: lengths are per row"):
        statistic.sensitivity(Neighbours.ONE_ELEMENT)
    with pytest.raises(InvalidInput, match=r"longest=0: must be at least 1"):
        LengthHistogram(longest=0)
