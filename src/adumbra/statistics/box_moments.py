"""Exact sums and second moments of box-bounded rows, jointly: mixed tables, with or without classes.

    z = (x, e_1, ..., e_p2),  x in [-1/2, 1/2]^p1,  one 1 in each one-hot group;   sum over rows of

    numeric x_i x_j (i <= j),  x_i e_v,  e_v e_w of two groups,  z by class,  the count of each class

A diagonal entry of a dummy is its sum and a pair of one group is 0, so neither is released. Without
classes the sum is one, and the count is released only where the number of rows is private.

With weights (no classes) a column of squared weight q_j is sqrt(q_j) as long in the L2 geometry: its
entries get less noise, all others more.

Proof       box_moments.proof.md, of `box_rows`, `joint_l1`, `joint_l2_square`, `sigma_factors`;
            weighted_moments.proof.md, of `weighted_l2_square` and `weighted_factors`.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache

import numpy as np

from adumbra.data.encode import Encoder
from adumbra.errors import Unsupported, require
from adumbra.numerics import EXACT, ROW_BITS, Array, Ints, fraction_upper, round_up, sqrt_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity

ONE = 2**ROW_BITS  # the integer that stands for 1


class Kind(IntEnum):
    """What a released coordinate is; coordinates of one kind share a noise scale."""

    SQUARE = 0  # sum x_i^2 of a number
    CROSS = 1  # sum z_i z_j, i < j
    TOTAL = 2  # sum z_i, in all or over a class
    COUNT = 3  # rows, in all or of a class


@dataclass(frozen=True, slots=True)
class BoxShape:
    """The public shape of the rows: numeric columns, one-hot groups, classes (0: none)."""

    numeric: tuple[int, ...]
    groups: tuple[slice, ...]
    classes: int = 0

    @property
    def width(self) -> int:
        """Encoded columns."""
        return len(self.numeric) + sum(len(range(*group.indices(group.stop))) for group in self.groups)

    @property
    def size(self) -> int:
        """Columns with those appended: one per class, or a constant."""
        return self.width + max(self.classes, 1)


def shape_of(encoder: Encoder, *, classes: int = 0) -> BoxShape:
    """The shape of an encoder's rows."""
    require(encoder.centred, "centred=False: box moments are proved for numbers in [-1/2, 1/2]")
    return BoxShape(encoder.numeric, encoder.groups, classes)


@dataclass(frozen=True, slots=True)
class BoxRows:
    """Integer rows (in float64) of units 2^-15: numbers within +-2^14, one 2^15 in each group."""

    units: Array
    shape: BoxShape


def box_rows(encoded: Array, shape: BoxShape, labels: Ints | None = None) -> BoxRows:
    """Encoded rows on the lattice, inside the box by construction whatever the floats were.

    Numbers are clipped, a group's 1 stands at its largest value, and a class column (or the
    constant) holds one 1 for each row, at the nearest class there is.
    """
    rows = len(encoded)
    units = np.zeros((rows, shape.size))
    numbers = np.clip(np.nan_to_num(encoded[:, shape.numeric], nan=0.0), -0.5, 0.5)
    units[:, shape.numeric] = np.rint(numbers * float(ONE))  # of a float within +-1/2: within +-2^14
    every = np.arange(rows)
    for group in shape.groups:
        units[every, group.start + np.argmax(encoded[:, group], axis=1)] = ONE
    codes = np.zeros(rows, np.int64) if labels is None else labels
    units[every, shape.width + np.clip(codes, 0, max(shape.classes, 1) - 1)] = ONE
    return BoxRows(units, shape)


@dataclass(frozen=True, slots=True)
class BoxMoments:
    """sum z z^T of box rows with their class columns: every moment at once, on 2^-30."""

    shape: BoxShape
    exponent: int = -2 * ROW_BITS
    weights: tuple[int, ...] = ()  # squared, of each column and the constant; empty: those of `_weights`

    def __post_init__(self) -> None:
        fits = not self.weights or (self.shape.classes == 0 and len(self.weights) == self.shape.size)
        require(fits, "weights: need one for each column and the constant, and no classes")
        require(min(self.weights, default=1) >= 1, "weights: must be whole numbers of at least 1")

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros((self.shape.size, self.shape.size), np.int64)

    def add(self, total: Ints, rows: BoxRows) -> Ints:
        """Exact: float64 BLAS on integers, added as int64."""
        require(rows.shape == self.shape, "shape: rows and statistic were declared for different tables")
        require(
            len(rows.units) * ONE**2 < EXACT,
            f"rows={len(rows.units)}: a block this large is not exact in float64; use smaller blocks",
        )
        total += (rows.units.T @ rows.units).astype(np.int64)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """L1 of the released coordinates; L2 in the coordinates of `sigma_factors`."""
        if self.weights:
            square = weighted_l2_square(self.shape, self.weights, neighbours)
        else:
            square = joint_l2_square(self.shape, neighbours)
        return Sensitivity(
            l1=fraction_upper(joint_l1(self.shape, neighbours)), l2=sqrt_upper(fraction_upper(square))
        )

    def coordinates(self, neighbours: Neighbours) -> tuple[Ints, Ints, Ints]:
        """Row, column and kind of every released coordinate."""
        width, size = self.shape.width, self.shape.size
        kinds = np.full((size, size), -1)
        kinds[:width, :width] = np.where(np.tri(width, k=-1, dtype=bool).T, Kind.CROSS, -1)
        for group in self.shape.groups:
            kinds[group, group] = -1
        kinds[self.shape.numeric, self.shape.numeric] = Kind.SQUARE
        kinds[:width, width:] = Kind.TOTAL
        if self.shape.classes or not neighbours.rows_are_public:
            kinds[range(width, size), range(width, size)] = Kind.COUNT
        rows, columns = np.nonzero(kinds >= 0)
        return rows, columns, kinds[rows, columns]

    def roundings(self, neighbours: Neighbours) -> tuple[float, float]:
        """L1 and weighted L2 of a change by one unit in every released coordinate."""
        kinds = self.kind_counts(neighbours)
        square = sum(count * weight for count, weight in zip(kinds, _weights(self.shape), strict=True))
        if self.weights:
            places = self.coordinates(neighbours)
            square = Fraction(int(isometric_squares(self.weights, places).sum()))
        return float(sum(kinds)), sqrt_upper(fraction_upper(Fraction(square)))

    def factors(self, places: tuple[Ints, Ints, Ints]) -> Array:
        """The noise sigma of each coordinate over that of the isometric coordinates, rounded up."""
        if self.weights:
            return weighted_factors(self.weights, places)
        return sigma_factors(self.shape)[places[2]]

    def kind_counts(self, neighbours: Neighbours) -> tuple[int, int, int, int]:
        """How many coordinates of each `Kind` are released, without listing them."""
        width, further = self.shape.width, self.shape.size - self.shape.width
        levels = [group.stop - group.start for group in self.shape.groups]
        inside = sum(level * (level - 1) // 2 for level in levels)  # products within a category
        has_counts = bool(self.shape.classes) or not neighbours.rows_are_public
        cross = width * (width - 1) // 2 - inside
        return len(self.shape.numeric), cross, width * further, further * has_counts


def joint_l1(shape: BoxShape, neighbours: Neighbours) -> Fraction:
    """The exact largest L1 change of all released coordinates together.

    add-remove    (p1/2)(1 + p2) + p1(p1+1)/8 + p2(p2+1)/2 + 1
    replace-one   2 p2 + p2(p2-1) + max over v in [0,1]^p1 of
                  alpha S + beta sum max(v_i, 1-v_i) + (p1-S)S/2 + sum v_i(1-v_i)/2,   S = sum v_i
                  with (alpha, beta) = (1, p2), or (0, 1 + p2) and 2 more for counts if there are classes
    """
    p1, p2 = len(shape.numeric), len(shape.groups)
    if neighbours is Neighbours.ADD_REMOVE:
        return Fraction(p1 * (1 + p2), 2) + Fraction(p1 * (p1 + 1), 8) + Fraction(p2 * (p2 + 1), 2) + 1
    _require_replace(neighbours)
    alpha, beta, counts = (0, 1 + p2, 2) if shape.classes else (1, p2, 0)
    return _peak(p1, alpha, beta) + p2 * (p2 + 1) + counts


@lru_cache(maxsize=64)
def _peak(p: int, alpha: int, beta: int) -> Fraction:
    """The maximum in `joint_l1`: a coordinates use v (all equal s), the others 1 - v (all equal t).

    For a fixed choice the function is concave and symmetric, so equal values are best and the maximum
    over the square is the stationary point, or else one of the best points of its edges.
    """
    return max(
        _value(p, alpha, beta, a, s, t) for a in range(p + 1) for s, t in _best(p, alpha, beta, a)
    )


def _best(p: int, alpha: int, beta: int, a: int) -> list[tuple[Fraction, Fraction]]:
    """Candidates (s, t) in the unit square; gradient 0 means S + s = up and S + t = down."""
    up, down = alpha + beta + Fraction(p + 1, 2), alpha - beta + Fraction(p + 1, 2)
    zero, one, b = Fraction(0), Fraction(1), p - a
    inside = (down - 2 * a * beta) / (p + 1)
    found = [(inside + 2 * beta, inside)] if inside >= 0 and inside + 2 * beta <= 1 else []
    found += [(s, min(one, max(zero, (down - a * s) / (b + 1)))) for s in (zero, one)]
    found += [(min(one, max(zero, (up - b * t) / (a + 1))), t) for t in (zero, one)]
    return found


def _value(p: int, alpha: int, beta: int, a: int, s: Fraction, t: Fraction) -> Fraction:  # noqa: PLR0913, PLR0917
    b = p - a
    total = a * s + b * t
    bends = a * s * (1 - s) + b * t * (1 - t)
    return alpha * total + beta * (a * s + b * (1 - t)) + ((p - total) * total + bends) / 2


def class_weight_square(shape: BoxShape) -> Fraction:
    """a^2: how much of a row's squared length the class column gets in the L2 geometry."""
    return min(Fraction(1), Fraction(len(shape.numeric), 4) + len(shape.groups))


def joint_l2_square(shape: BoxShape, neighbours: Neighbours) -> Fraction:
    """The squared L2 change in isometric coordinates: x_i^2, sqrt2 z_i z_j, sqrt2 a z_i, a^2.

    Z = p1/4 + p2 + a^2 bounds |(z, a e_y)|^2.
    add-remove    Z^2 - p2
    replace-one   max over m <= p2 changed categories of 2 Z^2 - 2 m - 2 max(0, p2 - m + c - p1/4)^2,
                  c = 0 with classes, else a^2
    """
    p1, p2 = len(shape.numeric), len(shape.groups)
    weight, box = class_weight_square(shape), Fraction(p1, 4)
    longest = box + p2 + weight
    if neighbours is Neighbours.ADD_REMOVE:
        return longest**2 - p2
    _require_replace(neighbours)
    kept = Fraction(0) if shape.classes else weight
    return max(
        2 * longest**2 - 2 * m - 2 * max(Fraction(0), p2 - m + kept - box) ** 2 for m in range(p2 + 1)
    )


def sigma_factors(shape: BoxShape) -> Array:
    """The noise sigma of each `Kind` over that of the isometric coordinates, rounded up."""
    return np.array([round_up(1.0 / math.sqrt(weight)) * (1.0 + 2.0**-50) for weight in _weights(shape)])


def _weights(shape: BoxShape) -> tuple[Fraction, ...]:
    """Squared isometric weight of each `Kind`: what it counts for in the squared L2 change."""
    square = class_weight_square(shape)
    return Fraction(1), Fraction(2), 2 * square, square**2


def weighted_l2_square(shape: BoxShape, weights: tuple[int, ...], neighbours: Neighbours) -> Fraction:
    """The squared L2 change where column j counts sqrt(q_j) z_j and the constant sqrt(q_0).

    Z = sum of q_j / 4 over numbers + the largest q_j of each group + q_0 bounds the squared length.
    add-remove    Z^2
    replace-one   2 Z^2 - 2 max(0, q_0 - sum of q_j / 4 over numbers)^2
    """
    numbers = Fraction(sum(weights[place] for place in shape.numeric), 4)
    constant = weights[shape.width]
    longest = numbers + sum(max(weights[group]) for group in shape.groups) + constant
    if neighbours is Neighbours.ADD_REMOVE:
        return longest**2
    _require_replace(neighbours)
    return 2 * longest**2 - 2 * max(Fraction(0), constant - numbers) ** 2


def isometric_squares(weights: tuple[int, ...], places: tuple[Ints, Ints, Ints]) -> Ints:
    """The squared isometric weight of each coordinate: q_i^2 on the diagonal, 2 q_i q_j beside it."""
    squares = np.asarray(weights, np.int64)
    rows, columns, _ = places
    return np.asarray(squares[rows] * squares[columns] * np.where(rows == columns, 1, 2))


def weighted_factors(weights: tuple[int, ...], places: tuple[Ints, Ints, Ints]) -> Array:
    """One over the isometric weight of each coordinate, rounded up."""
    return np.asarray((1.0 + 2.0**-50) / np.sqrt(isometric_squares(weights, places).astype(np.float64)))


def complete(noisy: Array, coordinates: tuple[Ints, Ints, Ints], shape: BoxShape) -> Array:
    """The whole symmetric matrix of released coordinates: a dummy's diagonal is its sum."""
    rows, columns, _ = coordinates
    full = np.zeros((shape.size, shape.size))
    full[rows, columns] = noisy
    full[columns, rows] = noisy
    totals = full[: shape.width, shape.width :].sum(axis=1)
    for group in shape.groups:
        places = np.arange(group.start, group.stop)
        full[places, places] = totals[group]
    return full


def _require_replace(neighbours: Neighbours) -> None:
    if neighbours is not Neighbours.REPLACE_ONE:
        raise Unsupported(f"neighbours={neighbours}: moments of rows have no proof for it; use unit=row")
