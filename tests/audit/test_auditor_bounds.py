"""The arithmetic of the audit: bounds that hold, bounds that are tight, and no false alarms."""

import math

import numpy as np
import pytest
from scipy.stats import norm, pearsonr

from adumbra.audit.attack import choose_threshold
from adumbra.audit.bounds import (
    GATE,
    PRINTED,
    Counts,
    epsilon_lower,
    mu_lower,
    pure_epsilon_lower,
    rate_bounds,
)
from adumbra.audit.checks import chance_alike
from adumbra.errors import InvalidInput
from adumbra.privacy.conversion import mu_of
from support.topk import full

AUDITS = full(1000, 20_000)


def gaussian_counts(mu, runs, rng):
    """The guesses of the best attack on a Gaussian mechanism, drawn from their exact law."""
    miss = norm.cdf(-mu / 2)
    return Counts(before=rng.binomial(runs, miss), after=runs - rng.binomial(runs, miss), runs=runs)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_no_false_alarm_in_a_thousand_audits_of_a_correct_mechanism(epsilon):
    """At 1 - 1e-9 the chance of one alarm in all of these audits is below 2e-5."""
    rng, mu = np.random.default_rng(0), mu_of(epsilon, 1e-6)
    proven = [mu_lower(gaussian_counts(mu, 10**5, rng), GATE) for _ in range(AUDITS)]
    assert max(proven) <= mu
    assert np.median(proven) >= 0.75 * mu  # and the audits are not silent


def test_the_printed_bound_is_wrong_about_as_often_as_it_says():
    """At 99 % an alarm may come once in 100; 40 in 1000 has a chance below 1e-12."""
    rng, mu = np.random.default_rng(1), mu_of(8.0, 1e-6)
    alarms = sum(mu_lower(gaussian_counts(mu, 10**4, rng), PRINTED) > mu for _ in range(1000))
    assert alarms <= 40


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_a_bound_is_wrong_about_as_often_as_it_says_wherever_the_threshold_lies(shift):
    """Errors of very different sizes; at 90 % 200 alarms in 1000 have a chance below 1e-9."""
    rng, mu, runs = np.random.default_rng(5), 1.0, 2_000
    alpha, miss = norm.sf(mu / 2 + shift), norm.cdf(shift - mu / 2)
    drawn = zip(rng.binomial(runs, alpha, 1000), rng.binomial(runs, 1 - miss, 1000), strict=True)
    proven = [mu_lower(Counts(before=int(a), after=int(b), runs=runs), 0.9) for a, b in drawn]
    assert sum(one > mu for one in proven) < 200
    assert np.median(proven) >= 0.7 * mu
    if shift == 2.0:  # one error is rare: the sum alone would prove little
        assert -2 * norm.ppf((alpha + miss) / 2) < 0.2 * mu


def test_errors_of_both_tables_are_counted_together():
    """With equal errors the sum proves more than two bounds at once."""
    mu, runs = mu_of(1.0, 1e-6), 10**6
    errors = round(runs * norm.cdf(-mu / 2))
    apart = -2 * norm.ppf(rate_bounds(errors, runs, (1 - GATE) / 2)[1])
    proven = mu_lower(Counts(before=errors, after=runs - errors, runs=runs), GATE)
    assert apart < 0.94 * mu < 0.95 * mu < proven < mu


@pytest.mark.parametrize(("short", "runs"), [(0.95, 10**6), (0.9, 10**5), (0.5, 10**4)])
def test_noise_that_is_too_narrow_is_refuted(short, runs):
    rng, mu = np.random.default_rng(2), mu_of(8.0, 1e-6)
    assert epsilon_lower(gaussian_counts(mu / short, runs, rng), 1e-6, GATE) > 8.0


def test_a_pure_claim_is_bounded_by_the_ratio_of_its_event():
    """Randomised response at epsilon = 2."""
    rng, runs = np.random.default_rng(3), 10**6
    p = math.exp(2.0) / (1 + math.exp(2.0))
    counts = Counts(before=rng.binomial(runs, 1 - p), after=rng.binomial(runs, p), runs=runs)
    assert 1.9 <= pure_epsilon_lower(counts, GATE) <= 2.0
    flipped = Counts(before=counts.after, after=counts.before, runs=runs)
    assert 1.9 <= pure_epsilon_lower(flipped, GATE) <= 2.0


def test_edges():
    nothing = Counts(before=0, after=0, runs=10)
    everything = Counts(before=0, after=10**6, runs=10**6)
    assert pure_epsilon_lower(nothing, GATE) == 0.0
    assert epsilon_lower(Counts(before=5, after=5, runs=10), 1e-6, GATE) == 0.0
    assert mu_lower(Counts(before=10, after=10, runs=10), GATE) == 0.0
    assert pure_epsilon_lower(everything, GATE) > 10
    with pytest.raises(InvalidInput, match="runs=0"):
        Counts(before=0, after=0, runs=0)
    with pytest.raises(InvalidInput, match="before=11"):
        Counts(before=11, after=0, runs=10)


def test_the_pilot_finds_the_atom_of_a_laplace_loss():
    rng = np.random.default_rng(4)
    noise = rng.laplace(size=(2, 20_000))
    loss = [np.abs(y) - np.abs(y - 4.0) for y in (noise[0], 4.0 + noise[1])]
    level = choose_threshold(*loss)
    assert -4.0 < level < 4.0
    assert ((loss[1] > level).mean() / max((loss[0] > level).mean(), 1e-4)) > math.exp(2.5)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0, -1.0])
@pytest.mark.parametrize("size", [10, 16, 500])
def test_noise_that_is_shared_is_as_unlikely_as_scipy_says(share, size):
    rng = np.random.default_rng(size)
    one, own = rng.normal(size=(2, size))
    other = share * one + (1.0 - abs(share)) * own
    assert chance_alike(one, other) == pytest.approx(pearsonr(one, other).pvalue, rel=1e-9, abs=1e-60)
    assert chance_alike(one, np.ones(size)) == 1.0
