"""Learning from projected rows: unbiased moments, and learners that know the noise."""

from dataclasses import replace

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.postprocess import projected_learning as pl
from adumbra.postprocess.distances import DistanceModel, laplace_law
from adumbra.postprocess.two_level import nearest_correlations

K = 6


def model(scale, k=K):
    return DistanceModel(
        family="identity", n_features=k, n_components=k, noise=laplace_law(scale, 2.0**-30)
    )


def noisy(rows, scale, seed=0):
    return rows + np.random.default_rng(seed).laplace(0.0, scale, rows.shape)


def two_classes(count=20_000, seed=1):
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < 0.3
    mixed = rng.normal(size=(count, K)) @ rng.normal(size=(K, K)) * 0.15
    return mixed + np.where(labels[:, None], 0.3, -0.3) * np.array([1, 1, 0, -1, 0, 0]), labels


def test_gram_and_covariance_are_unbiased():
    """Over 400 draws of the noise, at 6.5 standard errors each: a false alarm has chance 1e-8."""
    rows, m = two_classes(60)[0], model(0.8)
    draws = np.array([pl.gram(noisy(rows, 0.8, seed), m) for seed in range(400)])
    gap = np.abs(draws.mean(axis=0) - rows.T @ rows)
    assert np.all(gap < 6.5 * draws.std(axis=0) / 20)
    assert np.all(
        np.abs(np.diag(draws.mean(axis=0) + 60 * m.noise.variance * np.eye(K) - rows.T @ rows))
        > 6.5 * np.diag(draws.std(axis=0)) / 20
    )  # uncorrected it is far off
    spreads = np.array([pl.covariance(noisy(rows, 0.8, seed), m) for seed in range(400)])
    assert np.all(np.abs(spreads.mean(axis=0) - np.cov(rows.T)) < 6.5 * spreads.std(axis=0) / 20)


@pytest.mark.parametrize("kept", [1.0, 0.8])
def test_corrected_lda_comes_near_the_real_one(kept):
    rows, labels = two_classes()
    own, truth = two_classes(5000, 1)
    shown = np.where(np.random.default_rng(5).random(len(labels)) < kept, labels, ~labels).tolist()
    found = pl.fit_lda(noisy(rows, 1.4), shown, model(1.4), classes=[False, True], kept=kept)
    clean = pl.fit_lda(rows, labels.tolist(), model(1e-9), classes=[False, True])
    error, best = (np.mean(np.array(one.predict(own)) != truth) for one in (found, clean))
    assert best < 0.19
    assert error < best + 0.05
    assert min(truth.mean(), 1 - truth.mean()) > error + 0.07  # far better than the majority


def test_without_noise_it_is_plain_lda():
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rows, labels = two_classes(4000)
    found = pl.fit_lda(rows, labels.tolist(), model(1e-9), classes=[False, True])
    plain = LinearDiscriminantAnalysis().fit(rows, labels)
    same = np.array(found.predict(rows)) == plain.predict(rows)
    assert same.mean() > 0.999
    assert found.weights[1] - found.weights[0] == pytest.approx(plain.coef_[0], rel=0.01)


def true_or_false(count, seed):
    """Twelve columns of two levels; near ones are alike, and the class is the first of a row of 13."""
    rng = np.random.default_rng(seed)
    place = np.arange(13)
    near = np.exp(-np.abs(place[:, None] - place) / 4.0) * 0.6 + 0.4
    hidden = rng.standard_normal((count, 13)) @ np.linalg.cholesky(near).T
    found = hidden > 0.6
    return found[:, 1:] - 0.5, found[:, 0]


def two_level_errors(seen, labels, scale):
    """Of LDA and of LDA that knows the two levels, on clean rows."""
    own, truth = true_or_false(20_000, 99)
    told = model(scale, 12)
    fits = (pl.fit_lda, pl.fit_two_level_lda)
    found = [fit(seen, labels.tolist(), told, classes=[False, True]) for fit in fits]
    return [np.mean(np.array(one.predict(own)) != truth) for one in found]


def test_columns_of_two_levels_are_learned_better_when_that_is_known():
    rows, labels = true_or_false(16_000, 4)
    best = two_level_errors(rows, labels, 1e-9)[0]
    drawn = [two_level_errors(noisy(rows, 2.6, seed), labels, 2.6) for seed in range(8)]
    plain, known = np.mean(drawn, axis=0)
    assert best < known < best + 0.04
    assert known < plain - 0.005


def test_without_noise_two_levels_are_plain_lda_too():
    rows, labels = true_or_false(8000, 4)
    plain, known = two_level_errors(rows, labels, 1e-9)
    assert known == pytest.approx(plain, abs=0.003)


def test_the_nearest_correlations_are_correlations_and_leave_good_ones_alone():
    good = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    assert nearest_correlations(good, 0.1) == pytest.approx(good, abs=1e-9)
    bad = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    found = nearest_correlations(bad, 0.1)
    assert np.linalg.eigvalsh(found)[0] > 0.0499
    assert np.diag(found) == pytest.approx(1.0, abs=0.02)
    # by symmetry of the three pairs the nearest is (r, -r, r) with 1 - 2 r = 0.1
    assert abs(found[0, 1]) == pytest.approx(0.45, abs=0.02)


def test_one_column_of_two_levels():
    rng = np.random.default_rng(6)
    labels = rng.random(2000) < 0.5
    rows = np.where(labels, 0.5, -0.5)[:, None]
    told = (noisy(rows, 1.0), labels.tolist(), model(1.0, 1))
    found = pl.fit_two_level_lda(*told, classes=[False, True])
    assert found.predict(np.array([[0.5], [-0.5]])) == [True, False]


def test_noise_alone_gives_a_usable_classifier():
    rng = np.random.default_rng(3)
    rows = rng.laplace(0.0, 50.0, (300, K))
    found = pl.fit_lda(rows, (rng.random(300) < 0.2).tolist(), model(50.0))
    assert np.all(np.isfinite(found.scores(np.zeros((2, K)))))
    lost = pl.fit_two_level_lda(rows, (rng.random(300) < 0.2).tolist(), model(50.0))
    assert np.all(np.isfinite(lost.scores(np.zeros((2, K)))))


def test_corrected_regression_is_not_flattened_by_noise():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(40_000, K))
    slopes = np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0])
    target = rows @ slopes + 5.0
    seen = noisy(rows, 0.7)
    found = pl.fit_ridge(seen, target, model(0.7))
    naive = np.linalg.lstsq(seen - seen.mean(axis=0), target - target.mean(), rcond=None)[0]
    assert found.weights == pytest.approx(slopes, abs=0.15)
    assert np.abs(naive - slopes).max() > 1.0  # least squares on noisy rows halves the slopes
    assert found.predict(np.zeros((1, K)))[0] == pytest.approx(5.0, abs=0.3)
    assert np.linalg.norm(pl.fit_ridge(seen, target, model(0.7), penalty=5.0).weights) < 2.0


def test_calibrated_rows_lie_nearer_to_the_truth():
    rows = two_classes(5000)[0]
    seen = noisy(rows, 0.5)
    guessed = pl.calibrated_rows(seen, model(0.5))
    assert np.mean((guessed - rows) ** 2) < 0.4 * np.mean((seen - rows) ** 2)
    assert np.allclose(pl.calibrated_rows(rows, model(1e-9)), rows, atol=1e-6)


def test_what_does_not_fit_is_refused():
    rows, m = np.zeros((4, K)), model(1.0)
    mixed = replace(m, family="haar")
    for call, message in (
        (lambda: pl.gram(np.zeros((4, 2)), m), "must have the 6 columns"),
        (lambda: pl.covariance(rows[:1], m), "a covariance needs at least 2"),
        (lambda: pl.fit_lda(rows, [1, 2], m), "2 labels for 4 rows"),
        (lambda: pl.fit_lda(rows, [1, 1, 1, 1], m), "1 classes"),
        (lambda: pl.fit_lda(rows, [1, 2, 1, 2], m, kept=0.5), "kept=0.5: must lie above 1/2"),
        (lambda: pl.fit_lda(rows, [1, 2, 1, 3], m, classes=[1, 2]), "label 3: is not one of"),
        (lambda: pl.fit_two_level_lda(rows, [1, 2, 1, 2], mixed), "needs family=identity"),
        (lambda: pl.fit_ridge(rows, np.zeros(3), m), "give one number for each row"),
        (lambda: pl.fit_ridge(rows, np.zeros(4), m, penalty=-1.0), "penalty=-1.0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()
