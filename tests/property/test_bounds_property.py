"""The integer ball holds for every float there is, and rows never mix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adumbra.data.bounds import FEW, bound_elements, bound_rows, clip_projected
from adumbra.numerics import row_squares

anything = st.floats(allow_nan=True, allow_infinity=True, width=64)
tables = st.tuples(st.integers(1, 5), st.integers(1, 40)).flatmap(
    lambda s: arrays(np.float64, s, elements=anything)
)
norms = st.floats(1e-6, 1e6)


@settings(max_examples=300, deadline=None)
@given(tables, norms)
def test_any_floats_end_inside_the_ball(x, norm):
    with np.errstate(all="ignore"):
        rows = bound_rows(x, norm)
    assert all(sum(int(u) ** 2 for u in row) <= rows.limit for row in rows.units)


@settings(max_examples=200, deadline=None)
@given(tables, norms, st.data())
def test_a_row_depends_on_itself_alone(x, norm, data):
    other = data.draw(arrays(np.float64, x.shape[1], elements=anything))
    changed = x.copy()
    changed[-1] = other
    with np.errstate(all="ignore"):
        before, after = bound_rows(x, norm), bound_rows(changed, norm)
        cells, cells_after = bound_elements(x), bound_elements(changed)
    assert np.array_equal(before.units[:-1], after.units[:-1])
    assert np.array_equal(cells.units[:-1], cells_after.units[:-1])
    assert np.abs(cells.units).max() <= cells.half_width


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 20)).flatmap(
        lambda s: arrays(np.float64, s, elements=st.integers(-(2**53), 2**53).map(float))
    ),
    st.floats(1e-3, 1e3),
)
def test_clipping_any_floats_ends_inside_the_ball(exact, radius):
    value = clip_projected(exact, -35, radius)
    square = max(sum(int(u) ** 2 for u in row) for row in value.units)
    assert square * 4.0**value.exponent <= radius**2 * (1 + 1e-15)


@pytest.mark.parametrize("width", [1, 2, 4, 30, 100])
def test_rows_close_to_the_sphere_do_not_hear_their_neighbours(width):
    """Found in review: rows between the aim and the safe radius moved when any other row was long."""
    rng = np.random.default_rng(width)
    rows = rng.standard_normal((400, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= 1 - np.linspace(0, 8, 400)[:, None] / 2**15  # from the sphere to eight units inside it
    alone = bound_rows(rows, 1.0).units
    for other in (np.full(width, 9.0), np.full(width, np.nan), np.zeros(width)):
        with np.errstate(all="ignore"):
            beside = bound_rows(np.vstack([rows, other]), 1.0).units
        assert np.array_equal(beside[:-1], alone)
    singly = np.vstack([bound_rows(row[None, :], 1.0).units for row in rows])
    assert np.array_equal(singly, alone)


@pytest.mark.parametrize("width", [3, 50])
def test_how_many_rows_are_long_changes_no_row(width):
    """A few long rows are taken out and checked apart; with many, all rows are checked."""
    rng = np.random.default_rng(width)
    rows = rng.standard_normal((400, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.linspace(0.2, 1.0002, 400)[:, None]
    short, long = np.full((400 * FEW, width), 1e-3), np.full((400, width), 9.0)
    results = [bound_rows(np.vstack([rows, company]), 1.0).units[:400] for company in (short, long)]
    assert np.array_equal(*results)
    assert np.array_equal(results[0][:10], np.rint(rows[:10] * 2.0**15))


@pytest.mark.parametrize("width", [3, 8, 17, 100, 300])
def test_a_float_norm_does_not_depend_on_layout_or_company(width):
    """Found in review: einsum adds in another order when a block has one row."""
    rows = np.random.default_rng(width).standard_normal((50, width))
    expected = row_squares(rows)
    assert np.array_equal(row_squares(np.asfortranarray(rows)), expected)
    for i in range(50):
        assert row_squares(rows[i : i + 1])[0] == expected[i]
        assert row_squares(np.asfortranarray(rows[i : i + 2]))[0] == expected[i]
