"""Replay the moments synthesizer on neighbours: what moves was paid for, nothing goes around it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from adumbra.mechanisms.moments import plan as moments
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.statistics.moments import BlockGram
from support.moments import (
    ADD,
    REPLACE,
    items_schema,
    mixed_schema,
    mixed_table,
    numbers_schema,
    replayed,
)

CONFIGS = [
    MomentsConfig(epsilon=1.0, delta=1e-6, synthetic_rows=50),
    MomentsConfig(epsilon=1.0, delta=0.0, synthetic_rows=50),
    MomentsConfig(epsilon=1.0, delta=1e-6, synthetic_rows=50, numbers="bins"),
]


def mixed_pairs(schema):
    """Neighbours of a mixed table: every row type against its opposite, label change included."""
    table = mixed_table(60)
    frame = table.to_pandas()
    corners = [
        {"age": 0, "income": 0.0, "smoker": False, "region": "a", "job": "x", "risk": "low"},
        {"age": 99, "income": 1000.0, "smoker": True, "region": None, "job": "z", "risk": "high"},
        {"age": 50, "income": float("nan"), "smoker": True, "region": "?", "job": "y", "risk": "?"},
    ]
    for first, second in combinations(corners, 2):
        left, right = frame.copy(), frame.copy()
        left.loc[7], right.loc[7] = first, second
        yield left, right if schema.neighbours is REPLACE else frame.drop(index=7)


def number_pairs(schema):
    rng = np.random.default_rng(0)
    base = np.column_stack([rng.uniform(-1, 1, size=(40, 6)), rng.integers(1, 4, 40)])
    for _ in range(4):
        left, right = base.copy(), base.copy()
        corner = rng.choice([-1.0, 1.0], size=6)
        left[3], right[3] = np.append(corner, 1), np.append(-corner, 3)
        yield left, right if schema.neighbours is REPLACE else np.delete(base, 3, axis=0)


def item_pairs(schema):
    from scipy.sparse import csr_array

    base = (np.random.default_rng(1).random((30, 9)) < 0.2).astype(float)
    left, right = base.copy(), base.copy()
    left[3], right[3] = 1.0, 0.0
    other = right if schema.neighbours is REPLACE else np.delete(base, 3, axis=0)
    yield csr_array(left), csr_array(other)


def shares_of_paid(schema, config, pairs, gram_weights=True):
    """For each purpose the largest change over what its noise pays for."""
    worst = {}
    decided = design(config, schema)
    for first, second in pairs:
        record, one, two = replayed(first, second, schema, config)
        assert one.tables["data"].equals(two.tables["data"])
        assert all(np.array_equal(one.arrays[name], two.arrays[name]) for name in one.arrays)
        assert dict(one.facts) == dict(two.facts)
        assert record.unmatched() == ()
        calls = one.noise[:3]  # a fourth line is of the third call, off the diagonal
        for pair, noise in zip(record.pairs, calls, strict=True):
            assert pair.purpose == noise.purpose
            change = pair.difference()
            if config.delta == 0:
                moved = np.abs(change).sum()
            elif noise.purpose == "gram" and gram_weights:
                moved = np.linalg.norm(change / _weights(decided, len(change)))
            else:
                moved = np.linalg.norm(change)
            worst[noise.purpose] = max(worst.get(noise.purpose, 0.0), moved / noise.sensitivity)
    return worst


def _weights(decided, length):
    for width in range(1, 400):
        statistic = moments.gram_statistic(decided, width)
        if sum(statistic.parts) == length:
            return statistic.noise_weights()
    raise AssertionError("no such Gram")


def keeping_schema(neighbours):
    """The mixed table with numbers that stay missing."""
    schema = mixed_schema(neighbours)
    kept = tuple(replace(c, missing="null") if c.is_numeric else c for c in schema.columns)
    return replace(schema, columns=kept)


CASES = [
    (mixed_schema, mixed_pairs),
    (keeping_schema, mixed_pairs),
    (lambda n: numbers_schema(6, neighbours=n, classes=3), number_pairs),
]


@pytest.mark.parametrize("config", CONFIGS, ids=["gaussian", "pure", "bins"])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_exact_values_of_neighbours_stay_within_the_declared_sensitivity(config, neighbours, case):
    make, pairs = CASES[case]
    schema = make(neighbours)
    worst = shares_of_paid(schema, config, pairs(schema))
    assert set(worst) == {"marginals", "radius", "gram"}
    assert max(worst.values()) <= 1.0 + 1e-12
    assert worst["marginals"] >= 0.9


def test_nothing_passes_around_the_noise():
    schema = items_schema(9)
    worst = shares_of_paid(schema, CONFIGS[0], item_pairs(schema))
    assert max(worst.values()) <= 1.0 + 1e-12
    assert worst["marginals"] >= 0.9


def test_a_planted_half_sensitivity_is_caught(monkeypatch):
    """The harness has power: a Gram that declares half of its sensitivity is seen."""
    right = BlockGram.sensitivity

    def halved(self, neighbours):
        true = right(self, neighbours)
        return type(true)(l1=true.l1 / 4, l2=true.l2 / 4)

    monkeypatch.setattr(BlockGram, "sensitivity", halved)
    schema = numbers_schema(6, classes=3)
    worst = shares_of_paid(schema, CONFIGS[0], number_pairs(schema))
    assert worst["gram"] > 1.0
