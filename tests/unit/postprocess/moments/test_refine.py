"""Rows moved to show pair tables: the same bits everywhere, never worse, tables really shown."""

import numpy as np
import pytest

from adumbra.postprocess.moments.bayes import evidence, signal
from adumbra.postprocess.moments.goal import Goal
from adumbra.postprocess.moments.refine import (
    ONE_WAY,
    UNIT,
    Triple,
    lacking_of,
    one_hot,
    pair_tables,
    refine,
)
from adumbra.postprocess.moments.refine_loops import sweep_arrays, sweep_loops
from adumbra.postprocess.moments.tables import class_column, codes_with

SIZES = (3, 2, 5, 4)
STARTS = np.concatenate(([0], np.cumsum(SIZES)))


def independent(rows, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1)


def tied(rows, seed=1):
    """Codes where no normal law would tie them: the first decides the third, crosswise."""
    codes = independent(rows, seed)
    codes[:, 2] = np.array([4, 0, 2])[codes[:, 0]]
    codes[:, 3] = np.where(codes[:, 1] == 1, codes[:, 3] // 2, codes[:, 3])
    return codes


def joint(codes, columns):
    sizes = [SIZES[j] for j in columns]
    places = np.ravel_multi_index([codes[:, j] for j in columns], sizes)
    return np.bincount(places, minlength=int(np.prod(sizes))).astype(float)


def loss(codes, wanted):
    lacking = np.rint(wanted / UNIT) * UNIT - pair_tables(codes, STARTS)
    single = np.diagonal(lacking)
    apart = np.repeat(np.arange(4), SIZES)
    pairs = lacking[apart[:, None] < apart[None]]
    return float((pairs**2).sum() + ONE_WAY * (single**2).sum())


def test_tables_count_every_pair_of_codes():
    codes = independent(9000)
    counted = pair_tables(codes, STARTS)
    assert one_hot(codes, STARTS).sum(axis=1).tolist() == [4.0] * 9000
    assert counted[0, 3] == np.sum((codes[:, 0] == 0) & (codes[:, 1] == 0))
    assert np.diagonal(counted).sum() == 4 * 9000


@pytest.mark.parametrize("seed", range(3))
def test_numba_numpy_and_the_plain_loop_give_the_same_rows(seed):
    rng = np.random.default_rng(seed)
    codes = independent(400, seed)
    wanted = pair_tables(tied(400), STARTS) + rng.normal(scale=3.0, size=(14, 14))
    wanted = np.maximum((wanted + wanted.T) / 2.0, 0.0)
    goal = tied(400)
    triples = [
        Triple((0, 1, 3), joint(goal, (0, 1, 3)) * 1.1),
        Triple((1, 2, 3), joint(goal, (1, 2, 3))),
    ]
    triples = triples if seed else []
    found = [
        refine(codes, STARTS, wanted, np.random.default_rng(5), triples=triples, engine=e)
        for e in ("numba", "numpy")
    ]
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], codes)
    order, firsts = rng.permutation(400), rng.integers(0, 4, 400)
    states = []
    for sweep in (sweep_loops, sweep_arrays):
        lacking = lacking_of(codes, STARTS, wanted, triples)
        state = (codes.copy(), STARTS, lacking, ONE_WAY, order, firsts)
        states.append((sweep(*state), state))
    (one, left), (two, right) = states
    assert one == two > 0
    assert np.array_equal(left[0], right[0])
    assert all(np.array_equal(a, b) for a, b in zip(left[2], right[2], strict=True))
    after = lacking_of(left[0], STARTS, wanted, triples)  # kept up to date while codes moved
    assert all(np.array_equal(a, b) for a, b in zip(left[2], after, strict=True))


def test_every_move_lowers_the_loss_and_a_table_that_can_be_shown_is():
    codes, goal = independent(2000), tied(2000)
    wanted = pair_tables(goal, STARTS)
    moved = refine(codes, STARTS, wanted, np.random.default_rng(0))
    assert loss(moved, wanted) < 0.01 * loss(codes, wanted)
    gap = np.abs(pair_tables(moved, STARTS)[:3, 5:10] - wanted[:3, 5:10]).sum() / 2000
    assert gap < 0.05 < np.abs(pair_tables(codes, STARTS)[:3, 5:10] - wanted[:3, 5:10]).sum() / 2000
    rng = np.random.default_rng(1)
    noisy = np.maximum(wanted + rng.normal(scale=40.0, size=wanted.shape), 0.0)
    noisy = (noisy + noisy.T) / 2.0  # no rows show this
    before = loss(moved, noisy)
    for seed in range(3):
        moved = refine(moved, STARTS, noisy, np.random.default_rng(seed))
        after = loss(moved, noisy)
        assert after <= before
        before = after


def test_rows_that_show_their_tables_stay():
    codes = independent(500)
    assert np.array_equal(
        refine(codes, STARTS, pair_tables(codes, STARTS), np.random.default_rng(0)), codes
    )


def test_where_nothing_was_measured_rows_do_not_follow_chance():
    """Rows of one law differ by chance: they move where a measured table changed the goal alone."""
    rows, many = independent(500), independent(4000, seed=7)
    codes, plain = codes_with(map(class_column, SIZES)), pair_tables(many, STARTS) / 4000
    apart = ~np.equal.outer(*2 * [np.repeat(np.arange(4), SIZES)])
    own = pair_tables(rows, STARTS)
    kept = Goal(codes, codes, plain, plain=plain).wanted_of(rows)
    assert np.array_equal(kept[apart], own[apart])
    assert np.allclose(np.diagonal(kept), np.diagonal(plain) * 500)
    changed = plain.copy()
    changed[:3, 3:5] = 1 / 6
    wanted = Goal(codes, codes, changed, plain=plain).wanted_of(rows)
    assert np.allclose(wanted[:3, 3:5], 500 / 6)
    assert np.array_equal(wanted[5:, :5], own[5:, :5])
    assert np.allclose(Goal(codes, codes, changed).wanted_of(rows), changed * 500)


def test_noise_is_drawn_to_nothing_and_signal_is_kept():
    rng = np.random.default_rng(3)
    expected, noise = np.full((20, 20), 50.0), np.full((20, 20), 9.0)
    alone = 3.0 * rng.normal(size=(20, 20))
    kept = signal(alone, expected, noise, evidence(alone, expected, noise))
    assert np.linalg.norm(kept) < 0.25 * np.linalg.norm(alone)
    truth = 30.0 * rng.normal(size=(20, 20))
    kept = signal(truth + alone, expected, noise, evidence(truth + alone, expected, noise))
    assert np.linalg.norm(kept - truth) < 1.05 * np.linalg.norm(alone)
    assert np.linalg.norm(kept) > 0.9 * np.linalg.norm(truth)


def test_signals_that_grow_with_the_expected_count_are_found_where_they_are():
    rng = np.random.default_rng(4)
    expected = np.array([1.0] * 90 + [2000.0] * 10)
    noise = np.full(100, 25.0)
    truth = rng.normal(size=100) * np.sqrt(expected)
    seen = truth + 5.0 * rng.normal(size=100)
    kept = signal(seen, expected, noise, evidence(seen, expected, noise))
    assert np.linalg.norm(kept - truth) < 0.6 * np.linalg.norm(seen - truth)


def test_a_triple_that_no_pair_tells_of_is_shown():
    """The second column is the parity of two others: all pairs are independent."""
    rng = np.random.default_rng(6)
    goal = independent(3000, 6)
    goal[:, 1] = (goal[:, 2] + goal[:, 3]) % 2
    codes, wanted = independent(3000, 7), pair_tables(independent(3000, 8), STARTS)
    triple = Triple((1, 2, 3), joint(goal, (1, 2, 3)))

    def parity(rows):
        return float(np.mean(rows[:, 1] == (rows[:, 2] + rows[:, 3]) % 2))

    alone = refine(codes, STARTS, wanted, rng)
    assert parity(alone) < 0.6
    both = refine(
        refine(codes, STARTS, wanted, rng, triples=[triple]), STARTS, wanted, rng, triples=[triple]
    )
    assert parity(both) > 0.85


SCORES = (np.array([-1.25, 0.0, 1.25]), None, np.array([-1.5, -0.75, 0.0, 0.75, 1.5]), None)


def moments_of(codes, scores=SCORES):
    """Sums of products of scores, and of scores over each code of the other columns."""
    numbers = {j: own[codes[:, j]] for j, own in enumerate(scores) if own is not None}
    encoded = [
        numbers[j][:, None] if j in numbers else np.eye(SIZES[j])[codes[:, j]] for j in range(len(SIZES))
    ]
    return np.concatenate(
        [
            (values @ other).ravel()
            for j, values in numbers.items()
            for k, other in enumerate(encoded)
            if k != j
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_kept_moments_give_the_same_rows_in_every_form(seed):
    codes, wanted = independent(300, seed), pair_tables(tied(300, seed + 10), STARTS)
    moved = [
        refine(codes, STARTS, wanted, np.random.default_rng(5), scores=SCORES, engine=e)
        for e in ("numba", "numpy")
    ]
    np.testing.assert_array_equal(*moved)
    order, firsts = np.random.default_rng(6).permutation(300), np.zeros(300, np.int64)
    left, held = [], []
    for sweep in (sweep_loops, sweep_arrays):
        lacking, rows = lacking_of(codes, STARTS, wanted, (), SCORES), codes.copy()
        sweep(rows, STARTS, lacking, ONE_WAY, order, firsts)
        left.append(rows)
        held.append(lacking.moments)
    np.testing.assert_array_equal(*left)
    np.testing.assert_array_equal(*held)
    number, other = (
        0,
        slice(int(STARTS[1]), int(STARTS[2])),
    )  # sums of the first over codes of the second
    own = SCORES[number]
    sums = [np.bincount(c[:, 1], own[c[:, 0]], minlength=2) for c in (codes, left[0])]
    np.testing.assert_array_equal(held[0][number, other], sums[0] - sums[1])
    products = [float(own[c[:, 0]] @ SCORES[2][c[:, 2]]) for c in (codes, left[0])]
    assert held[0][0, STARTS[2]] == held[0][2, STARTS[0]] == products[0] - products[1]


def test_moments_of_rows_are_kept_while_they_move():
    """Tables that tie two columns crosswise would bend every product; kept, they hardly change."""
    codes, wanted = tied(2000), pair_tables(independent(2000, 3), STARTS)
    first = moments_of(codes)
    loose = moments_of(refine(codes, STARTS, wanted, np.random.default_rng(0)))
    kept = moments_of(refine(codes, STARTS, wanted, np.random.default_rng(0), scores=SCORES))
    assert np.abs(kept - first).max() < 0.25 * np.abs(loose - first).max()


def test_scores_beyond_reach_are_cut():
    far = lacking_of(
        independent(9), STARTS, np.zeros((14, 14)), (), (np.array([0.0, 1.03, 99.0]), *SCORES[1:])
    )
    assert far.scores[:3].tolist() == [0.0, 1.0, 8.0]
    assert far.units.tolist()[3:5] == [1.0, 1.0]
