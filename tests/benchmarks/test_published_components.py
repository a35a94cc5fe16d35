"""The paper's baselines and measures: their laws, their limits, and what they must not be taken for."""

import numpy as np
import pytest
from published import component_metrics as metrics
from published import components as published
from scipy.stats import kstest

from adumbra.errors import InvalidInput


def test_printed_and_true_sensitivities():
    assert published.pca_sensitivity_not_private(5, 6) == 104
    assert published.uncentred_sensitivity(5, 6, classes=False) == pytest.approx(114.4167, abs=1e-4)
    assert published.lda_sensitivity_not_private(5, 6) == 109
    assert published.uncentred_sensitivity(5, 6, classes=True) == 124


def test_the_identity_baselines_have_their_laws():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.tile([0.2, -0.5], (40000, 1)), np.eye(3)[rng.integers(0, 3, 40000)]], axis=1)
    noisy = published.identity_laplace(x, 3.0, 1.5, seed=1)
    assert kstest((noisy - x).ravel()[::7] / 2.0, "laplace").pvalue > 1e-6
    out = published.identity_exponential(x, (0, 1), (slice(2, 5),), 6.0, seed=2)
    assert np.abs(out[:, :2]).max() <= 0.5
    scale = 2.0 / 2.0  # epsilon 6 over three features; sensitivity of the quality 1, factor 2

    def cdf(z):
        points = np.linspace(-0.5, 0.5, 2001)
        mass = np.concatenate(
            [[0.0], np.cumsum(np.exp(-np.abs((points[1:] + points[:-1]) / 2 - 0.2) / scale))]
        )
        return np.interp(z, points, mass / mass[-1])

    assert kstest(out[:, 0], cdf).pvalue > 1e-6
    kept = np.mean(np.all(out[:, 2:] == x[:, 2:], axis=1))
    assert kept == pytest.approx(1 / (1 + 2 * np.exp(-1.0)), abs=0.015)
    assert np.all(out[:, 2:].sum(axis=1) == 1)
    one = published.identity_exponential(np.ones((5, 1)), (), (slice(0, 1),), 1.0, seed=0)
    assert np.array_equal(one, np.ones((5, 1)))


def test_the_printed_pca_finds_the_direction_without_noise():
    rng = np.random.default_rng(0)
    x = np.clip(0.5 + rng.normal(size=(3000, 1)) * [[0.2, 0.1, 0.0]], 0, 1)
    rows = published.pca_rows_not_private(x, 1, 1e9, 9.0, seed=0)
    assert metrics.squared_error(rows, x) < 1e-3


def test_scores_tell_good_rows_from_bad_ones():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    x = rng.normal(size=(3000, 2)) + 1.5 * y[:, None]
    good = (x[:1500], y[:1500])
    test = (x[1500:], y[1500:])
    for score in (metrics.lda_score, metrics.tree_score):
        assert score(good, test).accuracy > 0.8
        assert score(good, test).auc > 0.85
        assert score((good[0], rng.permutation(good[1])), test).auc < 0.8
    alone = metrics.lda_score((x[:5], np.zeros(5, int)), test)
    assert alone.auc == 0.5
    assert alone.accuracy == pytest.approx(np.mean(test[1] == 0))


def test_errors_entropy_and_divergence():
    a = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 1.0]])
    assert metrics.squared_error(a, a) == 0
    assert metrics.squared_error(a + 1, a) == 3
    with pytest.raises(InvalidInput, match="correspond"):
        metrics.squared_error(a, a[:1])
    same = metrics.marginals(a, (0,), (slice(1, 3),))
    assert metrics.entropy(same) == pytest.approx(1.0)
    assert metrics.divergence(same, same, 1000) == 0
    other = metrics.marginals(a[:1], (0,), (slice(1, 3),))
    assert metrics.entropy(other) == 0
    assert metrics.divergence(same, other, 1000) > 3
