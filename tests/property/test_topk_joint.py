"""The joint mechanism against its definition: every sequence, and every path of the sampler."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.mechanisms.topk import joint as module
from adumbra.mechanisms.topk.joint import joint_sequence, log_sequences, plan_lattice
from adumbra.privacy.recorded_noise import fixed_grant


def depth_of(counts, sequence, deepest):
    ranked = sorted(counts, reverse=True)
    return min(deepest, max(ranked[r] - counts[j] for r, j in enumerate(sequence)))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(1, 4),
    st.sampled_from([1, 3, 5, 100]),
)
@settings(max_examples=150, deadline=None)
def test_numbers_of_sequences_by_depth(counts, k, deepest):
    k = min(k, len(counts))
    exact = {}
    for sequence in itertools.permutations(range(len(counts)), k):
        depth = depth_of(counts, sequence, deepest)
        exact[depth] = exact.get(depth, 0) + 1
    depths, logs = log_sequences(np.sort(np.array(counts))[::-1], k, deepest)
    assert depths.tolist() == sorted(exact)
    assert np.exp(logs) == pytest.approx([exact[d] for d in sorted(exact)], rel=1e-12)


def test_pieces_of_the_table_join(monkeypatch):
    ranked = np.sort(np.random.default_rng(2).integers(0, 60, 9))[::-1]
    whole = log_sequences(ranked, 3, 1000)
    monkeypatch.setattr(module, "AT_ONCE", 12)
    parts = log_sequences(ranked, 3, 1000)
    assert whole[0].tolist() == parts[0].tolist()
    assert whole[1] == pytest.approx(parts[1], rel=1e-13)


def law_of_the_sampler(counts, k, public, monkeypatch):
    """Every path of `joint_sequence` with its exact probability; choices are scripted."""
    law, script = {}, [[]]
    while script:
        path = script.pop()
        seen = []

        def choose(scores, scale, key, path=path, seen=seen):
            weights = np.exp(scores.to_float() / scale)
            place = len(seen)
            index = path[place] if place < len(path) else 0
            seen.append((index, weights / weights.sum()))
            return index

        monkeypatch.setattr(module, "exponential_choice", choose)
        grant = fixed_grant(0, None, (module.DEPTH, module.RANK, module.COLUMN))
        sequence = tuple(joint_sequence(np.array(counts), k, public, grant).tolist())
        law[sequence] = law.get(sequence, 0.0) + math.prod(p[i] for i, p in seen)
        for place in range(len(path), len(seen)):  # the siblings of choices made by default
            prefix = [i for i, _ in seen[:place]]
            script += [[*prefix, other] for other in range(1, len(seen[place][1]))]
    return law


CASES = [([5, 3, 3, 0], 2), ([2, 2, 2], 3), ([9, 1, 0, 0], 3), ([7], 1), ([4, 0, 2, 1], 1), ([0, 0], 2)]


@pytest.mark.parametrize(("counts", "k"), CASES)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_sampler_has_the_law_of_the_definition(counts, k, epsilon, monkeypatch):
    public = plan_lattice(epsilon, k, len(counts), 1)
    law = law_of_the_sampler(counts, k, public, monkeypatch)
    sequences = list(itertools.permutations(range(len(counts)), k))
    weights = {s: math.exp(-public.slope * depth_of(counts, s, public.deepest)) for s in sequences}
    whole = sum(weights.values())
    assert sorted(law) == sorted(sequences)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    for s in sequences:
        allowed = 4 * 2.0**-public.bits + 1e-12  # two lattice steps for each of the two rounded draws
        assert abs(math.log(law[s]) - math.log(weights[s] / whole)) <= allowed


@pytest.mark.parametrize(("spread", "moves"), [(1, (0, 1)), (2, (-1, 0, 1))])
def test_no_neighbour_loses_more_than_epsilon(spread, moves, monkeypatch):
    epsilon, worst = 1.0, 0.0
    for counts, k in (([5, 3, 3], 2), ([4, 4, 4], 2), ([3, 2, 1], 1)):
        public = plan_lattice(epsilon, k, len(counts), spread)
        before = law_of_the_sampler(counts, k, public, monkeypatch)
        for move in itertools.product(moves, repeat=len(counts)):
            moved = [c + b for c, b in zip(counts, move, strict=True)]
            after = law_of_the_sampler(moved, k, public, monkeypatch)
            assert before.keys() == after.keys()
            worst = max(worst, *(abs(math.log(before[s] / after[s])) for s in before))
    assert 0.4 * epsilon < worst <= epsilon


def test_replacing_under_the_constants_of_adding_is_caught(monkeypatch):
    public = plan_lattice(1.0, 1, 30, 1)
    # the record {1..29} is replaced by {0}: column 0 leads by one instead of trailing by one
    before = law_of_the_sampler([5] + [6] * 29, 1, public, monkeypatch)
    after = law_of_the_sampler([6] + [5] * 29, 1, public, monkeypatch)
    assert max(abs(math.log(before[s] / after[s])) for s in before) > 0.9
    public = plan_lattice(1.0, 1, 30, 2)
    before = law_of_the_sampler([5] + [6] * 29, 1, public, monkeypatch)
    after = law_of_the_sampler([6] + [5] * 29, 1, public, monkeypatch)
    assert max(abs(math.log(before[s] / after[s])) for s in before) <= 1.0


def test_the_public_numbers_leave_room_for_rounding():
    for epsilon in (1e-3, 0.1, 1.0, 50.0):
        for k, width in ((1, 1), (10, 100), (200, 16470)):
            for spread in (1, 2):
                public = plan_lattice(epsilon, k, width, spread)
                assert 2 * spread * public.slope + 8 * 2.0**-public.bits <= epsilon
                assert public.slope * 2 * spread > 0.999 * epsilon
                assert public.slope * public.deepest >= k * math.log(width) + 40
