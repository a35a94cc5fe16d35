"""Exact laws of transcripts against other sums, and batches against the production code run by run."""

import math
from fractions import Fraction

import numpy as np
import pytest

from adumbra.audit.transcripts import Choice, Comparison, Joint, StepPair, select_many
from adumbra.mechanisms.topk.joint import joint_sequence, plan_lattice
from adumbra.mechanisms.topk.svt import blocks, drawing, label_columns, sparse
from adumbra.numerics import Lattice
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.privacy.selection import _order
from support.topk import common_unit, full, probability, transcripts

ONE = Fraction(1)
SCHEDULES = {
    "svt-1": (sparse(ONE, 1, threshold_share=Fraction(1, 4)), 3),
    "svt-2": (sparse(ONE, 2, threshold_share=Fraction(1, 4)), 4),
    "pfm-1": (blocks(ONE, 1), 3),
    "pfm-2": (blocks(ONE, 2), 3),
}
RUNS = full(20_000, 500_000)
FAR = 6.5  # standard deviations: chance below 1e-10 each


def grant(seed, *purposes):
    return fixed_grant(seed, None, purposes)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_law_of_labels_is_that_of_rational_arithmetic(name):
    schedule, columns = SCHEDULES[name]
    values = [0, 3, 1, 2][:columns]
    law = Comparison(np.array(values), 2, schedule).law()
    leaves = list(transcripts(schedule, columns))
    unit = common_unit(leaves)
    # e^(-1/2 unit), to 80 bits: the oracle wants a rational
    ratio = Fraction(round(math.exp(-0.5 / unit) * 2**52), 2**52)
    assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert set(law) == {leaf.labels for leaf in leaves}
    for leaf in leaves:
        exact = float(probability(leaf, values, 2, unit, ratio))
        assert law[leaf.labels] == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("name", SCHEDULES)
def test_batches_of_labels_follow_the_law_and_so_does_the_production_code(name):
    schedule, columns = SCHEDULES[name]
    case = Comparison(np.array([0, 3, 1, 2][:columns]), 2, schedule)
    law = case.law()
    counts = {labels: len(runs) for labels, runs in case.sample(RUNS, grant(1, "thresholds", "columns"))}
    assert sum(counts.values()) == RUNS
    for labels, chance in law.items():
        spread = math.sqrt(RUNS * chance * (1 - chance)) + 1
        assert abs(counts.get(labels, 0) - RUNS * chance) < FAR * spread
    runs, found = full(400, 5_000), {}
    for seed in range(runs):
        own = grant(seed, "t", "c")
        labels = label_columns(
            case.halves, 2, schedule, thresholds=drawing(own, "t"), columns=drawing(own, "c")
        )
        found[tuple(labels.tolist())] = found.get(tuple(labels.tolist()), 0) + 1
    for labels, chance in law.items():
        spread = math.sqrt(runs * chance * (1 - chance)) + 1
        assert abs(found.get(labels, 0) - runs * chance) < FAR * spread


def test_a_joint_draw_follows_its_law():
    case = Joint(np.array([4, 0, 2, 1]), 2, plan_lattice(2.0, 2, 4, 1))
    law = case.law()
    assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-9)
    counts = dict.fromkeys(law, 0)
    for sequence, runs in case.sample(RUNS, grant(2, "columns")):
        counts[sequence] += len(runs)
    for sequence, chance in law.items():
        spread = math.sqrt(RUNS * chance * (1 - chance)) + 1
        assert abs(counts[sequence] - RUNS * chance) < FAR * spread
    purposes = ("select-depth", "select-rank", "select-column")
    drawn = joint_sequence(case.counts, case.k, case.public, grant(0, *purposes))
    assert tuple(drawn.tolist()) in law


def test_a_batch_of_selections_is_the_production_order_of_each():
    class Part:
        def __init__(self, key, offset):
            self.key, self.offset = key, offset

        def words(self, stream, count, start=0):
            return self.key.words(stream, count, self.offset + start)

    scores = Lattice(np.array([3, 0, 5, 5, 1]), 0)
    key = grant(3, "columns").key("columns")
    batch = select_many(scores, 2.0, 3, key, 300)
    drop = scores.units - 5
    alone = [_order(drop, 0, 2.0, 3, Part(key, 5 * run)).tolist() for run in range(300)]
    assert batch.tolist() == alone


def test_doubtful_selections_are_settled_exactly(monkeypatch):
    from adumbra.privacy import selection

    scores, key = Lattice(np.array([3, 0, 5, 5, 1]), 0), grant(3, "columns").key("columns")
    sure = select_many(scores, 2.0, 2, key, 40)
    right = selection._intervals

    def wide(*arguments):
        lower, upper = right(*arguments)
        return lower - 0.5, upper + 0.5

    monkeypatch.setattr(selection, "_intervals", wide)
    assert select_many(scores, 2.0, 2, key, 40).tolist() == sure.tolist()


def test_the_loss_of_a_step_and_of_an_impossible_outcome():
    first, second = (Choice(Lattice(np.array(units), 0), 1.0) for units in ([1, 0], [0, 1]))
    loss, chance = StepPair(first, second).loss()
    assert loss == pytest.approx(1.0)
    assert chance == pytest.approx(1 / (1 + math.exp(-1)))
    assert StepPair(first, Choice(Lattice(np.array([0]), 0), 1.0)).loss()[0] == math.inf
    assert StepPair(first, first).loss()[0] == 0.0
