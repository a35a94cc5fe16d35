"""Exact sums of bounded rows with counts, with their spread, and Grams beside class sums.

    (sum z, a n)   or   (sum over class c of z, a n_c)          |z| <= 1, a = 1
    the same and sum q / 2 over all rows                        0 <= q <= 1, any function of the row
    sum z z^T (pooled or a class) beside class sums and class counts

Proof       class_sums.proof.md, of every function named `*_sensitivity` and of `labelled_gram_l1`.
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.data.bounds import BoundedRows, with_classes, with_constant
from adumbra.errors import Unsupported, require
from adumbra.numerics import ROW_BITS, Array, Ints, product_upper, round_up, sqrt_upper, sum_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.moments import UNIT_LIMIT, Gram, RowSum, gram_sensitivity

SPREAD_ONE = 2 ** (ROW_BITS - 1)  # q = 1: the statistic holds half of q on the grid of the sums


def counted_sum_sensitivity(width: int, neighbours: Neighbours, *, classes: bool) -> Sensitivity:
    """Sum of unit-ball rows beside their count (weight 1); with classes, a row may change its class.

    add-remove    L1 sqrt(p) + 1,    L2 sqrt2
    replace-one   L1 2 sqrt(p),      L2 2            one sum: the count does not move
    replace-one   L1 2 sqrt(p) + 2,  L2 2            one sum per class: two counts may move
    """
    root = sqrt_upper(width)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=round_up(root + 1.0), l2=sqrt_upper(2.0))
    if neighbours is Neighbours.REPLACE_ONE:
        return Sensitivity(l1=round_up(2.0 * root + (2.0 if classes else 0.0)), l2=2.0)
    raise Unsupported(f"neighbours={neighbours}: sums of rows have no proof for it; use unit=row")


def spread_sum_sensitivity(width: int, neighbours: Neighbours, *, classes: bool) -> Sensitivity:
    """Sums of unit-ball rows, their counts, and half the sum of all spreads in [0, 1].

    add-remove    L1 sqrt(p) + 3/2,     L2 3/2
    replace-one   L1 2 sqrt(p) + 1/2,   L2 sqrt(17)/2       one sum: the count does not move
    replace-one   L1 2 sqrt(p) + 5/2,   L2 sqrt(17)/2       one sum per class: two counts may move
    """
    inner = counted_sum_sensitivity(width, neighbours, classes=classes)
    square = 2.0 if neighbours is Neighbours.ADD_REMOVE else 4.0
    return Sensitivity(l1=round_up(inner.l1 + 0.5), l2=sqrt_upper(square + 0.25))


def counted_gram_sensitivity(width: int, neighbours: Neighbours, *, apart: bool) -> Sensitivity:
    """Gram of unit-ball rows beside class sums and class counts; a row may change its class.

    `apart`: one Gram a class; else one Gram of all rows. With P the plain Gram's L1,
        add-remove    L1 (p+1)/2 + sqrt(p) + 1,                              F  2
        replace-one   L1 P + 2 sqrt(p) + 2, with p + 1 for P if apart,       F  2 sqrt2
    """
    l2 = gram_sensitivity(width, 2 * UNIT_LIMIT, neighbours).l2
    inner, root = gram_sensitivity(width, UNIT_LIMIT, neighbours).l1, sqrt_upper(width)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=sum_upper(inner, root, 1.0), l2=l2)
    if apart:
        inner = max(inner, width + 1.0)
    return Sensitivity(l1=sum_upper(inner, root, root, 2.0), l2=l2)


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


def _add_counted(sums: Ints, rows: BoundedRows, classes: int | None) -> None:
    """Add rows to the line of sums, or to that of their class; its last place counts them."""
    plain = RowSum(width=sums.shape[1] - 1, classes=classes)
    if classes is None:
        plain.add(sums[0, :-1], rows)
        sums[0, -1] += len(rows.units) << ROW_BITS
        return
    plain.add(sums[:, :-1], rows)
    for code in range(classes):
        sums[code, -1] += np.count_nonzero(rows.labels == code) << ROW_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSum:
    """(sum z, n) over unit-ball rows; with `classes`, one such row a class."""

    width: int  # of z, without the count
    classes: int | None = None
    exponent: int = -ROW_BITS

    def zero(self) -> Ints:
        """No rows."""
        return RowSum(width=self.width + 1, classes=self.classes).zero()

    def add(self, total: Ints, rows: BoundedRows) -> Ints:
        """Exact: the rows by `RowSum`, counts as integers."""
        _add_counted(total.reshape(-1, self.width + 1), rows, self.classes)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `counted_sum_sensitivity`."""
        return counted_sum_sensitivity(self.width, neighbours, classes=self.classes is not None)


@dataclass(frozen=True, slots=True)
class SpreadRows:
    """Bounded rows with one more number each: q in [0, 1], held as integers of 2^-14."""

    rows: BoundedRows
    spread: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadSum:
    """(sum z, n) over unit-ball rows, of each class if there are classes; last, sum q / 2 of all."""

    width: int
    classes: int | None = None
    exponent: int = -ROW_BITS

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros((self.classes or 1) * (self.width + 1) + 1, np.int64)

    def add(self, total: Ints, rows: SpreadRows) -> Ints:
        """Exact: the rows by `RowSum`, counts and spreads as integers."""
        spread = rows.spread.astype(np.int64)
        require(
            bool(np.all(spread == rows.spread)) and bool(np.all((spread >= 0) & (spread <= SPREAD_ONE))),
            f"spread: must be an integer of at most {SPREAD_ONE} a row; bound it first",
        )
        require(len(spread) == len(rows.rows.units), "spread: must have one number for each row")
        total[-1] += spread.sum()
        _add_counted(total[:-1].reshape(-1, self.width + 1), rows.rows, self.classes)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `spread_sum_sensitivity`."""
        return spread_sum_sensitivity(self.width, neighbours, classes=self.classes is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedGram:
    """Gram of unit-ball rows beside class sums and class counts.

    apart       classes x (p+1) x (p+1): of (z, 1) of each class
    not apart   (p+C) x (p+C): of (z, e_class); off the diagonal its corner of counts is always 0
    """

    width: int  # of z
    classes: int
    apart: bool
    exponent: int = -2 * ROW_BITS

    def _gram(self) -> Gram:
        if self.apart:
            return Gram(width=self.width + 1, limit=2 * UNIT_LIMIT, classes=self.classes)
        return Gram(width=self.width + self.classes, limit=2 * UNIT_LIMIT)

    def zero(self) -> Ints:
        """No rows."""
        return self._gram().zero()

    def add(self, total: Ints, rows: BoundedRows) -> Ints:
        """Exact, as `Gram` of the rows with the constant or the one-hot of their class beside them."""
        one = 2**ROW_BITS
        wide = with_constant(rows, one) if self.apart else with_classes(rows, self.classes, one)
        return self._gram().add(total, wide)

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `counted_gram_sensitivity`."""
        return counted_gram_sensitivity(self.width, neighbours, apart=self.apart)
