"""Small tables for the moments synthesizer, and one way to run it with fixed noise."""

import numpy as np
import pyarrow as pa

from adumbra import workflow
from adumbra.data.opening import open_source
from adumbra.privacy.recorded_noise import (
    NoiseRecord,
    recording_grant,
    replaying_grant,
)
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.methods import draw

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def mixed_schema(neighbours=REPLACE, label="risk"):
    columns = (
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="income", kind=Kind.NUMBER, lower=0.0, upper=1000.0),
        Column(name="smoker", kind=Kind.BOOLEAN),
        Column(name="region", kind=Kind.CATEGORY, categories=("a", "b", "c"), missing="category"),
        Column(name="job", kind=Kind.CATEGORY, categories=("x", "y", "z")),
        Column(name="risk", kind=Kind.CATEGORY, categories=("low", "high")),
    )
    return Schema(columns=columns, unit=Unit.ROW, neighbours=neighbours, label=label)


def mixed_table(rows=2000, seed=0):
    """A table in which everything depends on a hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=rows)
    age = np.clip(40 + 12 * hidden + 4 * rng.normal(size=rows), 0, 99).astype(int)
    income = np.where(hidden > 0, np.clip(200 * hidden + 30 * rng.normal(size=rows), 0, 1000), 0.0)
    region = np.array(["a", "b", "c", None], object)[np.clip((hidden + 2).astype(int), 0, 3)]
    job = np.array(["x", "y", "z"], object)[rng.integers(0, 3, rows)]
    risk = np.where(hidden + 0.5 * rng.normal(size=rows) > 0.5, "high", "low")
    return pa.table(
        {
            "age": age,
            "income": income,
            "smoker": pa.array(rng.random(rows) < 0.2),
            "region": pa.array(region, pa.string()),
            "job": pa.array(job, pa.string()),
            "risk": pa.array(risk, pa.string()),
        }
    )


def numbers_schema(width, *, neighbours=REPLACE, classes=0):
    columns = tuple(Column(name=f"x{i}", kind=Kind.NUMBER, lower=-1.0, upper=1.0) for i in range(width))
    label = None
    if classes:
        label = "y"
        columns += (Column(name="y", kind=Kind.INTEGER, lower=1, upper=classes),)
    return Schema(columns=columns, unit=Unit.ROW, neighbours=neighbours, label=label)


def items_schema(width, neighbours=REPLACE):
    return Schema(unit=Unit.ROW, neighbours=neighbours, items=ItemSpec(lower=1, upper=width))


def run(data, schema, config, *, seed=0, grant=None, engine=None):
    return draw(open_source(data, schema), config, grant=grant, seed=seed, engine=engine)


def replayed(first, second, schema, config, seed=0):
    """The noise calls of both tables, and both drafts, the second with the noise of the first."""
    planned = workflow.plan(config, schema)
    record = NoiseRecord()
    arguments = (record, seed, planned.guarantee, planned.purposes)
    one = run(first, schema, config, grant=recording_grant(*arguments))
    two = run(second, schema, config, grant=replaying_grant(*arguments))
    return record, one, two
