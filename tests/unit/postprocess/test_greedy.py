"""The greedy sampler: moments followed, quotas kept, one set of rows whatever runs it."""

import sys
import types

import numpy as np
import pytest

from adumbra.compiled import machine_code
from adumbra.errors import InvalidInput
from adumbra.postprocess import greedy, greedy_arrays, greedy_loops
from adumbra.postprocess.greedy import ONE, Targets, class_orders, greedy_rows

LOSSES = ("squared", "absolute")


def targets(seed=0, n=4000, noise=0.0):
    """Moments of a mixed table of 6 numbers and groups of 5, 3 and 2, in three classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    numbers = np.clip(
        rng.normal(0.1 * y[:, None] - 0.2, 0.12, (n, 6)) + 0.1 * rng.normal(size=(n, 1)), -0.5, 0.5
    )
    groups, parts, width = [], [numbers], 6
    for levels in (5, 3, 2):
        codes = np.clip(rng.integers(0, levels, n) + (numbers[:, 0] > 0), 0, levels - 1)
        parts.append(np.eye(levels)[codes])
        groups.append(slice(width, width + levels))
        width += levels
    x = np.concatenate(parts, axis=1)
    means = np.array([x[y == c].mean(axis=0) for c in range(3)])
    second = x.T @ x / n
    wobble = np.triu(rng.normal(scale=noise, size=second.shape)) if noise else np.zeros_like(second)
    shares = np.bincount(y) / n
    return Targets(shares, means, second + wobble + wobble.T, tuple(range(6)), tuple(groups))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_numba_numpy_and_the_plain_loop_give_the_same_rows(loss, noise):
    goal = targets(noise=noise)
    compiled, labels = greedy_rows(goal, 300, loss=loss, engine="numba")
    arrays, _ = greedy_rows(goal, 300, loss=loss, engine="numpy")
    assert np.array_equal(compiled, arrays)
    loop = greedy_loops.sample_squared if loss == "squared" else greedy_loops.sample_absolute
    scale = 1 if loss == "squared" else ONE
    means = np.rint(goal.means * ONE) / (ONE if loss == "squared" else 1)
    second = np.rint(goal.second * ONE**2) / (ONE**2 if loss == "squared" else 1)
    kind = np.float64 if loss == "squared" else np.int64
    low, high = np.full(16, -0.5), np.full(16, 0.5)
    low[6:], high[6:] = 0.0, 1.0
    start = np.clip(means / scale, low, high) * scale
    extra = (greedy.SUM_WEIGHT, greedy_loops.STEPS) if loss == "squared" else ()
    edges = np.array([[g.start, g.stop] for g in goal.groups]).T
    width, classes = means.shape[1], len(means)
    plain = loop(
        labels[:40],
        np.zeros((width, width), kind),
        np.zeros((classes, width), kind),
        *(a.astype(kind) for a in (means, second, start)),
        np.arange(6),
        edges[0].copy(),
        edges[1].copy(),
        ONE,
        *extra,
    )
    assert np.array_equal(plain / scale, arrays[:40])


@pytest.mark.parametrize(
    ("loss", "mean_error", "second_error"), [("squared", 0.002, 0.0005), ("absolute", 0.002, 0.0015)]
)
def test_moments_are_followed(loss, mean_error, second_error):
    goal = targets()
    rows, labels = greedy_rows(goal, 1500, loss=loss)
    means = np.array([rows[labels == c].mean(axis=0) for c in range(3)])
    assert np.abs(means - goal.means).mean() < mean_error
    assert np.abs(rows.T @ rows / len(rows) - goal.second).mean() < second_error
    for group in goal.groups:
        assert np.array_equal(np.sort(rows[:, group], axis=1)[:, -2:], np.tile([0.0, 1.0], (1500, 1)))
    assert np.abs(rows[:, :6]).max() <= 0.5


@pytest.mark.parametrize("loss", LOSSES)
def test_moments_beyond_the_box_drive_numbers_to_its_ends(loss):
    """Targets that no row reaches (noise makes such): every form takes the same way out."""
    goal = Targets(np.array([1.0]), np.array([[0.1, -0.3]]), np.diag([4.0, 3.0]), (0, 1), ())
    rows, labels = greedy_rows(goal, 30, loss=loss, engine="numpy")
    assert np.array_equal(rows, greedy_rows(goal, 30, loss=loss, engine="numba")[0])
    if loss == "squared":  # absolute errors stay where the means are, however large the squares are
        assert np.mean(np.abs(rows) == 0.5) > 0.9
        real = (goal.means, goal.second, goal.means)
        none, empty = np.array([], np.int64), (np.zeros((2, 2)), np.zeros((1, 2)))
        rest = (np.arange(2), none, none, ONE, greedy.SUM_WEIGHT, greedy_loops.STEPS)
        real = tuple(np.rint(array * ONE) / ONE for array in real)
        assert np.array_equal(rows, greedy_loops.sample_squared(labels, *empty, *real, *rest))


def test_squared_errors_converge():
    goal = targets()
    errors = []
    for n in (200, 2000):
        rows, _ = greedy_rows(goal, n)
        errors.append(np.abs(rows.T @ rows / n - goal.second).mean())
    assert errors[1] < errors[0] / 4


def test_classes_come_by_quota():
    order = np.concatenate([*class_orders(np.array([0.5, 0.3, 0.2]), [300, 1, 699])])
    for n in (1, 7, 100, 1000):
        taken = np.bincount(order[:n], minlength=3)
        assert np.abs(taken - n * np.array([0.5, 0.3, 0.2])).max() < 1.5
    assert np.array_equal(next(class_orders(np.array([3.0]), [4])), np.zeros(4))


def test_numbers_alone_and_categories_alone():
    only = Targets(np.array([1.0]), np.zeros((1, 3)), np.eye(3) / 16, (0, 1, 2), ())
    rows, _ = greedy_rows(only, 400)
    assert np.abs(rows.T @ rows / 400 - np.eye(3) / 16).max() < 0.01
    levels = Targets(
        np.array([1.0]), np.array([[0.25, 0.75]]), np.diag([0.25, 0.75]), (), (slice(0, 2),)
    )
    assert greedy_rows(levels, 400)[0].mean(axis=0) == pytest.approx([0.25, 0.75], abs=0.01)


def test_best_number_is_the_least_on_a_fine_grid():
    rng, grid = np.random.default_rng(0), np.linspace(-0.5, 0.5, 20001)
    for bend, pull in rng.normal(scale=[1.0, 0.3], size=(300, 2)):
        cost = grid**4 / 4 + bend * grid**2 / 2 - pull * grid
        z = greedy_loops.best_number(bend, pull, greedy_loops.STEPS)
        assert z**4 / 4 + bend * z**2 / 2 - pull * z <= cost.min() + 1e-8


@pytest.mark.parametrize("count", [1, 2, 40, 64, 65, 200])
def test_values_are_ranked_few_or_many(count):
    values = np.random.default_rng(count).integers(-20, 20, 220) / 7.0
    order = np.empty(220, np.int64)
    greedy_loops.rank(values, count, order)
    assert values[order[:count]].tolist() == sorted(values[:count].tolist())
    assert sorted(order[:count].tolist()) == list(range(count))


def test_the_first_proposal_is_the_weighted_median():
    """The paper's step: with the square as |mean z - c| the least of sum |a z - b| is proposal 0."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        slopes = rng.integers(1, 100, 9) * rng.choice([-1, 1], 9)
        goals, square, mean = (
            rng.integers(-5000, 5000, 9),
            int(rng.integers(0, 5000)),
            int(rng.integers(-50, 50)),
        )
        z = greedy_arrays.proposals(slopes, goals, square, mean)
        every = np.append(goals / slopes, square / mean if mean else 0.0)

        points = np.append(z[0], every)
        cost = np.abs(slopes * points[:, None] - goals).sum(axis=1) + np.abs(mean * points - square)
        assert cost[0] <= cost.min() * (1 + 1e-12)
        assert z[3] == -z[4] == np.rint(np.sqrt(square))


def test_refusals():
    with pytest.raises(InvalidInput, match="rows=0"):
        greedy_rows(targets(), 0)
    with pytest.raises(InvalidInput, match="ask for less"):
        greedy_rows(targets(), 2**31)


def test_the_form_that_runs(monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    assert greedy.sampler_engine() == "numpy"
    monkeypatch.delenv("ADUMBRA_NOISE")
    assert greedy.sampler_engine() == "numba"


def test_compiling_without_a_place_for_the_cache(monkeypatch):
    asked = []

    def njit(**options):
        asked.append(options)
        if "cache" in options:
            raise RuntimeError("cannot cache")
        return lambda function: function

    registered = []
    extending = types.SimpleNamespace(register_jitable=registered.append)
    monkeypatch.setitem(sys.modules, "numba", types.SimpleNamespace(njit=njit, extending=extending))
    monkeypatch.setitem(sys.modules, "numba.extending", extending)
    assert machine_code(len, greedy_loops.SHARED) is len
    assert asked == [{"nogil": True, "cache": True}, {"nogil": True}]
    assert tuple(registered) == greedy_loops.SHARED
