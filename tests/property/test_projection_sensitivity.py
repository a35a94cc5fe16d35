"""Attack every sensitivity of x R: hostile changes never exceed it, the worst ones reach it.

Exact values must be reached to 99 %; for bounds named `_upper` the reached share is printed (see -s).
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.matrices import public_matrix
from adumbra.statistics import projection_sensitivity as pj

FAMILIES = ["gaussian", "sphere", "rademacher", "sparse", "haar"]
SIZES = [(12, 4), (60, 10), (9, 9)]


def l1(v, values):
    return float(np.abs(v @ values).sum())


def l2(v, values):
    return float(np.linalg.norm(v @ values))


def hostile(rng, d):
    """Dense, sparse, signed and nearly aligned directions."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.standard_normal(d)
    if kind == 1:
        v = np.zeros(d)
        v[rng.integers(d)] = rng.choice([-1.0, 1.0])
        return v
    if kind == 2:
        return rng.choice([-1.0, 1.0], size=d)
    return rng.standard_normal(d) * (rng.random(d) < 0.2) + 1e-9


def ascend_l1_in_l2_ball(values, rng, rounds=12):
    """max |v R|_1 over the ball: fix the signs of v R, take the best v for them, repeat."""
    v = rng.standard_normal(len(values))
    for _ in range(rounds):
        v = values @ np.sign(v @ values + 1e-30)
        v = v / np.linalg.norm(v)
    return l1(v, values)


def ascend_in_box(values, widths, rng, norm, rounds=8):
    """A convex function over a box: the linear part at v peaks at a corner, repeat."""
    v = widths * np.sign(values @ rng.choice([-1.0, 1.0], size=values.shape[1]) + 1e-30)
    for _ in range(rounds):
        image = v @ values
        slope = np.sign(image) if norm == 1 else image
        v = widths * np.where(values @ slope >= 0, 1.0, -1.0)
    return l1(v, values) if norm == 1 else l2(v, values)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("d", "k"), SIZES)
def test_no_change_of_a_row_moves_the_product_further(family, d, k):
    rng = np.random.default_rng(d * k)
    matrix = public_matrix(family, d, k, matrix_seed=d)
    values = matrix.to_float()
    widths = rng.random(d) + 0.5
    element = pj.element_sensitivity(matrix, widths)
    l2_l1, l2_l2 = pj.l2_ball_l1(matrix, 2.0), pj.l2_ball_l2(matrix, 2.0)
    box_l1, box_l2 = pj.box_l1_upper(matrix, widths), pj.box_l2_upper(matrix, widths)
    tight = 1 + 1e-12  # the float evaluation of the attack itself
    for _ in range(400):
        v = hostile(rng, d)
        j = rng.integers(d)
        cell = np.zeros(d)
        cell[j] = widths[j] * rng.uniform(-1, 1)
        assert l1(cell, values) <= element.l1 * tight
        assert l2(cell, values) <= element.l2 * tight
        inside = 2.0 * v / np.linalg.norm(v)
        assert l1(inside, values) <= l2_l1 * tight
        assert l2(inside, values) <= l2_l2 * tight
        inside = widths * np.clip(v, -1, 1)
        assert l1(inside, values) <= box_l1 * tight
        assert l2(inside, values) <= box_l2 * tight


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("d", "k"), SIZES)
def test_the_worst_change_reaches_every_exact_value(family, d, k):
    rng = np.random.default_rng(7)
    matrix = public_matrix(family, d, k, matrix_seed=d)
    values, widths = matrix.to_float(), rng.random(d) + 0.5
    cells = [np.eye(d)[j] for j in range(d)]
    element = pj.element_sensitivity(matrix, widths)
    reached = {
        "element L1": max(l1(widths * c, values) for c in cells) / element.l1,
        "element L2": max(l2(widths * c, values) for c in cells) / element.l2,
        "L2 ball L1": max(ascend_l1_in_l2_ball(values, rng) for _ in range(300))
        / pj.l2_ball_l1(matrix, 1.0),
        "L2 ball L2": l2(np.linalg.svd(values)[0][:, 0], values) / pj.l2_ball_l2(matrix, 1.0),
    }
    box_l1 = max(ascend_in_box(values, widths, rng, 1) for _ in range(300))
    box_l2 = max(ascend_in_box(values, widths, rng, 2) for _ in range(300))
    bounds = {
        "L2 ball L1 upper": reached["L2 ball L1"]
        * pj.l2_ball_l1(matrix, 1.0)
        / pj.l2_ball_l1_upper(matrix, 1.0),
        "box L1 upper": box_l1 / pj.box_l1_upper(matrix, widths),
        "box L2 upper": box_l2 / pj.box_l2_upper(matrix, widths),
    }
    shares = ", ".join(f"{name} {share:.3f}" for name, share in (reached | bounds).items())
    print(f"{family} {d}x{k}: {shares}")  # noqa: T201 - the issue asks to see the reached share
    for name, share in reached.items():
        assert 0.99 <= share <= 1.0 + 1e-12, (name, share)
    for name, share in bounds.items():
        assert 0.3 <= share <= 1.0 + 1e-12, (name, share)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    family=st.sampled_from(FAMILIES),
    seed=st.integers(0, 2**32),
    d=st.integers(2, 12),
)
def test_one_cell_of_any_table_moves_at_most_the_element_sensitivity(data, family, seed, d):
    k = data.draw(st.integers(1, d))
    matrix = public_matrix(family, d, k, matrix_seed=seed)
    cut = data.draw(st.integers(0, d))
    groups = (slice(cut, d),) if d - cut >= 2 else ()
    found = pj.element_sensitivity(matrix, groups=groups)
    units = matrix.units.astype(np.int64).astype(object)
    before = np.zeros(d, dtype=object)
    after = before.copy()
    if groups and data.draw(st.booleans()):
        i, j = data.draw(st.lists(st.integers(cut, d - 1), min_size=2, max_size=2, unique=True))
        before[i], after[j] = 2**15, 2**15
    else:
        place = data.draw(st.integers(0, (cut if groups else d) - 1)) if not groups or cut else cut
        after[place] = data.draw(st.integers(0, 2**15)) if not groups or cut else 0
    change = (after - before) @ units
    total = sum(abs(c) for c in change)
    square = sum(c * c for c in change)
    assert total <= found.l1 * 2**35
    assert square <= (found.l2 * 2**35) ** 2 * (1 + 1e-15)
