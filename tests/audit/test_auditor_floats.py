"""Float attacks: naive noise is refuted by its last bits, ours is not; sums do not depend on order."""

import numpy as np
import pytest

from adumbra.audit.checks import off_grid
from adumbra.errors import InvalidInput
from support import float_attack as floats
from support.topk import full

RUNS = full(100_000, 1_000_000)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_naive_float_noise_is_caught_and_ours_is_not(law, record_property):
    naive = floats.support_attack(floats.naive_noise(law), RUNS)
    ours = floats.support_attack(floats.product_noise(law), RUNS)
    assert naive >= 5.0
    assert ours <= 1.0
    told = f"float {law} noise of a claimed epsilon 1: at least {naive:.1f} proven; ours: {ours:.1f}"
    record_property("figure", told)


def test_off_grid_numbers_are_counted():
    assert off_grid(np.array([0.25, -3.0, 0.75]), 0.25) == 0
    assert off_grid(np.array([0.25, 0.1]), 0.25) == 1
    assert off_grid(np.array([np.inf, 0.25]), 0.25) == 1
    with pytest.raises(
        InvalidInput, match="must be a power of two"
    ):  # where indices leave there is none
        off_grid(np.array([0.1]), 0.0)


def test_float_sums_depend_on_order_and_ours_do_not():
    rows = np.random.default_rng(0).standard_normal((500, 3))
    assert floats.float_sum_spread(rows, 20) > 1
    assert floats.exact_gram_spread(rows, full(20, 100)) == 1
