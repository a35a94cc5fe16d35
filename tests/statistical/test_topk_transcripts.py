"""What the code draws is what the proofs sum: transcripts of comparisons, and sequences of `joint`.

Each test accepts the right law and rejects a smaller and a larger epsilon. False alarms: below 1e-9
each (chi-square against exact probabilities).
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from adumbra.mechanisms.topk.joint import COLUMN, DEPTH, RANK, joint_sequence, plan_lattice
from adumbra.mechanisms.topk.svt import blocks, drawing, label_columns, sparse
from adumbra.privacy.recorded_noise import fixed_grant
from support.topk import common_unit, float_draw, full, probability, transcripts

FALSE_ALARM = 1e-9
VALUES, THRESHOLD = [5, 2, 4, 3], 4
SCHEDULES = {
    "sparse": lambda e: sparse(e, 2, threshold_share=Fraction(1, 4)),
    "blocks": lambda e: blocks(e, 2),
}


def exact_law(make, epsilon, factor=1.0):
    """Transcript probabilities when e means exp(-e epsilon / 2) a lattice step; floats suffice here."""
    leaves = list(transcripts(make(Fraction(1)), len(VALUES)))
    unit = common_unit(leaves)
    s = Fraction(math.exp(-epsilon * factor / 2 / unit)).limit_denominator(10**6)
    return {leaf.labels: float(probability(leaf, VALUES, THRESHOLD, unit, s)) for leaf in leaves}


def rejects(observed, law, runs):
    """Whether the counts contradict the law; rare outcomes are pooled."""
    outcomes = sorted(law, key=law.get, reverse=True)
    expected = np.array([law[o] for o in outcomes]) * runs
    counts = np.array([observed.get(o, 0) for o in outcomes])
    cut = max(1, int((expected >= 8).sum()))
    expected, counts = (np.r_[x[: cut - 1], x[cut - 1 :].sum()] for x in (expected, counts))
    expected *= counts.sum() / expected.sum()
    return chisquare(counts, expected).pvalue < FALSE_ALARM


@pytest.mark.parametrize("name", SCHEDULES)
def test_labels_follow_the_exact_law(name):
    make, epsilon, runs = SCHEDULES[name], 2.0, full(12_000, 300_000)
    draw = float_draw(np.random.default_rng(11))
    observed = {}
    for _ in range(runs):
        labels = label_columns(
            np.array(VALUES), THRESHOLD, make(Fraction(epsilon)), thresholds=draw, columns=draw
        )
        key = tuple(labels.tolist())
        observed[key] = observed.get(key, 0) + 1
    assert sum(observed.values()) == runs
    assert set(observed) <= set(exact_law(make, epsilon))
    assert not rejects(observed, exact_law(make, epsilon), runs)
    assert rejects(observed, exact_law(make, epsilon, 0.7), runs)
    assert rejects(observed, exact_law(make, epsilon, 1.3), runs)


def test_the_real_noise_gives_the_same_law():
    runs, epsilon = full(1_000, 20_000), 3.0
    observed = {}
    for seed in range(runs):
        grant = fixed_grant(seed, None, ("t", "c"))
        labels = label_columns(
            np.array(VALUES),
            THRESHOLD,
            sparse(Fraction(epsilon), 2, threshold_share=Fraction(1, 4)),
            thresholds=drawing(grant, "t"),
            columns=drawing(grant, "c"),
        )
        key = tuple(labels.tolist())
        observed[key] = observed.get(key, 0) + 1
    assert not rejects(observed, exact_law(SCHEDULES["sparse"], epsilon), runs)
    assert rejects(observed, exact_law(SCHEDULES["sparse"], epsilon, 0.4), runs)
    assert rejects(observed, exact_law(SCHEDULES["sparse"], epsilon, 2.5), runs)


def test_joint_draws_its_law():
    counts, k, epsilon, runs = [6, 4, 4, 1], 2, 1.5, full(1_000, 20_000)
    public = plan_lattice(epsilon, k, len(counts), 1)
    ranked = sorted(counts, reverse=True)

    def law(factor):
        weights = {}
        for s in itertools.permutations(range(4), k):
            depth = max(ranked[r] - counts[j] for r, j in enumerate(s))
            weights[s] = math.exp(-factor * public.slope * depth)
        whole = sum(weights.values())
        return {s: w / whole for s, w in weights.items()}

    observed = {}
    for seed in range(runs):
        grant = fixed_grant(seed, None, (DEPTH, RANK, COLUMN))
        key = tuple(joint_sequence(np.array(counts), k, public, grant).tolist())
        observed[key] = observed.get(key, 0) + 1
    assert not rejects(observed, law(1.0), runs)
    assert rejects(observed, law(0.5), runs)
    assert rejects(observed, law(1.8), runs)
