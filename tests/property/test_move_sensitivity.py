"""One cell, or one row in L2, that moves by at most the amount: the product moves no further."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.sources import Batch
from adumbra.matrices import public_matrix
from adumbra.mechanisms.projection.forecast import rescaled
from adumbra.mechanisms.projection.rows import EXACT_EXPONENT, row_space, unclipped_sensitivity
from adumbra.postprocess.distances import gaussian_law
from adumbra.relations import Moved, Moves, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.statistics.move_sensitivity import ENUMERATED, cell_widths

FAMILIES = ("sparse", "gaussian", "haar", "sphere", "rademacher")


def table(widths, what, amount, lower=-1.0):
    unit = Unit.ELEMENT if what is Moved.CELL else Unit.ROW
    columns = tuple(
        Column(name=f"x{j}", kind=Kind.NUMBER, lower=lower, upper=lower + width)
        for j, width in enumerate(widths)
    )
    return Schema(columns=columns, unit=unit, neighbours=Moves(what, amount))


def moved(space, matrix, first, second):
    """L1 and L2 of the change of the exact product, as real numbers."""
    gap = space.exact(Batch(0, first[None]), matrix) - space.exact(Batch(0, second[None]), matrix)
    gap = gap[0] * 2.0**EXACT_EXPONENT
    return np.abs(gap).sum(), np.linalg.norm(gap)


@settings(max_examples=150, deadline=None)
@given(
    widths=st.lists(st.sampled_from([1e-3, 0.5, 1.0, 3.0, 16.0, 1e5]), min_size=2, max_size=9),
    what=st.sampled_from(list(Moved)),
    amount=st.sampled_from([1e-9, 1e-4, 0.1, 1.0, 7.5, 1e6]),
    lower=st.sampled_from([-1.0, 0.0, 1e6, -0.1]),
    family=st.sampled_from(FAMILIES),
    seed=st.integers(0, 2**31),
)
def test_no_cell_or_row_that_moves_by_the_amount_moves_the_product_further(
    widths, what, amount, lower, family, seed
):
    schema = table(widths, what, amount, lower)
    space, d = row_space(schema, None), len(widths)
    k = min(3, d) if family == "haar" else 3
    matrix = public_matrix(family, d, k, matrix_seed=seed % 7)
    bound = unclipped_sensitivity(space, matrix)
    rng = np.random.default_rng(seed)
    low, high = np.full(d, lower), np.array([one.upper for one in schema.columns])
    half = (high - low) * 2.0**-16 * rng.integers(0, 2**16, d)  # on steps of the lattice, or between
    for trial in range(20):
        first = np.clip(low + half if trial % 2 else rng.uniform(low, high), low, high)
        way = np.zeros(d)
        if what is Moved.CELL:
            way[rng.integers(d)] = rng.choice([-1.0, 1.0])
        else:
            way = rng.standard_normal(d) if trial % 3 else matrix.to_float() @ rng.choice([-1.0, 1.0], k)
            way /= max(np.linalg.norm(way), 1e-300)
        second = np.clip(first + way * amount * rng.choice([1.0, 0.5, 1e-3]), low, high)
        gap = np.abs(second - first)
        if (gap.max() if what is Moved.CELL else np.linalg.norm(gap)) > amount:
            continue  # rounded past it
        l1, l2 = moved(space, matrix, first, second)
        assert l1 <= bound.l1
        assert l2 <= bound.l2


@pytest.mark.parametrize("what", list(Moved))
@pytest.mark.parametrize("family", ["sparse", "haar", "gaussian"])
def test_the_worst_move_nearly_reaches_the_bound(what, family):
    """Within 0.3 %: the bound is not loose, so noise is not wasted."""
    widths, amount, k = [2.0, 2.0, 1.0, 4.0, 8.0], 0.25, 3
    space = row_space(table(widths, what, amount), None)
    matrix = public_matrix(family, 5, k, matrix_seed=1)
    bound = unclipped_sensitivity(space, matrix)
    scaled = matrix.to_float() / np.array(widths)[:, None]
    signs = np.array([[a, b, 1.0] for a in (-1, 1) for b in (-1, 1)])
    ways = [*np.eye(5)]
    if what is Moved.ROW:
        ways = [np.linalg.svd(scaled)[0][:, 0], *(scaled @ signs.T).T]
    middle = np.array(widths) / 2 - 1.0
    seen = [
        moved(space, matrix, middle, middle + amount * (1 - 1e-12) * way / np.linalg.norm(way))
        for way in ways
    ]
    assert 0.997 * bound.l1 <= max(l1 for l1, _ in seen) <= bound.l1
    assert 0.997 * bound.l2 <= max(l2 for _, l2 in seen) <= bound.l2


def test_two_values_a_hair_apart_may_be_a_whole_step_apart():
    """Why the rounding is in the bound: half a step and a little more are rounded apart."""
    amount = 1e-9
    space = row_space(table([1.0], Moved.CELL, amount, lower=-0.5), None)
    matrix = public_matrix("identity", 1, 1, matrix_seed=0)
    first, second = np.array([2.0**-16 - 4e-10]), np.array([2.0**-16 + 4e-10])
    l1, _ = moved(space, matrix, first, second)
    assert l1 == 2.0**-15
    assert unclipped_sensitivity(space, matrix).l1 == l1
    assert l1 > 1000 * amount


def test_widths_are_rounded_up_to_steps_and_end_at_the_whole_range():
    assert list(cell_widths(np.array([1.0, 16.0, 1e9]), 1.0) * 2**15) == [2**15, 2049, 1]


@pytest.mark.parametrize("amount", [0.1, 2.0])
def test_many_components_are_bounded_without_trying_all_signs(amount):
    """L1 from L2 where there are too many sign vectors: never below what a row moves."""
    rng, k = np.random.default_rng(3), ENUMERATED + 4
    schema = table([1.0, 2.0, 0.5], Moved.ROW, amount)
    space, matrix = row_space(schema, None), public_matrix("gaussian", 3, k, matrix_seed=1)
    bound = unclipped_sensitivity(space, matrix)
    for _ in range(50):
        first = rng.uniform(-1.0, [0.0, 1.0, -0.5])
        step = rng.normal(size=3)
        second = np.clip(first + amount * step / np.linalg.norm(step), -1.0, [0.0, 1.0, -0.5])
        l1, l2 = moved(space, matrix, first, second)
        assert l1 <= bound.l1
        assert l2 <= bound.l2


def test_an_identity_forecasts_the_same_noise_for_rows_that_move():
    """It stretches no direction, whatever k the forecast is for; other families do."""
    space, law = row_space(table([1.0] * 4, Moved.ROW, 0.5), None), gaussian_law(2.0, 0.25)
    assert rescaled(law, public_matrix("identity", 4, 4, matrix_seed=0), space, 2) == law
    other = rescaled(law, public_matrix("gaussian", 4, 4, matrix_seed=0), space, 1)
    assert other.variance > law.variance
