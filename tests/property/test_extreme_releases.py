"""Extreme cells and public numbers: refused before the charge, or released without a warning.

A warning or an error that depends on a cell would tell of it; one after the charge would cost for
nothing. pytest makes every warning an error.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from adumbra.audit.recorder import DirectEngine, parts_of
from adumbra.data.opening import open_source
from adumbra.data.sources import WatchedSource
from adumbra.errors import InvalidInput
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.methods import method_of
from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.pca import PCAConfig
from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.topk import full

TINY, LARGE = 5e-324, 1.7e308
CELLS = (
    *(0.0, -0.0, 0.5, 1.0, -1.0, TINY, 2.3e-308, 1e-160, 1e160, LARGE, -LARGE),
    *(math.inf, -math.inf, math.nan),
)
BOUNDS = {
    "plain": (-1.0, 1.0),
    "large": (-8e307, 8e307),
    "one-sided": (0.0, LARGE),
    "denormal": (0.0, TINY),
    "small": (-1e-305, 1e-305),
    "far": (1e300, 1.0000000000000002e300),
    "most": (-1e60, 1e60),
    "least": (0.0, 1e-60),
}
NORMS = full(
    (None, TINY, 1e-60, 1e60, LARGE), (None, 1e-305, TINY, 1e-160, 1e-60, 1.0, 1e60, 1e160, LARGE)
)
REPLACE, ADD, CELL = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE, Neighbours.ONE_ELEMENT
LABEL = Column(name="y", kind=Kind.CATEGORY, categories=("p", "q"))
TARGET = Column(name="y", kind=Kind.NUMBER, lower=-1e60, upper=1e60)
D = {"epsilon": 1.0, "delta": 1e-6}
TWO = {"synthetic_rows": 2, **D}


def by_norm():
    for norm in NORMS:
        ron = {"n_components": 2, "row_norm": norm, **TWO}
        yield DPProConfig(n_components=2, row_norm=norm, **D), REPLACE, None
        yield JLLaplaceConfig(n_components=2, row_norm=norm, epsilon=1.0), REPLACE, None
        yield RONGaussConfig(rescale="normalise", **ron), REPLACE, None
        yield RONGaussConfig(mode="gmm", **ron), ADD, LABEL
        yield RONGaussConfig(mode="supervised", **ron), REPLACE, TARGET


def without_norm():
    yield DPProConfig(n_components=2, **D), CELL, None
    yield JLLaplaceConfig(n_components=2, epsilon=1.0), CELL, None
    for numbers in ("scores", "bins"):
        yield MomentsConfig(numbers=numbers, **TWO), ADD, None
        yield MomentsConfig(numbers=numbers, synthetic_rows=2, epsilon=1.0, delta=0.0), REPLACE, LABEL
    yield PCAConfig(n_components=2, bound="basis", **D), REPLACE, None
    yield PCAConfig(n_components=2, bound="clip", **D), REPLACE, None
    yield PCAConfig(n_components=2, output="sample", **TWO), ADD, None
    yield LDAConfig(**TWO), ADD, LABEL


def schema_of(bounds, neighbours, label):
    unit = Unit.ELEMENT if neighbours is CELL else Unit.ROW
    schema = Schema.numeric(3, *bounds, unit=unit, neighbours=neighbours)
    if label is None:
        return schema
    return replace(schema, columns=(*schema.columns, label), label=label.name)


def tables(width, neighbours):
    """Every extreme cell alone in a row and beside another; no row at all, where n is private."""
    rows = [np.resize([one, other], width) for one in CELLS for other in (one, *CELLS[::5])]
    yield np.array(rows)
    yield np.zeros((3, width))
    if neighbours is ADD:
        yield np.zeros((0, width))
    lone = np.zeros((3, width))
    lone[1, 0] = LARGE
    yield lone


CASES = [*by_norm(), *without_norm()]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_extreme_numbers_are_refused_by_the_plan_or_released_without_a_warning(number, bounds):
    config, neighbours, label = CASES[number]
    try:
        schema = schema_of(BOUNDS[bounds], neighbours, label)
        method_of(config).settle(config, replace(schema, rows=None if neighbours is ADD else 3))
    except InvalidInput:
        assert bounds != "plain" or getattr(config, "row_norm", None) in (
            TINY,
            LARGE,
            1e-305,
            1e-160,
            1e160,
        )
        return  # by public numbers alone
    for values in tables(len(schema.columns), neighbours):
        source = WatchedSource(open_source(values, schema))
        settled = method_of(config).settle(config, source.schema)
        grant = fixed_grant(0, settled.plan.guarantee, settled.plan.purposes)
        assert parts_of(method_of(config).draw(settled, source, DirectEngine(), grant))


def by_budget():
    """Methods that split their budget, and those that give it to one statistic."""
    pure = {"delta": 0.0, "synthetic_rows": 2}
    yield MomentsConfig(epsilon=1.0, **pure), REPLACE, LABEL
    yield MomentsConfig(epsilon=1.0, **pure), ADD, None
    yield MomentsConfig(epsilon=1.0, numbers="bins", table_share=0.9, **pure), ADD, LABEL
    yield MomentsConfig(**TWO, numbers="bins", marginal_share=0.001, table_share=0.9), REPLACE, None
    yield MomentsConfig(**TWO), ADD, LABEL
    yield PCAConfig(epsilon=1.0, n_components=2, output="sample", **pure), ADD, None
    yield LDAConfig(epsilon=1.0, **pure), REPLACE, LABEL
    yield RONGaussConfig(epsilon=1.0, n_components=2, mode="gmm", **pure), ADD, LABEL
    yield JLLaplaceConfig(n_components=2, epsilon=1.0), REPLACE, None
    yield DPProConfig(n_components=2, **D), CELL, None


BUDGETS = [*by_budget()]


@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1e-7, 1e-5, 1000.0])
@pytest.mark.parametrize("number", range(len(BUDGETS)))
def test_extreme_budgets_are_refused_by_the_plan_or_released(number, epsilon):
    """Pure moments at 1e-7 were planned and paid, and then their noise could not be drawn."""
    config, neighbours, label = BUDGETS[number]
    schema = schema_of((-1.0, 1.0), neighbours, label)
    values = np.resize([0.5, -0.5, 1.0], (40, len(schema.columns)))
    source = WatchedSource(open_source(values, schema))
    config = replace(config, epsilon=epsilon)
    try:
        settled = method_of(config).settle(config, source.schema)
    except InvalidInput:
        assert epsilon <= 1e-5
        return  # before anything is paid
    grant = fixed_grant(0, settled.plan.guarantee, settled.plan.purposes)
    assert parts_of(method_of(config).draw(settled, source, DirectEngine(), grant))
