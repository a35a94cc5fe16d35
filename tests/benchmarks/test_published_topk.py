"""The baselines as published: short at times, and refused where nothing is proved."""

import numpy as np
import pytest
from published import topk as published

from adumbra.errors import Unsupported
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours
from support.topk import DirectEngine, item_source, market

METHODS = {
    "frefirst": (published.frefirst, published.ONE_PHASE),
    "tps_em": (published.tps_em, published.TWO_PHASES),
    "tps_pfm": (published.tps_pfm, published.TWO_PHASES),
}


def columns_of(name, rows, width, k, epsilon, seed, target=published.wide):
    method, shares = METHODS[name]
    grant = fixed_grant(seed, None, published.PURPOSES)
    source = item_source(rows, width)
    run = published.prepare(source, k, epsilon, shares, engine=DirectEngine(), grant=grant)
    return method(run, target)


@pytest.mark.parametrize("name", METHODS)
def test_with_a_large_budget_they_find_the_columns(name):
    rows = [[j for j in range(12) if i % (j + 1) == 0] for i in range(2000)]
    found = columns_of(name, rows, 12, 5, 500.0, 1)
    assert set(found.tolist()) <= {0, 1, 2, 3, 4}
    assert len(found) == 5 or name == "tps_pfm"


def test_literal_pfm_is_short_about_as_often_as_its_threshold_ties():
    rows = market(400, 30)
    sizes = [len(columns_of("tps_pfm", rows, 30, 10, 0.5, seed)) for seed in range(20)]
    assert min(sizes) < 10
    assert max(sizes) <= 10
    other = [len(columns_of("tps_em", rows, 30, 10, 0.5, seed)) for seed in range(5)]
    assert other == [10] * 5


def test_targets():
    assert published.narrow(1000, 10, 0.5) == 40
    assert published.wide(1000, 10, 0.5) == 2000


def test_f_score_is_the_harmonic_mean():
    assert published.f_score([1, 2, 3, 4], [1, 2]) == pytest.approx(2 * 1.0 * 0.5 / 1.5)
    assert published.f_score(np.array([1, 2]), np.array([3])) == 0
    assert published.true_columns(np.array([3, 9, 9, 1]), 3).tolist() == [1, 2, 0]


def test_another_relation_is_refused():
    source = item_source([[0]], 3, Neighbours.REPLACE_ONE)
    grant = fixed_grant(1, None, published.PURPOSES)
    with pytest.raises(Unsupported, match=r"neighbours=replace-one: the paper proves add-remove alone"):
        published.prepare(source, 1, 1.0, published.ONE_PHASE, engine=DirectEngine(), grant=grant)
