"""The noise of the moments and of the rows has the scale that the card prints, on every coordinate.

Of N residuals over their scale the squares sum to a chi-square of N (Gaussian), the sizes to a Gamma of
shape N (Laplace). Each check raises a false alarm with a chance below 1e-9, and rejects scales a tenth
too small or too large.
"""

import numpy as np
import pytest
from scipy.stats import chi2, gamma

from adumbra import workflow
from adumbra.data.opening import open_source
from adumbra.engine.local import LocalEngine
from adumbra.mechanisms.box_release import draw_moments
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.lda.plan import settle
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.privacy.recorded_noise import NoiseRecord, fixed_grant, recording_grant
from adumbra.schema.schema import Schema
from adumbra.statistics.box_moments import box_rows, sigma_factors
from support.components import REPLACE, draft_of, mixed, table

ALARM = 1e-9
RUNS = 160


def accepted(residuals, *, laplace):
    """Whether the residuals of unit scale fit their exact law."""
    law = gamma(residuals.size) if laplace else chi2(residuals.size)
    total = float((np.abs(residuals) if laplace else np.square(residuals)).sum())
    return bool(law.ppf(ALARM / 2) < total < law.isf(ALARM / 2))


def moment_residuals(pure):
    """Noisy minus exact coordinates over many keys, in units of their own scale."""
    schema, data = mixed(), table(400)
    config = LDAConfig(epsilon=1.0, delta=0.0 if pure else 1e-6)
    parts = settle(config, schema).parts
    encoder, noise = parts.encoder, parts.noise
    source, planned = open_source(data, schema), workflow.plan(config, schema)
    shape = noise.statistic.shape
    places = noise.statistic.coordinates(REPLACE)
    batch = next(source.batches(4096))
    exact = (
        noise.statistic.add(
            noise.statistic.zero(), box_rows(encoder.encode(batch), shape, encoder.labels(batch))
        )[places[0], places[1]]
        * 2.0**noise.statistic.exponent
    )
    scale = noise.scale.scale * (1.0 if pure else sigma_factors(shape)[places[2]])
    found = []
    for seed in range(RUNS):
        grant = fixed_grant(seed, planned.guarantee, planned.purposes)
        drawn = draw_moments(source, encoder, noise, engine=LocalEngine(threads=1), grant=grant)
        found.append((drawn.matrix[places[0], places[1]] - exact) / scale)
    return np.array(found)


@pytest.mark.parametrize("pure", [False, True])
def test_every_moment_carries_its_noise(pure):
    residuals = moment_residuals(pure)
    assert accepted(residuals, laplace=pure)
    assert not accepted(residuals * 0.9, laplace=pure)
    assert not accepted(residuals * 1.1, laplace=pure)
    by_coordinate = np.square(residuals).mean(axis=0)  # no coordinate is left without noise
    assert by_coordinate.min() > 0.3
    together = np.corrcoef(residuals.T) - np.eye(residuals.shape[1])
    assert np.abs(together).max() < 0.75  # independent: 160 draws, about 7,000 pairs, chance below 1e-9


@pytest.mark.parametrize("pure", [False, True])
def test_every_row_carries_its_noise(pure):
    """Rows of one number: what is released before decoding is read from the recorded call."""
    schema = Schema.numeric(3, 0.0, 1.0)
    data = np.random.default_rng(0).uniform(0, 1, (5000, 3))
    config = PCAConfig(n_components=2, epsilon=50.0, delta=0.0 if pure else 1e-6, bound="basis")
    planned, record = workflow.plan(config, schema), NoiseRecord()
    grant = recording_grant(record, 3, planned.guarantee, planned.purposes)
    draft = draft_of(data, schema, config, grant=grant)
    list(draft.pending["data"].batches)
    scale = draft.noise[1].scale
    blocks = [record.calls["rows", block] for block in (0, 1)]
    residuals = np.concatenate(
        [(out.to_float() - call.value.to_float()) / scale for call, out in blocks]
    )
    assert residuals.shape == (5000, 2)
    assert accepted(residuals, laplace=pure)
    assert not accepted(residuals * 0.9, laplace=pure)
    assert not accepted(residuals * 1.1, laplace=pure)
