"""Item sets are bounded as integers and multiplied exactly, like their dense twins."""

import numpy as np
import pytest

from adumbra.data.bounds import bound_rows, project
from adumbra.data.set_rows import bound_set_elements, bound_sets, project_sets
from adumbra.errors import InvalidInput
from adumbra.matrices import ProjectionMatrix, public_matrix
from support.projection import set_batch

RNG = np.random.default_rng(0)
DENSE = RNG.random((300, 40)) < RNG.random((300, 1))
DENSE[0], DENSE[1] = False, True
MATRIX = public_matrix("gaussian", 40, 6, matrix_seed=0)


@pytest.mark.parametrize("norm", [0.3, 1.0, 3.0, 6.3, 1e9])
def test_every_row_is_inside_its_ball_and_no_shorter_than_needed(norm):
    bounded = bound_sets(set_batch(DENSE), norm)
    weights, lengths = bounded.weights.astype(int), DENSE.sum(axis=1)
    assert np.all(weights.astype(object) ** 2 * lengths <= 4**15)
    wanted = np.minimum(2.0**15 / norm, 2.0**15 / np.sqrt(np.maximum(lengths, 1)))
    assert np.all(np.abs(weights - wanted) <= 1.0)


@pytest.mark.parametrize("by_row", [True, False])
def test_the_sparse_product_is_the_integer_product(by_row):
    batch = set_batch(DENSE)
    bounded = bound_sets(batch, 3.0) if by_row else bound_set_elements(batch)
    rows = DENSE.astype(object) * bounded.weights.astype(int)[:, None].astype(object)
    reference = rows @ MATRIX.units.astype(np.int64).astype(object)
    assert np.array_equal(project_sets(bounded, MATRIX).astype(object), reference)


def test_rows_that_fit_agree_with_the_dense_path():
    fits = DENSE[DENSE.sum(axis=1) <= 8]
    dense = project(bound_rows(fits.astype(float), 3.0), MATRIX)
    assert np.array_equal(project_sets(bound_sets(set_batch(fits), 3.0), MATRIX), dense)


def test_public_faults_are_refused():
    batch = set_batch(DENSE)
    for norm in (0.0, np.nan):
        with pytest.raises(InvalidInput, match="must be finite and above 0"):
            bound_sets(batch, norm)
    with pytest.raises(InvalidInput, match="width=40: the matrix has 7 rows"):
        project_sets(bound_set_elements(batch), public_matrix("sphere", 7, 3, matrix_seed=0))
    huge = ProjectionMatrix(np.full((40, 2), 2.0**29))
    for bounded in (bound_set_elements(batch),):
        project_sets(bounded, huge)
    wide = set_batch(np.ones((1, 600), dtype=bool))
    tall = ProjectionMatrix(np.full((600, 1), 2.0**30))
    for bounded in (bound_set_elements(wide),):
        with pytest.raises(InvalidInput, match="a column is too long for exact products"):
            project_sets(bounded, tall)
