"""What a declaration may say: every rule of columns and tables, as (field, message) pairs.

A message starts with the field it is about, so that a reader of a file finds the line.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from adumbra.numerics import EXACT
from adumbra.relations import LEGAL_PAIRS, Neighbours, Unit

NULL = "null"  # `missing = "null"`: an unreadable number stays missing in the release
OWN_CATEGORY = "category"  # `missing = "category"`: whatever is unreadable gets a category of its own
MAX_ROWS = 2**31
MOST_ROWS_PER_PERSON = 2**20
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

    @property
    def is_numeric(self) -> bool:
        """Whether the column has bounds (else it has levels)."""
        return self.kind in (Kind.NUMBER, Kind.INTEGER)

    @property
    def keeps_null(self) -> bool:
        """Whether a number that cannot be read stays missing, instead of becoming some number."""
        return self.is_numeric and self.missing == NULL

    def faults(self) -> list[Fault]:
        """Every rule that the column breaks."""
        found: list[Fault] = []
        if not self.name:
            found.append(("name", "name='': a column needs a name"))
        if self.is_numeric:
            found += _bound_faults(self)
        elif self.lower is not None or self.upper is not None:
            field = "lower" if self.lower is not None else "upper"
            found.append((field, f"{field}: a column of kind {self.kind} has no bounds; remove them"))
        if self.kind is Kind.CATEGORY:
            found += _category_faults(self)
        elif self.categories:
            message = (
                f"categories: a column of kind {self.kind} has none; remove them or use kind='category'"
            )
            found.append(("categories", message))
        if self.kind is Kind.BOOLEAN and not isinstance(self.missing, bool | None):
            found.append(("missing", f"missing={self.missing!r}: a boolean column takes true or false"))
        if not isinstance(self.cast, bool):
            found.append(("cast", f"cast={self.cast!r}: must be true or false"))
        if self.kind is Kind.ITEMS:
            found.append(("kind", "kind='items': item sets are declared by [items], not as a column"))
        return found


def _article(kind: Kind) -> str:
    return "an" if kind is Kind.INTEGER else "a"


def _bound_faults(column: Declaration) -> list[Fault]:
    """Bounds: both there, finite, in order, representable."""
    lower, upper = column.lower, column.upper
    if lower is None or upper is None:
        absent = [name for name, value in (("lower", lower), ("upper", upper)) if value is None]
        rule = f"{_article(column.kind)} {column.kind} column needs bounds; {_PUBLIC}"
        return [(name, f"{name} is absent: {rule}") for name in absent]
    ends = (("lower", lower), ("upper", upper))
    faults = [(name, f"{name}={value}: must be finite") for name, value in ends if not is_finite(value)]
    if faults:
        return faults
    if not lower < upper:
        return [("upper", f"upper={upper}: must be above lower={lower}")]
    if not is_finite(float(upper) - float(lower)):
        return [
            ("upper", f"upper={upper}: the distance to lower={lower} is no float64; narrow the bounds")
        ]
    if column.kind is Kind.INTEGER:
        faults += [
            (name, f"{name}={value}: must be a whole number between -2^53 and 2^53")
            for name, value in ends
            if value != int(value) or abs(value) >= EXACT
        ]
    return faults + _missing_number_faults(column, lower, upper)


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
    if isinstance(missing, bool | str):
        rule = f"must be a number from {lower} to {upper}, or {NULL!r} to stay missing"
        return [("missing", f"missing={missing!r}: {rule}")]
    if not lower <= missing <= upper:
        return [("missing", f"missing={missing}: must lie within the bounds, {lower} to {upper}")]
    if column.kind is Kind.INTEGER and missing != int(missing):
        return [("missing", f"missing={missing}: must be a whole number in an integer column")]
    return []


def _category_faults(column: Declaration) -> list[Fault]:
    """Categories: some, no doubles, and a missing value among them."""
    names = column.categories
    if not names:
        return [("categories", f"categories are absent: a category column lists its values; {_PUBLIC}")]
    faults = []
    doubles = doubled(names)
    if doubles:
        faults.append(("categories", f"categories: {doubles} more than once; list each once"))
    if column.missing == OWN_CATEGORY and OWN_CATEGORY in names:
        rule = "is a category and also means one of its own; name another missing value"
        faults.append(("missing", f"missing={OWN_CATEGORY!r}: {rule}"))
    elif column.missing not in (None, OWN_CATEGORY) and column.missing not in names:
        rule = "must be one of the categories, or 'category' for one of its own"
        faults.append(("missing", f"missing={column.missing!r}: {rule}"))
    return faults


def doubled(names: tuple[str, ...]) -> str:
    """The names that occur more than once, quoted; empty if there is none."""
    return ", ".join(repr(name) for name, times in Counter(names).items() if times > 1)


class PersonBound(StrEnum):
    """What happens to a person who has more rows than are used."""

    KEEP = "keep"  # the rows with the smallest hash of id and content


class NoPerson(StrEnum):
    """What happens to rows without an id."""

    DROP = "drop"
    ONE_PERSON = "one-person"  # all of them together are one person's


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSpec:
    """Whose rows belong together (`unit = "person"`), and how many of one person are used."""

    column: str  # holds the ids; never released
    max_rows: int
    bound: str = PersonBound.KEEP.value
    no_person: str = NoPerson.DROP.value

    def facts(self) -> dict[str, object]:
        """The declared fields, by their names in a schema file."""
        return {
            "person": self.column,
            "max_rows_per_person": self.max_rows,
            "bound": self.bound,
            "no_person": self.no_person,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """What is declared of a table besides the rules of each column."""

    names: tuple[str, ...]
    person: PersonSpec | None = None
    is_open: bool  # patterns wait for the data's names
    header: bool | None = None  # whether the first line of a CSV file holds names, if declared
    has_items: bool
    unit: Unit
    neighbours: Neighbours
    label: str | None
    rows: int | None
    max_rows: int

    def faults(self) -> list[Fault]:
        """Every rule that the table breaks."""
        found: list[Fault] = []
        if (self.unit, self.neighbours) not in LEGAL_PAIRS:
            legal = ", ".join(f"{u}/{r}" for u, r in LEGAL_PAIRS)
            message = (
                f"neighbours={self.neighbours}: not legal with unit={self.unit}; use one of {legal}"
            )
            found.append(("neighbours", message))
        filled = bool(self.names) or self.is_open
        doubles = doubled(self.names)
        if doubles:
            found.append(("columns", f"columns {doubles}: declared more than once; names must differ"))
        if not self.has_items and not filled:
            found.append(("columns", "columns are absent: declare [[columns]], [[groups]] or [items]"))
        if self.has_items and filled:
            found.append(("items", "items: a table has either columns or item sets; keep one of them"))
        if not isinstance(self.header, bool | None):
            found.append(("header", f"header={self.header!r}: must be true or false"))
        if self.header is False and self.is_open:
            rule = "a file without a line of names has none to match; list the columns, or use a range"
            found.append(("header", f"header=false: {rule}"))
        if self.person is not None:
            found += self.person.faults(self)
        elif self.unit is Unit.PERSON:
            rule = "declare the column of ids, and max_rows_per_person"
            found.append(("person", f"person is absent: unit='person' needs it; {rule}"))
        if self.label is not None and self.label not in self.names and not self.is_open:
            found.append(("label", f"label={self.label!r}: is no column; name a declared one"))
        return found + self._row_faults()

    def _row_faults(self) -> list[Fault]:
        """The declared numbers of rows."""
        found: list[Fault] = []
        if not 1 <= self.max_rows <= MAX_ROWS:
            found.append(("max_rows", f"max_rows={self.max_rows}: must lie between 1 and 2^31"))
        if self.rows is not None and not self.neighbours.rows_are_public:
            found.append(("rows", f"rows={self.rows}: is private under {self.neighbours}; remove it"))
        elif self.rows is not None and not 1 <= self.rows <= self.max_rows:
            found.append(("rows", f"rows={self.rows}: must lie between 1 and max_rows={self.max_rows}"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A declared constraint: column `lower` never exceeds column `upper` in a row.

    It is public knowledge and is never checked against rows: synthetic ones are made to keep it.
    """

    lower: str
    upper: str

    def facts(self) -> dict[str, str]:
        """The declared fields."""
        return {"lower": self.lower, "upper": self.upper}


def order_faults(
    orders: Sequence[Order], columns: Sequence[Declaration], label: str | None
) -> list[tuple[int, str]]:
    """Every broken rule, with the place of its constraint."""
    known = {column.name: column for column in columns}
    found = []
    for place, order in enumerate(orders):
        pair = f"constraint {order.lower!r} <= {order.upper!r}"
        ends = [known.get(name) for name in (order.lower, order.upper)]
        if any(end is None for end in ends):
            found.append((place, f"{pair}: both must be declared columns"))
        elif not all(end is not None and end.is_numeric for end in ends):
            found.append((place, f"{pair}: both must be numbers or integers"))
        elif label in (order.lower, order.upper):
            found.append((place, f"{pair}: the label is drawn first and cannot be moved; leave it out"))
        elif not _can_hold(ends[0], ends[1]):
            found.append((place, f"{pair}: the bounds allow no such row; correct them"))
    for place in range(len(orders)):
        if _closes_a_circle(orders[: place + 1]):
            order = orders[place]
            rule = "closes a circle with the constraints before it; remove one of them"
            found.append((place, f"constraint {order.lower!r} <= {order.upper!r}: {rule}"))
            break
    return found


def _can_hold(lower: Declaration | None, upper: Declaration | None) -> bool:
    """Whether the smallest value of the one is at most the largest of the other."""
    if lower is None or upper is None or lower.lower is None or upper.upper is None:
        return False
    return lower.lower <= upper.upper


def _closes_a_circle(orders: Sequence[Order]) -> bool:
    """Whether the upper end of the last constraint leads back to its lower end."""
    reached, last = {orders[-1].upper}, orders[-1].lower
    for _ in orders:
        reached |= {order.upper for order in orders[:-1] if order.lower in reached}
    return last in reached
