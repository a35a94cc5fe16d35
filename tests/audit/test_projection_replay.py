"""Replay releases on worst-case neighbours: the exact values never differ by more than was paid for.

Every family, both units, tables and item sets. With the noise of the first table replayed, the outputs
on both tables must agree (nothing private goes around the noise). The same harness must catch mechanisms
that are planted wrong.
"""

import numpy as np
import pytest

from adumbra import workflow
from adumbra.data.bounds import BoundedElements, bound_rows
from adumbra.mechanisms.base import Calibrated
from adumbra.mechanisms.projection import plan as projections
from adumbra.mechanisms.projection import release as drawn
from adumbra.mechanisms.projection import rows as projected
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from support.projection import configs, items, mixed, numbers, replayed_pairs

D, K = 8, 4


def paid(config, schema, pairs):
    """The sensitivity in L2 (Gaussian) or L1 (Laplace) that the declared scale pays for."""
    guarantee = workflow.plan(config, schema).guarantee
    scale = float(pairs[0].first.scale)
    return scale * (guarantee.mu if guarantee.mu is not None else guarantee.pure_epsilon)


def moved(config, pair):
    return pair.l2() if isinstance(config, DPProConfig) else pair.l1()


def worst_share(config, schema, neighbours):
    """The largest change over these neighbours, as a share of what was paid for."""
    worst = 0.0
    for first, second in neighbours:
        pairs, same = replayed_pairs(first, second, schema, config)
        assert same, "the outputs differ although the noise was replayed"
        assert len(pairs) == 1
        worst = max(worst, moved(config, pairs[0]) / paid(config, schema, pairs))
    return worst


def element_neighbours(rng):
    """Every cell from one end of its bounds to the other."""
    base = rng.uniform(-1, 3, size=(3, D))
    for column in range(D):
        first, second = base.copy(), base.copy()
        first[1, column], second[1, column] = -1.0, 3.0
        yield first, second


def row_neighbours(rng):
    """Opposite corners of the box, and rows that no schema would expect."""
    base = rng.uniform(-1, 3, size=(3, D))
    for trial in range(24):
        first, second = base.copy(), base.copy()
        corner = rng.choice([-1.0, 3.0], size=D)
        first[1], second[1] = corner, 2.0 - corner
        if trial % 4 == 3:
            second[1] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308], size=D)
        yield first, second


@pytest.mark.parametrize(
    "config", configs("element", n_components=K), ids=lambda c: f"{type(c).__name__}-{c.family}"
)
def test_one_cell_moves_at_most_what_was_paid_and_reaches_it(config):
    share = worst_share(config, numbers(D, "element"), element_neighbours(np.random.default_rng(0)))
    assert 0.99 <= share <= 1.0


@pytest.mark.parametrize(
    "config", configs("row", n_components=K), ids=lambda c: f"{type(c).__name__}-{c.family}"
)
def test_one_row_moves_at_most_what_was_paid(config):
    share = worst_share(config, numbers(D), row_neighbours(np.random.default_rng(1)))
    assert 0.4 <= share <= 1.0


def test_opposite_rows_reach_the_clip_radius_in_l2():
    """A row along the longest direction of R and its opposite: both end on the sphere."""
    config, schema = DPProConfig(n_components=K, epsilon=1.0, delta=1e-6, row_norm=0.4), numbers(D)
    matrix = projections.public_projection(config, projected.row_space(schema, 0.4)).to_float()
    direction = np.linalg.svd(matrix)[0][:, 0]
    row = np.clip(direction / np.abs(direction).max(), -1, 1) * 2.0
    neighbours = [(np.array([1.0 + row]), np.array([1.0 - row]))]
    assert 0.99 <= worst_share(config, schema, neighbours) <= 1.0


@pytest.mark.parametrize(
    "config", configs("element", n_components=K)[:1] + configs("element", n_components=K)[6:7]
)
def test_one_category_moves_at_most_what_was_paid(config):
    schema = mixed("element")
    base = np.array([[0.5, 1.0, 0.0, 1.0]])
    neighbours = []
    for before in range(4):
        for after in range(4):
            first, second = base.copy(), base.copy()
            first[0, 1], second[0, 1] = before, after
            neighbours.append((first, second))
    for column, low, high in ((0, 0.0, 1.0), (2, -1.0, 1.0), (3, 0.0, 1.0)):
        first, second = base.copy(), base.copy()
        first[0, column], second[0, column] = low, high
        neighbours.append((first, second))
    assert worst_share(config, schema, neighbours) <= 1.0


@pytest.mark.parametrize("unit", ["row", "element"])
@pytest.mark.parametrize("make", [DPProConfig, JLLaplaceConfig])
def test_item_sets_move_at_most_what_was_paid(unit, make):
    rng = np.random.default_rng(2)
    budget = {"epsilon": 1.0, "delta": 1e-6} if make is DPProConfig else {"epsilon": 1.0}
    config = make(n_components=K, row_norm=2.0 if unit == "row" else None, **budget)
    neighbours = []
    for _ in range(40):
        first = rng.random((3, 12)) < rng.random()
        second = first.copy()
        if unit == "row":
            second[1] = rng.random(12) < rng.random()
        else:
            second[1, rng.integers(12)] ^= True
        neighbours.append((first, second))
    share = worst_share(config, items(12, unit), neighbours)
    assert (0.3 if unit == "row" else 0.99) <= share <= 1.0


@pytest.mark.parametrize(("make", "least"), [(DPProConfig, 1.4), (JLLaplaceConfig, 1.99)])
def test_an_exchange_of_items_is_two_elements(make, least):
    """Why no card promises it: one item for another moves more than was paid, and up to twice of it."""
    budget = {"epsilon": 1.0, "delta": 1e-6} if make is DPProConfig else {"epsilon": 1.0}
    neighbours = []
    for before in range(6):
        for after in range(6, 12):
            first, second = np.zeros((3, 12), bool), np.zeros((3, 12), bool)
            first[1, before] = second[1, after] = True
            neighbours.append((first, second))
    share = worst_share(make(n_components=K, **budget), items(12, "element"), neighbours)
    assert least <= share <= 2.0


# Planted wrong: each must be caught by the harness above.


def half(calibrate):
    def planted(*arguments, **keywords):
        right = calibrate(*arguments, **keywords)
        return Calibrated(scale=right.scale / 2, sensitivity=right.sensitivity, exponent=right.exponent)

    return planted


def caught(config, schema, neighbours):
    return worst_share(config, schema, neighbours) > 1.0


def test_half_the_noise_is_caught(monkeypatch):
    rng = np.random.default_rng(3)
    monkeypatch.setattr(projections, "calibrate_gaussian", half(projections.calibrate_gaussian))
    monkeypatch.setattr(projections, "calibrate_laplace", half(projections.calibrate_laplace))
    for config in (configs("element", n_components=K)[0], configs("element", n_components=K)[6]):
        assert caught(config, numbers(D, "element"), element_neighbours(rng))


def test_a_forgotten_clip_is_caught(monkeypatch):
    monkeypatch.setattr(
        drawn,
        "clip_projected",
        lambda exact, exponent, radius: drawn.exact_lattice(exact, projected.clip_exponent(radius)),
    )
    config, schema = (
        DPProConfig(n_components=K, epsilon=1.0, delta=1e-6, row_norm=0.4, family="gaussian"),
        numbers(D),
    )
    matrix = projections.public_projection(config, projected.row_space(schema, 0.4)).to_float()
    direction = np.linalg.svd(matrix)[0][:, 0]
    row = direction / np.abs(direction).max() * 2.0
    assert caught(config, schema, [(np.array([1.0 + row]), np.array([1.0 - row]))])


def test_an_average_row_norm_instead_of_the_largest_is_caught(monkeypatch):
    config, schema = (
        DPProConfig(n_components=K, epsilon=1.0, delta=1e-6, family="gaussian"),
        numbers(D, "element"),
    )

    def average(matrix, **_):
        lengths = np.linalg.norm(matrix.to_float(), axis=1)
        return type("S", (), {"l1": float(lengths.mean()), "l2": float(lengths.mean())})()

    monkeypatch.setattr(projected, "element_sensitivity", average)
    assert caught(config, schema, element_neighbours(np.random.default_rng(4)))


def test_shortening_rows_under_the_element_unit_is_caught(monkeypatch):
    """The reason for the refusal: one cell then moves all of its row, along a long direction of R."""
    config, schema = DPProConfig(n_components=K, epsilon=1.0, delta=1e-6), numbers(400, "element")
    matrix = projections.public_projection(config, projected.row_space(schema, None)).to_float()
    matrix[0] = 0.0
    row = np.linalg.svd(matrix, full_matrices=False)[0][:, 0] * 0.5
    other = row.copy()
    other[0] = 0.5
    neighbours = [(1.0 + 4.0 * row[None], 1.0 + 4.0 * other[None])]
    assert not caught(config, schema, neighbours)

    def shortened(x):
        return BoundedElements(units=np.rint(bound_rows(x, 0.5).units / 2))

    monkeypatch.setattr(projected, "bound_elements", shortened)
    assert caught(config, schema, neighbours)
