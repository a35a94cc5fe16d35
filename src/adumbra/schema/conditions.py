"""Conditions on one column, in a small declared grammar: nothing is evaluated, only compared.

    value       "blue", 3, true       this level or number
    comparison  "<15", ">= 2.5"       numbers, dates, ordered levels; also <=, >, =, !=
    range       "0..14"               both ends belong to it
    "missing"                         where `missing` leaves a value missing
    list        ["a", "b"]            any of them
    {not = ...}                       none of them

Compiled against its column a condition is a union of closed ranges of float64 values (of codes, for
levels), and whether it takes what is missing. So sets can be intersected, inverted and tested exactly.
"""

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import InvalidInput, require
from adumbra.numerics import EXACT, Array
from adumbra.schema.column import OWN_CATEGORY, Declaration, Kind, is_finite
from adumbra.schema.times import instant_of

MISSING = "missing"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?"
_SIGNED = re.compile(r"^\s*(<=|>=|!=|<|>|=)\s*(.*?)\s*$", re.DOTALL)
_IS_NUMBER = re.compile(rf"^{_NUMBER}$")

Literal = str | float | bool
Span = tuple[float, float]  # a closed range
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as declared: any of some literals, or none of them."""

    any_of: tuple[Literal, ...]
    is_not: bool = False

    def plain(self) -> object:
        """As a schema file writes it."""
        inner: object = list(self.any_of) if len(self.any_of) != 1 else self.any_of[0]
        return {"not": inner} if self.is_not else inner


Conditions = tuple[tuple[str, Condition], ...]  # by column


def read_condition(value: object) -> Condition:
    """A condition out of plain values; raises InvalidInput where it is none."""
    if isinstance(value, Condition):
        return value
    is_not = isinstance(value, Mapping)
    if isinstance(value, Mapping):
        require(set(value) == {"not"}, "a condition is a value, a list of values or {not = ...}")
        value = cast("object", value["not"])
    entries = value if isinstance(value, list | tuple) else [value]
    require(len(entries) > 0, "a condition lists at least one value")
    return Condition(tuple(_literal(entry) for entry in entries), is_not)


def _literal(entry: object) -> Literal:
    """One value; dates become text, and whole numbers that canonical JSON cannot hold floats."""
    if isinstance(entry, dt.date):
        return entry.isoformat()
    if not isinstance(entry, str | int | float):
        raise InvalidInput("a condition holds texts, numbers, dates, true or false")
    if isinstance(entry, str):
        return entry
    require(is_finite(entry), "a condition holds finite numbers")
    return float(entry) if abs(entry) >= EXACT else entry


def read_conditions(values: object) -> Conditions:
    """Conditions by column name, in the order of the names."""
    require(isinstance(values, Mapping), "conditions are a table, {column = condition}")
    given = cast("Mapping[str, object]", values)
    return tuple(sorted((name, read_condition(value)) for name, value in given.items()))


def plain_conditions(conditions: Conditions) -> dict[str, object]:
    """Conditions by column name, as a schema file writes them."""
    return {name: condition.plain() for name, condition in conditions}


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values of one column that a condition takes."""

    column: str
    spans: tuple[Span, ...]  # sorted, apart
    missing: bool

    def holds(self, values: Array, fill: float | None) -> Mask:
        """Which values are taken; `fill` is what stands for missing, if the column can be missing."""
        taken = np.zeros(len(values), bool)
        for low, high in self.spans:
            taken |= (values >= low) & (values <= high)
        return taken if fill is None else np.where(values == fill, self.missing, taken)

    @property
    def is_empty(self) -> bool:
        """Whether no value is taken."""
        return not self.spans and not self.missing

    def nearest(self, values: Array, fill: float | None) -> Array:
        """For each value the closest one that is taken (the one for missing, if there is no other)."""
        if not self.spans:
            require(fill is not None and self.missing, "a condition that takes nothing has no nearest")
            return np.full(len(values), fill)
        choices = np.stack([np.clip(values, low, high) for low, high in self.spans])
        closest = np.argmin(np.abs(choices - values), axis=0)
        return np.asarray(choices[closest, np.arange(len(values))])


def limits_of(column: Declaration) -> Span:
    """The range of a column's present values: bounds, or codes of the declared levels."""
    if column.lower is not None and column.upper is not None:
        return float(column.lower), float(column.upper)
    return 0.0, 1.0 if column.kind is Kind.BOOLEAN else float(len(column.categories) - 1)


def can_be_missing(column: Declaration) -> bool:
    """Whether a released value of the column can be missing."""
    return column.keeps_null or (not column.is_numeric and column.missing == OWN_CATEGORY)


def compile_condition(condition: Condition, column: Declaration) -> Allowed:
    """The values that a condition takes; raises InvalidInput where it does not fit the column."""
    spans: list[Span] = []
    missing = False
    for literal in condition.any_of:
        if literal == MISSING and MISSING not in column.categories:
            rule = "can never be missing; declare missing='null' or 'category', or leave it out"
            require(can_be_missing(column), f"{column.name!r}: {rule}")
            missing = True
        else:
            spans += _spans(literal, column)
    whole = _union(spans, is_whole=_is_whole(column))
    found = Allowed(column.name, whole, missing)
    return inverted(found, column) if condition.is_not else found


def inverted(allowed: Allowed, column: Declaration) -> Allowed:
    """The values that are not taken."""
    low, high = limits_of(column)
    is_whole = _is_whole(column)
    spans: list[Span] = []
    for first, last in allowed.spans:
        before = _below(first, is_whole=is_whole)
        if low <= before:
            spans.append((low, before))
        low = _above(last, is_whole=is_whole)
    if low <= high:
        spans.append((low, high))
    return Allowed(allowed.column, tuple(spans), can_be_missing(column) and not allowed.missing)


def overlap(one: Allowed, other: Allowed) -> bool:
    """Whether some value is taken by both."""
    if one.missing and other.missing:
        return True
    return any(a <= d and c <= b for a, b in one.spans for c, d in other.spans)


def _is_whole(column: Declaration) -> bool:
    return column.kind is not Kind.NUMBER


def _below(value: float, *, is_whole: bool) -> float:
    return value - 1.0 if is_whole else math.nextafter(value, -math.inf)


def _above(value: float, *, is_whole: bool) -> float:
    return value + 1.0 if is_whole else math.nextafter(value, math.inf)


def _union(spans: Sequence[Span], *, is_whole: bool) -> tuple[Span, ...]:
    """Sorted ranges that do not touch."""
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= _above(joined[-1][1], is_whole=is_whole):
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def _spans(literal: Literal, column: Declaration) -> list[Span]:
    """The ranges of one literal within the column's limits."""
    if not column.is_numeric or literal in column.categories:
        return [_level(literal, column)]
    if isinstance(literal, bool):
        raise InvalidInput(f"{column.name!r}: {literal!r} is not a condition on numbers")
    if not isinstance(literal, str):
        require(column.kind in (Kind.NUMBER, Kind.INTEGER), _no_condition(literal, column))
        return _within([(float(literal), float(literal))], column)
    signed = _SIGNED.match(literal)
    if signed is not None:
        value = _value_of(signed[2], column)
        require(value is not None, _no_condition(literal, column))
        return _within(_comparison(signed[1], cast("float", value)), column)
    first, dots, last = literal.partition("..")
    low, high = _value_of(first.strip(), column), _value_of((last if dots else first).strip(), column)
    is_date = column.kind.is_time and not dots
    if low is None or high is None or not (dots or is_date):
        raise InvalidInput(_no_condition(literal, column))
    require(low <= high, f"{column.name!r}: {literal!r} must read from the smaller to the larger")
    return _within([(low, high)], column)


def _value_of(text: str, column: Declaration) -> float | None:
    """One end of a range: a number, a date, or the code of a level."""
    if column.kind.is_time:
        instant = instant_of(column.kind, text)
        return None if instant is None else float(instant)
    if column.kind is Kind.ORDINAL:
        return float(column.categories.index(text)) if text in column.categories else None
    return float(text) if _IS_NUMBER.match(text) else None


def _no_condition(literal: Literal, column: Declaration) -> str:
    """What may be written instead."""
    if column.kind.is_time:
        rule = f"is not a condition on a {column.kind}; write '2020-01-31', '<2020-01-31' or 'missing'"
    elif column.kind is Kind.ORDINAL:
        rule = "is none of its levels; write one as declared, '<level', 'level..level' or 'missing'"
    else:
        rule = "is not a condition on numbers; write 3, '<15', '0..14' or 'missing'"
    return f"{column.name!r}: {literal!r} {rule}"


def _comparison(sign: str, value: float) -> list[Span]:
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    ranges: dict[str, list[Span]] = {
        "<": [(-math.inf, below)],
        "<=": [(-math.inf, value)],
        ">": [(above, math.inf)],
        ">=": [(value, math.inf)],
        "=": [(value, value)],
        "!=": [(-math.inf, below), (above, math.inf)],
    }
    return ranges[sign]


def _within(spans: Sequence[Span], column: Declaration) -> list[Span]:
    """Ranges cut to the column's bounds, and to whole numbers where it has only these."""
    lower, upper = limits_of(column)
    cut = [(max(low, lower), min(high, upper)) for low, high in spans]
    if _is_whole(column):
        cut = [(math.ceil(low), math.floor(high)) for low, high in cut if low <= high]
    return [(float(low), float(high)) for low, high in cut if low <= high]


def _level(literal: Literal, column: Declaration) -> Span:
    """The code of one level."""
    if column.kind is Kind.BOOLEAN:
        require(
            isinstance(literal, bool), f"{column.name!r}: a boolean is true or false, not {literal!r}"
        )
        return (float(bool(literal)), float(bool(literal)))
    require(
        isinstance(literal, str) and literal in column.categories,
        f"{column.name!r}: {literal!r} is none of its categories; write one as declared",
    )
    code = float(column.categories.index(str(literal)))
    return (code, code)
