"""What a declaration may say: every rule of columns and tables, as (field, message) pairs.

A message starts with the field it is about, so that a reader of a file finds the line.
"""

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from adumbra.numerics import EXACT
from adumbra.relations import Unit
from adumbra.schema.times import instant_text

if TYPE_CHECKING:
    from adumbra.schema.table import TableDeclaration

NULL = "null"  # `missing = "null"`: an unreadable number, date or rank stays missing in the release
OWN_CATEGORY = "category"  # `missing = "category"`: whatever is unreadable gets a category of its own
MAX_ROWS = 2**31
MOST_ROWS_PER_PERSON = 2**20
WEIGHT_BITS = 6  # of a row's weight under bound=scale: the least is 1/64
MOST_ATOMS = 64
_PUBLIC = "declare what is publicly known, not what the data has"

Missing = float | str | bool | None
Fault = tuple[str, str]


class Kind(StrEnum):
    """How the values of a column are read."""

    NUMBER = "number"
    INTEGER = "integer"
    CATEGORY = "category"
    BOOLEAN = "boolean"
    ITEMS = "items"
    DATE = "date"  # days since 1970-01-01
    DATETIME = "datetime"  # microseconds since then, without a time zone
    ORDINAL = "ordinal"  # categories in their order: codes that are numbers, too

    is_time: bool  # values are dates, or times of dates
    reads_numbers: bool  # values are read as numbers
    has_bounds: bool  # bounds are declared, and not levels
    lists_levels: bool  # categories are declared

    def __init__(self, name: str) -> None:
        self.is_time = name in {"date", "datetime"}
        self.reads_numbers = name in {"number", "integer"}
        self.has_bounds = self.is_time or self.reads_numbers
        self.lists_levels = name in {"category", "ordinal"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The fields of a column before anyone has checked them."""

    name: str
    kind: Kind
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    missing: Missing = None
    cast: bool = False  # any stored type that can be read will do
    source: str = ""  # where the facts of this column come from, if not from `declared_by`
    atoms: tuple[float, ...] = ()  # single values that many rows share, counted apart
    private: bool = False  # its bounds or levels are to be bought: those declared only enclose them

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and are encoded as one number (else as one column per level)."""
        return self.kind.has_bounds or self.kind is Kind.ORDINAL

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers: all but those of kind `number`."""
        return self.kind is not Kind.NUMBER

    @property
    def keeps_null(self) -> bool:
        """Whether a number that cannot be read stays missing, instead of becoming some number."""
        return self.is_numeric and self.missing == NULL

    def text(self, value: float) -> str:
        """One value of the column in its own form: a number, a date, a level."""
        if self.kind.is_time:
            return instant_text(self.kind, value)
        if self.kind.lists_levels and 0 <= value < len(self.categories):
            return self.categories[int(value)]
        return f"{value:.12g}"

    def faults(self) -> list[Fault]:
        """Every rule that the column breaks."""
        found: list[Fault] = []
        if not self.name:
            found.append(("name", "name='': a column needs a name"))
        if self.kind.has_bounds:
            found += _bound_faults(self)
        elif self.lower is not None or self.upper is not None:
            field = "lower" if self.lower is not None else "upper"
            found.append((field, f"{field}: a column of kind {self.kind} has no bounds; remove them"))
        elif self.atoms:
            found.append(("atoms", f"atoms: a column of kind {self.kind} has none; remove them"))
        if self.kind.lists_levels:
            found += _category_faults(self)
        elif self.categories:
            message = (
                f"categories: a column of kind {self.kind} has none; remove them or use kind='category'"
            )
            found.append(("categories", message))
        if self.kind is Kind.BOOLEAN and not isinstance(self.missing, bool | None):
            found.append(("missing", f"missing={self.missing!r}: a boolean column takes true or false"))
        found += _flag_faults(self)
        if self.kind is Kind.ITEMS:
            found.append(("kind", "kind='items': item sets are declared by [items], not as a column"))
        return found


def _flag_faults(column: Declaration) -> list[Fault]:
    """What is true or false, and whether there is anything to buy."""
    flags = (("cast", column.cast), ("private", column.private))
    wrong = [(name, value) for name, value in flags if not isinstance(value, bool)]
    found = [(name, f"{name}={value!r}: must be true or false") for name, value in wrong]
    if column.private and column.kind is Kind.BOOLEAN:
        found.append(("private", "private: a boolean column has nothing to buy; remove it"))
    return found


_FORMS = {Kind.DATE: "a date such as 2020-01-31", Kind.DATETIME: "a time such as 2020-01-31T08:30:00"}


def _article(kind: Kind) -> str:
    return "an" if kind in (Kind.INTEGER, Kind.ORDINAL) else "a"


def _shown(column: Declaration, value: object) -> str:
    """A declared number as it was written."""
    is_plain = isinstance(value, str) or not column.kind.is_time
    return str(value) if is_plain else column.text(value)  # type: ignore[arg-type]


def _bound_faults(column: Declaration) -> list[Fault]:
    """Bounds: both there, finite, in order, representable."""
    lower, upper = column.lower, column.upper
    if column.private and lower is None and upper is None:
        return []  # the widest ones, which `Column` fills in
    if lower is None or upper is None:
        absent = [name for name, value in (("lower", lower), ("upper", upper)) if value is None]
        rule = f"{_article(column.kind)} {column.kind} column needs bounds; {_PUBLIC}"
        return [(name, f"{name} is absent: {rule}") for name in absent]
    ends = (("lower", lower), ("upper", upper))
    if column.kind.is_time:
        faults = [
            (name, f"{name}={value!r}: must be {_FORMS[column.kind]}")
            for name, value in ends
            if isinstance(value, str) or not is_finite(value)
        ]
    else:
        faults = [
            (name, f"{name}={value}: must be finite") for name, value in ends if not is_finite(value)
        ]
    if faults:
        return faults
    low, high = _shown(column, lower), _shown(column, upper)
    if not lower < upper:
        return [("upper", f"upper={high}: must be above lower={low}")]
    if not is_finite(float(upper) - float(lower)):
        return [
            ("upper", f"upper={high}: the distance to lower={low} overflows float64; narrow the bounds")
        ]
    if column.is_whole:
        rule = "must be a whole number between -2^53 and 2^53"
        if column.kind.is_time:
            rule = "must lie between 1684-07-29 and 2255-06-05, where microseconds are exact"
        faults += [
            (name, f"{name}={_shown(column, value)}: {rule}")
            for name, value in ends
            if value != int(value) or abs(value) >= EXACT
        ]
    return faults or _missing_number_faults(column, lower, upper) + _atom_faults(column, lower, upper)


def _atom_faults(column: Declaration, lower: float, upper: float) -> list[Fault]:
    """Atoms: few, different, within the bounds, whole where the column is."""
    faults: list[Fault] = []
    for value in column.atoms:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not is_finite(value):
            form = _FORMS.get(column.kind, "a finite number")
            faults.append(("atoms", f"atoms, {value!r}: must be {form}"))
        elif not lower <= value <= upper:
            ends = f"{_shown(column, lower)} to {_shown(column, upper)}"
            faults.append(
                ("atoms", f"atoms, {_shown(column, value)}: must lie within the bounds, {ends}")
            )
        elif column.is_whole and value != int(value):
            faults.append(("atoms", f"atoms, {value}: must be a whole number in such a column"))
    if len(set(column.atoms)) < len(column.atoms) or len(column.atoms) > MOST_ATOMS:
        faults.append(("atoms", f"atoms: list each value once, at most {MOST_ATOMS} of them"))
    return faults


def is_finite(value: float) -> bool:
    """Whether a number is finite as a float64 (a whole number may be too large to be one)."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _missing_number_faults(column: Declaration, lower: float, upper: float) -> list[Fault]:
    """A numeric column's missing value lies within its bounds."""
    missing = column.missing
    if missing is None:
        return []
    if missing == NULL:
        above = math.nextafter(float(upper), math.inf)
        fits = math.isfinite(above) and math.isfinite(above - lower)
        rule = f"missing={NULL!r}: needs a number above upper={upper}; lower it"
        return [] if fits else [("missing", rule)]
    low, high = _shown(column, lower), _shown(column, upper)
    if isinstance(missing, bool | str):
        what = _FORMS.get(column.kind, "a number")
        rule = f"must be {what} from {low} to {high}, or {NULL!r} to stay missing"
        return [("missing", f"missing={missing!r}: {rule}")]
    shown = _shown(column, missing)
    if not lower <= missing <= upper:
        return [("missing", f"missing={shown}: must lie within the bounds, {low} to {high}")]
    if column.is_whole and missing != int(missing):
        rule = f"must be a whole number in {_article(column.kind)} {column.kind} column"
        return [("missing", f"missing={shown}: {rule}")]
    return []


def _category_faults(column: Declaration) -> list[Fault]:
    """Categories: some, no doubles, and a missing value among them."""
    names = column.categories
    if not names:
        rule = f"{_article(column.kind)} {column.kind} column lists its values"
        if column.private:
            rule += ", also those of which the frequent ones are bought"
        return [("categories", f"categories are absent: {rule}; {_PUBLIC}")]
    faults = []
    doubles = doubled(names)
    if doubles:
        faults.append(("categories", f"categories: {doubles} more than once; list each once"))
    if column.kind is Kind.ORDINAL:
        return faults + _rank_faults(column)
    if column.missing == OWN_CATEGORY and OWN_CATEGORY in names:
        rule = "is a category and also means one of its own; name another missing value"
        faults.append(("missing", f"missing={OWN_CATEGORY!r}: {rule}"))
    elif column.missing not in (None, OWN_CATEGORY) and column.missing not in names:
        rule = "must be one of the categories, or 'category' for one of its own"
        faults.append(("missing", f"missing={column.missing!r}: {rule}"))
    return faults


def _rank_faults(column: Declaration) -> list[Fault]:
    """Ordered levels: two or more, and a missing value among them or none."""
    if len(column.categories) < 2:
        return [("categories", "categories: an ordinal column has two levels or more, lowest first")]
    if column.missing == NULL and NULL in column.categories:
        rule = "is a level and also means that values stay missing; name another missing value"
        return [("missing", f"missing={NULL!r}: {rule}")]
    if column.missing not in (None, NULL) and column.missing not in column.categories:
        rule = f"must be one of the levels, or {NULL!r} to stay missing"
        return [("missing", f"missing={column.missing!r}: {rule}")]
    return []


def doubled(names: tuple[str, ...]) -> str:
    """The names that occur more than once, quoted; empty if there is none."""
    return ", ".join(repr(name) for name, times in Counter(names).items() if times > 1)


class PersonBound(StrEnum):
    """What happens to a person who has more rows than are used."""

    KEEP = "keep"  # the rows with the smallest hash of id and content
    SCALE = "scale"  # all rows, each at a part of its weight


class NoPerson(StrEnum):
    """What happens to rows without an id."""

    DROP = "drop"
    ONE_PERSON = "one-person"  # all of them together are one person's


class PersonIds(StrEnum):
    """Which ids are one person's."""

    ALIKE = "alike"  # numbers of one value, texts that differ in case or blanks
    AS_WRITTEN = "as-written"  # the same letters


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSpec:
    """Whose rows belong together (`unit = "person"`), and how many of one person are used."""

    column: str  # holds the ids; never released
    max_rows: int
    bound: str = PersonBound.KEEP.value
    no_person: str = NoPerson.DROP.value
    ids: str = PersonIds.ALIKE.value

    @property
    def weight_bits(self) -> int:
        """Rows weigh multiples of 2^-bits: 0 where every row is whole."""
        return WEIGHT_BITS if self.bound == PersonBound.SCALE else 0

    def facts(self) -> dict[str, object]:
        """The declared fields, by their names in a schema file."""
        return {
            "person": self.column,
            "max_rows_per_person": self.max_rows,
            "bound": self.bound,
            "no_person": self.no_person,
            **({} if self.ids == PersonIds.ALIKE else {"ids": self.ids}),
        }

    def faults(self, table: "TableDeclaration") -> list[Fault]:
        """Every rule that is broken."""
        found: list[Fault] = []
        if not self.column or self.column in table.names:
            rule = "must name the column of ids, which is not declared as a column: it is never released"
            found.append(("person", f"person={self.column!r}: {rule}"))
        if not 1 <= self.max_rows <= MOST_ROWS_PER_PERSON:
            rule = f"must lie between 1 and {MOST_ROWS_PER_PERSON}"
            found.append(("max_rows_per_person", f"max_rows_per_person={self.max_rows}: {rule}"))
        for name, value, words in (
            ("bound", self.bound, tuple(PersonBound)),
            ("no_person", self.no_person, tuple(NoPerson)),
            ("ids", self.ids, tuple(PersonIds)),
        ):
            if value not in words:
                found.append((name, f"{name}={value!r}: must be {' or '.join(words)}"))
        if table.unit is not Unit.PERSON:
            rule = f"needs unit='person', not {str(table.unit)!r}; correct the unit, or remove it"
            found.append(("person", f"person={self.column!r}: {rule}"))
        if table.header is False:
            rule = "a file without a line of names has no column of ids; give it names"
            found.append(("header", f"header=false: {rule}"))
        return found
