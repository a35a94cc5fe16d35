"""How far z U moves for box rows z = (x, one-hot groups) and a public lattice matrix U (d x k).

    L1  max over s in {+-1}^k of  sum_numbers |U_i s| + sum_groups max_{a,b} (U_a - U_b) s       exact
    L2  min( |U|_op sqrt(p1 + 2 p2),  sum_numbers |U_i|_2 + sum_groups max_{a,b} |U_a - U_b|_2 )

A number moves by at most 1, and a category takes the 1 from one column of its group to another.

Proof       box_projection_sensitivity.proof.md, of `exact_l1`, `l1_upper`, `l2_upper`.
"""

import math
from fractions import Fraction

import numpy as np

from adumbra.errors import require
from adumbra.matrices import ProjectionMatrix
from adumbra.numerics import Array, fraction_upper, product_upper, round_up, sqrt_upper
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.box_moments import BoxShape
from adumbra.statistics.projection_sensitivity import l2_ball_l2

ENUMERATED = 16  # components whose 2^15 sign vectors are all tried


def box_projection_sensitivity(matrix: ProjectionMatrix, shape: BoxShape) -> Sensitivity:
    """L1 (exact up to `ENUMERATED` components) and L2 change of one row."""
    require(
        matrix.n_features == shape.width,
        f"matrix with {matrix.n_features} rows: need one for each of {shape.width} columns",
    )
    l2 = l2_upper(matrix, shape)
    exact = matrix.n_components <= ENUMERATED
    return Sensitivity(l1=exact_l1(matrix, shape) if exact else l1_upper(matrix, shape, l2), l2=l2)


def exact_l1(matrix: ProjectionMatrix, shape: BoxShape) -> float:
    """The maximum over all signs; every number here is an integer below 2^53, so nothing is rounded."""
    units, k = matrix.units, matrix.n_components
    bits = (np.arange(2 ** (k - 1))[:, None] >> np.arange(k)[None, :]) & 1  # -s gives what s gives
    best = 0.0
    for signs in np.array_split(1.0 - 2.0 * bits, max(1, len(bits) * len(units) // 2**20)):
        along = signs @ units.T
        total = np.abs(along[:, shape.numeric]).sum(axis=1)
        for group in shape.groups:
            total += along[:, group].max(axis=1) - along[:, group].min(axis=1)
        best = max(best, float(total.max()))
    return math.ldexp(best, matrix.exponent)


def l1_upper(matrix: ProjectionMatrix, shape: BoxShape, l2: float) -> float:
    """For any k: sqrt(k) times the L2 bound, or the sum of each feature's own largest change."""
    own = Fraction(_numbers(matrix, shape, 1))
    for group in shape.groups:
        spread = matrix.units[group].max(axis=0) - matrix.units[group].min(axis=0)
        own += Fraction(float(spread.sum()))
    plain = fraction_upper(own * Fraction(2) ** matrix.exponent)
    return min(plain, product_upper(sqrt_upper(matrix.n_components), l2))


def l2_upper(matrix: ProjectionMatrix, shape: BoxShape) -> float:
    """|v U| <= |U|_op |v| with |v|^2 <= p1 + 2 p2; or each feature's own largest change, added."""
    longest = sqrt_upper(len(shape.numeric) + 2.0 * len(shape.groups))
    through_norm = product_upper(l2_ball_l2(matrix, 1.0), longest)
    own = _numbers(matrix, shape, 2)
    for group in shape.groups:
        spread = matrix.units[group].max(axis=0) - matrix.units[group].min(axis=0)
        own = round_up(own + _length(spread))
    return min(through_norm, math.ldexp(own, matrix.exponent))


def _numbers(matrix: ProjectionMatrix, shape: BoxShape, order: int) -> float:
    """The sum of the lengths of the numeric rows, in matrix units, rounded up."""
    rows: Array = matrix.units[list(shape.numeric)]
    if order == 1:
        return float(np.abs(rows).sum())
    total = 0.0
    for row in rows:
        total = round_up(total + _length(row))
    return total


def _length(row: Array) -> float:
    """The L2 length, rounded up: a sum of positive products is off by less than 2^-40 of itself."""
    return sqrt_upper(float(row @ row) * (1.0 + 2.0**-40))
