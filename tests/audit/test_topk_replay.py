"""Record the noise on a table and replay it on a hostile neighbour.

If the two releases then differ, something private went around the noise; and the exact values that met
the noise must differ by no more than the sensitivity that calibrated it.
"""

import numpy as np
import pytest

from adumbra.mechanisms.topk import Algorithm, TopKConfig
from adumbra.mechanisms.topk.config import SHARES, Step, budget_of
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.relations import Neighbours
from adumbra.workflow import plan
from support.topk import item_source, market, release_of

WIDTH = 30
BASE = market(300, WIDTH, seed=4)
LONG, SHORT, EMPTY, ODD, EVEN = (
    list(range(WIDTH)),
    [3],
    [],
    list(range(1, WIDTH, 2)),
    list(range(0, WIDTH, 2)),
)
ADDED = [(BASE, [*BASE, row]) for row in (LONG, SHORT, EMPTY, ODD)]
REPLACED = [
    ([*BASE, a], [*BASE, b]) for a, b in ((LONG, EMPTY), (ODD, EVEN), (SHORT, LONG), (EMPTY, SHORT))
]
METHODS = [(method.value, 0.0) for method in Algorithm if method is not Algorithm.AUTO]
METHODS += [("frefirst", 1e-6), ("gumbel", 1e-6)]


def replayed(config, before, after, relation, seed):
    """Both drafts and the pairs of exact values at each noise call."""
    record = NoiseRecord()
    first, second = item_source(before, WIDTH, relation), item_source(after, WIDTH, relation)
    public = plan(config, first.schema)
    drafts = [
        release_of(
            first, config, grant=recording_grant(record, seed, public.guarantee, public.purposes)
        ),
        release_of(
            second, config, grant=replaying_grant(record, seed, public.guarantee, public.purposes)
        ),
    ]
    return drafts, record


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
@pytest.mark.parametrize(("method", "delta"), METHODS)
def test_nothing_goes_around_the_noise_and_values_move_as_declared(method, delta, relation):
    scan = {"max_length": 20} if Step.COUNTS in SHARES[Algorithm(method)] else {}
    config = TopKConfig(k=6, epsilon=0.8, delta=delta, algorithm=method, **scan)
    for seed, (before, after) in enumerate(ADDED if relation is Neighbours.ADD_REMOVE else REPLACED):
        if (
            method == "joint"
        ):  # the scores' shape follows the counts; its law is integrated exactly elsewhere
            continue
        (first, second), record = replayed(config, before, after, relation, seed)
        assert first.tables["data"].equals(second.tables["data"])
        assert dict(first.facts) == dict(second.facts)
        assert record.unmatched() == ()
        for pair in record.pairs:
            check(pair, config, relation, first.facts)


def check(pair, config, relation, facts):
    """The change of one value against the noise that hides it."""
    budget = budget_of(config)
    assert float(pair.first.scale) == float(pair.second.scale)
    spread = 1 if relation is Neighbours.ADD_REMOVE else 2
    if pair.first.kind == "gumbel":
        assert pair.spread() <= spread
    elif pair.first.kind == "gaussian":
        assert pair.l2() / float(pair.first.scale) <= budget[Step.COUNTS] * (1 + 1e-12)
    elif pair.purpose in (Step.COUNTS, Step.ZONE_COUNTS):
        assert pair.l1() / float(pair.first.scale) <= budget[Step(pair.purpose)] * (1 + 1e-12)
    elif "threshold" in pair.purpose:
        assert pair.l1() <= 1  # order statistics move by at most one, whichever way
    else:  # comparisons: each value by one; one way, or both under replace-one (which halves epsilon)
        moved = pair.difference()
        assert np.abs(moved).max() <= 1
        one_way = relation is Neighbours.ADD_REMOVE or "length" in pair.purpose
        assert not one_way or moved.min() >= 0 or moved.max() <= 0


def test_the_declared_sensitivity_is_reached():
    for relation, before, after in (
        (Neighbours.ADD_REMOVE, BASE, [*BASE, LONG]),
        (Neighbours.REPLACE_ONE, [*BASE, ODD], [*BASE, EVEN]),
    ):
        for delta in (0.0, 1e-6):
            config = TopKConfig(k=6, epsilon=0.8, delta=delta, algorithm="frefirst", length=4)
            _, record = replayed(config, before, after, relation, 1)
            (pair,) = record.pairs
            moved = pair.l1() if delta == 0 else pair.l2()
            assert moved / float(pair.first.scale) >= 0.999 * budget_of(config)[Step.COUNTS]
