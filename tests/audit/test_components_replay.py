"""Replay PCA and LDA releases on worst-case neighbours: never more is spent than was paid for.

With the noise of the first table replayed, all that is released must agree: nothing private goes around
the noise. The same harness must catch scales that are planted wrong, the paper's among them.
"""

import numpy as np
import pytest
from published import components as published

from adumbra.mechanisms import box_release
from adumbra.mechanisms.base import Calibrated
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.box_moments import BoxMoments
from support.components import ADD, BUDGETS, REPLACE, mixed, neighbours_of, worst


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_lda_spends_at_most_what_was_paid(budget, relation):
    config = LDAConfig(**budget, synthetic_rows=3)
    assert 0.85 <= worst(config, mixed(relation), neighbours_of(relation)) <= 1.0


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("bound", ["basis", "clip"])
def test_pca_rows_spend_at_most_what_was_paid(budget, bound):
    config = PCAConfig(n_components=2, bound=bound, **budget)
    assert 0.3 <= worst(config, mixed(label=None), neighbours_of(REPLACE)) <= 1.0


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_a_pca_sample_spends_at_most_what_was_paid(budget, relation):
    config = PCAConfig(n_components=2, output="sample", synthetic_rows=3, **budget)
    assert 0.85 <= worst(config, mixed(relation, label=None), neighbours_of(relation)) <= 1.0


# Planted wrong: each must be caught by the harness above.


def caught(config, schema):
    return worst(config, schema, neighbours_of(REPLACE)) > 1.0


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_fifth_less_noise_is_caught(monkeypatch, budget):
    for name in ("calibrate_laplace", "calibrate_gaussian"):
        right = getattr(box_release, name)

        def less(*arguments, right=right, **keywords):
            one = right(*arguments, **keywords)
            return Calibrated(scale=one.scale * 0.8, sensitivity=one.sensitivity, exponent=one.exponent)

        monkeypatch.setattr(box_release, name, less)
    assert caught(LDAConfig(**budget, synthetic_rows=3), mixed())


def test_forgetting_the_class_change_is_caught(monkeypatch):
    """The sensitivity of one sum for all classes, for sums by class."""
    plain = BoxMoments.sensitivity

    def forgotten(self, relation):
        shape = type(self.shape)(self.shape.numeric, self.shape.groups, 0)
        return plain(BoxMoments(shape), relation)

    monkeypatch.setattr(BoxMoments, "sensitivity", forgotten)
    assert caught(LDAConfig(epsilon=1.0, delta=0.0, synthetic_rows=3), mixed())


def test_categories_counted_as_one_change_each_are_caught(monkeypatch):
    def naive(self, relation):
        p = len(self.shape.numeric) + len(self.shape.groups)
        bound = p / 2 + p * (p + 1) / 8 + p / (2 * (p + 1))
        return Sensitivity(l1=bound, l2=bound)

    monkeypatch.setattr(BoxMoments, "sensitivity", naive)
    assert caught(
        PCAConfig(n_components=2, epsilon=1.0, delta=0.0, output="sample", synthetic_rows=3),
        mixed(label=None),
    )


def test_the_printed_scale_is_caught_on_the_printed_statistic():
    first, second = published.violating_pair(5, 6, classes=False)
    change = published.printed_statistic_change(first, second, classes=False)
    assert change / published.pca_sensitivity_not_private(5, 6) > 1.09
    assert np.all((first >= 0) & (first <= 1) & (second >= 0) & (second <= 1))
