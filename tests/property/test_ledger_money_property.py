"""Laws of money: nothing is given away, and advice can be followed."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.errors import BudgetRefused
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.privacy.ledger.accounts import SCALE, affordable, cap, cost, decimal
from support.ledger import FULL, ROW, ask, register, reserve

CASES = settings(max_examples=100_000 if FULL else 300, deadline=None)
FEWER = settings(max_examples=3_000 if FULL else 40, deadline=None)
decimals = st.decimals("0.0001", "100", places=4).map(float) | st.floats(1e-6, 1e3)


@CASES
@given(whole=decimals, part=decimals)
def test_granted_is_the_floor_of_cap_over_cost(whole, part):
    people = Population("people", *ROW, whole, 0.0)
    units, left = cost(ask(part), people), cap(people)
    granted = left // units
    assert Fraction(units, SCALE) >= decimal(part) or granted == 1  # the whole cap in one spend
    assert granted * decimal(part) <= decimal(whole)
    if (decimal(whole) * SCALE).denominator == (decimal(part) * SCALE).denominator == 1:
        assert granted == decimal(whole) // decimal(part)  # exactly, whatever the floats say


@FEWER
@given(whole=st.floats(0.05, 20), spent=st.floats(0.01, 0.99), delta=st.sampled_from([0.0, 1e-9, 1e-6]))
def test_what_a_refusal_advises_passes(whole, spent, delta):
    ledger = memory_ledger()
    people = register(ledger, epsilon=whole, delta=delta)
    reserve(ledger, epsilon=max(whole * spent, 1e-9), delta=delta)
    with pytest.raises(BudgetRefused) as refused:
        reserve(ledger, epsilon=whole, delta=delta)
    largest = refused.value.largest
    assert largest <= people.epsilon
    if largest > 0:
        reserve(ledger, epsilon=largest, delta=delta)
    ledger.verify()


@FEWER
@given(units=st.integers(0, 10**13), delta=st.sampled_from([0.0, 1e-12, 1e-6, 0.1]), pure=st.booleans())
def test_affordable_costs_no_more_than_there_is(units, delta, pure):
    people = Population("people", *ROW, 20.0, 0.0 if pure else 1e-6)
    epsilon = affordable(units, people, 0.0 if pure else delta)
    assert epsilon == 0 or cost(ask(epsilon, 0.0 if pure else delta), people) <= units
    if pure and units >= 1000:
        assert cost(ask(epsilon), people) == units  # nothing is left behind
