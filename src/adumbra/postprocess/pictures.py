"""What a release can show of itself, as plain numbers: a page draws them, nothing here draws.

Every value is computed from released arrays and tables and from public decisions. The noise that stands
beside a value is the card's: 95 of 100 noise values lie within a `reach`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.schema.column import Column

COMMON = 0.05  # of noise values lie outside the reach that pictures show
MOST_WIDTH = 1_500  # encoded columns whose spectrum and correlations are drawn
HEAT_COLUMNS, LISTED_PAIRS = 24, 12
SPECTRUM_VALUES = 60
SHOWN_DIRECTIONS, SHOWN_WEIGHTS = 4, 8
QUIET = 3.0  # a variance counts as known above this many reaches of its own noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """The released counts of one column's values, as shares of the rows."""

    name: str
    shares: Array = field(repr=False)  # noisy: some may be below 0
    reach: float  # of the noise of one share
    levels: tuple[str, ...] = ()  # names of the cells; empty for a number
    limits: tuple[float, float] = (0.0, 1.0)  # of a number
    missing: float | None = None  # the share of missing values, where they are kept
    ends: tuple[str, str] | None = None  # the limits in words, where they are no plain numbers

    @property
    def contrast(self) -> float:
        """How far the shape stands out of a flat one, in units of its noise."""
        spread = float(np.sqrt(np.mean((self.shares - self.shares.mean()) ** 2)))
        return spread / max(self.reach, 1e-300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Named values in order, each with the reach of its noise where that is known."""

    title: str
    caption: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    reaches: tuple[float | None, ...]
    are_shares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two columns and their released correlation."""

    first: str
    second: str
    correlation: float
    reach: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Correlations of the columns that have the strongest ones."""

    names: tuple[str, ...]
    values: Array = field(repr=False)  # NaN: one column, or two that stand for one
    pairs: tuple[Pair, ...]  # the strongest that stand out of the noise of all pairs together
    standing_out: int
    compared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """Variances along the principal directions, falling, and the edge below which all is noise."""

    values: Array = field(repr=False)
    edge: float
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The standard error of a squared distance by the number of components."""

    at: tuple[float, ...]
    errors: tuple[float, ...]
    chosen: tuple[float, float]
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction (or a difference of means) by the columns with the largest weights."""

    title: str
    names: tuple[str, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """All that one release shows."""

    histograms: tuple[Histogram, ...] = ()
    bars: tuple[Bars, ...] = ()
    heat: Heat | None = None
    spectrum: Spectrum | None = None
    curve: Curve | None = None
    directions: tuple[Direction, ...] = ()
    directions_are: str = ""  # one sentence
    words: Mapping[str, str] = field(default_factory=dict)  # what each table and array is, by name

    def __bool__(self) -> bool:
        return bool(
            self.histograms
            or self.bars
            or self.directions
            or self.heat is not None
            or self.spectrum is not None
            or self.curve is not None
        )


NOTHING = Pictures()


def reach_of(deviation: float, *, is_pure: bool, outside: float = COMMON) -> float:
    """How far noise of this standard deviation reaches, but for a chance of `outside`."""
    if is_pure:  # a Laplace value: scale log(1 / outside)
        return deviation / math.sqrt(2.0) * math.log(1.0 / outside)
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, and no plan needs it

    return deviation * -float(ndtri(outside / 2.0))


def spectrum_of(covariance: Array, edge: float) -> Spectrum | None:
    """The largest eigenvalues beside the edge of the noise; None where it is too wide to be drawn."""
    width = len(covariance)
    if not 2 <= width <= MOST_WIDTH:
        return None
    values = np.linalg.eigvalsh((covariance + covariance.T) / 2.0)[::-1]
    shown = np.array(values[:SPECTRUM_VALUES], np.float64)
    return Spectrum(values=shown, edge=edge, width=width)


def heat_of(
    covariance: Array, names: Sequence[str], owners: Sequence[int], deviation: float, *, is_pure: bool
) -> Heat | None:
    """Correlations with their noise; `owners` are the columns that encoded columns stand for.

    A column whose variance drowns in noise has no correlation that could be read, and is left out. A
    pair stands out if noise alone would show one like it among all pairs with a chance of 5 % at most.
    """
    variances = np.diagonal(covariance)
    least = QUIET * reach_of(deviation * math.sqrt(2.0), is_pure=is_pure)
    known = np.flatnonzero(variances > max(least, 1e-12))
    if not 2 <= len(known) <= MOST_WIDTH:
        return None
    own = np.asarray(owners)[known]
    scale = 1.0 / np.sqrt(variances[known])
    values = np.clip(covariance[np.ix_(known, known)] * np.outer(scale, scale), -1.0, 1.0)
    values[own[:, None] == own[None, :]] = np.nan
    compared = int(np.isfinite(values).sum()) // 2
    if compared == 0:
        return None
    sizes = np.nan_to_num(np.abs(values))
    louder = sizes > reach_of(deviation, is_pure=is_pure, outside=COMMON / compared) * np.outer(
        scale, scale
    )
    strength = np.where(louder, sizes, 1e-3 * sizes).max(axis=1)  # what stands out comes first
    chosen = _chain(sizes, np.argsort(-strength, kind="stable")[:HEAT_COLUMNS].astype(np.int64))
    rows, columns = np.nonzero(np.triu(louder))
    # The largest of all pairs are listed, so their reach is that of all pairs at once.
    reach = reach_of(deviation, is_pure=is_pure, outside=COMMON / compared)
    least_size = sizes[rows, columns] - reach * scale[rows] * scale[columns]
    order = np.argsort(-least_size, kind="stable")[:LISTED_PAIRS]
    shown = [str(names[int(place)]) for place in known]
    return Heat(
        names=tuple(shown[place] for place in chosen),
        values=values[np.ix_(chosen, chosen)],
        pairs=tuple(
            Pair(
                first=shown[i],
                second=shown[j],
                correlation=float(values[i, j]),
                reach=float(reach * scale[i] * scale[j]),
            )
            for i, j in zip(rows[order], columns[order], strict=True)
        ),
        standing_out=len(rows),
        compared=compared,
    )


def _chain(sizes: Array, chosen: Ints) -> list[int]:
    """The chosen columns in an order where neighbours are strongly correlated."""
    left = [int(place) for place in chosen]
    order = [left.pop(0)]
    while left:
        nearest = max(left, key=lambda place: (sizes[order[-1], place], -place))
        left.remove(nearest)
        order.append(nearest)
    return order


def direction_of(title: str, weights: Array, names: Sequence[str]) -> Direction:
    """The largest weights of a direction, with their columns."""
    order = np.argsort(-np.abs(weights), kind="stable")[:SHOWN_WEIGHTS]
    return Direction(
        title=title,
        names=tuple(str(names[place]) for place in order),
        weights=tuple(float(weights[place]) for place in order),
    )


def class_names(column: Column, count: int) -> tuple[str, ...]:
    """The names of a label's classes."""
    if column.is_numeric:
        return tuple(column.text(column.limits[0] + code) for code in range(count))
    return tuple(name or "missing" for name in column.level_names)
