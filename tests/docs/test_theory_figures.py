"""The figures of docs/theory.md are what the formulas and our code give."""

import math

import numpy as np
import pytest
from published import components as component_published
from published import projections as projection_published
from scipy.stats import chi2, norm
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from adumbra.privacy.conversion import epsilon_of, gaussian_sigma, mu_of
from adumbra.relations import Neighbours
from adumbra.statistics.box_moments import joint_l1
from support.components import box_shape
from support.neighbours import two_type_pair

REPLACE = Neighbours.REPLACE_ONE


def gram_change(x, y):
    return np.abs(np.outer(x, x) - np.outer(y, y))


def extremal_pair(p):
    """The extreme eigenvectors of T7's sign matrix."""
    first = math.ceil(p / 2)
    signs = np.ones((p, p))
    signs[first:, first:] = -1
    _, vectors = np.linalg.eigh(signs)
    return vectors[:, -1], vectors[:, 0]


@pytest.mark.parametrize("p", range(2, 40))
def test_t7_the_full_gram_moves_that_far_and_no_further(p):
    reached = gram_change(*extremal_pair(p)).sum()
    assert reached == pytest.approx(math.sqrt(2 * p * p - p % 2), rel=1e-9)
    assert reached <= math.sqrt(2) * p * (1 + 1e-9)
    if p % 2 == 0:
        assert gram_change(*two_type_pair(p)) == pytest.approx(np.full((p, p), math.sqrt(2) / p))


@pytest.mark.parametrize("p", range(1, 30))
def test_t9_closed_forms_are_the_exact_maximum(p):
    alone = p / 2 + p * (p + 1) / 8 + p / (2 * (p + 1))
    assert joint_l1(box_shape(p, 0), REPLACE) == pytest.approx(alone, rel=1e-12)
    for p2 in (0, 1, 4):
        bound = p * (1 + p2) + p * p / 8 + p2 * (p2 + 1) + 2
        exact = float(joint_l1(box_shape(p, p2, 2), REPLACE))
        assert exact <= bound * (1 + 1e-12)
        assert p % 2 or exact == pytest.approx(bound, rel=1e-12)


def relative_error(mu):
    rate = norm.cdf(-mu / 2)
    return math.sqrt(2 * rate * (1 - rate)) / (mu * norm.pdf(mu / 2))


def test_t16_what_an_attack_can_see():
    one, eight = (relative_error(mu_of(epsilon, 1e-5)) for epsilon in (1.0, 8.0))
    assert (round(one, 2), round(eight, 2)) == (6.63, 1.21)
    shares = [6 * error / math.sqrt(1e5) for error in (one, eight)]
    assert shares == pytest.approx([0.13, 0.023], abs=5e-3)
    assert norm.sf(6.0) < 1e-9
    rng = np.random.default_rng(0)  # the standard error itself: 4,000 attacks of 1,000 runs a table
    mu, runs = mu_of(8.0, 1e-5), 1000
    errors = rng.binomial(2 * runs, norm.cdf(-mu / 2), 4000) / (2 * runs)
    spread = np.std(-2 * norm.ppf(errors)) / mu
    assert spread == pytest.approx(eight / math.sqrt(runs), rel=0.08)  # 7 standard errors


def test_e1_to_e4_dppro():
    ratios = [
        projection_published.theorem_2_sigma(1.0, epsilon, 1e-5)
        / gaussian_sigma(1.0, mu_of(epsilon, 1e-5))
        for epsilon in np.geomspace(0.05, 5.0, 25)
    ]
    assert 1.255 < min(ratios) < 1.265
    assert 1.605 < max(ratios) < 1.615
    for sigma, said in zip(projection_published.FIGURE_SIGMAS_NOT_PRIVATE, (91.8, 33.1), strict=True):
        assert round(epsilon_of(1.0 / sigma, 1e-5), 1) == said
    assert 2 * 50 * math.exp(-4 / 2) == pytest.approx(13.5, abs=0.05)
    assert 2 * 50 * math.exp(-20 / 2) == pytest.approx(0.0045, abs=5e-5)
    longest = [math.sqrt(chi2.ppf(2 ** (-1 / 50), k) / k) for k in (4, 10, 20)]
    assert longest == pytest.approx([1.77, 1.49, 1.35], abs=5e-3)


def test_e6_the_best_dimension():
    rho2, sigma = 7.0, 0.4
    best = rho2 / (2 * sigma**2)

    def variance(k):
        return 2 * rho2**2 / k + 8 * rho2 * sigma**2 + 8 * k * sigma**4

    assert variance(best) == pytest.approx(16 * sigma**2 * rho2)
    assert variance(best) < min(variance(0.9 * best), variance(1.1 * best))


@pytest.mark.parametrize("p", range(3, 60))
def test_e12_lemma_4_is_exceeded(p):
    assert gram_change(*extremal_pair(p)).sum() > 2 * math.sqrt(p)


def test_e13_the_event_is_more_likely_than_epsilon_allows():
    moved = gram_change(*two_type_pair(4)).sum()  # over the scale 2 sqrt(4) / 4 = 1
    assert math.exp(moved) == pytest.approx(286, abs=0.5)
    assert math.exp(4) == pytest.approx(54.6, abs=0.05)


@pytest.mark.parametrize("p", range(2, 60, 2))
def test_e14_lemma_5_is_exceeded_from_8_on(p):
    x, y = two_type_pair(p)
    moved = gram_change(np.append(x, 1.0), np.append(y, 1.0)).sum()
    assert moved == pytest.approx(math.sqrt(2) * p + math.sqrt((4 + 2 * math.sqrt(2)) * p))
    assert (moved > 6 * math.sqrt(p) + 1) == (p >= 8)


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_e15_the_covariance_does_not_move_further_with_n(n):
    rng = np.random.default_rng(n)
    p, worst = 4, 0.0
    for _ in range(200):
        rows = rng.standard_normal((n + 1, p)) * (rng.random((n + 1, 1)) < 0.5) + rng.standard_normal(p)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        before, after = (np.cov(part.T, bias=True) for part in (rows[:-1], rows[1:][::-1]))
        worst = max(worst, n * np.abs(before - after).sum())
    assert 0.5 < worst <= 4 * math.sqrt(2) * p


def test_e17_and_e18():
    column = np.random.default_rng(0).random(100_000)
    cosine = column.sum() / (np.linalg.norm(column) * math.sqrt(len(column)))
    assert cosine == pytest.approx(0.866, abs=5e-3)
    assert int(2 * math.log10(100) / math.log10(math.log10(100))) == 13
    assert 2 * math.log(100) / math.log(math.log(100)) == pytest.approx(6.0, abs=0.05)


def test_e19_noise_alone_has_the_larger_silhouette():
    noise = np.random.default_rng(0).standard_normal((1500, 2))
    labels = KMeans(3, n_init=2, random_state=0).fit_predict(noise)
    assert silhouette_score(noise, labels) > 0.286


def test_e20_and_e21_jl_laplace():
    bounds = [d * math.exp(-k / 2) for d, k in ((3, 2), (10, 3), (50, 10), (100, 20))]
    assert bounds == pytest.approx([1.10, 2.23, 0.337, 0.0045], rel=0.01)
    for k in (2, 3, 10, 20):
        t = math.sqrt(2 * math.log(2 * k) / k)
        assert 1 - 2 * k * math.exp(-k * t * t / 2) == pytest.approx(0.0, abs=1e-12)
    rows = projection_published.rowwise_minimal_scale_not_private(2, 1.0)
    element = projection_published.elementwise_scale_not_private(2, 1.0)
    assert (round(rows, 3), round(element, 3)) == (2.355, 2.828)
    assert chi2.cdf(0.5, 3) == pytest.approx(0.081, abs=5e-4)
    assert chi2.cdf(0.5, 10) < 1e-5


@pytest.mark.parametrize("classes", [False, True])
def test_e25_exactly_where_it_says(classes):
    printed = (
        component_published.lda_sensitivity_not_private
        if classes
        else component_published.pca_sensitivity_not_private
    )
    for p1 in range(8):
        for p2 in range(8):
            true = component_published.uncentred_sensitivity(p1, p2, classes=classes)
            pair = component_published.violating_pair(p1, p2, classes=classes)
            moved = component_published.printed_statistic_change(*pair, classes=classes)
            assert moved == pytest.approx(true)
            false = p1 >= 1 and ((1 + p2) ** 2 > 2 * (p1 + 1) if classes else p2 >= 2)
            assert (true > printed(p1, p2) + 1e-9) == false


def test_e26_the_mean_beats_every_component():
    for p in (5, 35):
        for k in range(1, p + 1):
            rows, laplace = 8 * k * k * p, 2 * p**3  # over epsilon^2, per row
            assert (rows > laplace) == (k > p / 2)
            assert rows / 32 >= p / 4
