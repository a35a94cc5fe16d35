import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone

from adumbra.errors import InvalidInput
from adumbra.estimators.topk import TopKColumns
from support.topk import market

ROWS = market(300, 20)


def dense():
    matrix = np.zeros((len(ROWS), 20))
    for i, row in enumerate(ROWS):
        matrix[i, row] = 1
    return matrix


@pytest.mark.parametrize(
    "make", [dense, lambda: csr_array(dense()), lambda: csr_matrix(dense()), lambda: ROWS]
)
def test_every_kind_of_input_gives_the_frequent_columns(make):
    top = TopKColumns(k=3, epsilon=100.0, delta=0.0, n_columns=20 if make() is ROWS else None).fit(
        make()
    )
    exact = np.argsort(-dense().sum(axis=0), kind="stable")[:3]
    assert sorted(top.columns_) == sorted(exact)
    assert top.n_features_in_ == 20
    assert top.counts_ == pytest.approx(dense().sum(axis=0)[top.columns_], abs=30)
    assert (top.standard_errors_ > 0).all()


def test_guarantees_add_over_fits_and_clones_are_new():
    top = TopKColumns(k=2, epsilon=0.5, delta=0.0, algorithm="em").fit(dense())
    assert top.guarantee_.epsilon == 0.5
    assert not hasattr(top, "counts_")
    top.fit(dense())
    assert top.guarantee_.epsilon == 1.0
    assert clone(top).get_params() == top.get_params()
    assert not hasattr(clone(top), "guarantee_")


def test_delta_and_replace_one():
    top = TopKColumns(k=2, epsilon=1.0, delta=1e-6, neighbours="replace-one").fit(dense())
    assert top.guarantee_.mu is not None
    assert str(top.guarantee_.neighbours) == "replace-one"


def test_zeros_that_are_stored_and_nan_are_absent():
    matrix = csr_array(np.ones((4, 3)))
    matrix.data[:] = [1, 0, np.nan] * 4
    top = TopKColumns(k=1, epsilon=100.0, delta=0.0).fit(matrix)
    assert top.columns_.tolist() == [0]


@pytest.mark.parametrize(
    ("keywords", "data", "message"),
    [
        (
            {"neighbours": "one-element"},
            ROWS,
            r"neighbours='one-element': must be one of add-remove, replace-one",
        ),
        ({}, ROWS, r"a list is read as lists of items and needs .* give rows of 0 and 1 as numpy"),
        (
            {"n_columns": 3},
            np.zeros((2, 4)),
            r"n_columns=3: is for lists of items; X has 4 columns, leave it out",
        ),
        ({"n_columns": 3}, "abc", r"X of type str: give a matrix"),
        ({}, np.zeros(4), r"X with 1 dimensions"),
        ({"k": 0}, np.zeros((2, 4)), r"k=0: must be at least 1"),
    ],
)
def test_bad_input_is_refused(keywords, data, message):
    with pytest.raises(InvalidInput, match=message):
        TopKColumns(**keywords).fit(data)
