"""The noise of RON-Gauss has the scales that its plan and card state, from both sides.

Rows in the middle of their bounds leave a Gram of zeros, so what is released is noise. A sample variance
of N draws lies within 7 standard errors of the true one but for a chance below 1e-9, the skewness of
Laplace squares included (2.6e-12 for a normal law, times 230 for 4,800 of them); scales 7 % off either
way are refused.
"""

import math

import numpy as np
import pytest

from adumbra.data.opening import open_source
from adumbra.engine.local import LocalEngine
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.mechanisms.ron_gauss.plan import settle
from adumbra.mechanisms.ron_gauss.sums import draw_moments
from adumbra.privacy.grant import open_grant
from adumbra.schema.schema import Schema

WIDTH, COMPONENTS, DRAWS = 40, 30, 160
ERRORS = 7.0


def accepted(values, scale, fourth):
    """Whether a variance fits: its standard error is sqrt((fourth - 1) / N) of itself."""
    ratio = np.mean(np.square(values)) / scale**2
    return abs(ratio - 1.0) <= ERRORS * math.sqrt((fourth - 1.0) / len(values))


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_gram_has_its_stated_noise_on_and_off_the_diagonal(delta):
    schema = Schema.numeric(WIDTH, -1.0, 1.0)
    config = RONGaussConfig(epsilon=1.0, delta=delta, n_components=COMPONENTS, centring="public")
    decided = settle(config, schema)
    planned, space, settled = decided.plan, decided.parts.space, decided.parts.scales
    source, engine = open_source(np.zeros((4, WIDTH)), schema), LocalEngine(threads=1)
    grams = []
    for _ in range(DRAWS):
        grant = open_grant("test", planned.guarantee, planned.purposes, "")
        released = draw_moments(source, space, settled, engine=engine, grant=grant)
        grams.append(released.noisy_gram[0][:COMPONENTS, :COMPONENTS])
    drawn = np.array(grams)
    rows, columns = np.triu_indices(COMPONENTS, 1)
    off, diagonal = drawn[:, rows, columns].ravel(), np.diagonal(drawn, axis1=1, axis2=2).ravel()
    stated = [line.scale for line in planned.noise]
    if delta == 0:
        deviations, fourth = (stated[0] * math.sqrt(2.0),) * 2, 6.0
    else:
        deviations, fourth = (stated[0], stated[1]), 3.0
    assert accepted(diagonal, deviations[0], fourth)
    assert accepted(off, deviations[1], fourth)
    for wrong in (0.93, 1.07):
        assert not accepted(off, deviations[1] * wrong, fourth)
    assert np.array_equal(drawn, np.swapaxes(drawn, 1, 2))
