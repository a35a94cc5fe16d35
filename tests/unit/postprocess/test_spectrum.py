import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.postprocess.matrices import (
    conditional_sizes,
    into_unit_ball,
    noise_edge,
    positive_covariance,
    sample_gaussian,
)


def test_the_edge_is_what_symmetric_noise_shows():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, 400)) / 2**0.5
    noise = noise + noise.T  # off-diagonal standard deviation 1
    assert np.linalg.eigvalsh(noise)[-1] == pytest.approx(noise_edge(1.0, 400), rel=0.05)


def test_buried_eigenvalues_become_their_average_and_the_rest_stays():
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    got = positive_covariance(
        basis @ np.diag([5.0, 0.3, 0.1, -0.1]) @ basis.T, edge=1.0, trace_limit=99.0
    )
    assert np.linalg.eigvalsh(got) == pytest.approx([0.1, 0.1, 0.1, 5.0])
    assert np.array_equal(got, got.T)


def test_negative_bulk_becomes_zero_and_the_trace_keeps_its_public_bound():
    got = positive_covariance(np.diag([9.0, -3.0, -1.0]), edge=0.5, trace_limit=2.0)
    assert np.linalg.eigvalsh(got) == pytest.approx([0.0, 0.0, 2.0])
    untouched = np.diag([1.0, 2.0])
    assert positive_covariance(untouched, edge=0.5, trace_limit=9.0) == pytest.approx(untouched)


def test_a_covariance_is_square():
    with pytest.raises(InvalidInput, match="must be square"):
        positive_covariance(np.zeros((2, 3)), edge=1.0, trace_limit=1.0)


def test_means_are_pulled_back_into_the_ball():
    assert into_unit_ball(np.array([3.0, 4.0])) == pytest.approx([0.6, 0.8])
    assert into_unit_ball(np.array([0.3, 0.4])) == pytest.approx([0.3, 0.4])


def test_samples_have_the_moments_asked_for():
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    rows = sample_gaussian(np.array([1.0, -1.0]), covariance, 200_000, np.random.default_rng(2))
    assert rows.mean(axis=0) == pytest.approx([1.0, -1.0], abs=0.02)  # 6 standard errors or more
    assert np.cov(rows.T) == pytest.approx(covariance, abs=0.05)


def test_sizes_add_up_and_follow_the_counts():
    assert conditional_sizes(np.array([30.0, 10.0, -5.0]), 8) == [6, 2, 0]
    assert conditional_sizes(np.array([1.0, 1.0, 1.0]), 2) == [1, 1, 0]
    assert conditional_sizes(np.array([-1.0, -2.0]), 4) == [2, 2]
    assert sum(conditional_sizes(np.array([0.3, 0.7, 5.1]), 1001)) == 1001
