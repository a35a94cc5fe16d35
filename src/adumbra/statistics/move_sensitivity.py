"""How far x R moves when one cell, or one row in L2, moves by at most an amount of its columns' units.

Column j of width W_j is encoded as (value - lower) / W_j - 1/2 and rounded to multiples of 2^-15. So a
cell that moves by at most a moves its encoded value by at most

    w_j = min(1, 2^-15 floor(2^15 a / W_j + 1 + 2^-34))       the rounding of both tables included

and a row that moves by at most a in L2 moves as v = u diag(1 / W) + e with |u|_2 <= a and |e_j| <= r,
r = 2^-15 (1 + 2^-33).

    cell   L1: max_j w_j |R_j|_1                              L2: max_j w_j |R_j|_2
    row    L1: a max_s |diag(1/W) R s|_2 + box(r)             L2: a |diag(1/W) R|_op + box(r)
           or the box |v_j| <= w_j, whichever is less

Proof       move_sensitivity.proof.md, of every function here.
"""

import math
from fractions import Fraction

import numpy as np

from adumbra.errors import require
from adumbra.matrices import ProjectionMatrix
from adumbra.numerics import (
    ROW_BITS,
    Array,
    fraction_upper,
    product_upper,
    round_up,
    sqrt_upper,
    sum_upper,
)
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.projection_sensitivity import (
    ENUMERATED,
    box_l1_upper,
    box_l2_upper,
    element_sensitivity,
    largest_signed_l2,
    operator_norm,
)

ROUNDED = 2.0**-ROW_BITS * (1.0 + 2.0**-33)  # what the rounding of two encoded cells adds, at most


def cell_widths(spans: Array, amount: float) -> Array:
    """How far each encoded cell moves, at most, on its lattice."""
    require(bool(np.all(np.isfinite(spans) & (spans > 0))), "spans: must be finite and above 0")
    whole, spare = 2**ROW_BITS, 1 + Fraction(2) ** -34
    steps = [
        min(whole, math.floor(whole * Fraction(amount) / Fraction(float(span)) + spare))
        for span in spans
    ]
    widths: Array = np.array(steps, dtype=np.float64) / whole
    return widths


def cell_move_sensitivity(matrix: ProjectionMatrix, spans: Array, amount: float) -> Sensitivity:
    """Change of x R when one cell moves by at most the amount, in its column's own unit."""
    return element_sensitivity(matrix, cell_widths(spans, amount))


def row_move_sensitivity(matrix: ProjectionMatrix, spans: Array, amount: float) -> Sensitivity:
    """Change of x R when one row moves by at most the amount in L2, in its columns' own units."""
    widths = cell_widths(spans, amount)
    rounding = np.full(len(widths), ROUNDED)
    shares = np.array([fraction_upper(Fraction(amount) / Fraction(float(span))) for span in spans])
    most = float(np.max(shares))
    scaled = (shares / most)[:, None] * matrix.units  # a division and a product, each rounded once
    spare = float(np.sum(np.abs(scaled))) * 2.0**-51  # more than that rounding, in every norm below
    unit = math.ldexp(most, matrix.exponent)
    longest = product_upper(unit, round_up(operator_norm(scaled) + spare))
    l2 = min(sum_upper(longest, box_l2_upper(matrix, rounding)), box_l2_upper(matrix, widths))
    if matrix.n_components <= ENUMERATED:
        signed = product_upper(unit, round_up(largest_signed_l2(scaled) + spare))
    else:
        signed = product_upper(sqrt_upper(matrix.n_components), longest)
    l1 = min(sum_upper(signed, box_l1_upper(matrix, rounding)), box_l1_upper(matrix, widths))
    return Sensitivity(l1=l1, l2=l2)
