"""The noise of released counts is the stated one: right scale accepted, 0.7 and 1.3 of it rejected.

False alarms: below 1e-9 a test (Kolmogorov-Smirnov; the lattice is far finer than the sample).
"""

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from adumbra.mechanisms.topk import TopKConfig
from adumbra.relations import Neighbours
from support.topk import full, item_source, release_of

FALSE_ALARM = 1e-9


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_released_counts_carry_the_stated_noise(delta, relation):
    width, repeats = 2000, full(2, 20)
    rows = [[j] for j in range(0, width, 3)] + [[0, 1, 2]]
    exact = np.zeros(width)
    for row in rows:
        exact[row] += 1 if len(row) <= 2 else (2 / 3 if delta == 0 else (2 / 3) ** 0.5)
    source = item_source(rows, width, relation)
    config = TopKConfig(k=10, epsilon=0.5, delta=delta, algorithm="frefirst", length=2, all_counts=True)
    errors = []
    for seed in range(repeats):
        draft = release_of(source, config, seed)
        table = draft.tables["counts"].to_pandas().sort_values("item")
        errors.append(table["count"].to_numpy() - exact)
    law = laplace if delta == 0 else norm
    scale = draft.facts["scale"]
    sample = np.concatenate(errors)
    assert kstest(sample, law(scale=scale).cdf).pvalue > FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert kstest(sample, law(scale=wrong * scale).cdf).pvalue < FALSE_ALARM
    assert draft.facts["standard_error"] == pytest.approx(law(scale=scale).std(), rel=1e-4)


def test_two_releases_and_two_columns_share_no_noise():
    source = item_source([], 4000)
    config = TopKConfig(k=10, epsilon=0.5, delta=0.0, algorithm="frefirst", length=2, all_counts=True)
    first, second = (
        release_of(source, config, seed)
        .tables["counts"]
        .to_pandas()
        .sort_values("item")["count"]
        .to_numpy()
        for seed in (1, 2)
    )
    # |correlation| of 4000 independent pairs stays below 6.2 / sqrt(4000) with probability 1 - 1e-9
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.1
    assert len(np.unique(first)) > 3900
