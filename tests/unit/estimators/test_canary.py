"""A cell that is no number never raises and never shows, in any estimator."""

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.estimators import DPPro, RONGauss, TopKColumns
from adumbra.estimators._inputs import as_numbers

CANARY = "HIV+ since 1987"


def test_cells_that_are_no_numbers_become_missing():
    got = as_numbers([[1, CANARY, None], ["2.5", 10**400, True]])
    assert got[0, 0] == 1.0
    assert got[1, 0] == 2.5
    assert got[1, 2] == 1.0
    assert np.isnan([got[0, 1], got[0, 2], got[1, 1]]).all()
    assert as_numbers(np.array([[1, 2]], dtype=np.int8)).dtype == np.float64
    with pytest.raises(InvalidInput, match="X: every row must have the same number of cells") as caught:
        as_numbers([[1.0, CANARY], [2.0]])
    assert CANARY not in str(caught.value)


def test_no_estimator_shows_a_cell():
    rows = [[0.1, 0.2, 0.3] for _ in range(50)]
    rows[7] = [CANARY, None, 10**400]
    DPPro(n_components=2, epsilon=1.0, delta=1e-6, unit="row", bounds=(0, 1)).fit_transform(rows)
    RONGauss(n_components=2, epsilon=1.0, delta=0.0, bounds=(0, 1)).fit(rows)
    targets = [0.5] * 50
    targets[3] = CANARY
    RONGauss(n_components=2, epsilon=1.0, delta=0.0, mode="supervised", bounds=(0, 1), y_bound=1.0).fit(
        rows, targets
    )
    baskets = [[0, 1, 2], [CANARY, 10**400, float("nan")], None, CANARY, [[1], 2]]
    assert len(TopKColumns(k=2, epsilon=1.0, delta=0.0, n_columns=4).fit(baskets).columns_) == 2
