"""What pictures are made of: reaches that cover, pairs that stand out, names that belong."""

import math

import numpy as np
import pytest

from adumbra.postprocess.pictures import (
    COMMON,
    HEAT_COLUMNS,
    MOST_WIDTH,
    Histogram,
    Pictures,
    direction_of,
    heat_of,
    reach_of,
    spectrum_of,
)


def test_the_reach_is_the_one_of_its_law():
    assert reach_of(2.0, is_pure=False) == pytest.approx(2 * 1.959964, rel=1e-6)
    assert reach_of(math.sqrt(2.0), is_pure=True) == pytest.approx(math.log(20.0))
    assert reach_of(1.0, is_pure=False, outside=1e-3) > reach_of(1.0, is_pure=False)


def test_one_in_twenty_noise_values_lies_outside_the_reach():
    # 200,000 draws: a share off by 0.0036 has a chance below 1e-12 (7.4 standard errors)
    rng = np.random.default_rng(3)
    for is_pure, noise in ((False, rng.normal(size=200_000)), (True, rng.laplace(size=200_000))):
        deviation = math.sqrt(2.0) if is_pure else 1.0
        outside = np.mean(np.abs(noise) > reach_of(deviation, is_pure=is_pure))
        assert abs(outside - COMMON) < 0.0036


def _covariance(noise, seed=0, width=30):
    """Two columns that rise together, one that falls with them, the others alone."""
    rng = np.random.default_rng(seed)
    exact = np.eye(width)
    exact[0, 1] = exact[1, 0] = 0.8
    exact[0, 2] = exact[2, 0] = -0.6
    error = np.triu(rng.normal(scale=noise, size=(width, width)))
    return exact + error + np.triu(error, 1).T


def test_true_correlations_stand_out_and_noise_does_not():
    names = [f"c{i}" for i in range(30)]
    heat = heat_of(_covariance(0.02), names, range(30), 0.02, is_pure=False)
    assert [(one.first, one.second) for one in heat.pairs[:2]] == [("c0", "c1"), ("c0", "c2")]
    assert heat.pairs[0].correlation == pytest.approx(0.8, abs=0.1)
    # of all 435 pairs at once: 5 % / 435 lies outside 3.86 standard deviations
    assert heat.pairs[0].reach == pytest.approx(3.86 * 0.02, rel=0.1)
    assert heat.pairs[1].correlation < 0
    assert 2 <= heat.standing_out <= 3
    assert heat.compared == 30 * 29 // 2
    assert len(heat.names) == HEAT_COLUMNS
    assert {"c0", "c1", "c2"} <= set(heat.names)
    quiet = heat_of(np.eye(30), names, range(30), 0.02, is_pure=False)
    assert quiet.standing_out == 0
    assert quiet.pairs == ()


def test_the_map_shows_what_stands_out_before_what_is_large_by_noise():
    # the pair (0, 1) is small but sure; columns 2 to 29 have little variance, so large noisy values
    covariance = np.diag(np.where(np.arange(30) < 2, 100.0, 0.2))
    covariance[0, 1] = covariance[1, 0] = 20.0
    covariance[2:, 2:] += 0.07 * (1 - np.eye(28))
    heat = heat_of(covariance, [f"c{i}" for i in range(30)], range(30), 0.02, is_pure=False)
    assert {"c0", "c1"} <= set(heat.names)


def test_columns_that_stand_for_one_are_not_compared_and_drowned_ones_are_left_out():
    heat = heat_of(
        _covariance(0.0), [f"c{i}" for i in range(30)], [0, 0, *range(2, 30)], 0.01, is_pure=True
    )
    assert ("c0", "c1") not in [(one.first, one.second) for one in heat.pairs]
    assert np.isnan(heat.values[heat.names.index("c0"), heat.names.index("c1")])
    drowned = np.eye(4)
    drowned[3, 3] = 1e-9
    assert "d" not in heat_of(drowned, "abcd", range(4), 1e-3, is_pure=False).names
    assert heat_of(np.eye(4), "abcd", [0, 0, 0, 0], 1e-3, is_pure=False) is None
    assert heat_of(-np.eye(4), "abcd", range(4), 1e-3, is_pure=False) is None


def test_the_spectrum_falls_and_has_a_limit():
    found = spectrum_of(np.diag([1.0, 3.0, -2.0]), 0.5)
    assert found.values.tolist() == [3.0, 1.0, -2.0]
    assert (found.edge, found.width) == (0.5, 3)
    assert spectrum_of(np.zeros((MOST_WIDTH + 1, MOST_WIDTH + 1)), 1.0) is None
    assert spectrum_of(np.ones((1, 1)), 1.0) is None


def test_contrast_and_directions():
    flat = Histogram(name="a", shares=np.full(4, 0.25), reach=0.1)
    sharp = Histogram(name="b", shares=np.array([1.0, 0, 0, 0]), reach=0.1)
    assert flat.contrast == 0.0
    assert sharp.contrast > 4.0
    made = direction_of("t", np.array([0.1, -3.0, 2.0]), "xyz")
    assert made.names == ("y", "z", "x")
    assert made.weights == (-3.0, 2.0, 0.1)


def test_pictures_of_nothing_are_false():
    assert not Pictures()
    assert Pictures(histograms=(Histogram(name="a", shares=np.ones(1), reach=0.1),))
