"""Released numbers lie on the grid that the card declares: 10^7 in CI, 10^8 with ADUMBRA_FULL=1."""

import os

import numpy as np
import pytest

from adumbra.data.opening import open_source
from adumbra.engine.local import LocalEngine
from adumbra.mechanisms.projection import DPProConfig
from adumbra.privacy.grant import open_grant
from adumbra.relations import Neighbours, Unit
from adumbra.release.artifact import off_grid
from adumbra.schema.schema import Schema
from adumbra.workflow import plan
from support.methods import draw

ROUNDS = 10 if os.environ.get("ADUMBRA_FULL") else 1
ROWS, COMPONENTS = 50_000, 100  # 5 million numbers for each unit and round


@pytest.mark.parametrize(
    ("unit", "neighbours"), [(Unit.ROW, Neighbours.REPLACE_ONE), (Unit.ELEMENT, Neighbours.ONE_ELEMENT)]
)
def test_released_numbers_lie_on_the_declared_grid(unit, neighbours):
    schema = Schema.numeric(120, -1.0, 1.0, unit=unit, neighbours=neighbours)
    config = DPProConfig(n_components=COMPONENTS, epsilon=1.0, delta=1e-6)
    planned = plan(config, schema)
    checked = 0
    for seed in range(ROUNDS):
        rows = np.random.default_rng(seed).uniform(-1, 1, (ROWS, 120))
        grant = open_grant("grid", planned.guarantee, planned.purposes, "")
        draft = draw(open_source(rows, schema), config, grant=grant, engine=LocalEngine())
        for batch in draft.pending["data"].batches:
            values = np.column_stack(batch.columns)
            assert off_grid(values, planned.noise[0].grid) == 0
            checked += values.size
    assert checked == ROUNDS * ROWS * COMPONENTS


def test_float_noise_would_be_seen():
    values = np.random.default_rng(0).standard_normal(1000)
    assert off_grid(values, 2.0**-21) > 900
