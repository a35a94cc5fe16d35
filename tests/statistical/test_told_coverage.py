"""Among the answers that are told, intervals cover as often as they say, at the border of the noise too.

Each limit is a binomial quantile at 1e-11 of 0.95 (below) over the draws that tell; 37 of them make a
false alarm rarer than 1e-9. The last test shows that intervals of +-1.96 would be caught.
"""

import numpy as np
import pytest
from scipy.stats import binom

from adumbra.answers.reported import Law
from adumbra.answers.sums import Sums, least_squares

DRAWS, ALARM = 40_000, 1e-11


def ratio(law, size, value, above):
    """A value with noise `above` over a size of noise 1: whether it is told, and its interval."""
    rng = np.random.default_rng(3)
    if law == "laplace":
        first, second = rng.laplace(0.0, 0.5**0.5, (2, DRAWS))
    else:
        first, second = rng.normal(size=(2, DRAWS))
    noisy = size + first
    found = (value * size + above * second) / noisy
    told = Law.of_ratio(noisy, above**2 + found**2, -found, np.ones(DRAWS), is_laplace=law == "laplace")
    return found, told


def enough(hits, told):
    """Whether coverage may be 0.95."""
    return hits >= binom.ppf(ALARM, told, 0.95)


@pytest.mark.parametrize("size", [2.0, 3.0, 4.0, 6.0, 9.0, 30.0])
@pytest.mark.parametrize(("value", "above"), [(1.0, 0.01), (1.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_ratio_covers_among_the_told(law, size, value, above):
    size += 2.84 * (law == "laplace")  # its border is so much farther out
    found, told = ratio(law, size, value, above)
    below, over = told.sides(0.95)
    kept = told.is_reported
    hit = (found - below <= value) & (value <= found + over)
    assert kept.sum() > 300
    assert enough(hit[kept].sum(), kept.sum()), f"{hit[kept].mean():.3f} of {kept.sum()}"
    if size > 20 and law == "gaussian":  # and far from it not much more often
        assert hit.sum() <= binom.isf(ALARM, DRAWS, 0.953)


def strong_fit(draws):
    """Twenty equally correlated columns, one strong; noise of 0.7 of the least eigenvalue."""
    rng, k = np.random.default_rng(4), 20
    exact = np.zeros((k + 2, k + 2))
    exact[:k, :k] = 0.5 + 0.5 * np.eye(k)
    slope = 0.9**0.5
    exact[:k, k] = exact[k, :k] = exact[:k, 0] * slope
    exact[k, k] = exact[k + 1, k + 1] = 1.0
    deviation = 0.7 * 0.5 / (2.0 * k**0.5)
    variances = np.full(exact.shape, deviation**2) * (1.0 + np.eye(k + 2))
    variances[-1, :] = variances[:, -1] = 1e-12
    noise = np.triu(rng.normal(size=(draws, *exact.shape)) * np.sqrt(variances))
    sums = Sums(
        matrix=exact + noise + np.swapaxes(np.triu(noise, 1), 1, 2), variances=variances,
        dummies=np.zeros(k + 2, bool), classes=1, rows=1.0, rows_are_public=False,
    )  # fmt: skip
    fit = least_squares(sums, np.eye(k + 2)[k], np.eye(k + 2)[:, :k])
    return fit, np.array([slope, *np.zeros(k - 1)])


def test_a_strong_coefficient_among_many_covers_among_the_told():
    fit, truth = strong_fit(1500)
    value, law = fit.combined(np.eye(20))
    below, over = law.sides(0.95)
    hit = (value - below <= truth) & (truth <= value + over) & law.is_reported
    told = law.is_reported.sum(axis=0)
    assert told.min() > 1000
    assert all(enough(a, b) for a, b in zip(hit.sum(axis=0), told, strict=True))
    assert law.is_conservative.all()


def test_plain_intervals_would_be_caught():
    found, told = ratio("gaussian", 3.0, 1.0, 0.01)
    kept = told.is_reported
    hit = np.abs(found - 1.0) <= 1.96 * told.noise
    assert not enough(hit[kept].sum(), kept.sum())
