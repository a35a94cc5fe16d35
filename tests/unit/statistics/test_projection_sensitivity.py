"""Norms of a drawn matrix against plain enumeration in rationals, and every refusal."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from adumbra.errors import InvalidInput, Unsupported
from adumbra.matrices import ProjectionMatrix, lattice_matrix, public_matrix
from adumbra.statistics import projection_sensitivity as pj

FAMILIES = ["gaussian", "sphere", "rademacher", "sparse", "haar"]


def small(family, d=7, k=5, seed=3):
    return public_matrix(family, d, k, matrix_seed=seed, nonzeros=2)


def rational(matrix):
    return [[Fraction(int(u), 2**20) for u in row] for row in matrix.units]


def signs(k):
    return list(itertools.product((1, -1), repeat=k))


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_values_are_the_rational_ones_rounded_up(family):
    matrix = small(family)
    rows = rational(matrix)
    widths = np.linspace(0.5, 1.5, 7)
    exact = [Fraction(float(w)) for w in widths]
    element = pj.element_sensitivity(matrix, widths)
    assert_upper(element.l1, max(w * sum(map(abs, row)) for w, row in zip(exact, rows, strict=True)))
    assert_upper_root(
        element.l2, max(w**2 * sum(x * x for x in row) for w, row in zip(exact, rows, strict=True))
    )
    forms = [[sum(x * s for x, s in zip(row, sign, strict=True)) for row in rows] for sign in signs(5)]
    assert_upper_root(
        pj.l2_ball_l1(matrix, 0.9), Fraction(0.9) ** 2 * max(sum(f * f for f in form) for form in forms)
    )


def assert_upper(value, exact):
    assert Fraction(value) >= exact
    assert value <= float(exact) * (1 + 1e-9)


def assert_upper_root(value, square):
    assert Fraction(value) ** 2 >= square
    assert value <= math.sqrt(square) * (1 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("d", "k"), [(7, 5), (200, 20), (6, 6)])
def test_bounds_lie_above_the_exact_values(family, d, k):
    matrix = public_matrix(family, d, k, matrix_seed=1)
    spectral = np.linalg.norm(matrix.to_float(), 2)
    assert spectral * (1 - 1e-14) <= pj.l2_ball_l2(matrix, 1.0) <= spectral * (1 + 1e-9)
    assert pj.l2_ball_l1(matrix, 1.0) <= pj.l2_ball_l1_upper(matrix, 1.0) * (1 + 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("d", "k"), [(7, 5), (9, 3), (6, 6)])
def test_bounds_of_a_box_lie_above_its_farthest_corner(family, d, k):
    matrix = public_matrix(family, d, k, matrix_seed=1)
    widths = np.linspace(0.5, 1.5, d)
    corners = (np.array(signs(d)) * widths) @ matrix.to_float()  # convex: the maximum is at a corner
    for bound, norm in ((pj.box_l1_upper, 1), (pj.box_l2_upper, 2)):
        farthest = np.linalg.norm(corners, norm, axis=1).max()
        assert farthest * (1 - 1e-12) <= bound(matrix, widths) <= 3.0 * farthest


def test_a_wide_matrix_has_the_norm_of_its_transpose():
    matrix = public_matrix("gaussian", 4, 9, matrix_seed=5)
    spectral = np.linalg.norm(matrix.to_float(), 2)
    assert pj.l2_ball_l2(matrix, 1.0) == pytest.approx(spectral, rel=1e-12)


def test_one_column_and_one_row_are_enough():
    column = lattice_matrix(np.array([[3.0], [-4.0]]))
    assert pj.l2_ball_l1(column, 1.0) == pytest.approx(5.0, rel=1e-12)
    row = lattice_matrix(np.array([[3.0, -4.0]]))  # one column of the table: both bounds are exact
    assert pj.box_l2_upper(row, np.array([2.0])) == pytest.approx(10.0, rel=1e-12)
    assert pj.box_l1_upper(row, np.array([2.0])) == pytest.approx(14.0, rel=1e-12)


def test_a_category_moves_the_difference_of_two_rows():
    matrix = small("sphere")
    values = matrix.to_float()
    group = slice(2, 6)
    pairs = [values[i] - values[j] for i, j in itertools.combinations(range(2, 6), 2)]
    alone = values[[0, 1, 6]]
    found = pj.element_sensitivity(matrix, groups=(group,))
    assert found.l1 == pytest.approx(max(np.abs(v).sum() for v in [*pairs, *alone]), rel=1e-12)
    assert found.l2 == pytest.approx(max(np.linalg.norm(v) for v in [*pairs, *alone]), rel=1e-12)
    assert found.l2 > pj.element_sensitivity(matrix).l2
    whole = pj.element_sensitivity(matrix, groups=(slice(0, 1), slice(1, 7)))
    assert whole.l1 >= np.abs(values[0]).sum()


def test_the_count_sketch_has_norm_one_in_l1_whatever_k_is():
    for k in (2, 20, 500):
        found = pj.element_sensitivity(public_matrix("sparse", 60, k, matrix_seed=k))
        assert (found.l1, found.l2) == (1.0, 1.0)


def test_clipped_rows_are_two_radii_apart():
    found = pj.clipped_sensitivity(1.5, 16)
    assert (found.l1, found.l2) == (12.0, 3.0)


def test_the_smallest_proven_l1_changes_with_the_number_of_signs():
    few, many = (public_matrix("gaussian", 30, k, matrix_seed=0) for k in (24, 25))
    assert pj.smallest_l2_ball_l1(few, 1.0) == pj.l2_ball_l1(few, 1.0)
    assert pj.smallest_l2_ball_l1(many, 1.0) == pj.l2_ball_l1_upper(many, 1.0)
    with pytest.raises(
        Unsupported, match="25 signs: too many to enumerate exactly; use the bound named _upper"
    ):
        pj.l2_ball_l1(many, 1.0)


def test_a_wrong_eigenvalue_is_found_out_by_the_factorisation():
    gram = np.diag([4.0, 9.0])
    proven = pj._proven_top(gram, guess=1.0, step=0.5)
    assert 9.0 <= proven < 20.0
    zero = ProjectionMatrix(np.zeros((3, 2)))
    assert 0.0 < pj.l2_ball_l2(zero, 1.0) < 1e-5


@pytest.mark.parametrize("radius", [0.0, -1.0, math.inf, math.nan])
def test_radii_must_be_positive(radius):
    for function in (pj.l2_ball_l1, pj.l2_ball_l2):
        with pytest.raises(InvalidInput, match="must be finite and above 0"):
            function(small("sphere"), radius)


@pytest.mark.parametrize("widths", [np.ones(6), np.full(7, -1.0), np.full(7, np.nan)])
def test_widths_must_fit(widths):
    for function in (pj.element_sensitivity, pj.box_l1_upper, pj.box_l2_upper):
        with pytest.raises(InvalidInput, match="one finite number of 0 or above for each of 7 columns"):
            function(small("sphere"), widths)
