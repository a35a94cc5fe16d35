"""Rules that every synthetic row keeps, and columns that are computed from others.

    rule      when all of some conditions hold, all of others do too; or some never hold together
    derived   a map of one column's values, a cut of a number at declared points, a sum of numbers

Both are public knowledge. No private row is checked against a rule, and a derived column is neither read
nor measured nor paid for.
"""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from adumbra.errors import InvalidInput, require
from adumbra.schema.column import Declaration, Kind
from adumbra.schema.conditions import (
    Allowed,
    Conditions,
    compile_condition,
    inverted,
    overlap,
    plain_conditions,
    read_condition,
    read_conditions,
)
from adumbra.schema.times import instant_of

MAP, CUT, SUM = "map", "cut", "sum"
FORMS = (MAP, CUT, SUM)
_DERIVED_FIELDS = {
    MAP: {"name", MAP, "values", "kind"},
    CUT: {"name", CUT, "at", "labels"},
    SUM: {"name", SUM, "times"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`when` implies `then`; or `never`: these conditions never hold together."""

    when: Conditions = ()
    then: Conditions = ()
    never: Conditions = ()

    def __post_init__(self) -> None:
        whole = bool(self.when) and bool(self.then) and not self.never
        alone = bool(self.never) and not self.when and not self.then
        require(whole or alone, "a rule has either when and then, or never")
        shared = {name for name, _ in self.when} & {name for name, _ in self.then}
        require(not shared, "a rule has no column in both when and then")

    @staticmethod
    def of(facts: Mapping[str, object]) -> "Rule":
        """A rule from its plain values; raises InvalidInput."""
        unknown = set(facts) - {"when", "then", "never"}
        require(not unknown, f"{', '.join(sorted(unknown))}: a rule has when and then, or never")
        return Rule(**{name: read_conditions(given) for name, given in facts.items()})

    def facts(self) -> dict[str, object]:
        """The declared fields."""
        parts = {"when": self.when, "then": self.then, "never": self.never}
        return {name: plain_conditions(given) for name, given in parts.items() if given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A rule compiled against its columns: where all of `when` holds, each of `then` must."""

    when: tuple[Allowed, ...]
    then: tuple[Allowed, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it speaks of."""
        return tuple(allowed.column for allowed in (*self.when, *self.then))


def bind(rule: Rule, columns: Sequence[Declaration], label: str | None) -> Bound:
    """Compile a rule; of `never` the last column that is not the label is the one that moves."""
    known = {column.name: column for column in columns}

    def allowed(conditions: Conditions) -> tuple[Allowed, ...]:
        unknown = [name for name, _ in conditions if name not in known]
        require(not unknown, f"{unknown[:1]}: is not a declared column; a rule speaks of these alone")
        return tuple(compile_condition(given, known[name]) for name, given in conditions)

    if rule.never:
        order = {column.name: place for place, column in enumerate(columns)}
        found = sorted(allowed(rule.never), key=lambda one: (one.column != label, order[one.column]))
        moved = found[-1]
        require(moved.column != label, f"{label!r}: the label is drawn first; name another column")
        bound = Bound(when=tuple(found[:-1]), then=(inverted(moved, known[moved.column]),))
    else:
        bound = Bound(when=allowed(rule.when), then=allowed(rule.then))
    for one in (*bound.when, *bound.then):
        require(not one.is_empty, f"{one.column!r}: no declared value meets the condition; correct it")
    kept = [one.column for one in bound.then if one.column == label]
    require(not kept, f"{label!r}: the label is drawn first and cannot be moved; leave it out of then")
    return bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A column that is computed from declared ones in every synthetic row."""

    name: str
    form: str  # map, cut or sum
    of: tuple[str, ...]  # the columns that it is computed from; one but for a sum
    values: tuple[tuple[str, Any], ...] = ()  # map: what it is called, and the condition
    kind: Kind = Kind.CATEGORY  # map: texts, or whole numbers
    at: tuple[float | str, ...] = ()  # cut: the points (of dates as text), each the first of its cell
    labels: tuple[str, ...] = ()  # cut: names of the cells, else 0, 1, 2, ...
    times: tuple[float, ...] = ()  # sum: factors, else 1 each

    @staticmethod
    def read(facts: Mapping[str, Any]) -> "Derived":
        """A derived column from its plain values; raises InvalidInput."""
        forms = [form for form in FORMS if form in facts]
        require(len(forms) == 1, "a derived column is one of map, cut and sum; write one of them")
        form = forms[0]
        unknown = set(facts) - _DERIVED_FIELDS[form]
        known = ", ".join(sorted(_DERIVED_FIELDS[form]))
        require(
            not unknown, f"{', '.join(sorted(unknown))}: is not a field of a {form}; known are {known}"
        )
        name, of = facts.get("name"), facts[form]
        if not isinstance(name, str) or not name:
            raise InvalidInput("name: a derived column needs one")
        of = [of] if form != SUM else of
        texts = isinstance(of, list | tuple) and all(isinstance(one, str) for one in of)
        require(texts, f"{form}: names {'columns, in a list' if form == SUM else 'one column'}")
        given = facts.get("values", {})
        pairs = given.items() if isinstance(given, Mapping) else given
        try:
            values = tuple((str(output), read_condition(test)) for output, test in pairs)
        except (TypeError, ValueError) as problem:
            text = str(problem) if isinstance(problem, InvalidInput) else "must be a table"
            raise InvalidInput(f"values: {text}") from None
        return Derived(
            name=name,
            form=form,
            of=tuple(of),
            values=values,
            kind=_map_kind(facts.get("kind", "category")),
            at=_points(facts),
            labels=_texts(facts, "labels"),
            times=_numbers(facts, "times"),
        )

    def facts(self) -> dict[str, object]:
        """The declared fields, without those left at their default."""
        given: dict[str, object] = {"name": self.name}
        given[self.form] = list(self.of) if self.form == SUM else self.of[0]
        if self.values:
            given["values"] = [[output, test.plain()] for output, test in self.values]
        if self.kind is not Kind.CATEGORY:
            given["kind"] = str(self.kind)
        lists = {"at": self.at, "labels": self.labels, "times": self.times}
        return given | {name: list(value) for name, value in lists.items() if value}

    def check(self, columns: Sequence[Declaration]) -> None:
        """Raise InvalidInput where the column cannot be computed from these."""
        known = {column.name: column for column in columns}
        unknown = [name for name in self.of if name not in known]
        require(not unknown, f"{unknown[:1]}: is not a declared column; derive from these alone")
        sources = [known[name] for name in self.of]
        require(self.name not in known, f"name={self.name!r}: is declared as a column too; remove one")
        if self.form == MAP:
            self._check_map(sources[0])
            return
        right = all(s.kind.has_bounds for s in sources)
        require(right, f"{self.form}: takes numbers, integers and dates alone")
        if self.form == CUT:
            points = self.points(sources[0])
            rising = all(a < b for a, b in pairwise(points))
            require(bool(points) and rising, "at: a cut needs points, each above the one before")
            right = len(self.labels) in (0, len(self.at) + 1)
            require(right, f"labels: {len(self.at)} points cut into {len(self.at) + 1} cells; name each")
            require(len(set(self.labels)) == len(self.labels), "labels: must differ")
        else:
            require(len(self.of) >= 1, "sum: names at least one column")
            right = len(self.times) in (0, len(self.of))
            require(right, f"times: needs one factor for each of {len(self.of)} columns")
            kinds = {source.kind for source in sources}
            if any(kind.is_time for kind in kinds):
                between = kinds == {Kind.DATE} and sum(self.times or (1,) * len(self.of)) == 0
                rule = "of dates gives the days between them; write two of them, and times = [1, -1]"
                require(between, f"sum: {rule}")
            ends = [abs(x) for s in sources for x in (s.lower or 0, s.upper or 0)]
            largest = max([1.0, *map(abs, self.times)]) * sum(map(float, ends))
            require(largest < 2.0**53, "sum: may leave the whole numbers that a float64 holds")

    def points(self, source: Declaration) -> tuple[float, ...]:
        """The points of a cut as numbers of its column; raises InvalidInput where one is none."""
        if not source.kind.is_time:
            right = all(isinstance(point, int | float) for point in self.at)
            require(right, "at: must be a list of numbers")
            return tuple(float(point) for point in self.at)
        found = [instant_of(source.kind, point) for point in self.at]
        require(None not in found, f"at: must be a list of {source.kind}s, such as '2020-01-31'")
        return tuple(float(point) for point in found if point is not None)

    def _check_map(self, source: Declaration) -> None:
        require(bool(self.values), "values: a map needs a table of values, {value = condition}")
        outputs = [output for output, _ in self.values]
        require(len(set(outputs)) == len(outputs), "values: must differ")
        if self.kind is Kind.INTEGER:
            whole = all(_is_whole(output) for output in outputs)
            require(whole, "values: must be whole numbers where kind='integer'")
        cells = [compile_condition(test, source) for _, test in self.values]
        for place, cell in enumerate(cells):
            for other in range(place):
                is_apart = not overlap(cell, cells[other])
                pair = f"{outputs[other]!r} and {outputs[place]!r}"
                require(is_apart, f"values: {pair} both take a value of {source.name!r}; part them")


def _is_whole(text: str) -> bool:
    digits = text[1:] if text[:1] == "-" else text
    return digits.isascii() and digits.isdigit() and len(digits) <= 15


def _map_kind(word: object) -> Kind:
    require(word in ("category", "integer"), f"kind={word!r}: a map gives a category or an integer")
    return Kind(str(word))


def _numbers(facts: Mapping[str, Any], name: str) -> tuple[float, ...]:
    given = facts.get(name, ())
    right = isinstance(given, list | tuple) and all(
        isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in given
    )
    require(right, f"{name}: must be a list of numbers")
    return tuple(given)


def _points(facts: Mapping[str, Any]) -> tuple[float | str, ...]:
    """Points of a cut: numbers, or dates and times as text."""
    given = facts.get("at", ())
    if not isinstance(given, list | tuple) or not any(isinstance(x, str | dt.date) for x in given):
        return _numbers(facts, "at")
    right = all(isinstance(x, str | dt.date) for x in given)
    require(right, "at: must be a list of numbers, or of dates")
    return tuple(x if isinstance(x, str) else x.isoformat() for x in given)


def _texts(facts: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = facts.get(name, ())
    right = isinstance(given, list | tuple) and all(isinstance(x, str) for x in given)
    require(right, f"{name}: must be a list of texts")
    return tuple(given)
