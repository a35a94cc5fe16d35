"""Replay releases of data frames on neighbours of other types: no more is spent than was paid for.

pandas chooses the type of a column by all of its cells, so one row can turn truths and numbers of every
other row into objects. What reaches the noise may then move by one row only.
"""

import math

import numpy as np
import pandas as pd
import pytest

from adumbra import workflow
from adumbra.data import arrays
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.relations import Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.cells import HOSTILE
from support.components import ADD, REPLACE, replayed, spent

ROWS = 12
CONFIGS = [
    LDAConfig(epsilon=1.0, delta=0.0, synthetic_rows=3),
    LDAConfig(epsilon=1.0, delta=1e-6, synthetic_rows=3),
    PCAConfig(n_components=2, epsilon=1.0, delta=0.0, output="sample", synthetic_rows=3),
]


def schema(relation):
    columns = (
        Column(name="sick", kind=Kind.CATEGORY, categories=("false", "true")),
        Column(name="grade", kind=Kind.CATEGORY, categories=("0", "1", "2")),
        Column(name="share", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="flag", kind=Kind.BOOLEAN),
        Column(name="y", kind=Kind.CATEGORY, categories=("no", "yes")),
    )
    return Schema(columns=columns, unit=Unit.ROW, neighbours=relation, label="y")


def frame(cell, rows=ROWS):
    """Rows of one kind, the last of them with the cell in every column."""
    base = {"sick": True, "grade": 1, "share": True, "flag": 1.0, "y": "yes"}
    return pd.DataFrame({name: [value] * (rows - 1) + [cell] for name, value in base.items()})


def made_by_pandas(cell):
    try:
        return frame(cell)
    except Exception:  # noqa: BLE001  (pandas itself refuses such a column)
        return None


def ratio(first, second, declared, config):
    """What the pair costs, as a share of what was paid."""
    guarantee = workflow.plan(config, declared).guarantee
    calls, same = replayed(first, second, declared, config)
    assert same, "the outputs differ although the noise was replayed"
    paid = guarantee.epsilon if guarantee.is_pure else guarantee.mu
    return spent(calls, guarantee.is_pure) / paid


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{type(config).__name__}-{config.delta}")
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_one_row_of_another_type_is_paid_for(relation, config):
    first = frame(False) if relation is REPLACE else frame(True).iloc[:-1]
    for cell in (*HOSTILE[::3], None, math.nan, "x", 1j):
        second = made_by_pandas(cell)
        if second is not None:
            assert ratio(first, second, schema(relation), config) <= 1.0, type(cell)


def test_the_harness_sees_a_column_that_is_read_by_its_type(monkeypatch):
    # What the data layer once did: objects as their text, so that True no longer was "true".
    right = arrays.pandas_column

    def by_type(values):
        is_object = values.dtype == object
        return right(values.map(lambda cell: f"<{cell}>") if is_object else values)

    monkeypatch.setattr(arrays, "pandas_column", by_type)
    assert ratio(frame(False), frame(None), schema(REPLACE), CONFIGS[0]) > 1.0


def test_types_of_the_frames_do_differ():
    assert {frame(cell)["sick"].dtype for cell in (False, None, 1j)} == {
        np.dtype(bool),
        np.dtype(object),
    }
    assert frame(None)["grade"].dtype == np.float64
    assert frame(1j)["grade"].dtype == np.complex128
