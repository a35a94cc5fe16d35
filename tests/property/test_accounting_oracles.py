"""Our closed forms against another library: privacy loss distributions and zCDP."""

import math

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

from adumbra.privacy.conversion import (
    bounded_range_to_mu,
    compose_mu,
    epsilon_of,
    mu_of,
    pure_to_mu,
)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_pld_agrees(epsilon, delta):
    mu = mu_of(epsilon, delta)
    other = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    assert abs(other.get_epsilon_for_delta(delta) - epsilon) <= 1e-3


def test_pld_agrees_on_a_composition():
    mus = [0.05, 0.1, 0.2, 0.3]
    other = None
    for mu in mus:
        one = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
        other = one if other is None else other.compose(one)
    ours = epsilon_of(compose_mu(*mus), 1e-6)
    assert abs(other.get_epsilon_for_delta(1e-6) - ours) <= 1e-3


@pytest.mark.parametrize("rounds", [1, 4, 30])
def test_pld_of_pure_is_not_above_ours(rounds):
    """Randomised response, the worst pure mechanism, composed exactly: our mu never understates it."""
    epsilon = 0.2
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    other = two_point(p, 1 - p).self_compose(rounds)
    ours = epsilon_of(compose_mu(*[pure_to_mu(epsilon)] * rounds), 1e-6)
    assert other.get_epsilon_for_delta(1e-6) <= ours + 1e-3


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("rounds", [1, 20])
def test_pld_of_bounded_range_is_not_above_ours(place, rounds):
    epsilon = 0.4
    t = place * epsilon
    q = -math.expm1(t - epsilon) / (math.exp(t) - math.exp(t - epsilon))
    other = two_point(q * math.exp(t), q).self_compose(rounds)
    ours = epsilon_of(compose_mu(*[bounded_range_to_mu(epsilon)] * rounds), 1e-6)
    assert other.get_epsilon_for_delta(1e-6) <= ours + 1e-3
    # A pure epsilon/4 price would be too cheap at the middle: the check can fail.
    if place == 0.5 and rounds == 20:
        cheap = epsilon_of(compose_mu(*[pure_to_mu(epsilon / 4)] * rounds), 1e-6)
        assert other.get_epsilon_for_delta(1e-6) > cheap


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.2367, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_zcdp_is_never_below_ours(mu, delta):
    ours = epsilon_of(mu, delta)
    assert zcdp_epsilon(mu**2 / 2, delta) >= ours
    accountant = RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(1 / mu))
    assert accountant.get_epsilon(delta) >= ours


def two_point(p, q):
    """The pair of laws (p, 1-p) and (q, 1-q)."""
    return pld.from_two_probability_mass_functions(
        {0: math.log(q), 1: math.log1p(-q)},
        {0: math.log(p), 1: math.log1p(-p)},
        value_discretization_interval=1e-4,
    )


def zcdp_epsilon(rho, delta):
    """The optimal-order conversion (Canonne, Kamath & Steinke 2020, Proposition 12), by a fine scan."""
    orders = [1 + math.exp(i / 200) for i in range(-2000, 2400)]
    return min(
        max(a * rho + (math.log(1 / (a * delta)) + (a - 1) * math.log1p(-1 / a)) / (a - 1), 0.0)
        for a in orders
    )
