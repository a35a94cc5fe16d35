"""Units, prices and caps: exact, and rounded against the spender."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from adumbra.errors import InvalidInput, Unsupported
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import Population
from adumbra.privacy.ledger.accounts import (
    SCALE,
    _sqrt_upper,
    affordable,
    cap,
    cost,
    decimal,
    spent_epsilon,
)
from adumbra.privacy.ledger.values import MAX_UNITS
from support.accounting import curve
from support.ledger import ROW, ask

PURE = Population("pure", *ROW, 1.0, 0.0)
GAUSS = Population("gauss", *ROW, 1.0, 1e-6)


def test_a_float_is_the_decimal_that_prints_it():
    assert decimal(0.1) == Fraction(1, 10)
    assert decimal(1e-9) == Fraction(1, 10**9)
    assert [cost(ask(epsilon), PURE) for epsilon in (0.1, 1e-9, 1.0)] == [10**11, 1000, 10**12]
    assert cost(ask(0.1 + 0.2), PURE) == 300_000_000_001  # 0.30000000000000004 is more than 0.3


def test_caps_are_rounded_down_and_costs_up():
    third = Population("third", *ROW, 1 / 3, 0.0)
    assert cap(third) == 333_333_333_333
    assert cost(ask(1 / 3), PURE) == 333_333_333_334
    assert cost(ask(1 / 3), third) == cap(third)  # the whole cap can be asked for
    assert cost(ask(0.33333333333333326), third) == cap(third)
    assert cost(ask(0.33333333333333337), third) == cap(third) + 1


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 100.0])
def test_the_gaussian_cap_keeps_its_promise_at_50_digits(epsilon, delta):
    with mpmath.workdps(50):
        mu = mpmath.sqrt(mpmath.mpf(cap(Population("people", *ROW, epsilon, delta))) / SCALE)
        tail = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )
        assert tail <= mpmath.mpf(delta)
        more = mu * (1 + mpmath.mpf(10) ** -6)
        over = mpmath.ncdf(more / 2 - epsilon / more) - mpmath.exp(epsilon) * mpmath.ncdf(
            -more / 2 - epsilon / more
        )
        assert over > mpmath.mpf(delta)  # and nothing is given away


def test_a_pure_spend_in_a_gaussian_account_costs_its_mu_squared():
    with mpmath.workdps(40):
        odds = mpmath.exp(0.5) / (1 + mpmath.exp(0.5))
        mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * odds - 1)
        assert cost(ask(0.5), GAUSS) == int(mpmath.ceil(mu**2 * SCALE))


def test_a_gaussian_spend_has_no_price_in_a_pure_account():
    with pytest.raises(Unsupported, match="pure epsilon only"):
        cost(ask(0.5, 1e-6), PURE)


def test_the_smallest_spend_costs_a_unit_and_the_largest_never_fits():
    small = PrivacyGuarantee(unit=ROW[0], neighbours=ROW[1], mu=1e-12, delta=1e-6)
    assert cost(small, GAUSS) == 1
    huge = PrivacyGuarantee(unit=ROW[0], neighbours=ROW[1], mu=1e4, delta=1e-6)
    assert cost(huge, GAUSS) == 10**20 > MAX_UNITS
    assert affordable(1, GAUSS, 1e-6) == 0.0 or cost(ask(affordable(1, GAUSS, 1e-6), 1e-6), GAUSS) <= 1


def test_a_cap_below_a_unit_is_refused():
    with pytest.raises(InvalidInput, match="too small a cap"):
        cap(Population("people", *ROW, 1e-9, 1e-9))


def test_spent_is_shown_as_people_read_it():
    assert spent_epsilon([], GAUSS) == spent_epsilon([], PURE) == 0.0
    assert spent_epsilon([ask(1.0, 1e-6)], GAUSS) == 1.0
    assert spent_epsilon([ask(0.1)] * 3, PURE) == 0.3
    assert spent_epsilon([ask(0.5, 1e-6)], GAUSS) == 0.5


def test_spent_is_never_printed_below_what_was_spent():
    """To nearest, half of these totals are below the truth; so are the units of a whole cap."""
    assert spent_epsilon([ask(0.3333331000001)], PURE) == 0.3333331000001
    whole = Population("people", *ROW, 0.1234567890123456, 0.0)
    assert cost(ask(whole.epsilon), whole) < decimal(whole.epsilon) * SCALE
    assert spent_epsilon([ask(whole.epsilon)], whole) >= whole.epsilon
    people = Population("people", *ROW, 50.0, 1e-6)
    for epsilon in np.random.default_rng(11).uniform(0.01, 0.7, 20).tolist():
        spends = [ask(epsilon, 1e-6)] * 2
        printed = spent_epsilon(spends, people)
        with mpmath.workdps(60):
            mu = mpmath.sqrt(2) * mpmath.mpf(spends[0].mu)
        assert curve(mu, printed) <= 1e-6 < curve(mu, printed * (1 - 1.1e-5))


def test_affordable_is_zero_below_the_smallest_request():
    assert affordable(0, PURE, 0.0) == affordable(-5, GAUSS, 1e-6) == 0.0
    assert affordable(999, PURE, 0.0) == 0.0
    assert affordable(1000, PURE, 0.0) == 1e-9
    assert affordable(MAX_UNITS, Population("big", *ROW, 1000.0, 0.0), 0.0) == 1000.0
    assert affordable(cap(GAUSS), GAUSS, 1e-6) == 1.0
    assert math.isclose(affordable(cost(ask(0.25), GAUSS), GAUSS, 0.0), 0.25, rel_tol=1e-5)


def test_a_root_is_the_smallest_that_is_not_below():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        large = Fraction(int(rng.integers(1, 2**62)) * int(rng.integers(1, 2**62)) + 1, 10**12)
        tiny = Fraction(2**47 + int(rng.integers(2**20)), 2**1075)  # is rounded far, up or down
        for exact in (large, tiny):
            root = _sqrt_upper(exact)
            assert Fraction(root) ** 2 >= exact > Fraction(math.nextafter(root, 0.0)) ** 2
