"""Scales are rounded toward more noise, and the noise of these scales keeps its promise exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.privacy.conversion import (
    bounded_range_to_mu,
    gaussian_sigma,
    gumbel_epsilon0,
    gumbel_scale,
    laplace_scale,
    mu_of,
    split_epsilon,
    split_mu,
)
from support.accounting import rounded_normal_delta


def test_scales_round_up():
    for scale in (gaussian_sigma, laplace_scale, gumbel_scale):
        for top, bottom in ((1.0, 3.0), (2.0, 0.1), (1e-300, 7.0), (0.3, 1e-9)):
            exact = Fraction(top) / Fraction(bottom)
            assert (
                Fraction(scale(top, bottom)) >= exact > Fraction(math.nextafter(scale(top, bottom), 0.0))
            )


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_scales_refuse(bad):
    for scale in (gaussian_sigma, laplace_scale, gumbel_scale):
        for arguments in ((bad, 1.0), (1.0, bad)):
            with pytest.raises(InvalidInput, match="must be finite and above 0"):
                scale(*arguments)


def test_scale_overflow_is_refused():
    with pytest.raises(InvalidInput, match="l2=1e\\+300, mu=1e-12: the scale overflows"):
        gaussian_sigma(1e300, 1e-12)


@pytest.mark.parametrize(("delta", "sigma"), [(1e-5, 3.731), (1e-6, 4.225)])
def test_sigma_for_a_budget(delta, sigma):
    mu = mu_of(1.0, delta)
    assert round(gaussian_sigma(1.0, mu), 3) == sigma
    assert gaussian_sigma(2.0, mu) == 2 * gaussian_sigma(1.0, mu)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("shift", [5, 12, 40])
def test_calibrated_gaussian_keeps_delta(epsilon, shift):
    """The exact delta of the rounded normal, against its neighbour `shift` lattice steps away."""
    delta = 1e-5
    sigma = gaussian_sigma(float(shift), mu_of(epsilon, delta))
    spent = rounded_normal_delta(sigma, shift, epsilon)
    assert 0.9 * delta <= spent <= delta  # a loose calibration is a bug too
    # Three per cent less noise breaks the promise: the check can fail.
    assert rounded_normal_delta(0.97 * sigma, shift, epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_calibrated_laplace_keeps_epsilon(epsilon):
    steps = 7
    scale = laplace_scale(float(steps), epsilon)
    k = np.arange(-60, 61)
    loss = (np.abs(k - steps) - np.abs(k)) / scale
    assert np.abs(loss).max() <= epsilon
    assert np.abs(loss).max() >= 0.999999 * epsilon


@pytest.mark.parametrize("k", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("mu", [mu_of(1.0, 1e-6), 0.1])
def test_gumbel_rounds_fill_the_budget(k, mu):
    epsilon0 = gumbel_epsilon0(mu, k)
    assert k * Fraction(bounded_range_to_mu(epsilon0)) ** 2 <= Fraction(mu) ** 2
    assert k * bounded_range_to_mu(epsilon0 * (1 + 1e-12)) ** 2 > mu**2 * (1 - 1e-15)


def test_gumbel_known_value_and_refusal():
    assert round(gumbel_epsilon0(mu_of(1.0, 1e-6), 100), 4) == 0.0378
    with pytest.raises(InvalidInput, match="k=0: must be at least 1"):
        gumbel_epsilon0(0.2, 0)


def test_gumbel_is_bounded_range():
    """The law of argmax q + Gumbel(b) is softmax(q/b); its loss spreads over at most epsilon0."""
    rng = np.random.default_rng(5)
    epsilon0, g, worst = 0.7, 2.0, 0.0
    b = gumbel_scale(g, epsilon0)
    for _ in range(200):
        scores = rng.integers(0, 20, size=8).astype(float)
        moved = scores + rng.uniform(-1, 1, size=8).round(rng.integers(0, 3))
        loss = [q / b - np.logaddexp.reduce(q / b) for q in (scores, moved)]
        spread = np.ptp(loss[0] - loss[1])
        assert spread <= epsilon0 + 1e-12
        worst = max(worst, spread)
    assert worst > 0.99 * epsilon0


def test_split_mu_known():
    assert split_mu(1.0, (0.25, 0.75))[0] == 0.5
    assert split_mu(0.3, (1.0,)) == (0.3,)


def test_split_epsilon_known():
    assert split_epsilon(1.0, (0.5, 0.5)) == (0.5, 0.5)
    parts = split_epsilon(1.0, [0.1] * 10)
    assert sum(map(Fraction, parts)) <= 1
    assert min(parts) == math.nextafter(0.1, 0.0) or min(parts) == 0.1


@pytest.mark.parametrize("split", [split_mu, split_epsilon])
def test_shares_refuse(split):
    for shares in ((0.5, 0.4), (1.0, 1.0), ()):
        with pytest.raises(InvalidInput, match="must add up to 1"):
            split(1.0, shares)
    for shares in ((1.0, 0.0), (1.5, -0.5), (math.nan, 1.0), (math.inf,)):
        with pytest.raises(InvalidInput, match=r"^share=.*above 0"):
            split(1.0, shares)
    for amount in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="must be finite and above 0"):
            split(amount, (1.0,))
