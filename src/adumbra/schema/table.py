"""What is declared of a table besides its columns, and every rule that it breaks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from adumbra.relations import LEGAL_PAIRS, Moves, Relation, Unit, is_legal
from adumbra.schema.column import Fault, doubled

MAX_ROWS = 2**31
MOST_ROWS_PER_PERSON = 2**20
WEIGHT_BITS = 6  # of a row's weight under bound=scale: the least is 1/64
DELIMITERS = (",", ";", "\t", "|", ":", "^", "~")  # no blank: a lone CR reads as one
ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16")


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


# What a schema and the declaration of its table say alike.
OF_CSV = ("header", "delimiter", "encoding")
OF_TABLE = ("unit", "neighbours", "label", "rows", "max_rows", "person", *OF_CSV)


def of_table(declared: object) -> dict[str, Any]:
    """These fields of either, for the other."""
    return {name: getattr(declared, name) for name in OF_TABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """What is declared of a table besides the rules of each column."""

    names: tuple[str, ...]
    person: PersonSpec | None = None
    is_open: bool  # patterns wait for the data's names
    header: bool | None = None  # whether the first line of a CSV file holds names, if declared
    delimiter: str | None = None  # of CSV files; else by their suffix
    encoding: str | None = None  # of CSV files; else UTF-8
    has_items: bool
    unit: Unit
    neighbours: Relation
    label: str | None
    rows: int | None
    max_rows: int

    def faults(self) -> list[Fault]:
        """Every rule that the table breaks."""
        found: list[Fault] = []
        if not is_legal(self.unit, self.neighbours):
            legal = ", ".join(f"{u}/{r}" for u, r in LEGAL_PAIRS)
            message = (
                f"neighbours={self.neighbours}: not legal with unit={self.unit}; use one of {legal}"
            )
            found.append(("neighbours", message))
        if isinstance(self.neighbours, Moves) and self.has_items:
            rule = "item sets have no cells that move; declare one-element or replace-one"
            found.append(("neighbours", f"neighbours={self.neighbours}: {rule}"))
        filled = bool(self.names) or self.is_open
        doubles = doubled(self.names)
        if doubles:
            found.append(("columns", f"columns {doubles}: declared more than once; names must differ"))
        if not self.has_items and not filled:
            found.append(("columns", "columns are absent: declare [[columns]], [[groups]] or [items]"))
        if self.has_items and filled:
            found.append(("items", "items: a table has either columns or item sets; keep one of them"))
        found += self._csv_faults()
        if self.person is not None:
            found += self.person.faults(self)
        elif self.unit is Unit.PERSON:
            rule = "declare the column of ids, and max_rows_per_person"
            found.append(("person", f"person is absent: unit='person' needs it; {rule}"))
        if self.label is not None and self.label not in self.names and not self.is_open:
            found.append(("label", f"label={self.label!r}: is not a column; name a declared one"))
        return found + self._row_faults()

    def _csv_faults(self) -> list[Fault]:
        """What is declared of CSV files."""
        found: list[Fault] = []
        if not isinstance(self.header, bool | None):
            found.append(("header", f"header={self.header!r}: must be true or false"))
        for name, known in (("delimiter", DELIMITERS), ("encoding", ENCODINGS)):
            value = getattr(self, name)
            if value is not None and value not in known:
                found.append((name, f"{name}={value!r}: must be one of {', '.join(map(repr, known))}"))
        if self.header is False and self.is_open:
            rule = "a file without a line of names has none to match; list the columns, or use a range"
            found.append(("header", f"header=false: {rule}"))
        return found

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
