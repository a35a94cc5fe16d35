"""Replay the moments synthesizer on neighbours: what moves was paid for, nothing goes around it."""

from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest
from scipy.special import expit, ndtri

from adumbra.mechanisms.moments import chosen
from adumbra.mechanisms.moments import design as rules
from adumbra.mechanisms.moments import plan as moments
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import design
from adumbra.mechanisms.moments.plan import settle
from adumbra.schema.schema import Column, Kind
from adumbra.statistics.histograms import Histograms
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


TURNS = {"choices", "tables"}
ORDER = ("marginals", "one_way", "radius", "gram")  # as values are drawn


def mixed_pairs(schema, rows=60):
    """Neighbours of a mixed table: every row type against its opposite, label change included."""
    table = mixed_table(rows)
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
        calls = [n for n in one.noise if "diagonal" not in n.purpose and n.purpose not in TURNS]
        calls.sort(key=lambda n: ORDER.index(n.purpose))
        first_calls = [p for p in record.pairs if p.purpose not in TURNS]
        for pair, noise in zip(first_calls, calls, strict=True):
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


def finer_schema(neighbours, missing=None):
    """The mixed table with a whole income, whose cells hold several values."""
    schema = mixed_schema(neighbours)
    income = Column(name="income", kind=Kind.INTEGER, lower=0, upper=1000, missing=missing)
    return replace(schema, columns=tuple(income if c.name == "income" else c for c in schema.columns))


def finer_pairs(schema):
    for pair in mixed_pairs(schema):
        yield tuple(frame.assign(income=frame["income"].round().astype("Int64")) for frame in pair)


@pytest.fixture
def always_finer(monkeypatch):
    """So few rows drown in finer cells: the rule would leave them out."""
    monkeypatch.setattr(rules, "LOUD_CELLS", np.inf)


@pytest.mark.usefixtures("always_finer")
@pytest.mark.parametrize("config", CONFIGS[1:], ids=["pure", "bins"])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("missing", [None, "null"])
def test_finer_histograms_are_columns_that_are_paid_for(config, neighbours, missing):
    schema, config = finer_schema(neighbours, missing), replace(config, numbers="bins")
    assert len(design(config, schema).finer) == 1
    worst = shares_of_paid(schema, config, finer_pairs(schema))
    assert max(worst.values()) <= 1.0 + 1e-12
    assert min(worst[name] for name in ("marginals", "one_way")) >= 0.9


@pytest.mark.usefixtures("always_finer")
def test_finer_histograms_at_the_price_of_none_are_caught(monkeypatch):
    right = Histograms.sensitivity

    def without_finer(self, neighbours):
        return right(Histograms(cells=self.cells[1:]) if len(self.cells) == 7 else self, neighbours)

    monkeypatch.setattr(Histograms, "sensitivity", without_finer)
    schema = finer_schema(REPLACE)
    assert len(design(CONFIGS[2], schema).cells) == 7
    assert shares_of_paid(schema, CONFIGS[2], finer_pairs(schema))["marginals"] > 1.0


@pytest.fixture
def always_heard(monkeypatch):
    """So few rows have pairs that are noise: the rule would leave columns of two levels as they are."""
    monkeypatch.setattr(rules, "CLASSED_EDGE", np.inf)


@pytest.mark.usefixtures("always_heard")
@pytest.mark.parametrize("config", CONFIGS[1:], ids=["pure", "bins"])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("make", [mixed_schema, keeping_schema])
def test_columns_of_two_levels_by_class_stay_within_their_price(config, neighbours, make):
    schema, config = make(neighbours), replace(config, numbers="bins")
    assert design(config, schema).pairs_by_class
    worst = shares_of_paid(schema, config, mixed_pairs(schema))
    assert set(worst) == {*ORDER}
    assert max(worst.values()) <= 1.0 + 1e-12
    assert min(worst[name] for name in ("marginals", "one_way")) >= 0.9


@pytest.mark.usefixtures("always_heard")
def test_columns_of_two_levels_at_the_price_of_none_are_caught(monkeypatch):
    right = Histograms.sensitivity

    def without_pairs(self, neighbours):
        kept = tuple(cells for place, cells in enumerate(self.cells) if place != 2)  # smokers by class
        return right(Histograms(cells=kept) if len(self.cells) == 6 else self, neighbours)

    monkeypatch.setattr(Histograms, "sensitivity", without_pairs)
    schema = mixed_schema(REPLACE)
    assert design(CONFIGS[2], schema).cells[2] == 4
    assert shares_of_paid(schema, CONFIGS[2], mixed_pairs(schema))["marginals"] > 1.0


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
    pooled = {"one_way"} if design(config, schema).is_pooled else set()
    assert pooled or make is CASES[2][0]  # numbers alone, as scores
    assert set(worst) == {"marginals", "radius", "gram"} | pooled
    assert max(worst.values()) <= 1.0 + 1e-12
    assert min(worst[name] for name in {"marginals"} | pooled) >= 0.9


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


def prices_of_tables(neighbours, delta, numbers="bins"):
    """What choices and tables move over what their entries declare, and all together over the claim."""
    schema = keeping_schema(neighbours)
    config = MomentsConfig(
        epsilon=8.0, delta=delta, synthetic_rows=20, numbers=numbers, table_share=0.5, expected_rows=400
    )
    worst, whole = {}, 0.0
    for first, second in islice(mixed_pairs(schema, 400), 2):
        record, one, two = replayed(first, second, schema, config)
        assert one.tables["data"].equals(two.tables["data"])
        assert all(np.array_equal(one.arrays[name], two.arrays[name]) for name in one.arrays)
        assert record.unmatched() == ()
        assert len(one.arrays["chosen"]) > 3
        entries = {noise.purpose: noise for noise in one.noise}
        losses = {}
        for pair in record.pairs:
            if pair.purpose not in {"choices", "tables"}:
                continue
            entry = entries[pair.purpose]
            moved = pair.spread() if pair.purpose == "choices" else pair.l1()
            if pair.purpose == "tables" and delta > 0:
                moved = np.linalg.norm(pair.difference())
            worst[pair.purpose] = max(worst.get(pair.purpose, 0.0), moved / entry.sensitivity)
            losses.setdefault(pair.purpose, []).append(entry.sensitivity / entry.scale)
        rows = 400 if neighbours is REPLACE else None
        parts = settle(config, replace(schema, rows=rows)).parts
        for purpose, amount in list(parts.amounts.items())[-2:]:
            declared = np.array(losses[purpose])
            if delta == 0:
                spent = declared.sum()
            else:
                each = declared if purpose == "tables" else 2.0 * ndtri(expit(declared / 2.0))
                spent = np.sqrt((each**2).sum())
            assert spent <= amount * (1.0 + 1e-12)
            whole = max(whole, spent / amount)
    return worst, whole


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("numbers", ["bins", "scores"])
def test_chosen_tables_stay_within_their_prices(neighbours, delta, numbers):
    worst, whole = prices_of_tables(neighbours, delta, numbers)
    assert set(worst) == {"choices", "tables"}
    assert max(worst.values()) <= 1.0 + 1e-12
    assert worst["tables"] > 0.999
    assert worst["choices"] > 0.7
    assert whole > 0.5


def test_a_planted_half_range_of_scores_is_caught(monkeypatch):
    right = chosen.score_range
    monkeypatch.setattr(chosen, "score_range", lambda reach: right(reach) / 2.0)
    worst, _ = prices_of_tables(REPLACE, 1e-6)
    assert worst["choices"] > 1.0
