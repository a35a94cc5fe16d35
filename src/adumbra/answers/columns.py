"""One column's released cells: what a value or a comparison means in them.

A comparison need not end where a cell ends. It is then between the cells that lie inside it for sure and
those that touch it; `Marked` holds both, and a guess between them for the value that is printed.
"""

import operator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from adumbra.answers.conditions import IS_MISSING, Clause, Conditions, shown, suggestion
from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import Array
from adumbra.postprocess.marginals import cell_limits
from adumbra.postprocess.moments.design import Feature
from adumbra.schema.schema import OWN_CATEGORY, Column, Kind
from adumbra.schema.times import instant_of, instant_text, unit_words

MISSING = "missing"
TRUTHS = {"true": 1.0, "yes": 1.0, "1": 1.0, "false": 0.0, "no": 0.0, "0": 0.0}

COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Marked:
    """Cells of a condition: those inside it, a guess, and those that touch it."""

    inner: Array
    middle: Array
    outer: Array

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Inside, guess, touching; one array three times where they are the same."""
        is_one = np.array_equal(self.inner, self.middle) and np.array_equal(self.middle, self.outer)
        return (self.middle,) * 3 if is_one else (self.inner, self.middle, self.outer)

    @property
    def is_exact(self) -> bool:
        """Whether the condition ends where cells end."""
        return bool(np.array_equal(self.inner, self.outer))

    def both(self, other: "Marked") -> "Marked":
        """Where both conditions hold."""
        return Marked(self.inner * other.inner, self.middle * other.middle, self.outer * other.outer)

    def complement(self, among: Array) -> "Marked":
        """Where it does not hold, among some cells."""
        return Marked(among * (1 - self.outer), among * (1 - self.middle), among * (1 - self.inner))


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCells:
    """What the cells of one column stand for."""

    name: str
    place: int  # of its histogram
    by_class: bool
    levels: tuple[str, ...] = ()  # of a category
    low: Array | None = field(default=None, repr=False)  # of a number: least and largest value of cells
    high: Array | None = field(default=None, repr=False)
    is_integer: bool = False
    is_truth: bool = False  # 0 and 1 stand for false and true
    keeps_missing: bool = False  # the last cell counts missing numbers
    encoded: str = ""  # how values were encoded, in words
    time: Kind | None = None  # of dates and times, whose values count days or microseconds
    is_ordered: bool = False  # of levels

    @property
    def cells(self) -> int:
        """Cells within a class."""
        return (len(self.levels) if self.low is None else len(self.low)) + self.keeps_missing

    @property
    def present(self) -> Array:
        """The cells of rows that have a value."""
        marks = np.ones(self.cells)
        marks[self.cells - self.keeps_missing :] = 0.0
        return marks

    def values(self) -> Marked:
        """Least, middle and largest value of each cell."""
        if self.low is None or self.high is None:
            raise InvalidInput(f"column {shown(self.name)}: holds categories; ask for a share")
        pad = np.zeros(int(self.keeps_missing))
        middle = (self.low + self.high) / 2.0
        return Marked(*(np.concatenate((part, pad)) for part in (self.low, middle, self.high)))

    def mark(self, conditions: Conditions) -> Marked:
        """The cells of all conditions on this column; every cell, if there are none."""
        every = np.ones(self.cells)
        found = Marked(every, every, every)
        for clause in conditions:
            found = found.both(self._clause(clause))
        return found

    def cell_names(self) -> tuple[str, ...]:
        """Each cell as a condition."""
        if self.low is None or self.high is None:
            return tuple(f"{self.name}={level}" for level in self.levels)
        said = "{:.6g}".format if self.time is None else partial(instant_text, self.time)
        exact = "{:.12g}".format if self.time is None else said
        named = tuple(
            f"{self.name}={exact(low)}"
            if low == high
            else f"{self.name} from {said(low)} to {said(high)}"
            for low, high in zip(self.low, self.high, strict=True)
        )
        return (*named, f"{self.name} {IS_MISSING}") if self.keeps_missing else named

    def _clause(self, clause: Clause) -> Marked:
        if clause.operator == IS_MISSING:
            return self._missing()
        if self.low is None or self.high is None:
            return self._level(clause)
        try:
            known = TRUTHS.get(clause.value.lower()) if self.is_truth else None
            known = known if self.time is None else instant_of(self.time, clause.value)
            value = float(clause.value) if known is None else float(known)
        except ValueError:
            value = np.nan
        held = "true and false" if self.is_truth else f"{self.time}s" if self.time else "numbers"
        require(np.isfinite(value), f"condition {shown(str(clause))}: {shown(self.name)} holds {held}")
        below, at_most = self._below(value)
        found = {
            "<": below,
            "<=": at_most,
            ">": at_most.complement(np.ones(len(self.low))),
            ">=": below.complement(np.ones(len(self.low))),
            "=": self._equal(value),
            "!=": self._equal(value).complement(np.ones(len(self.low))),
        }[clause.operator]
        pad = np.zeros(int(self.keeps_missing))
        return Marked(*(np.concatenate((part, pad)) for part in found.parts))

    def _missing(self) -> Marked:
        if self.low is None and MISSING in self.levels[-1:]:
            return self._level(Clause(self.name, "=", MISSING))
        if not self.keeps_missing:
            raise Unsupported(
                f"{shown(self.name)} {IS_MISSING}: missing values were encoded as another value and not "
                "counted apart; a schema with missing='null' (numbers) or 'category' counts them"
            )
        marks = 1.0 - self.present
        return Marked(marks, marks, marks)

    def _level(self, clause: Clause) -> Marked:
        require(
            clause.operator in ("=", "!=") or self.is_ordered,
            f"condition {shown(str(clause))}: {shown(self.name)} holds categories; use = or !=",
        )
        if clause.value not in self.levels:
            known = suggestion(clause.value, list(self.levels))
            wrong = f"condition {shown(str(clause))}: no such category of {shown(self.name)}"
            raise InvalidInput(f"{wrong}; {known}")
        places = np.arange(len(self.levels))
        compare = COMPARISONS[clause.operator]
        marks = compare(places, self.levels.index(clause.value)).astype(float)
        if clause.operator[0] in "<>" and self.levels[-1] == MISSING:
            marks[-1] = 0.0  # what is missing has no rank
        return Marked(marks, marks, marks)

    def _below(self, value: float) -> tuple[Marked, Marked]:
        """Cells below the value, and below or at it."""
        low, high = self._limits()
        open_top = (low < high) & (not self.is_integer)  # the cell's upper end belongs to the next one
        step = 1.0 if self.is_integer else 0.0
        width = np.where(high > low, high - low, 1.0) + step
        part = np.clip((value - low) / width, 0.0, 1.0)
        inner, outer = (high < value) | (open_top & (high <= value)), low < value
        below = Marked(inner.astype(float), np.where(inner, 1.0, part * outer), outer.astype(float))
        inner, outer = high <= value, low <= value
        part = np.clip((np.floor(value) + 1.0 - low) / width, 0.0, 1.0) if self.is_integer else part
        at_most = Marked(inner.astype(float), np.where(inner, 1.0, part * outer), outer.astype(float))
        return below, at_most

    def _equal(self, value: float) -> Marked:
        """Cells of one value."""
        low, high = self._limits()
        open_top = (low < high) & (not self.is_integer)
        inner = (low == high) & (low == value)
        outer = (low <= value) & (value <= high) & ~(open_top & (high == value))
        if self.is_integer and value != np.floor(value):
            outer = inner
        guess = outer / (high - low + 1.0) if self.is_integer else inner.astype(float)
        return Marked(inner.astype(float), guess, outer.astype(float))

    def _limits(self) -> tuple[Array, Array]:
        if self.low is None or self.high is None:
            raise InvalidInput(f"column {shown(self.name)}: holds categories")
        return self.low, self.high


def cells_of(feature: Feature, column: Column | None, place: int) -> ColumnCells:
    """The cells of a measured column; an item of a set has no declared column."""
    if column is not None and column.kind is Kind.ORDINAL:
        own = (MISSING,) if column.keeps_null else ()
        words = "counted apart" if own else filled(column)
        return ColumnCells(
            name=feature.name,
            place=place,
            by_class=feature.is_levels,
            levels=(*column.categories, *own),
            is_ordered=True,
            encoded=f"missing {words}",
        )
    if feature.edges is not None:
        low, high = cell_limits(feature.edges, feature.is_integer)
        missing = "counted apart" if feature.missing is not None else filled(column)
        time = column.kind if column is not None and column.kind.is_time else None
        return ColumnCells(
            name=feature.name,
            place=place,
            by_class=feature.is_levels,
            low=low,
            high=high,
            is_integer=feature.is_integer,
            keeps_missing=feature.missing is not None,
            encoded=f"{clipped(column, feature.lower, feature.upper)}, missing {missing}",
            time=time,
        )
    if column is None or column.kind is Kind.BOOLEAN:
        ends = np.array([0.0, 1.0])
        words = "" if column is None else f"missing {filled(column)}"
        return ColumnCells(
            name=feature.name, place=place, by_class=feature.is_levels, low=ends, high=ends,
            is_integer=True, is_truth=True, encoded=words,
        )  # fmt: skip
    return ColumnCells(
        name=feature.name,
        place=place,
        by_class=feature.is_levels,
        levels=level_names(column),
        encoded=f"missing {filled(column)}",
    )


def class_cells(label: Column, place: int) -> ColumnCells:
    """The classes of the label."""
    if label.kind.has_bounds:
        lower, upper = label.limits
        values = np.arange(lower, upper + 1.0)
        return ColumnCells(
            name=label.name, place=place, by_class=False, low=values, high=values, is_integer=True,
            encoded=f"missing {filled(label)}", time=label.kind if label.kind.is_time else None,
        )  # fmt: skip
    levels = ("false", "true") if label.kind is Kind.BOOLEAN else level_names(label)
    return ColumnCells(
        name=label.name,
        place=place,
        by_class=False,
        levels=levels,
        encoded=f"missing {filled(label)}",
        is_ordered=label.kind is Kind.ORDINAL,
    )


def clipped(column: Column | None, lower: float, upper: float) -> str:
    """The bounds in words, and what numbers count where they stand for dates."""
    if column is None or not column.kind.is_time:
        return f"clipped to {lower:.12g}..{upper:.12g}"
    return f"{unit_words(column.kind)}, clipped to {column.text(lower)}..{column.text(upper)}"


def level_names(column: Column) -> tuple[str, ...]:
    """The categories; the last one may be for missing values."""
    return (*column.categories, *([MISSING] if column.missing == OWN_CATEGORY else []))


def filled(column: Column | None) -> str:
    """What a missing value became, in words."""
    if column is None:
        return "none"
    if column.is_numeric:
        return f"as {column.text(column.fill)}"
    if column.kind is Kind.BOOLEAN:
        return f"as {'true' if column.fill else 'false'}"
    return f"as {level_names(column)[int(column.fill)]}"
