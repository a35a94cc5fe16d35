"""How far a projected box row moves: exact against enumeration, bounds above it."""

import itertools

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.matrices import lattice_matrix
from adumbra.statistics import box_projection_sensitivity as box_projections
from adumbra.statistics.box_projection_sensitivity import (
    box_projection_sensitivity,
    exact_l1,
    l1_upper,
    l2_upper,
)
from support.components import box_shape


def basis(width, k, seed=0):
    rng = np.random.default_rng(seed)
    return lattice_matrix(np.linalg.qr(rng.normal(size=(width, k)))[0])


def changes(shape):
    """Every corner of what one row can change by."""
    numbers = itertools.product((-1.0, 1.0), repeat=len(shape.numeric))
    swaps = [
        [
            np.eye(group.stop - group.start)[a] - np.eye(group.stop - group.start)[b]
            for a, b in itertools.product(range(group.stop - group.start), repeat=2)
        ]
        for group in shape.groups
    ]
    for signs in numbers:
        for chosen in itertools.product(*swaps):
            yield np.concatenate([signs, *chosen])


@pytest.mark.parametrize(("p1", "p2", "k"), [(3, 0, 1), (3, 0, 3), (0, 2, 2), (3, 2, 1), (3, 2, 4)])
def test_the_l1_change_is_exact_and_the_l2_change_is_bounded(p1, p2, k):
    shape = box_shape(p1, p2, levels=3)
    matrix = basis(shape.width, k)
    moved = np.array([change @ matrix.to_float() for change in changes(shape)])
    found = box_projection_sensitivity(matrix, shape)
    assert found.l1 == pytest.approx(np.abs(moved).sum(axis=1).max(), rel=1e-12)
    assert found.l1 >= np.abs(moved).sum(axis=1).max() * (1 - 1e-15)
    reached = np.sqrt(np.square(moved).sum(axis=1).max())
    assert reached <= found.l2
    assert reached >= 0.6 * found.l2
    assert found.l1 <= l1_upper(matrix, shape, found.l2)


def test_one_direction_has_the_same_change_in_both_norms_if_numbers_only():
    shape = box_shape(6, 0)
    matrix = basis(6, 1)
    assert exact_l1(matrix, shape) <= l2_upper(matrix, shape) <= exact_l1(matrix, shape) * 1.0001


def test_many_directions_use_the_bound(monkeypatch):
    shape = box_shape(4, 2, levels=3)
    matrix = basis(shape.width, 5)
    exact = box_projection_sensitivity(matrix, shape).l1
    monkeypatch.setattr(box_projections, "ENUMERATED", 4)
    assert exact <= box_projection_sensitivity(matrix, shape).l1 <= 2.5 * exact


def test_a_matrix_of_another_height_is_refused():
    with pytest.raises(InvalidInput, match="need one for each"):
        box_projection_sensitivity(basis(5, 2), box_shape(4, 0))
