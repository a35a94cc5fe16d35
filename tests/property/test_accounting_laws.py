"""Laws of the accounting, for every admitted budget."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from adumbra.privacy.conversion import (
    bounded_range_to_mu,
    compose_mu,
    delta_of,
    epsilon_of,
    mu_of,
    pure_to_mu,
    split_epsilon,
    split_mu,
)
from support.accounting import curve, pure_excess

logs = lambda low, high: st.floats(math.log(low), math.log(high)).map(math.exp)  # noqa: E731
epsilons = logs(1e-9, 1e3)
deltas = logs(1e-299, 0.499)
mus = logs(1e-9, 1e3)
shares = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=8).map(
    lambda w: [x / math.fsum(w) for x in w]
)
quick = settings(deadline=None, max_examples=60)


@quick
@given(epsilons, deltas)
def test_calibration_lands_on_the_safe_side(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert curve(mu, epsilon) <= delta < curve(math.nextafter(mu, math.inf), epsilon)
    assert delta_of(mu, epsilon) <= delta
    assert epsilon_of(mu, delta) <= epsilon


@quick
@given(mus, deltas)
def test_epsilon_is_the_smallest(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assert curve(mu, epsilon) <= delta
    assert epsilon == 1e-12 or curve(mu, math.nextafter(epsilon, 0.0)) > delta


@quick
@given(logs(1.1e-12, 9.9e3))
def test_pure_is_the_smallest_mu(epsilon):
    mu = pure_to_mu(epsilon)
    assert pure_excess(mu, epsilon) <= 0 < pure_excess(math.nextafter(mu, 0.0), epsilon)
    assert mu <= math.sqrt(2 * math.pi) / 2 * epsilon * (1 + 1e-15)


@quick
@given(st.lists(mus, min_size=1, max_size=6))
def test_composition_is_exact_and_order_free(parts):
    root = compose_mu(*parts)
    exact = sum(Fraction(mu) ** 2 for mu in parts)
    assert Fraction(root) ** 2 >= exact > Fraction(math.nextafter(root, 0.0)) ** 2
    assert compose_mu(*reversed(parts)) == root


@quick
@given(mus, shares)
def test_split_mu_never_exceeds(mu, parts):
    split = split_mu(mu, parts)
    assert sum(Fraction(part) ** 2 for part in split) <= Fraction(mu) ** 2
    assert compose_mu(*split) <= mu
    assert math.isclose(math.hypot(*split), mu, rel_tol=1e-14)


@quick
@given(epsilons, shares)
def test_split_epsilon_never_exceeds(epsilon, parts):
    split = split_epsilon(epsilon, parts)
    assert sum(map(Fraction, split)) <= Fraction(epsilon)
    assert math.isclose(math.fsum(split), epsilon, rel_tol=1e-14)


@given(logs(1e-3, 20.0), st.floats(0.001, 0.999))
@settings(deadline=None, max_examples=200)
def test_bounded_range_curve_lies_above_gaussian(epsilon, place):
    """Two points with losses t and t - epsilon are harder to tell apart than the Gaussian pair."""
    t = place * epsilon
    mu = bounded_range_to_mu(epsilon)
    q = -math.expm1(t - epsilon) / (math.exp(t) - math.exp(t - epsilon))
    alpha = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 501), [q]])
    hardest = np.maximum(1 - math.exp(t) * alpha, math.exp(t - epsilon) * (1 - alpha))
    assert np.all(ndtr(-ndtri(alpha) - mu) <= hardest + 1e-13)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 20.0])
def test_bounded_range_is_tight(epsilon):
    """At t = epsilon/2 the curves touch, and a mu smaller by 1e-6 would be false."""
    mu = bounded_range_to_mu(epsilon)
    q = 1 / (1 + math.exp(epsilon / 2))
    beta = q  # by symmetry the corner is (q, q)
    assert ndtr(-ndtri(q) - mu) <= beta * (1 + 1e-12)
    assert ndtr(-ndtri(q) - mu * (1 - 1e-6)) > beta


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 20.0])
def test_pure_touches_its_corner(epsilon):
    mu = pure_to_mu(epsilon)
    corner = 1 / (1 + math.exp(epsilon))
    assert ndtr(-ndtri(corner) - mu) <= corner * (1 + 1e-12)
    assert ndtr(-ndtri(corner) - mu * (1 - 1e-6)) > corner
    alpha = np.linspace(1e-9, 1 - 1e-9, 2001)
    hardest = np.maximum(1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
    assert np.all(ndtr(-ndtri(alpha) - mu) <= hardest + 1e-13)


@given(
    first=st.floats(0.05, 0.95),
    cut=st.floats(-3, 3),
    low=st.floats(0, 1),
    high=st.floats(0, 1),
    epsilon=st.floats(0, 6),
)
@settings(deadline=None, max_examples=100)
def test_adaptive_choice_keeps_the_cap(first, cut, low, high, epsilon):
    """The second release's mu depends on the first answer; delta of both stays below the cap's curve.

    Exact but for a sum over 40,001 points: delta = E over the first answer of the second one's delta
    at what is left of epsilon. `low` and `high` are the shares of the remaining mu^2 that the person
    spends on either side of the cut, so `low=1, high=0` stops as soon as the loss is large.
    """
    cap = 2.0
    mu1 = cap * first
    left = math.sqrt(cap**2 - mu1**2)
    x = np.linspace(-9, 9 + mu1, 40_001)
    density = np.exp(-((x - mu1) ** 2) / 2) / math.sqrt(2 * math.pi)
    loss = mu1 * x - mu1**2 / 2
    mu2 = np.maximum(left * np.sqrt(np.where(x > cut, high, low)), 1e-9)
    rest = epsilon - loss
    second = ndtr(mu2 / 2 - rest / mu2) - np.exp(rest) * ndtr(-mu2 / 2 - rest / mu2)
    spent = float(np.sum(density * second) * (x[1] - x[0]))
    assert spent <= delta_of(cap, epsilon) + 1e-4 * (x[1] - x[0]) + 1e-9
    overspent = delta_of(cap * 0.9, epsilon)
    if low == high == 1:
        assert spent > overspent


def test_adaptive_check_can_fail():
    """Spending 30 % more than the cap on one side is seen by the same sum."""
    cap, mu1, epsilon = 2.0, 1.0, 1.0
    x = np.linspace(-9, 10, 40_001)
    loss = mu1 * x - mu1**2 / 2
    mu2 = np.where(loss > 0, 1.3 * math.sqrt(cap**2 - mu1**2), math.sqrt(cap**2 - mu1**2))
    rest = epsilon - loss
    second = ndtr(mu2 / 2 - rest / mu2) - np.exp(rest) * ndtr(-mu2 / 2 - rest / mu2)
    density = np.exp(-((x - mu1) ** 2) / 2) / math.sqrt(2 * math.pi)
    assert float(np.sum(density * second) * (x[1] - x[0])) > delta_of(cap, epsilon) + 1e-3
