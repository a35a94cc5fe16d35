"""Mixed tables, drafts and replayed neighbours for the tests of PCA and LDA publishing."""

import itertools

import numpy as np
import pyarrow as pa

from adumbra import workflow
from adumbra.data.opening import open_source
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics.box_moments import BoxShape, box_rows
from support.methods import draw, released

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def box_shape(p1, p2, classes=0, levels=2):
    """p1 numbers, then p2 groups."""
    groups = tuple(slice(p1 + levels * g, p1 + levels * (g + 1)) for g in range(p2))
    return BoxShape(tuple(range(p1)), groups, classes)


def mixed(neighbours=REPLACE, *, label="kind", rows=None):
    """Two numbers, an integer, a category with a level for missing, a boolean, a label of 3."""
    columns = (
        Column(name="a", kind=Kind.NUMBER, lower=0.0, upper=10.0),
        Column(name="city", kind=Kind.CATEGORY, categories=("x", "y", "z"), missing="category"),
        Column(name="kind", kind=Kind.CATEGORY, categories=("r", "s", "t")),
        Column(name="n", kind=Kind.INTEGER, lower=-5, upper=5),
        Column(name="flag", kind=Kind.BOOLEAN),
        Column(name="b", kind=Kind.NUMBER, lower=-1.0, upper=1.0),
    )
    return Schema(columns=columns, unit=Unit.ROW, neighbours=neighbours, label=label, rows=rows)


def table(n, seed=0):
    """Rows of the schema above with classes that differ, and some values that cannot be read."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    city = rng.choice(3, n)
    return pa.table(
        {
            "a": pa.array(rng.normal(3 + 1.5 * kind, 1.5), mask=rng.random(n) < 0.02),
            "city": pa.array(np.array(["x", "y", "z"])[city], mask=rng.random(n) < 0.1),
            "kind": pa.array(np.array(["r", "s", "t"])[kind]),
            "n": pa.array(np.rint(rng.normal(city - 1, 2)).astype(int)),
            "flag": pa.array(rng.random(n) < 0.3 + 0.2 * kind),
            "b": pa.array(np.where(rng.random(n) < 0.01, np.nan, rng.uniform(-2, 2, n))),
        }
    )


def draft_of(data, schema, config, *, grant=None, seed=0, engine=None):
    """A release with known noise."""
    return draw(open_source(data, schema), config, grant=grant, seed=seed, engine=engine)


def replayed(first, second, schema, config, seed=0):
    """Both exact values of each noise call on two neighbours, and whether the outputs agree."""
    record = NoiseRecord()
    planned = workflow.plan(config, schema)
    options = (seed, planned.guarantee, planned.purposes)
    before = draft_of(first, schema, config, grant=recording_grant(record, *options))
    tables = [released(before)]
    after = draft_of(second, schema, config, grant=replaying_grant(record, *options))
    tables.append(released(after))
    same = tables[0].equals(tables[1]) and all(
        np.array_equal(before.arrays[name], after.arrays[name]) for name in before.arrays
    )
    return record.pairs, same


def spent(pairs, pure):
    """What the calls cost on this pair: the sum of epsilons, or the root of the sum of squared mus."""
    scaled = [np.abs(pair.difference()) / np.asarray(pair.first.scale) for pair in pairs]
    if pure:
        return sum(float(one.sum()) for one in scaled)
    return float(np.sqrt(sum(np.square(one).sum() for one in scaled)))


def corners(p):
    """All corners of the box of p numbers."""
    return (np.array(signs) / 2 for signs in itertools.product((-1.0, 1.0), repeat=p))


ROWS = {
    "low": {"a": 0.0, "city": "x", "kind": "r", "n": -5, "flag": False, "b": -1.0},
    "high": {"a": 10.0, "city": "y", "kind": "s", "n": 5, "flag": True, "b": 1.0},
    "low, changed": {"a": 0.0, "city": "y", "kind": "t", "n": -5, "flag": True, "b": -1.0},
    "half": {"a": 10.0, "city": None, "kind": "t", "n": -5, "flag": True, "b": -1.0},
    "middle": {"a": 4.0, "city": "z", "kind": "s", "n": 0, "flag": True, "b": 0.1},
    "wild": {"a": float("inf"), "city": "?", "kind": "?", "n": 99, "flag": None, "b": float("nan")},
}
BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}]


def with_row(name):
    """A table of three rows, the middle one as named (None: without it)."""
    base = table(2)
    if name is None:
        return base
    one = pa.Table.from_pylist([ROWS[name]], schema=base.schema)
    return pa.concat_tables([base.slice(0, 1), one, base.slice(1)])


def neighbours_of(relation):
    if relation is ADD:
        return [(None, name) for name in ROWS]
    return [(first, second) for first in ROWS for second in ROWS if first < second]


def worst(config, schema, pairs):
    guarantee = workflow.plan(config, schema).guarantee
    most = 0.0
    for first, second in pairs:
        calls, same = replayed(with_row(first), with_row(second), schema, config)
        assert same, "the outputs differ although the noise was replayed"
        paid = guarantee.epsilon if guarantee.is_pure else guarantee.mu
        most = max(most, spent(calls, guarantee.is_pure) / paid)
    return most


def box_row(shape, numbers, levels, label=0):
    """One encoded row on the lattice; None is no row."""
    x = np.zeros((1, shape.width))
    x[0, list(shape.numeric)] = numbers
    for group, level in zip(shape.groups, levels, strict=True):
        x[0, group.start + level] = 1.0
    return box_rows(x, shape, np.array([label]) if shape.classes else None)


def box_pairs(shape, rng, count):
    """Random rows, corners, half-flipped corners, with few or all categories changed."""
    p1, p2 = len(shape.numeric), len(shape.groups)
    for trial in range(count):
        x, y = rng.uniform(-0.5, 0.5, (2, p1))
        if trial % 3 == 0:
            x = rng.choice([-0.5, 0.5], p1)
        if trial % 3 == 1:
            x = np.full(p1, 0.5)
            y = np.where(rng.random(p1) < rng.random(), x, -x)
        if trial % 7 == 0:
            x = rng.choice([np.nan, np.inf, -np.inf, 1e308, 0.3], p1)
        first = rng.integers(0, 2, p2)
        second = np.where(rng.random(p2) < rng.choice([0.3, 1.0]), 1 - first, first)
        labels = rng.integers(0, max(shape.classes, 1), 2)
        yield box_row(shape, x, first, labels[0]), box_row(shape, y, second, labels[1])
