"""Replay bought bounds on worst-case neighbours: never more is spent than was paid for."""

import pytest

from adumbra.audit.pairs import unbounded
from adumbra.mechanisms.base import Calibrated
from adumbra.mechanisms.bounds import BoundsConfig, plan, release
from support.components import ADD, BUDGETS, REPLACE, mixed, neighbours_of, worst


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_bounds_spend_at_most_what_was_paid(budget, relation):
    schema = unbounded(mixed(relation))
    assert 0.95 <= worst(BoundsConfig(**budget), schema, neighbours_of(relation)) <= 1.0


# Planted wrong: each must be caught by the harness above.


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_fifth_less_noise_is_caught(monkeypatch, budget):
    right = plan.calibrate_first

    def less(*arguments, **keywords):
        one = right(*arguments, **keywords)
        return Calibrated(scale=one.scale * 0.8, sensitivity=one.sensitivity, exponent=one.exponent)

    monkeypatch.setattr(plan, "calibrate_first", less)
    assert worst(BoundsConfig(**budget), unbounded(mixed()), neighbours_of(REPLACE)) > 1.0


def test_bounds_from_exact_counts_are_caught(monkeypatch):
    monkeypatch.setattr(release, "noisy", lambda exact, *_: exact.to_float())
    with pytest.raises(AssertionError, match="the outputs differ"):
        worst(BoundsConfig(epsilon=1.0), unbounded(mixed()), neighbours_of(REPLACE))
