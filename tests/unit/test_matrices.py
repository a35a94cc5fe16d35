"""Every family has the shape, norms and law that its name says, on the lattice."""

import math

import numpy as np
import pytest

from adumbra import matrices
from adumbra.errors import InvalidInput
from adumbra.matrices import (
    FAMILIES,
    ProjectionMatrix,
    lattice_matrix,
    matrix_from_words,
    public_matrix,
)

D, K = 40, 8
UNIT = 2.0**-20


def draw(family, seed=1, **options):
    return public_matrix(family, D, D if family == "identity" else K, matrix_seed=seed, **options)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_gives_one_matrix_of_integers_that_cannot_be_changed(family):
    first, again, other = draw(family), draw(family), draw(family, seed=2)
    assert np.array_equal(first.units, again.units)
    assert family == "identity" or not np.array_equal(first.units, other.units)
    assert np.array_equal(first.units, np.rint(first.units))
    assert np.array_equal(first.to_float() * 2.0**20, first.units)
    assert (first.n_features, first.n_components) == first.units.shape
    assert (first.family, first.seed, first.exponent) == (family, 1, -20)
    with pytest.raises(ValueError, match="read-only"):
        first.units[0, 0] = 1.0
    columns = [[abs(int(unit)) for unit in column] for column in first.units.T]
    assert first.largest_column == max(map(sum, columns))
    longest = math.sqrt(max(sum(unit**2 for unit in column) for column in columns))
    assert first.longest_column == pytest.approx(longest, rel=2**-50)


def test_words_of_a_stream_give_the_same_matrix_as_a_seed_with_these_words():
    words = np.random.default_rng(1).bit_generator.random_raw
    drawn = matrix_from_words("sparse", D, K, words, nonzeros=3)
    assert np.array_equal(drawn.units, draw("sparse", nonzeros=3).units)
    assert drawn.seed is None


@pytest.mark.parametrize("family", ["sphere", "rademacher", "identity"])
def test_rows_have_norm_one_up_to_the_rounding(family):
    lengths = np.linalg.norm(draw(family).to_float(), axis=1)
    assert np.max(np.abs(lengths - 1.0)) <= UNIT * np.sqrt(K)


@pytest.mark.parametrize("nonzeros", [1, 4])
def test_sparse_rows_have_exactly_their_entries(nonzeros):
    values = draw("sparse", nonzeros=nonzeros).to_float()
    assert np.array_equal(np.count_nonzero(values, axis=1), np.full(D, nonzeros))
    assert set(np.abs(values[values != 0])) == {1 / np.sqrt(nonzeros)}


def test_haar_columns_are_orthonormal_after_their_factor_is_taken_out():
    scaled = draw("haar").to_float() * np.sqrt(K / D)
    plain = matrices.orthonormal_matrix(D, K, matrix_seed=1)
    assert plain.family == "orthonormal"
    for values in (scaled, plain.to_float()):
        assert np.max(np.abs(values.T @ values - np.eye(K))) < 1e-5
    # A Haar matrix's first column is uniform: no preferred direction (docs/theory.md E17).
    columns = [
        matrices.orthonormal_matrix(D, 1, matrix_seed=seed).to_float()[:, 0].sum() / np.sqrt(D)
        for seed in range(300)
    ]
    assert abs(np.mean(columns)) < 6.5 / np.sqrt(300 * D)
    assert 0.6 < np.std(columns) * np.sqrt(D) < 1.4


def test_uniforms_stay_inside_the_open_interval():
    edges = np.array([0, 2**64 - 1], dtype=np.uint64)
    values = matrices._uniform((1, 2), lambda count: edges[:count])
    assert np.all((values > 0.0) & (values < 1.0))
    assert np.all(np.isfinite(matrices._normal((1, 2), lambda count: edges[:count])))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fourier", 3, 2), "family=fourier: unknown"),
        (("gaussian", 0, 2), "n_features=0: must be at least 1"),
        (("gaussian", 3, 0), "n_components=0: must be at least 1"),
        (("haar", 3, 4), "n_components=4: haar needs at most n_features=3"),
        (("identity", 3, 2), "n_components=2: identity needs exactly n_features=3"),
    ],
)
def test_impossible_shapes_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        public_matrix(*arguments, matrix_seed=0)


def test_other_public_faults_are_refused():
    with pytest.raises(InvalidInput, match="nonzeros=9: must lie between 1 and n_components=8"):
        draw("sparse", nonzeros=9)
    with pytest.raises(InvalidInput, match="matrix_seed=-1: must be 0 or above"):
        draw("sphere", seed=-1)
    for units in (np.full((2, 2), 0.5), np.full((2, 2), np.nan)):
        with pytest.raises(InvalidInput, match="every entry must be an integer"):
            ProjectionMatrix(units)
    for units in (np.zeros((0, 2)), np.zeros(3), np.zeros((2, 2), dtype=np.int64)):
        with pytest.raises(InvalidInput, match="a filled d x k float64 array"):
            ProjectionMatrix(units)
    for units in (np.full((2, 2), 2.0**30), np.full((2, 2), np.inf)):
        with pytest.raises(InvalidInput, match="longer than 1024"):
            ProjectionMatrix(units)


def test_the_variance_of_a_projected_length_is_that_of_the_family():
    of = matrices.squared_length_variance
    assert of("identity", 4.0, D, D) == 0.0
    assert of("gaussian", 4.0, D, K) == pytest.approx(2 / K * 16)
    assert of("given", 4.0, D, K) == of("gaussian", 4.0, D, K)
    assert of("haar", 4.0, D, K) == pytest.approx(2 / K * 16 * (D - K) / (D + 2))
    assert of("haar", 4.0, D, D) == 0.0
    for family in ("sphere", "rademacher", "sparse"):
        assert of(family, 4.0, D, K, fourth_power=3.0) == pytest.approx(2 / K * (16 - 3))


def test_a_given_matrix_is_rounded_to_the_nearest_units():
    assert np.array_equal(
        lattice_matrix(np.array([[0.3, -1.0]])).units, [[round(0.3 * 2**20), -(2**20)]]
    )
