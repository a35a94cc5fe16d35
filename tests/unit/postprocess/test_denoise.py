"""Shrinkage and clusters: the shrinker itself, and that both lower the measured error."""

import math

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.postprocess import kmeans
from adumbra.postprocess.distances import DistanceModel, NoiseLaw, pair_distances
from adumbra.postprocess.matrices import fit_denoiser, shrink, signal_directions


def model(sigma, k, unit=1.0):
    law = NoiseLaw(name="gaussian", variance=sigma**2, fourth=0.0)
    return DistanceModel(family="gaussian", n_features=50, n_components=k, noise=law, unit=unit)


def low_rank(n, k, rank, rng):
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, k)) + rng.standard_normal(k)


def test_the_shrinker_vanishes_below_the_edge_and_is_right_above():
    shape = 0.25
    edge = 1 + math.sqrt(shape)
    found = shrink(np.array([0.0, edge, edge + 1e-9, 3.0, 1e6]), shape)
    assert found[0] == found[1] == 0.0
    assert 0.0 <= found[2] < 1e-3
    assert found[3] == pytest.approx(math.sqrt((9 - 1.25) ** 2 - 1) / 3)
    assert found[4] == pytest.approx(1e6, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_denoised_rows_are_closer_to_the_truth(sigma):
    rng = np.random.default_rng(1)
    truth = low_rank(4000, 12, 2, rng)
    noisy = truth + sigma * rng.standard_normal(truth.shape)
    fitted = fit_denoiser(model(sigma, 12), noisy)
    before, after = np.mean((noisy - truth) ** 2), np.mean((fitted.rows(noisy) - truth) ** 2)
    assert after < 0.35 * before  # rank 2 of 12: the ideal is 1/6
    assert 1.0 < np.trace(fitted.gain) <= 2.0 + 1e-9


@pytest.mark.parametrize("unit", [1.0, 3.0])
def test_shrunk_distances_are_closer_and_right_on_average(unit):
    rng = np.random.default_rng(2)
    truth = low_rank(5000, 12, 2, rng)
    sigma = 3.0
    noisy = truth + sigma * rng.standard_normal(truth.shape)
    m = model(sigma, 12, unit)
    i, j = rng.integers(5000, size=(2, 4000))
    exact = np.sum((truth[i] - truth[j]) ** 2, axis=1) * unit**2
    fitted = fit_denoiser(m, noisy)
    unbiased, shrunk = pair_distances(m, noisy[i], noisy[j]), fitted.pair_distances(noisy[i], noisy[j])
    assert np.mean((shrunk - exact) ** 2) < 0.25 * np.mean((unbiased - exact) ** 2)
    assert np.mean((shrunk - exact) ** 2) < np.var(exact)  # better than the best constant
    assert fitted.helps
    assert not fit_denoiser(model(0.05, 12), truth + 0.05 * rng.standard_normal(truth.shape)).helps
    assert abs(np.mean(shrunk) - np.mean(exact)) < 0.1 * np.mean(exact)


def test_pure_noise_becomes_a_constant():
    rng = np.random.default_rng(3)
    noisy = rng.standard_normal((3000, 6))
    fitted = fit_denoiser(model(1.1, 6), noisy)
    assert np.trace(fitted.gain) == 0.0
    assert np.ptp(fitted.rows(noisy)) == pytest.approx(np.ptp(noisy.mean(axis=0)))
    assert np.ptp(fitted.pair_distances(noisy[:5], noisy[5:10])) == 0.0


def test_signal_directions_are_those_of_the_low_rank_part():
    rng = np.random.default_rng(8)
    truth = low_rank(3000, 12, 2, rng)
    noisy = truth + rng.standard_normal(truth.shape)
    found = signal_directions(model(1.0, 12), noisy)
    assert found.shape == (12, 2)
    centred = truth - truth.mean(axis=0)
    assert np.sum((centred @ found) ** 2) > 0.98 * np.sum(centred**2)
    assert signal_directions(model(1.1, 12), rng.standard_normal((3000, 12))).shape == (12, 12)


def test_too_few_rows_are_refused():
    with pytest.raises(
        InvalidInput, match="4 rows of 6 columns: a noise edge needs more rows than columns"
    ):
        fit_denoiser(model(1.0, 6), np.zeros((4, 6)))


def blobs(n, k, sigma, rng, gap=6.0):
    labels = rng.integers(2, size=n)
    centres = np.zeros((2, k))
    centres[1, 0] = gap
    exact = centres[labels] + 0.3 * rng.standard_normal((n, k))
    return exact, exact + sigma * rng.standard_normal((n, k)), labels


def test_clusters_are_found_and_their_spread_is_that_without_noise():
    rng = np.random.default_rng(4)
    exact, noisy, labels = blobs(6000, 8, 1.0, rng)
    found = kmeans.kmeans(model(1.0, 8), noisy, 2)
    agreement = np.mean(found.labels == labels)
    assert max(agreement, 1 - agreement) > 0.99
    assert np.array_equal(found.sizes, np.bincount(found.labels))
    within = sum(np.sum((exact[labels == c] - exact[labels == c].mean(axis=0)) ** 2) for c in (0, 1))
    assert found.spread == pytest.approx(within, rel=0.25)  # 10 % of the raw sum of squares
    assert found.centre_errors == pytest.approx(1.0 / np.sqrt(found.sizes))
    gap = np.linalg.norm(found.centres[0] - found.centres[1])
    assert gap == pytest.approx(6.0, abs=0.15)


def test_units_scale_clusters():
    rng = np.random.default_rng(5)
    _, noisy, _ = blobs(500, 3, 0.5, rng)
    one, three = kmeans.kmeans(model(0.5, 3), noisy, 2), kmeans.kmeans(model(0.5, 3, 3.0), noisy, 2)
    assert np.allclose(three.centres, 3 * one.centres)
    assert three.spread == pytest.approx(9 * one.spread)


def test_degenerate_tables_end():
    same = np.ones((5, 2))
    found = kmeans.kmeans(model(1.0, 2), same, 3)
    assert found.spread == 0.0
    assert found.sizes.sum() == 5
    few = kmeans.kmeans(
        model(1.0, 4), np.eye(3, 4), 2, restarts=1
    )  # fewer rows than columns: no denoising
    assert len(few.labels) == 3
    empty = kmeans._lloyd(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0], [99.0]]))
    assert empty[1] == 0.0


def test_a_run_that_does_not_settle_stops(monkeypatch):
    monkeypatch.setattr(kmeans, "MOST_STEPS", 1)
    _, noisy, _ = blobs(200, 2, 0.5, np.random.default_rng(6))
    assert len(kmeans.kmeans(model(0.5, 2), noisy, 2).labels) == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clusters": 0}, "clusters=0"),
        ({"clusters": 6}, "clusters=6"),
        ({"clusters": 2, "restarts": 0}, "restarts=0"),
    ],
)
def test_public_faults_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        kmeans.kmeans(model(1.0, 2), np.zeros((5, 2)), **options)
