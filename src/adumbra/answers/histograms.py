"""Answers from released one-way histograms (by class, where the release has them so).

Shares, counts, means, quantiles and variances of one column, for all rows or within a class of the
label, and differences between classes. What one-way histograms do not hold is refused.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from adumbra.answers.columns import ColumnCells, Marked
from adumbra.answers.conditions import Clause, Conditions, shown, suggestion
from adumbra.answers.estimate import Asked, Estimate
from adumbra.answers.intervals import (
    Question,
    of_difference,
    of_quantile,
    of_ratio,
    of_total,
    of_variance,
)
from adumbra.answers.rows import CellRow
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import Array

T = TypeVar("T")

NOT_TOGETHER = "this release does not hold these columns together in a form that has an interval"
LABEL_REMEDY = "an `answers` release of the table holds two columns at a time"
SHORTENED = (
    "the second moments of a `moments` release are of shortened rows, so that there is no one truth "
    "that an interval could be about; an `answers` release sums whole rows and would answer"
)
PAIR = 2
PAIR_BY_CLASS = "an `answers` release of the table would answer"
NUMBERS_BY_CLASS = "a `moments` release with numbers='bins' counts numbers by class"


@dataclass(frozen=True, slots=True)
class Cells:
    """Weights on one row of cells: which rows are counted, among which."""

    column: ColumnCells
    row: CellRow
    weights: Marked
    among: Array


@dataclass(frozen=True, slots=True)
class Joint:
    """The counts of one column by class, made to agree with those over all classes (least squares).

    In each cell the noise of two classes has the covariance `shared`; without a histogram over all
    classes there is none.
    """

    counts: Array = field(repr=False)  # classes x cells
    sigma: float
    shared: float = 0.0

    def within(self, marks: Array) -> tuple[Array, float]:
        """The counts of all marked classes together, and the standard deviation of a cell."""
        count = float(marks.sum())
        return marks @ self.counts, math.sqrt(self.sigma**2 * count + self.shared * count**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramAnswers:
    """All released histograms of one release, and the noise of their cells."""

    columns: Mapping[str, ColumnCells] = field(repr=False)
    tables: Mapping[str, Array] = field(repr=False)  # classes x cells, or 1 x cells; not the label's
    joint: Mapping[str, Joint] = field(repr=False)  # the same with the histograms over all classes
    label: str | None
    sigma: float
    is_laplace: bool
    size: float  # rows: public, or estimated
    size_variance: float
    classes: CellRow | None = field(repr=False)  # of the label, from all histograms

    def share(self, where: Conditions, given: Conditions, asked: Asked) -> Estimate:
        """The share of rows that meet `where`, among those that meet `given`."""
        words, found = share_words(where, given), self._cells(where, given)
        return of_ratio(
            found.row, found.weights, found.among, self._question(asked, words, (0.0, 1.0), found.column)
        )

    def count(self, where: Conditions, asked: Asked) -> Estimate:
        """How many rows meet the conditions; without any, the number of rows."""
        if not where:
            one = self._whole(np.array([self.size]), 0.0)
            marks = Marked(*[np.ones(1)] * 3)
            return of_total(one, marks, self._question(asked, "number of rows", (0.0, math.inf)))
        found = self._cells(where, ())
        top = self.size if self.size_variance == 0 else math.inf
        words = f"number of rows with {said(where)}"
        return of_total(found.row, found.weights, self._question(asked, words, (0.0, top), found.column))

    def mean(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """The mean of a number, among rows where it is present."""
        cells, row, among, question = self._number(name, where, asked, "mean")
        parts = (part * among for part in cells.values().parts)
        return of_ratio(row, Marked(*parts), among, question)

    def quantile(self, name: str, q: float, where: Conditions, asked: Asked) -> Estimate:
        """The smallest value that at least a share q of rows do not exceed."""
        cells, row, among, question = self._number(name, where, asked, f"{q:g}-quantile")
        return of_quantile(row, cells, among, q, question)

    def variance(self, name: str, where: Conditions, asked: Asked) -> Estimate:
        """The variance of a number."""
        cells, row, among, question = self._number(name, where, asked, "variance")
        return of_variance(row, cells, among, question)

    def crosstab(self, one: str, other: str, asked: Asked) -> dict[str, Estimate]:
        """The share of rows in each pair of levels; one of the two is the label."""
        require(one != other, f"crosstab of {shown(one)} with itself: name two columns")
        both = [self.column(name) for name in (one, other)]
        if self.label not in (one, other):
            raise Unsupported(f"{shown(one)} and {shown(other)}: {NOT_TOGETHER}; {LABEL_REMEDY}")
        cells = both[1] if one == self.label else both[0]
        table = self._by_class(cells)
        row, every, answers = self._classes_row(cells), np.ones(table.size), {}
        for code, level in enumerate(self._class_names()):
            for place, cell in enumerate(cells.cell_names()):
                names = (f"{self.label}={level}", cell)
                name = " and ".join(names if one == self.label else names[::-1])
                marks = np.zeros(table.shape)
                marks[code, place] = 1.0
                question = self._question(asked, f"share of rows with {name}", (0.0, 1.0), cells)
                answers[name] = of_ratio(row, Marked(*[marks.ravel()] * 3), every, question)
        return answers

    def compare(self, name: str, by: str, reference: str | None, asked: Asked) -> dict[str, Estimate]:
        """Each class less the first (or the reference): of means, or of a category's shares."""
        cells = self.column(name)
        self.column(by)
        if by != self.label:
            raise Unsupported(f"{shown(name)} by {shown(by)}: {NOT_TOGETHER}; {LABEL_REMEDY}")
        require(name != by, f"compare {shown(name)} by itself: name another column")
        self._by_class(cells)
        classes = self._class_names()
        base = reference_in(classes, reference, "class")
        kinds: dict[str, Marked] = {f"mean of {name}": cells.values()} if cells.low is not None else {}
        for level in cells.levels:
            kinds[f"share of {name}={level}"] = cells.mark((Clause(name, "=", level),))
        second, answers = classes.index(base), {}
        for words, weights in kinds.items():
            for code, level in enumerate(classes):
                if code != second:
                    what = f"{words}, {by}={level} less {by}={base}"
                    answers[what] = self._difference(cells, weights, (code, second), asked, what)
        return answers

    def correlation(self, one: str, other: str, asked: Asked) -> Estimate:
        """Refused: no histogram holds two numbers."""
        del asked
        raise self._no_second_moments(f"correlation of {shown(one)} and {shown(other)}", (one, other))

    def regress(self, target: str, features: tuple[str, ...], asked: Asked) -> dict[str, Estimate]:
        """Refused: no histogram holds several columns."""
        del asked
        raise self._no_second_moments(f"regression of {shown(target)}", (target, *features))

    def principal_components(self, k: int, asked: Asked) -> dict[str, Estimate]:
        """Refused: no histogram holds several columns."""
        del asked
        raise self._no_second_moments(f"{k} principal components", ())

    def _no_second_moments(self, what: str, names: tuple[str, ...]) -> Unsupported:
        for name in names:
            self.column(name)
        return Unsupported(f"{what}: {SHORTENED}")

    def column(self, name: str) -> ColumnCells:
        """The cells of a column, by its name."""
        return named_in(self.columns, name)

    def _question(
        self, asked: Asked, words: str, within: tuple[float, float], cells: ColumnCells | None = None
    ) -> Question:
        encoded = "" if cells is None or not cells.encoded else f"{cells.name}: {cells.encoded}"
        return Question(
            asked=asked, words=words, within=within, encoded=encoded, is_laplace=self.is_laplace
        )

    def _number(
        self, name: str, where: Conditions, asked: Asked, what: str
    ) -> tuple[ColumnCells, CellRow, Array, Question]:
        """The cells of a number among the rows that conditions on it and on the label leave."""
        cells = self.column(name)
        values = cells.values()
        stray = [clause.column for clause in where if clause.column not in (name, self.label)]
        if stray:
            self.column(stray[0])
            raise Unsupported(f"{shown(name)} given {shown(stray[0])}: {NOT_TOGETHER}; {LABEL_REMEDY}")
        row = self._row(cells, _of(self.label, where) if name != self.label else ())
        among = exact_cells(cells, _of(name, where)) * cells.present
        words = f"{what} of {name}" + (f" among rows with {said(where)}" if where else "")
        kept = among > 0
        require(bool(kept.any()), f"conditions {shown(said(where))}: no value meets them")
        low, high = float(values.inner[kept].min()), float(values.outer[kept].max())
        within = (0.0, (high - low) ** 2 / 4.0) if what == "variance" else (low, high)
        return cells, row, among, self._question(asked, words, within, cells)

    def _cells(self, where: Conditions, given: Conditions) -> Cells:
        """The row of cells that holds all columns of the conditions, and weights on it."""
        names = list(dict.fromkeys(clause.column for clause in (*where, *given)))
        for name in names:
            self.column(name)
        others = [name for name in names if name != self.label]
        if len(others) > 1:
            raise Unsupported(f"{' and '.join(map(shown, others))}: {NOT_TOGETHER}; {LABEL_REMEDY}")
        cells = self.column(others[0] if others else str(self.label))
        among = exact_cells(cells, _of(cells.name, given))
        marks = cells.mark(_of(cells.name, (*where, *given)))
        if not others or not _of(self.label, where):
            row = self._row(cells, _of(self.label, given) if others else ())
            return Cells(cells, row, marks, among)
        row, classes = self._classes_row(cells), self.column(str(self.label))
        codes = classes.mark(_of(self.label, (*where, *given))).inner
        weights = Marked(*(np.outer(codes, part).ravel() for part in marks.parts))
        whole = np.outer(exact_cells(classes, _of(self.label, given)), among).ravel()
        return Cells(cells, row, weights, whole)

    def _row(self, cells: ColumnCells, on_label: Conditions) -> CellRow:
        """The cells of a column over all rows, or in the classes that conditions on the label name."""
        if cells.name == self.label and self.classes is not None:
            return self.classes
        if not on_label or self.classes is None:
            joint = self.joint[cells.name]
            counts, sigma = joint.within(np.ones(len(joint.counts)))
            return self._whole(counts, sigma)
        marks = exact_cells(self.column(str(self.label)), on_label)
        self._by_class(cells)
        return self._class_row(self.joint[cells.name], marks)

    def _class_row(self, joint: Joint, marks: Array) -> CellRow:
        """The cells of a column in the classes that are marked."""
        assert self.classes is not None  # noqa: S101 - `_by_class` refuses without a label
        size, noise = self.classes.total(marks)
        counts, sigma = joint.within(marks)
        return replace(self._whole(counts, sigma), size=size, size_variance=noise**2)

    def _classes_row(self, cells: ColumnCells) -> CellRow:
        """The cells of a column in every class, one class behind the other; they hold every row once."""
        self._by_class(cells)
        joint = self.joint[cells.name]
        whole = self._whole(joint.counts.ravel(), joint.sigma)
        return replace(whole, layers=len(joint.counts), shared=joint.shared)

    def _whole(self, counts: Array, sigma: float) -> CellRow:
        """Cells that hold every row."""
        return CellRow(
            counts=counts,
            sigma=sigma,
            size=self.size,
            size_variance=self.size_variance,
            is_laplace=self.is_laplace,
        )

    def _by_class(self, cells: ColumnCells) -> Array:
        """The counts of classes x cells; refused where the release has none."""
        if self.label is None:
            raise Unsupported("classes: this release has no label; declare one in the schema")
        if not cells.by_class:
            remedy = PAIR_BY_CLASS if cells.cells == PAIR else NUMBERS_BY_CLASS
            raise Unsupported(
                f"{shown(cells.name)} within a class of {shown(self.label)}: this release counts the "
                "column over all rows only, and its second moments are of clipped rows, which "
                f"would bias a comparison of classes; {remedy}"
            )
        return self.tables[cells.name]

    def _class_names(self) -> tuple[str, ...]:
        cells = self.column(str(self.label))
        if cells.low is None:
            return cells.levels
        return tuple(name[len(cells.name) + 1 :] for name in cells.cell_names())

    def _difference(
        self, cells: ColumnCells, weights: Marked, codes: tuple[int, int], asked: Asked, words: str
    ) -> Estimate:
        """A mean (or share) of one class less that of another."""
        assert self.classes is not None  # noqa: S101 - `compare` refuses without a label
        count = len(self.classes.counts)
        # As they were counted by class: a second histogram would tie the noise of two classes together
        # and say nothing of their difference.
        own = Joint(self._by_class(cells), self.sigma)
        rows = [self._class_row(own, np.eye(count)[code]) for code in codes]
        shared = (self.classes.size_variance / count - self.classes.sigma**2) / count
        kept = cells.present > 0
        span = float(weights.outer[kept].max() - weights.inner[kept].min())
        question = self._question(asked, words, (-span, span), cells)
        parts = (part * cells.present for part in weights.parts)
        return of_difference((rows[0], rows[1]), Marked(*parts), cells.present, shared, question)


def exact_cells(cells: ColumnCells, conditions: Conditions) -> Array:
    """The cells of conditions on this column, which must end where cells end."""
    marks = cells.mark(conditions)
    if not marks.is_exact:
        open_cell = int(np.flatnonzero(marks.inner != marks.outer)[0])
        low, high = cells.values().inner[open_cell], cells.values().outer[open_cell]
        raise Unsupported(
            f"rows with {shown(said(conditions))}: a released cell of {shown(cells.name)} runs from "
            f"{low:.6g} to {high:.6g}; ask at one of these ends"
        )
    require(bool(marks.inner.any()), f"conditions {shown(said(conditions))}: no value meets them")
    return marks.inner


def _of(name: str | None, conditions: Conditions) -> Conditions:
    return tuple(clause for clause in conditions if clause.column == name)


def said(conditions: Conditions) -> str:
    """Conditions as they were asked."""
    return " and ".join(map(str, conditions))


def share_words(where: Conditions, given: Conditions) -> str:
    """What a share is of; refused without a condition."""
    require(bool(where), "share: no condition; give one, such as 'region=north'")
    return f"share of rows with {said(where)}" + (f", given {said(given)}" if given else "")


def named_in(known: Mapping[str, T], name: str) -> T:
    """What a release holds of a column, by its name."""
    if name not in known:
        remedy = suggestion(name, list(known))
        raise InvalidInput(f"column {shown(name)}: is not in this release; {remedy}")
    return known[name]


def reference_in(levels: Sequence[str], reference: str | None, what: str) -> str:
    """What the others are compared with: the first, or the one that is named."""
    base = levels[0] if reference is None else reference
    if base not in levels:
        remedy = suggestion(base, list(levels))
        raise InvalidInput(f"reference={shown(base)}: no {what}; {remedy}")
    return base
