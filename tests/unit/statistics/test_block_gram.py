"""A part of a Gram equals the same entries of the whole one."""

import numpy as np
import pytest

from adumbra.data.bounds import BoundedRows, bound_rows, with_constant
from adumbra.errors import InvalidInput
from adumbra.numerics import ROW_BITS
from adumbra.statistics.moments import BlockGram

UNITS = 2**14


def some_rows(rows, width, seed=0):
    values = np.random.default_rng(seed).normal(size=(rows, width))
    return with_constant(bound_rows(values, 2.0), UNITS)


@pytest.mark.parametrize("blocks", [(6,), (2, 3, 1), (3, 3)])
def test_parts_equal_the_whole_gram(blocks):
    rows = [some_rows(50, 6, 1), some_rows(30, 6, 2)]
    statistic = BlockGram(blocks=blocks, tail=1, limit=4**ROW_BITS + UNITS**2)
    flat = statistic.add(statistic.zero(), rows)
    units = np.vstack([chunk.units for chunk in rows])
    whole = (units.T @ units).astype(np.int64)
    parts, cross, tail = statistic.unpack(flat.astype(float))
    start = 0
    for width, part in zip(blocks, parts, strict=True):
        assert np.array_equal(part, whole[start : start + width, start : start + width])
        start += width
    assert np.array_equal(cross, whole[:6, 6:])
    assert np.array_equal(tail, whole[6:, 6:])
    assert statistic.exponent == -2 * ROW_BITS


@pytest.mark.parametrize("blocks", [(4,), (1, 2), (2, 2, 2)])
def test_weights_are_one_on_squares_alone(blocks):
    statistic = BlockGram(blocks=blocks, tail=2, limit=4**ROW_BITS)
    marked = statistic.unpack((statistic.noise_weights() == 1.0).astype(float))
    for part in (*marked[0], marked[2]):
        assert np.array_equal(part, np.eye(len(part)))
    assert not marked[1].any()
    assert statistic.noise_weights().min() >= np.sqrt(0.5)
    change = np.ones(sum(statistic.parts))
    norm = np.sqrt(np.sum((change / statistic.noise_weights()) ** 2))
    assert statistic.rounding() >= norm
    assert statistic.rounding() <= norm * (1 + 1e-12)


def test_rows_that_do_not_fit_are_refused():
    statistic = BlockGram(blocks=(3,), tail=1, limit=4**ROW_BITS)
    with pytest.raises(InvalidInput, match="does not fit the declared 4"):
        statistic.add(statistic.zero(), [some_rows(2, 5)])
    huge = BoundedRows(units=np.zeros((2, 4)), norm=1.0, limit=1)
    with pytest.raises(InvalidInput, match="not exact in float64"):
        BlockGram(blocks=(3,), tail=1, limit=2**53).add(np.zeros(10, np.int64), [huge])
