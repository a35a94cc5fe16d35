"""The noise of a moments release has the declared scale: less and more are both rejected.

False-alarm chance 1e-9 a test: the sum of squared noise over its variance is chi-square.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from adumbra import workflow
from adumbra.mechanisms.moments import plan as moments
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant
from support.moments import numbers_schema, run

ALARM = 1e-9
WIDTH = 60


def standardised(seed):
    """Noise over its declared standard deviation, for each of the three releases."""
    schema = numbers_schema(WIDTH, classes=3)
    config = MomentsConfig(epsilon=1.0, delta=1e-6, synthetic_rows=10)
    rng = np.random.default_rng(0)
    data = np.column_stack([rng.uniform(-1, 1, (300, WIDTH)), rng.integers(1, 4, 300)])
    planned = workflow.plan(config, schema)
    record = NoiseRecord()
    grant = recording_grant(record, seed, planned.guarantee, planned.purposes)
    draft = run(data, schema, config, grant=grant)
    weights = moments.gram_statistic(design(config, replace(schema, rows=300)), WIDTH).noise_weights()
    found = {}
    for noise in draft.noise[:3]:  # the fourth line is of the third call, off the diagonal
        call, output = record.calls[noise.purpose, 0]
        difference = output.to_float() - call.value.to_float()
        scale = noise.scale * (weights if noise.purpose == "gram" else 1.0)
        found[noise.purpose] = difference / scale
    assert draft.noise[3].scale == pytest.approx(draft.noise[2].scale * weights.min())
    return found


def is_accepted(values, factor):
    total, degrees = float(np.sum((values * factor) ** 2)), values.size
    return bool(chi2.ppf(ALARM / 2, degrees) <= total <= chi2.isf(ALARM / 2, degrees))


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.7, False), (1.3, False)])
def test_the_declared_scale_and_no_other(factor, accepted):
    found = standardised(seed=1)
    for purpose in ("marginals", "gram"):
        assert is_accepted(found[purpose], factor) is accepted, purpose
    pooled = np.concatenate([standardised(seed=s)["radius"] for s in range(2, 6)])
    assert is_accepted(pooled, 1.0)
