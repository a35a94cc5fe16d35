"""A lower bound on epsilon by attack: an event on a worst-case pair, at confidence 1 - 1e-9.

Sound mechanisms must stay below their claim; planted faults must be caught by the same harness. (That
replace-one under the constants of add-remove is caught is shown exactly: property/test_topk_svt.py,
test_topk_joint.py, and below for the exponential mechanism.)
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from adumbra.mechanisms.topk import TopKConfig, methods, phases
from adumbra.relations import Neighbours
from adumbra.statistics.counts import TruncatedCounts
from adumbra.workflow import plan
from support.topk import DirectEngine, full, item_source, release_of

CONFIDENCE = 1 - 1e-9
WIDTH = 40
RUNS = full(100, 2_000)


def lower_bound(hits, others, runs):
    """log(p/q) with Clopper-Pearson bounds on both probabilities."""
    tail = (1 - CONFIDENCE) / 2
    p = beta.ppf(tail, hits, runs - hits + 1) if hits else 0.0
    q = beta.ppf(1 - tail, others + 1, runs - others) if others < runs else 1.0
    return max(0.0, math.log(p / q)) if p > 0 else 0.0


def attack(config, before, after, relation, event):
    """The larger bound of both directions."""
    hits, engine = [], DirectEngine()
    for offset, rows in ((0, before), (10**6, after)):
        source = item_source(rows, WIDTH, relation)
        drafts = (release_of(source, config, offset + seed, engine=engine) for seed in range(RUNS))
        hits.append(sum(event(draft) for draft in drafts))
    return max(lower_bound(hits[0], hits[1], RUNS), lower_bound(hits[1], hits[0], RUNS))


def chosen(item):
    return lambda draft: draft.tables["data"]["item"].to_pylist()[0] == item


def counted_above(item, level):
    def event(draft):
        table = draft.tables["counts"]
        return table["count"][table["item"].to_pylist().index(item)].as_py() > level

    return event


ALL_BUT_FIRST, FIRST = list(range(1, WIDTH)), [0]
REPLACED = ([[0, 1]] * 3 + [ALL_BUT_FIRST], [[0, 1]] * 3 + [FIRST])


@pytest.mark.parametrize("method", ["frefirst", "em", "svt", "tps-pfm", "joint"])
def test_sound_methods_stay_below_their_claim(method):
    scan = {"max_length": 10} if method in ("frefirst", "tps-pfm") else {}
    config = TopKConfig(k=1, epsilon=1.0, delta=0.0, algorithm=method, **scan)
    assert attack(config, *REPLACED, Neighbours.REPLACE_ONE, chosen(0)) <= 1.0


def test_counts_stay_below_their_claim_and_the_attack_is_strong():
    config = TopKConfig(k=1, epsilon=4.0, delta=0.0, algorithm="frefirst", length=1, all_counts=True)
    bound = attack(config, [], [[0]], Neighbours.ADD_REMOVE, counted_above(0, 0.5))
    assert 0.5 < bound <= 4.0


def test_counts_without_truncation_are_caught(monkeypatch):
    class Whole(TruncatedCounts):
        def add(self, total, rows):
            total += np.bincount(rows.indices, minlength=self.width) << self.bits
            return total

    def planted(width, calibrated):
        return Whole(width=width, length=calibrated.length, norm=calibrated.norm, bits=calibrated.bits)

    def many_above(draft):
        return float(draft.tables["counts"]["count"].to_numpy().mean()) > 0.5

    config = TopKConfig(k=1, epsilon=1.0, delta=0.0, algorithm="frefirst", length=1, all_counts=True)
    row = [list(range(WIDTH))]
    assert attack(config, [], row, Neighbours.ADD_REMOVE, many_above) <= 1.0
    monkeypatch.setattr(phases, "truncated", planted)
    assert attack(config, [], row, Neighbours.ADD_REMOVE, many_above) > 1.0


def test_selection_noise_that_forgets_the_rounds_is_caught(monkeypatch):
    config = TopKConfig(k=20, epsilon=0.3, delta=0.0, algorithm="em")
    exact = methods.exponential
    assert attack(config, [], [[0]], Neighbours.ADD_REMOVE, chosen(0)) <= 0.3

    def planted(run, counts, rounds):
        return exact(run, 40 * rounds * counts, rounds)

    monkeypatch.setattr(methods, "exponential", planted)
    assert attack(config, [], [[0]], Neighbours.ADD_REMOVE, chosen(0)) > 0.3


def em_loss(counts, moved, scale):
    """The exact loss of one draw with weights exp(count / scale)."""
    logs = []
    for values in (counts, moved):
        z = np.array(values) / scale
        logs.append(z - np.logaddexp.reduce(z))
    return float(np.abs(logs[0] - logs[1]).max())


def test_the_exponential_mechanism_exactly_and_its_misuse():
    config, many = TopKConfig(k=1, epsilon=1.0, delta=0.0, algorithm="em"), 10**4
    scales = {
        relation: plan(config, item_source([], WIDTH, relation).schema).noise[0].scale
        for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE)
    }
    added = ([5] * many, [6] + [5] * (many - 1))
    replaced = ([5] + [6] * (many - 1), [6] + [5] * (many - 1))
    assert 0.99 < em_loss(*added, scales[Neighbours.ADD_REMOVE]) <= 1.0
    assert 0.99 < em_loss(*replaced, scales[Neighbours.REPLACE_ONE]) <= 1.0
    assert em_loss(*replaced, scales[Neighbours.ADD_REMOVE]) > 1.99  # the misuse is caught
