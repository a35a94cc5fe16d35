"""Replay answers releases on worst-case neighbours: never more is spent than was paid for."""

import pytest

from adumbra.mechanisms import box_release
from adumbra.mechanisms.answers import AnswersConfig, release
from adumbra.mechanisms.base import Calibrated
from adumbra.statistics import box_moments
from support.components import ADD, BUDGETS, REPLACE, mixed, neighbours_of, worst


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_answers_spend_at_most_what_was_paid(budget, relation):
    assert 0.85 <= worst(AnswersConfig(**budget), mixed(relation), neighbours_of(relation)) <= 1.0


def test_some_columns_and_another_outcome_spend_no_more():
    config = AnswersConfig(epsilon=1.0, columns=("b", "city", "a"), outcome="b", cap_share=0.2)
    assert 0.75 <= worst(config, mixed(), neighbours_of(REPLACE)) <= 1.0


# Planted wrong: each must be caught by the harness above.


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_fifth_less_noise_is_caught(monkeypatch, budget):
    for name in ("calibrate_laplace", "calibrate_gaussian"):
        right = getattr(box_release, name)

        def less(*arguments, right=right, **keywords):
            one = right(*arguments, **keywords)
            return Calibrated(scale=one.scale * 0.8, sensitivity=one.sensitivity, exponent=one.exponent)

        monkeypatch.setattr(box_release, name, less)
    assert worst(AnswersConfig(**budget), mixed(), neighbours_of(REPLACE)) > 1.0


def test_forgetting_the_weights_is_caught(monkeypatch):
    monkeypatch.setattr(
        box_moments,
        "weighted_l2_square",
        lambda shape, _, near: box_moments.joint_l2_square(shape, near),
    )
    config = AnswersConfig(epsilon=1.0, delta=1e-6)
    assert worst(config, mixed(), neighbours_of(REPLACE)) > 1.5


def test_caps_from_exact_counts_are_caught(monkeypatch):
    monkeypatch.setattr(release, "noisy", lambda exact, *_: exact.to_float())
    with pytest.raises(AssertionError, match="the outputs differ"):
        worst(AnswersConfig(epsilon=1.0), mixed(), neighbours_of(REPLACE))
