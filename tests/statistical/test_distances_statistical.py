"""Bias, variance and coverage of distances, for every family with both noises, over matrix and noise.

Each comparison is at 6.5 standard errors, estimated from the sample: a false alarm has chance 1e-10.
Wrong variances (a tenth off either way) must be rejected by the same comparison.
"""

import os

import numpy as np
import pytest

from adumbra.postprocess.distances import interval
from support.distance_draws import distance_draws

FULL = os.environ.get("ADUMBRA_FULL") == "1"
DRAWS = 1_000_000 if FULL else 60_000
SLOW_DRAWS = 100_000 if FULL else 8_000
WIDTH = 6.5
A = np.array([1.2, -0.7, 0.4, 0.9, -0.3, 0.6, 0.2, -0.8])
RHO2, FOURTH = float(A @ A), float(np.sum(A**4))
FAMILIES = ["gaussian", "sphere", "rademacher", "sparse", "haar", "identity"]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("family", FAMILIES)
def test_distances_are_unbiased_with_the_stated_variance(family, noise):
    k = 8 if family == "identity" else 5
    draws = SLOW_DRAWS if family == "haar" else DRAWS
    values, model = distance_draws(family, noise, A, k, 0.4, draws, seed=11)
    error = values - RHO2
    assert abs(error.mean()) < WIDTH * error.std() / np.sqrt(draws)
    spread = (error - error.mean()) ** 2
    stated = float(model.variance(np.array(RHO2), fourth_power=FOURTH))
    tolerance = WIDTH * spread.std() / np.sqrt(draws)
    assert abs(spread.mean() - stated) < tolerance
    for wrong in (0.8, 1.25):
        assert abs(spread.mean() - wrong * stated) > tolerance


@pytest.mark.parametrize(("k", "sigma"), [(5, 0.5), (20, 1.0)])
def test_the_exact_interval_covers_as_often_as_it_says(k, sigma):
    values, model = distance_draws("gaussian", "gaussian", A, k, sigma, DRAWS, seed=12)
    for level in (0.95, 0.5):
        low, high = interval(model, values, level=level)
        covered = np.mean((low <= RHO2) & (high >= RHO2))
        tolerance = WIDTH * np.sqrt(level * (1 - level) / DRAWS)
        assert abs(covered - level) < tolerance
    # Distances a tenth too small are found out: their coverage is not 0.5.
    low, high = interval(model, values * 0.9, level=0.5)
    assert abs(np.mean((low <= RHO2) & (high >= RHO2)) - 0.5) > WIDTH * np.sqrt(0.25 / DRAWS)


TWO_CELLS, BINARY = np.ones(2), np.array([1.0, -1.0] * 6)


@pytest.mark.parametrize(
    ("family", "noise", "a", "k"),
    [
        ("sparse", "laplace", A / 1.2, 4),
        ("sparse", "laplace", TWO_CELLS, 4),
        ("sparse", "gaussian", BINARY, 8),
        ("rademacher", "laplace", TWO_CELLS, 2),
        ("rademacher", "gaussian", A / 1.2, 8),
        ("sphere", "laplace", TWO_CELLS, 2),
        ("sphere", "gaussian", BINARY, 16),
        ("haar", "laplace", A / 1.2, 4),
        ("identity", "laplace", BINARY, 12),
    ],
)
def test_intervals_of_every_family_cover_at_least_as_often_as_they_say(family, noise, a, k):
    """Over matrix and noise; the limits are at 0.95 and their own draws are off by 0.003 at most."""
    draws, true = 4_000, float(a @ a)
    values, model = distance_draws(family, noise, a, k, 0.15, draws, seed=14)
    tolerance = 0.003 + WIDTH * np.sqrt(0.05 * 0.95 / draws)

    def covered(values, method="auto"):
        low, high = interval(model, values, method=method)
        return np.mean((low <= true) & (true <= high))

    assert covered(values) > 0.95 - tolerance
    if family == "haar":  # one law for every pair: not above what is stated either
        assert covered(values) < 0.95 + tolerance
        assert covered(values, "normal") < 0.95 - tolerance  # as every interval was before
    assert covered(values + 20.0 * model.standard_error(np.array(true))) < 0.5


def test_chebyshev_covers_at_least_as_often_as_it_says_for_every_noise():
    for family, noise in (("sparse", "laplace"), ("sphere", "gaussian")):
        values, model = distance_draws(family, noise, A, 5, 0.4, 20_000, seed=13)
        low, high = interval(model, values, method="chebyshev")
        assert np.mean((low <= RHO2) & (high >= RHO2)) > 0.95
