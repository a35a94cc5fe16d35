import numpy as np
import pytest

from adumbra.data.bounds import bound_rows, with_classes, with_constant
from adumbra.errors import InvalidInput, Unsupported
from adumbra.numerics import ROW_BITS
from adumbra.relations import Neighbours
from adumbra.statistics.moments import (
    UNIT_LIMIT,
    Gram,
    RowSum,
    frobenius_weights,
    gram_sensitivity,
    require_no_overflow,
    sum_sensitivity,
    symmetric,
    upper_triangle,
)


def rows(n=200, d=6, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return bound_rows(rng.standard_normal((n, d)), 2.0, labels=rng.integers(0, classes, n))


def test_the_fold_equals_an_int64_reference():
    data = rows()
    z = data.units.astype(np.int64)
    assert np.array_equal(Gram(width=6).add(Gram(width=6).zero(), data), z.T @ z)
    assert np.array_equal(RowSum(width=6).add(RowSum(width=6).zero(), data), z.sum(axis=0))
    by_class = Gram(width=6, classes=3)
    sums = RowSum(width=6, classes=3)
    grams, totals = by_class.add(by_class.zero(), data), sums.add(sums.zero(), data)
    for c in range(3):
        assert np.array_equal(grams[c], z[data.labels == c].T @ z[data.labels == c])
        assert np.array_equal(totals[c], z[data.labels == c].sum(axis=0))


def test_the_augmented_gram_holds_sums_and_counts():
    data = with_classes(rows(), 3, 2**ROW_BITS)
    statistic = Gram(width=9, limit=2 * UNIT_LIMIT)
    gram = statistic.add(statistic.zero(), data)
    counts = np.bincount(data.labels, minlength=3)
    assert np.array_equal(gram[6:, 6:], np.diag(counts) * 4**ROW_BITS)
    assert np.array_equal(gram[:6, 6], data.units[data.labels == 0, :6].sum(axis=0) * 2**ROW_BITS)
    constant = with_constant(rows(), 2**ROW_BITS)
    statistic = Gram(width=7, limit=2 * UNIT_LIMIT)
    assert statistic.add(statistic.zero(), constant)[6, 6] == 200 * 4**ROW_BITS


def test_triangle_and_symmetric_are_inverse():
    gram = np.arange(9).reshape(3, 3) + np.arange(9).reshape(3, 3).T
    assert upper_triangle(gram).tolist() == [0, 4, 8, 8, 12, 16]
    assert np.array_equal(symmetric(upper_triangle(gram).astype(float), 3), gram)
    assert frobenius_weights(2).tolist() == [1.0, pytest.approx(2**-0.5), 1.0]
    assert frobenius_weights(2)[1] >= 2**-0.5


@pytest.mark.parametrize("statistic", [Gram(width=2, classes=2), RowSum(width=2, classes=2)])
def test_class_statistics_need_labels(statistic):
    with pytest.raises(InvalidInput, match="labels=None: a class statistic needs labels"):
        statistic.add(statistic.zero(), bound_rows(np.zeros((1, 2)), 1.0))


def test_rows_beyond_the_declared_limit_are_refused():
    augmented = with_constant(rows(), 2**ROW_BITS)
    with pytest.raises(InvalidInput, match="statistic was declared for 7"):
        Gram(width=7).add(Gram(width=7).zero(), augmented)
    with pytest.raises(InvalidInput, match="width=6"):
        Gram(width=5).add(Gram(width=5).zero(), rows())


def test_a_block_that_could_round_is_refused():
    statistic = RowSum(width=1, limit=2**52)
    with pytest.raises(InvalidInput, match="rows=2: a block this large is not exact"):
        statistic.add(statistic.zero(), bound_rows(np.zeros((2, 1)), 1.0))


def test_overflow_is_refused_before_the_run():
    require_no_overflow(UNIT_LIMIT, 2**33 - 1)
    with pytest.raises(InvalidInput, match=f"max_rows={2**33}: .* declare at most {2**33 - 1}"):
        require_no_overflow(UNIT_LIMIT, 2**33)


@pytest.mark.parametrize("bound", [sum_sensitivity, gram_sensitivity])
def test_relations_without_a_proof_are_refused(bound):
    with pytest.raises(Unsupported, match="neighbours=one-element"):
        bound(3, UNIT_LIMIT, Neighbours.ONE_ELEMENT)
