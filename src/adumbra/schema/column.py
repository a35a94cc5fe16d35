"""One declared column: its kind, every rule that it may break, its limits, its codes, its missing value.

A rule is a (field, message) pair; the message starts with the field, so that a reader of a file finds
the line. A `Declaration` is not checked yet; a `Column` is.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from adumbra.errors import require
from adumbra.numerics import EXACT
from adumbra.schema.times import instant_of, instant_text

NULL = "null"  # `missing = "null"`: an unreadable number, date or rank stays missing in the release
OWN_CATEGORY = "category"  # `missing = "category"`: whatever is unreadable gets a category of its own
MOST_ATOMS = 64
_PUBLIC = "declare what is publicly known, not what the data has"

Missing = float | str | bool | None
Facts = dict[str, object]
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

    # Follows from the fields above, held once because every reader of a column asks:
    is_numeric: bool = field(init=False, repr=False, compare=False)  # ordered: encoded as one number
    is_whole: bool = field(init=False, repr=False, compare=False)  # whole numbers: all but kind `number`
    keeps_null: bool = field(init=False, repr=False, compare=False)  # an unreadable number stays missing

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_numeric", self.kind.has_bounds or self.kind is Kind.ORDINAL)
        object.__setattr__(self, "is_whole", self.kind is not Kind.NUMBER)
        object.__setattr__(self, "keeps_null", self.is_numeric and self.missing == NULL)

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


# What encloses bounds that are to be bought, where nothing narrower is declared.
WIDEST: dict[Kind, tuple[Any, Any]] = {
    Kind.NUMBER: (-(2.0**40), 2.0**40),
    Kind.INTEGER: (-(2**40), 2**40),
    Kind.DATE: ("1900-01-01", "2100-01-01"),
    Kind.DATETIME: ("1900-01-01T00:00:00", "2100-01-01T00:00:00"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Declaration):
    """One column; `missing` is the value that anything unreadable gets.

    By default that is the middle of the bounds or of the ordered levels, the first category, or false.
    With `missing = "null"` an unreadable number stays one, for methods that can give it back. Bounds,
    atoms and the missing value of dates and times are given as such, or as ISO text.
    """

    levels: int = field(init=False, repr=False, compare=False)  # how many codes; 0 for one with bounds
    # Of a category or boolean column, as text; the category of its own has an empty name
    level_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    limits: tuple[float, float] = field(init=False, repr=False, compare=False)  # of its float64 values
    fill: float = field(init=False, repr=False, compare=False)  # the value or code of the unreadable
    newer_field: str = field(init=False, repr=False, compare=False)  # what the first format cannot say

    def __post_init__(self) -> None:
        if self.private is True and self.lower is None and self.upper is None and self.kind in WIDEST:
            for name, value in zip(("lower", "upper"), WIDEST[self.kind], strict=True):
                object.__setattr__(self, name, value)
        if self.kind in (Kind.DATE, Kind.DATETIME):
            for name in ("lower", "upper", "missing"):
                object.__setattr__(self, name, self._instant(getattr(self, name)))
            object.__setattr__(self, "atoms", tuple(self._instant(value) for value in self.atoms))
        Declaration.__post_init__(self)
        faults = self.faults()
        require(not faults, "; ".join(f"column {self.name!r}, {message}" for _, message in faults))
        for name in ("lower", "upper", "missing"):
            object.__setattr__(self, name, _held(getattr(self, name)))
        object.__setattr__(self, "atoms", tuple(sorted(map(_held, self.atoms))))
        # each of what stands before it
        for name in ("levels", "level_names", "limits", "fill", "newer_field"):
            object.__setattr__(self, name, getattr(self, f"_{name}")())

    def _instant(self, value: Any) -> Any:  # noqa: ANN401  (what is no date is refused by `faults`)
        """A date or time as a whole number; anything else as it is."""
        found = instant_of(self.kind, value)
        return value if found is None else found

    def _newer_field(self) -> str:
        """What of it the first format cannot say; empty if there is nothing."""
        if self.kind in (Kind.DATE, Kind.DATETIME, Kind.ORDINAL):
            return f"kind={str(self.kind)!r}"
        named = ("atoms", "source", "private")
        return next((name for name in named if getattr(self, name)), "")

    def _limits(self) -> tuple[float, float]:
        """The closed range of the column's float64 values: its bounds, or its first and last code."""
        if self.lower is not None and self.upper is not None:
            return float(self.lower), float(self.upper)
        return 0.0, float(self.levels - 1)

    def _levels(self) -> int:
        """How many codes there are; 0 for a column with bounds."""
        if self.kind is Kind.BOOLEAN:
            return 2
        return len(self.categories) + (self.missing == OWN_CATEGORY)

    def _level_names(self) -> tuple[str, ...]:
        if self.kind is Kind.BOOLEAN:
            return ("false", "true")
        return self.categories if self.levels == len(self.categories) else (*self.categories, "")

    def _fill(self) -> float:
        """The float64 value (number or code) of everything unreadable."""
        if self.private or self.keeps_null:  # of a private column it is counted nowhere
            return self._beyond()
        if self.is_numeric and self.missing is None:
            lower, upper = self.limits
            middle = lower + (upper - lower) / 2
            return float(round(middle)) if self.is_whole else middle
        if self.kind.has_bounds:
            return float(self.missing or 0)
        if self.kind is Kind.BOOLEAN:
            return float(bool(self.missing))
        if self.missing == OWN_CATEGORY and self.kind is Kind.CATEGORY:
            return float(len(self.categories))
        return float(self.categories.index(str(self.missing))) if self.missing is not None else 0.0

    def _beyond(self) -> float:
        """The next value above the bounds or codes, which no other cell can have."""
        upper = self.limits[1]
        return upper + 1.0 if self.is_whole else math.nextafter(upper, math.inf)

    def _plain(self, value: float | str | None) -> object:
        """A declared value as a file writes it."""
        is_time = self.kind.is_time and isinstance(value, int | float)
        return self.text(float(value)) if is_time else value  # type: ignore[arg-type]

    def facts(self) -> Facts:
        """The declared fields, without those left at their default."""
        given: Facts = {"name": self.name, "kind": str(self.kind)}
        if self.kind.has_bounds:
            given |= {"lower": self._plain(self.lower), "upper": self._plain(self.upper)}
        if self.atoms:
            given["atoms"] = [self._plain(value) for value in self.atoms]
        if self.categories:
            given["categories"] = list(self.categories)
        if self.missing is not None:
            given["missing"] = self._plain(self.missing)
        given |= {name: True for name in ("cast", "private") if getattr(self, name)}
        return given | ({"source": self.source} if self.source else {})


def _held(value: Any) -> Any:  # noqa: ANN401  (a number, a word or nothing)
    """Canonical JSON holds large whole numbers as floats."""
    return float(value) if isinstance(value, int) and abs(value) >= EXACT else value
