"""Exact sums of bounded rows with their counts, in all or a class; and counts of rows by radius.

    (sum z, a n)   or   (sum over class c of z, a n_c)          |z| <= 1, a = 1
    #{rows with radius in bin b}

Proof       class_sums.proof.md, of `counted_sum_sensitivity`, `count_sensitivity`, `labelled_gram_l1`.
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.data.bounds import BoundedRows, with_constant
from adumbra.errors import Unsupported
from adumbra.numerics import ROW_BITS, Ints, product_upper, round_up, sqrt_upper, sum_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.moments import UNIT_LIMIT, RowSum, gram_sensitivity


def counted_sum_sensitivity(width: int, neighbours: Neighbours, *, classes: bool) -> Sensitivity:
    """Sum of unit-ball rows beside their count (weight 1); with classes, a row may change its class.

    add-remove    L1 sqrt(p) + 1,    L2 sqrt2
    replace-one   L1 2 sqrt(p),      L2 2            one sum: the count does not move
    replace-one   L1 2 sqrt(p) + 2,  L2 2            a sum a class: two counts may move
    """
    root = sqrt_upper(width)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=round_up(root + 1.0), l2=sqrt_upper(2.0))
    if neighbours is Neighbours.REPLACE_ONE:
        return Sensitivity(l1=round_up(2.0 * root + (2.0 if classes else 0.0)), l2=2.0)
    raise Unsupported(f"neighbours={neighbours}: sums of rows have no proof for it; use unit=row")


def count_sensitivity(neighbours: Neighbours) -> Sensitivity:
    """Disjoint counts: one row more or less moves one of them by 1, a replaced row two."""
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=1.0, l2=1.0)
    if neighbours is Neighbours.REPLACE_ONE:
        return Sensitivity(l1=2.0, l2=sqrt_upper(2.0))
    raise Unsupported(f"neighbours={neighbours}: counts of rows have no proof for it; use unit=row")


def labelled_gram_l1(width: int, label: float, constant: float, neighbours: Neighbours) -> float:
    """L1 of the upper triangle of the Gram of (x, y, a): |x| <= 1, |y| <= label, a = constant.

    The smaller of the plain Gram's bound at |z|^2 <= 1 + label^2 + a^2 and the sum over blocks
        xx: the plain Gram's;  xy: 2 label sqrt(p);  xa: 2 a sqrt(p);  yy: label^2;  ya: 2 label a
    (half of the crossed terms under add-remove, and a^2 for the constant's own entry).
    """
    square = math.fsum((1.0, label**2, constant**2))
    plain = gram_sensitivity(width + 2, math.ceil(square * UNIT_LIMIT), neighbours).l1
    inner = gram_sensitivity(width, UNIT_LIMIT, neighbours).l1
    root = sqrt_upper(width)
    moves = 1.0 if neighbours is Neighbours.ADD_REMOVE else 2.0
    own = constant**2 if neighbours is Neighbours.ADD_REMOVE else 0.0
    crossed = product_upper(moves, sum_upper(label * root, constant * root, label * constant))
    blocks = sum_upper(inner, crossed, label**2, own)
    return min(plain, round_up(blocks * (1 + 2**-50)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSum:
    """(sum z, n) over unit-ball rows; with `classes`, one such row a class."""

    width: int  # of z, without the count
    classes: int | None = None
    exponent: int = -ROW_BITS

    def _sum(self) -> RowSum:
        return RowSum(width=self.width + 1, limit=2 * UNIT_LIMIT, classes=self.classes)

    def zero(self) -> Ints:
        """No rows."""
        return self._sum().zero()

    def add(self, total: Ints, rows: BoundedRows) -> Ints:
        """Exact, as `RowSum` of the rows with a constant 1 beside them."""
        return self._sum().add(total, with_constant(rows, 2**ROW_BITS))

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `counted_sum_sensitivity`."""
        return counted_sum_sensitivity(self.width, neighbours, classes=self.classes is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinCounts:
    """How many rows fall into each of `bins` disjoint public bins; other codes are counted nowhere."""

    bins: int
    exponent: int = 0

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(self.bins, np.int64)

    def add(self, total: Ints, rows: Ints) -> Ints:
        """Add the counts of a block of bin codes."""
        inside = rows[(rows >= 0) & (rows < self.bins)]
        total += np.bincount(inside, minlength=self.bins)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `count_sensitivity`."""
        return count_sensitivity(neighbours)
