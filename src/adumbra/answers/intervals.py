"""Intervals from one row of noisy cells: means, sums, differences, quantiles and variances.

What the cells leave open is in the interval: each end is that of the least or largest value that the
cells allow, with the noise of that end. Derivations are in docs/explanation/answers.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from adumbra.answers.columns import ColumnCells, Marked
from adumbra.answers.estimate import Asked, Estimate, hidden
from adumbra.answers.reported import NEAR_NOTE, REPORTED, TINY, Flags, Law
from adumbra.answers.rows import CellRow, Ratio, proportion_variance
from adumbra.errors import Unsupported, require
from adumbra.numerics import Array

T = TypeVar("T")
PartT = TypeVar("PartT")

PER_ANSWER = "the level holds for one answer at a time"
CELLS = "conservative: the interval also holds whatever values lie inside the released cells"
FEW = f"the rows asked about are fewer than {REPORTED:.0f} standard deviations of their noisy count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, in words and bounds."""

    asked: Asked
    words: str
    within: tuple[float, float]  # no answer lies outside
    encoded: str = ""  # how values were encoded
    more: tuple[str, ...] = ()  # what else is to be known
    is_laplace: bool = False

    @property
    def target(self) -> str:
        """The truth that the interval is about."""
        return self.asked.truth(self.words)

    @property
    def reach(self) -> float:
        """Standard deviations from the value to an end."""
        return self.asked.reach(is_laplace=self.is_laplace)

    def no_answer(self, why: str = FEW) -> Estimate:
        """The noise hides it."""
        return hidden(self.asked, self.target, why, self.within)

    def notes(self, *more: str) -> tuple[str, ...]:
        """What is not covered."""
        return (*([self.encoded] if self.encoded else []), *more, *self.more, PER_ANSWER)


@dataclass(frozen=True, slots=True)
class End:
    """A number with its noise, and how far the interval reaches below and above it."""

    value: float
    noise: float
    below: float
    above: float


def plain(value: float, noise: float, sampling: float, question: Question) -> Estimate:
    """An interval of one number that is linear in the noise."""
    reach = question.reach * noise
    return between([End(value, noise, reach, reach)] * 3, sampling, question)


def reported(value: Array, law: Law, sampling: float, question: Question) -> Estimate:
    """An interval of one number that is reported since its size stands out of the noise."""
    end = _end(float(np.ravel(value)[0]), law, question.asked.level)
    return between([end] * 3, sampling, question, (NEAR_NOTE,) if np.any(law.is_conservative) else ())


def _end(value: float, law: Law, level: float) -> End:
    below, above = (float(np.ravel(side)[0]) for side in law.sides(level))
    return End(value, float(np.ravel(law.noise)[0]), below, above)


def between(
    ends_of: Sequence[End], sampling: float, question: Question, notes: tuple[str, ...] = ()
) -> Estimate:
    """An answer (the second) between two ends, each with its own noise, inside what is possible."""
    low, middle, high = ends_of
    (least, most), sampled = question.within, question.reach * sampling
    ends = (low.value - math.hypot(low.below, sampled), high.value + math.hypot(high.above, sampled))
    return Estimate(
        value=min(max(middle.value, least), most),
        std_error=math.hypot(middle.noise, sampling),
        interval=(min(max(ends[0], least), most), min(max(ends[1], least), most)),
        level=question.asked.level,
        privacy=middle.noise,
        sampling=sampling,
        target=question.target,
        unresolved=(high.value - low.value) / 2.0,
        notes=question.notes(*([CELLS] if high.value > low.value else []), *notes),
    )


def of_ratio(row: CellRow, weights: Marked, among: Array, question: Question) -> Estimate:
    """The mean of weights over the rows that `among` marks."""
    found = _each(lambda part: row.ratio(part, among), weights.parts)
    middle = found[1]
    if middle.is_hidden:
        return question.no_answer()
    variance = sampling_variance(row, weights, among, middle) if question.asked.population else 0.0
    ends = _each(lambda ratio: _end(ratio.value, ratio.law, question.asked.level), found)
    return between(ends, math.sqrt(variance), question, _near(middle))


def _each(measure: Callable[[PartT], T], parts: Sequence[PartT]) -> list[T]:
    """A measure of each of three parts; taken once where cells leave nothing open, and all are one."""
    middle = measure(parts[1])
    return [middle if part is parts[1] else measure(part) for part in parts]


def _near(*found: Ratio) -> tuple[str, ...]:
    return (NEAR_NOTE,) if any(bool(ratio.law.is_near) for ratio in found) else ()


def of_total(row: CellRow, weights: Marked, question: Question) -> Estimate:
    """The number of rows that weights mark."""
    totals = _each(row.total, weights.parts)
    low, middle, high = (End(*found, *[question.reach * found[1]] * 2) for found in totals)
    share = min(max(middle.value / max(row.size, 1.0), 0.0), 1.0)
    sampling = math.sqrt(row.size * share * (1.0 - share)) if question.asked.population else 0.0
    return between((low, middle, high), sampling, question)


def of_difference(
    rows: tuple[CellRow, CellRow], weights: Marked, among: Array, shared: float, question: Question
) -> Estimate:
    """A mean of one class less that of another; `shared` is the covariance of their sizes."""
    one, other = (_each(partial(row.ratio, among=among), weights.parts) for row in rows)
    if one[1].is_hidden or other[1].is_hidden:
        return question.no_answer()
    sampling = 0.0
    if question.asked.population:
        found = zip(rows, (one[1], other[1]), strict=True)
        sampling = math.sqrt(sum(sampling_variance(row, weights, among, part) for row, part in found))
    is_one = one[0] is one[1]
    pairs = [(one[1], other[1])] * 3 if is_one else list(zip(one, other[::-1], strict=True))
    ends = _each(lambda pair: _less(*pair, shared, question.asked.level), pairs)
    return between(ends, sampling, question, _near(one[1], other[1]))


def _less(one: Ratio, other: Ratio, shared: float, level: float) -> End:
    """The sides of both are joined as their noises are (Zou and Donner), each in its own direction."""
    cross = -2.0 * one.size_slope * other.size_slope * shared
    noise = math.sqrt(max(one.noise**2 + other.noise**2 + cross, 0.0))
    first, second = (_end(ratio.value, ratio.law, level) for ratio in (one, other))
    more = noise / max(math.hypot(one.noise, other.noise), TINY)  # what their shared rows take or add
    below, above = math.hypot(first.below, second.above), math.hypot(first.above, second.below)
    return End(one.value - other.value, noise, more * below, more * above)


def sampling_variance(row: CellRow, weights: Marked, among: Array, found: Ratio) -> float:
    """The sampling variance of a mean of weights, from the same cells."""
    middle = weights.middle
    if np.all((middle == 0) | (middle == 1)):
        return proportion_variance(found.value, found.noise, found.size)
    square = row.ratio((middle - found.value) ** 2 * among, among)
    return max(square.value, square.noise) / max(found.size, 1.0)


def of_quantile(
    row: CellRow, cells: ColumnCells, among: Array, q: float, question: Question
) -> Estimate:
    """The smallest value that at least a share q of rows do not exceed; ends are ends of cells.

    Cells are tested from each end inwards, in a fixed order, so that each end is wrong with at most
    its part of the chance of a miss, however many cells there are.
    """
    require(0.0 < q < 1.0, f"q={q}: must lie between 0 and 1; 0.5 is the median")
    kept = np.flatnonzero(among)
    low, high = cells.values().inner[kept], cells.values().outer[kept]
    every = row.ratio(among, among)
    if every.is_hidden:
        return question.no_answer()
    marks = np.where(np.arange(len(among)) <= kept[:, None], among, 0.0)
    shares = np.asarray(marks @ row.moved / every.size)
    noise = row.deviation(marks - q * among) / every.size  # of a share less q, were it q: no ratio here
    sampling = math.sqrt(q * (1 - q) / max(every.size, 1.0)) if question.asked.population else 0.0
    reach = np.asarray(every.reported_reach(question.asked) * np.hypot(noise, sampling))
    first = _leading((shares + reach < q)[:-1])
    last = max(first, len(kept) - 1 - _leading((shares - reach >= q)[:-1][::-1]))
    if (first, last) == (0, len(kept) - 1) and len(kept) > 2:
        return question.no_answer("no released cell can be ruled out")
    place = min(max(int(np.searchsorted(np.maximum.accumulate(shares), q)), first), last)
    before = shares[place - 1] if place else 0.0
    part = min(max((q - before) / max(shares[place] - before, 1e-12), 0.0), 1.0)
    half = float(high[last] - low[first]) / 2.0
    return Estimate(
        value=float(low[place] + part * (high[place] - low[place])),
        std_error=half / question.reach,
        interval=(float(low[first]), float(high[last])),
        level=question.asked.level,
        privacy=half / question.reach if sampling == 0 else math.nan,
        sampling=0.0 if sampling == 0 else math.nan,
        target=question.target,
        unresolved=float(high[place] - low[place]) / 2.0,
        notes=question.notes(
            "conservative: the interval is of whole cells; its standard error is the half-width over a "
            "normal quantile, and is not split into parts for a population"
        ),
    )


def of_variance(row: CellRow, cells: ColumnCells, among: Array, question: Question) -> Estimate:
    """The variance of a number: that of the cells' middles, and at most what lies inside cells.

    sd(middle) - B <= sd(value) <= sd(middle) + B, B^2 the mean square of half widths (triangle
    inequality). Four chances of a miss share 1 - level.
    """
    if question.asked.population:
        raise Unsupported(
            "variance of the population: its sampling error needs fourth moments, which cells leave "
            "open; ask about the table"
        )
    values, asked = cells.values(), question.asked
    mean = row.ratio(values.middle * among, among)
    if mean.is_hidden:
        return question.no_answer()
    spread = row.ratio((values.middle - mean.value) ** 2 * among, among)
    inside = row.ratio(((values.outer - values.inner) / 2.0) ** 2 * among, among)
    reach = mean.reported_reach(replace(asked, level=1.0 - (1.0 - asked.level) / 2.0))  # four sides
    bound = (
        math.sqrt(max(inside.value + reach * inside.noise, 0.0))
        if np.any(values.outer > values.inner)
        else 0.0
    )
    offset = (reach * mean.noise) ** 2  # squares are taken around a mean that is off by so much
    least = math.sqrt(max(spread.value - reach * spread.noise - offset, 0.0)) - bound
    most = math.sqrt(max(spread.value + reach * spread.noise, 0.0)) + bound
    return Estimate(
        value=max(spread.value, 0.0),
        std_error=spread.noise,
        interval=(max(least, 0.0) ** 2, most**2),
        level=asked.level,
        privacy=spread.noise,
        sampling=0.0,
        target=question.target,
        unresolved=2.0 * math.sqrt(max(spread.value, 0.0)) * bound,
        notes=question.notes(CELLS),
    )


def _leading(marks: Flags) -> int:
    """How many marks stand at the front without a gap."""
    return int(np.argmin(np.append(marks, False)))
