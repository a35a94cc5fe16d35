"""How far x R moves, for the matrix that was drawn: L1 and L2, for three sets of changes v of one row.

    element     |v_j| <= w_j, one j (or one move inside a one-hot group)     max_j w_j |R_j|
    L2 ball     |v|_2 <= b                   L1: b max_s |R s|_2             L2: b |R|_op
    box         |v_j| <= w_j, all j          at most sum_j w_j |R_j|; L2: at most |w|_2 |R|_op

R_j is row j; s runs over sign vectors. No law of R is used, so nothing is spent on the draw, and R
may be published or used again. Names without `_upper` give the exact value rounded up (the spectral norm
by at most d k 2^-51 of itself); what enumerates signs is refused beyond `ENUMERATED` of them.

Proof       projection_sensitivity.proof.md, of every function named `*_sensitivity`, `*_l1`, `*_l2` or
            `*_upper`.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from adumbra.errors import Unsupported, require
from adumbra.matrices import ProjectionMatrix
from adumbra.numerics import Array, Ints, fraction_upper, product_upper, round_up, sqrt_upper
from adumbra.statistics.base import Sensitivity

ENUMERATED = 24  # signs: 2^23 evaluations of a quadratic form, well below a second
_EPS = 2.0**-52  # twice the unit roundoff, which halves the care that the bounds below need


def element_sensitivity(
    matrix: ProjectionMatrix, widths: Array | None = None, groups: Sequence[slice] = ()
) -> Sensitivity:
    """Exact change of one cell: column j by at most w_j, or one category of a group into another.

    A category that changes takes 1 from one column of its one-hot group and gives it to another, so it
    moves the projected row by R_i - R_j, however wide the group is.
    """
    units = matrix.units.astype(np.int64)
    weights = np.ones(len(units)) if widths is None else widths
    exact = _widths(matrix, weights)
    alone = np.ones(len(units), dtype=bool)
    for group in groups:
        alone[group] = False
    lengths, squares = np.sum(np.abs(units), axis=1), np.sum(units * units, axis=1)
    l1, l2 = Fraction(0), Fraction(0)
    for j in np.flatnonzero(alone):
        l1 = max(l1, exact[j] * int(lengths[j]))
        l2 = max(l2, exact[j] ** 2 * int(squares[j]))
    for group in groups:
        length, square = _farthest(units[group])
        l1, l2 = max(l1, Fraction(length)), max(l2, Fraction(square))
    return _sensitivity(matrix, l1, l2)


def l2_ball_l1(matrix: ProjectionMatrix, radius: float) -> float:
    """Exact L1 change under |v|_2 <= radius b: max_v |v R|_1 = max_s max_v v R s = b max_s |R s|_2."""
    return _real(matrix, float(_positive(radius)), largest_signed_l2(matrix.units))


def l2_ball_l1_upper(matrix: ProjectionMatrix, radius: float) -> float:
    """L1 change under |v|_2 <= radius, for any k: |v R|_1 <= sqrt(k) |v R|_2."""
    return product_upper(sqrt_upper(matrix.n_components), l2_ball_l2(matrix, radius))


def l2_ball_l2(matrix: ProjectionMatrix, radius: float) -> float:
    """L2 change under |v|_2 <= radius: the spectral norm, proven by a Cholesky factor."""
    return _real(matrix, float(_positive(radius)), operator_norm(matrix.units))


def smallest_l2_ball_l1(matrix: ProjectionMatrix, radius: float) -> float:
    """The exact value where it can be enumerated, else the proven bound."""
    exact = matrix.n_components <= ENUMERATED
    return l2_ball_l1(matrix, radius) if exact else l2_ball_l1_upper(matrix, radius)


def box_l1_upper(matrix: ProjectionMatrix, widths: Array) -> float:
    """L1 change in a box, for any size: sum_j w_j |R_j|_1, or sqrt(k) times the L2 bound."""
    lengths = np.sum(np.abs(matrix.units), axis=1)  # exact: |R_j|_1 <= sqrt(k) |R_j|_2 is below 2^53
    plain = _real(matrix, 1.0, _dot_upper(_floats(matrix, widths), lengths))
    return min(plain, product_upper(sqrt_upper(matrix.n_components), box_l2_upper(matrix, widths)))


def box_l2_upper(matrix: ProjectionMatrix, widths: Array) -> float:
    """L2 change in a box, for any size: min(sum_j w_j |R_j|_2, |w|_2 |R|_op)."""
    bounds = _floats(matrix, widths)
    squares = np.sum(matrix.units**2, axis=1) * (1.0 + (matrix.n_components + 4) * _EPS)
    lengths = np.nextafter(np.sqrt(squares), math.inf)
    plain = _real(matrix, 1.0, _dot_upper(bounds, lengths))
    spread = sqrt_upper(_dot_upper(bounds, bounds))
    return min(plain, product_upper(spread, l2_ball_l2(matrix, 1.0)))


def clipped_sensitivity(radius: float, n_components: int) -> Sensitivity:
    """Two rows inside a ball of that radius: 2 r in L2, hence 2 r sqrt(k) in L1; any matrix."""
    l2 = product_upper(2.0, float(_positive(radius)))
    return Sensitivity(l1=product_upper(l2, sqrt_upper(n_components)), l2=l2)


def _farthest(units: Ints) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of two rows, or of a lone row from 0."""
    rows = units if len(units) > 1 else np.concatenate([units, 0 * units])
    l1 = l2 = 0
    for i in range(len(rows) - 1):
        gap = rows[i + 1 :] - rows[i]
        l1 = max(l1, int(np.max(np.sum(np.abs(gap), axis=1))))
        l2 = max(l2, int(np.max(np.sum(gap * gap, axis=1))))
    return l1, l2


def largest_signed_l2(a: Array) -> float:
    """Find max over s in {+-1}^k of |A s|_2, rounded up: the signs of two halves meet in one product."""
    rows, k = a.shape
    if k > ENUMERATED:
        raise Unsupported(f"{k} signs: too many to enumerate exactly; use the bound named _upper")
    gram = a.T @ a
    left, right = _signs(k - k // 2, first_fixed=True), _signs(k // 2)
    cut = left.shape[1]
    right_form = np.sum((right @ gram[cut:, cut:]) * right, axis=1)
    best = 0.0
    for part in np.array_split(left, max(1, len(left) * len(right) // 2**20)):
        part_form = np.sum((part @ gram[:cut, :cut]) * part, axis=1)
        form = 2.0 * (part @ gram[:cut, cut:]) @ right.T + right_form + part_form[:, None]
        best = max(best, float(np.max(form)))
    spread = float(np.sum(np.sum(np.abs(a), axis=1) ** 2))  # the sum of all absolute products
    return sqrt_upper(round_up(best + 2.0 * (rows + 2 * k + 8) * _EPS * spread))


def operator_norm(a: Array) -> float:
    """The spectral norm, rounded up: t I - A^T A has a Cholesky factor, so no eigenvalue passes t."""
    tall = a if a.shape[1] <= a.shape[0] else a.T
    rows, k = tall.shape
    gram = tall.T @ tall
    trace = float(np.trace(gram))
    top = _proven_top(gram, float(np.linalg.eigvalsh(gram)[-1]), 1.0 + (rows + k * k) * _EPS * trace)
    return sqrt_upper(round_up(top + 2.0 * _EPS * ((rows + 4) * trace + (k + 2) ** 2 * top)))


def _proven_top(gram: Array, guess: float, step: float) -> float:
    """The first guess + step, guess + 3 step, ... whose Cholesky factorisation succeeds."""
    while True:
        guess, step = guess + step, 2.0 * step
        try:
            np.linalg.cholesky(guess * np.eye(len(gram)) - gram)
        except np.linalg.LinAlgError:
            continue
        return guess


def _signs(k: int, *, first_fixed: bool = False) -> Array:
    """All sign vectors of length k as rows; with `first_fixed` one of each pair s, -s."""
    free = k - 1 if first_fixed else k
    bits = (np.arange(2**free)[:, None] >> np.arange(k)[None, :]) & 1
    return 1.0 - 2.0 * bits.astype(np.float64)


def _positive(radius: float) -> Fraction:
    require(math.isfinite(radius) and radius > 0, f"radius={radius}: must be finite and above 0")
    return Fraction(radius)


def _floats(matrix: ProjectionMatrix, widths: Array) -> Array:
    fits = widths.shape == (matrix.n_features,) and bool(np.all(np.isfinite(widths) & (widths >= 0)))
    require(fits, f"widths: one finite number of 0 or above for each of {matrix.n_features} columns")
    return widths


def _widths(matrix: ProjectionMatrix, widths: Array) -> list[Fraction]:
    return [Fraction(float(width)) for width in _floats(matrix, widths)]


def _dot_upper(left: Array, right: Array) -> float:
    """A float not below the sum of products of two vectors without negative entries."""
    return round_up(float(left @ right) * (1.0 + (len(left) + 4) * _EPS))


def _real(matrix: ProjectionMatrix, radius: float, units: float) -> float:
    """Matrix units back into real numbers: an exact power of two, then the radius, rounded up."""
    return product_upper(radius, math.ldexp(units, matrix.exponent))


def _sensitivity(matrix: ProjectionMatrix, l1: Fraction, square: Fraction) -> Sensitivity:
    """Round an exact L1 length and an exact squared L2 length (in matrix units) up to floats."""
    unit = Fraction(2) ** matrix.exponent
    return Sensitivity(l1=fraction_upper(l1 * unit), l2=_root_upper(square * unit**2))


def _root_upper(square: Fraction) -> float:
    """A float not below the square root of a rational."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = round_up(root)
    return root
