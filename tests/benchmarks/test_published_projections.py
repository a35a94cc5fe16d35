"""The published scales are what the papers print, and are not what the product uses."""

import math

import numpy as np
import pytest
from published import projections as published

from adumbra.errors import InvalidInput
from adumbra.privacy.conversion import delta_of, epsilon_of, gaussian_sigma, mu_of


def test_theorem_2_is_sound_and_wasteful():
    assert published.theorem_2_sigma(1.0, 1.0, 1e-5) == pytest.approx(4.862, abs=5e-4)
    for epsilon in (0.1, 1.0, 5.0):
        for delta in (1e-3, 1e-5, 1e-7):
            sigma = published.theorem_2_sigma(1.0, epsilon, delta)
            assert delta_of(1.0 / sigma, epsilon) <= delta
            assert sigma > 1.2 * gaussian_sigma(1.0, mu_of(epsilon, delta))
    with pytest.raises(InvalidInput, match=r"delta=0\.5: must lie between 0 and 1/2"):
        published.theorem_2_sigma(1.0, 1.0, 0.5)


def test_the_figures_were_drawn_at_epsilon_92_and_33():
    small, large = (epsilon_of(1.0 / sigma, 1e-5) for sigma in published.FIGURE_SIGMAS_NOT_PRIVATE)
    assert (round(small, 1), round(large, 1)) == (91.8, 33.1)


def test_lemma_4_asks_for_more_components_than_the_paper_has():
    assert published.lemma_4_sigma_not_private(1.0, 1e-5) == pytest.approx(4 * math.sqrt(math.log(1e5)))
    assert not published.lemma_4_condition(50, 20, 1e-5)
    assert published.lemma_4_condition(50, 33, 1e-5)


def test_jl_scales_are_the_printed_ones():
    assert published.elementwise_scale_not_private(20, 4.0) == pytest.approx(2 * math.sqrt(20) / 4)
    assert published.rowwise_minimal_scale_not_private(2, 1.0) == pytest.approx(2.355, abs=1e-3)
    assert published.rowwise_minimal_scale_not_private(2, 1.0) < published.elementwise_scale_not_private(
        2, 1.0
    )
    assert published.claim_7_variance_as_printed(0.01, 20, 0.1) < 0  # a variance below zero


def test_the_published_mechanisms_run():
    x = np.random.default_rng(0).random((400, 9))
    gaussian = published.dppro_as_published_not_private(x, 4, 0.1, seed=1)
    laplace = published.jl_laplace_as_published_not_private(x, 4, 0.1, seed=1)
    assert gaussian.shape == laplace.shape == (400, 4)
    i, j = np.arange(200), np.arange(200, 400)
    d = published.published_squared_distances(gaussian[i], gaussian[j], 0.01)
    exact = np.sum((x[i] - x[j]) ** 2, axis=1)
    assert abs(d.mean() - exact.mean()) < 0.9 * exact.mean()
