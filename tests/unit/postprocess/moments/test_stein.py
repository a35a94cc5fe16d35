"""Readings judged by Stein's estimate of their error, and averaged by it."""

import numpy as np

from adumbra.postprocess.moments.stein import averaged, judged


def test_the_estimated_error_of_a_linear_reading_is_unbiased():
    """A plain reading (a half of each count) whose error is known; and one that follows all noise."""
    rng = np.random.default_rng(9)
    truth, sigma = rng.normal(scale=3.0, size=(16, 20)), 2.0
    gaps = {part: [] for part in (0.5, 1.0)}
    for _ in range(200):
        noisy = truth + rng.normal(scale=sigma, size=truth.shape)
        for part, found in gaps.items():
            estimate, shown = judged(lambda x, p=part: p * x, noisy, sigma)
            found.append(estimate - truth.size * sigma**2 - ((shown - truth) ** 2).sum())
    for found in gaps.values():
        assert abs(np.mean(found)) < 5.0 * np.std(found) / np.sqrt(len(found))
        assert np.std(found) < 0.4 * truth.size * sigma**2


def test_readings_that_do_equally_well_are_averaged_to_a_better_one():
    """Each keeps another half of the rows: both together keep all of them by half."""
    rng = np.random.default_rng(1)
    truth, sigma = rng.normal(scale=2.0, size=(16, 20)), 2.0
    upper, lower = (np.repeat(half, 8)[:, None] for half in ([1.0, 0.0], [0.0, 1.0]))
    errors = []
    for _ in range(100):
        noisy = truth + rng.normal(scale=sigma, size=truth.shape)
        readings = [lambda x: x * upper, lambda x: x * lower]
        found = [*(read(noisy) for read in readings), averaged(readings, noisy, sigma)]
        errors.append([((one - truth) ** 2).sum() for one in found])
    first, second, both = np.mean(errors, axis=0)
    assert both < 0.8 * min(first, second)


def test_a_reading_that_does_far_worse_does_not_count():
    rng = np.random.default_rng(2)
    truth = rng.normal(scale=30.0, size=(16, 20))
    noisy = truth + rng.normal(size=truth.shape)
    found = averaged([lambda x: x, lambda x: 0.0 * x], noisy, 1.0)
    assert np.allclose(found, noisy)
