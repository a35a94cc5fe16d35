"""What is publicly known of a table, declared before a row is read and never fitted on rows.

    Schema = columns (kind, bounds or categories, missing value) + label + unit + neighbours + public n

A schema comes from TOML (`schema_file`), or from `Schema.numeric` for arrays.
"""

import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

import rfc8785

from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import Ints
from adumbra.relations import Moves, Neighbours, Reach, Relation, Unit
from adumbra.schema.column import OWN_CATEGORY, Column, Kind
from adumbra.schema.item_ids import listed_ids, read_ids
from adumbra.schema.orders import Order, order_faults
from adumbra.schema.row_rules import Bound, Derived, Rule, bind
from adumbra.schema.table import MAX_ROWS, PersonSpec, TableDeclaration, of_table
from adumbra.schema.witness import Row, find_row, row_faults

__all__ = [
    "FIRST_FORMAT",
    "FORMAT",
    "MAX_ROWS",
    "OWN_CATEGORY",
    "Column",
    "Derived",
    "ItemSpec",
    "Kind",
    "Order",
    "Pattern",
    "PersonSpec",
    "Rule",
    "Schema",
]

Facts = dict[str, object]
FIRST_FORMAT, FORMAT = "adumbra-schema/1", "adumbra-schema/2"

NOTEBOOK_COLUMNS = 20  # that a notebook shows


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSpec:
    """Item sets: each row is a set of whole numbers from `lower` to `upper`, the public universe.

    With `ids` (see `ItemSpec.of_file`) the universe is what that public file lists.
    """

    upper: int
    lower: int = 0
    column: str = "items"
    dictionary: str | None = None  # a public file that names the items
    ids: str | None = None  # a public file that lists them
    listed: int = 0  # how many it lists
    digest: str = ""  # of the ids, so that a changed file is found out

    def __post_init__(self) -> None:
        require(self.column != "", "items, column='': name the column that holds the sets")
        bounds = f"items, lower={self.lower}, upper={self.upper}"
        require(0 <= self.lower <= self.upper < 2**31, f"{bounds}: need 0 <= lower <= upper < 2^31")
        most = self.upper - self.lower + 1
        fits = 1 <= self.listed <= most and bool(self.digest) if self.ids else not self.listed
        require(fits, f"items, ids={self.ids}, listed={self.listed}: use ItemSpec.of_file")

    @staticmethod
    def of_file(ids: str, *, column: str = "items", dictionary: str | None = None) -> "ItemSpec":
        """The universe that a public file lists, one id per line."""
        found, digest = read_ids(ids)
        return ItemSpec(
            lower=found[0],
            upper=found[-1],
            column=column,
            dictionary=dictionary,
            ids=ids,
            listed=len(found),
            digest=digest,
        )

    @property
    def width(self) -> int:
        """The number of items of the universe."""
        return self.listed or self.upper - self.lower + 1

    def numbers(self) -> Ints | None:
        """The ids in order, where a file lists them; None: those from `lower` on."""
        return None if self.ids is None else listed_ids(self.ids, self.digest)

    def facts(self) -> Facts:
        """The declared fields."""
        given: Facts = {"column": self.column, "lower": self.lower, "upper": self.upper}
        given |= {} if self.dictionary is None else {"dictionary": self.dictionary}
        listed: Facts = {"ids": self.ids, "listed": self.listed, "digest": self.digest}
        return given if self.ids is None else given | listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A group that waits for the data's column names: `match` is a shell pattern, `at` its place."""

    match: str
    template: Column
    at: int  # the expanded columns are inserted before columns[at]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A table as it is publicly known."""

    columns: tuple[Column, ...] = ()
    unit: Unit
    neighbours: Relation
    label: str | None = None
    rows: int | None = None
    max_rows: int = MAX_ROWS
    declared_by: str = ""
    items: ItemSpec | None = None
    patterns: tuple[Pattern, ...] = ()
    constraints: tuple[Order, ...] = ()
    header: bool | None = None  # CSV: the first line holds public names, or is a row; None: not declared
    delimiter: str | None = None  # CSV: what stands between two fields; None: by the suffix
    encoding: str | None = None  # CSV: how text is written; None: UTF-8
    rules: tuple[Rule, ...] = ()  # that every synthetic row keeps
    derived: tuple[Derived, ...] = ()  # columns of synthetic rows that are computed from the others
    person: PersonSpec | None = None  # whose rows belong together, under unit=person
    # Derived once, from the fields above:
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)  # of the columns
    width: int = field(init=False, repr=False, compare=False)  # values per row: columns, or items
    row_limit: int = field(init=False, repr=False, compare=False)  # no count of rows exceeds it
    weight_bits: int = field(init=False, repr=False, compare=False)  # rows weigh multiples of 2^-bits
    label_index: int | None = field(init=False, repr=False, compare=False)  # its place in the columns

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))
        declared = TableDeclaration(
            names=self.names,
            is_open=bool(self.patterns),
            has_items=self.items is not None,
            **of_table(self),
        )
        messages = [message for _, message in declared.faults()]
        if not self.patterns:  # else names are not known yet
            orders = self.constraints
            found = order_faults(orders, self.columns, self.label) if orders else []
            messages += [message for _, message in found]
            messages += [message for _, _, message in self._row_faults()]
        require(not messages, "; ".join(messages))
        derived = {
            "width": self.items.width if self.items is not None else len(self.columns),
            "row_limit": self.rows if self.rows is not None else self.max_rows,
            "weight_bits": self.person.weight_bits if self.person is not None else 0,
            "label_index": self.names.index(self.label) if self.label in self.names else None,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _row_faults(self) -> list[tuple[str, int, str]]:
        if not self.rules and not self.derived:
            return []
        require(self.items is None, "rules: item sets have no columns; remove rules and derived columns")
        return row_faults(self.rules, self.derived, self.columns, self.constraints, self.label)

    @property
    def reach(self) -> Reach:
        """How far one unit reaches into a sum over rows; refuses what no sum has a proof for."""
        if isinstance(self.neighbours, Moves):
            raise Unsupported(
                f"neighbours={self.neighbours}: has a proof for dppro and jl-laplace alone; use one of "
                "them, or declare another relation"
            )
        return Reach(self.neighbours, 1 if self.person is None else self.person.max_rows)

    def expand(self, data_names: Sequence[str]) -> "Schema":
        """Replace the patterns by the data's column names (which are public) that match them."""
        if not self.patterns:
            return self
        taken = {*self.names, *(one.name for one in self.derived)}
        taken |= {self.person.column} if self.person is not None else set()
        inserted: dict[int, list[Column]] = {}
        for pattern in self.patterns:
            found = [
                name for name in data_names if name not in taken and fnmatchcase(name, pattern.match)
            ]
            require(
                bool(found),
                f"match={pattern.match!r}: matches no column of the data; correct the pattern",
            )
            taken.update(found)
            inserted.setdefault(pattern.at, []).extend(
                replace(pattern.template, name=name) for name in found
            )
        columns: list[Column] = []
        for place in range(len(self.columns) + 1):
            columns += inserted.get(place, [])
            columns += self.columns[place : place + 1]
        return replace(self, columns=tuple(columns), patterns=())

    def bound_rules(self) -> tuple[Bound, ...]:
        """The rules, compiled against the columns."""
        return tuple(bind(rule, self.columns, self.label) for rule in self.rules)

    def ruled_row(self) -> Row:
        """One row that keeps all rules and constraints, in the columns that they name."""
        return find_row(self.bound_rules(), self.columns, self.constraints)

    def require_filled(self, method: str) -> None:
        """Refuse what only `moments` gives back: rules, derived columns, atoms, missing numbers."""
        declared = "rules" if self.rules else "derived" if self.derived else ""
        if declared:
            remedy = "remove them from the schema, or use the method moments"
            raise Unsupported(f"{declared}: {method} cannot keep them; {remedy}")
        apart = [column.name for column in self.columns if column.atoms]
        if apart:
            remedy = "remove them from the schema, or use the method moments"
            raise Unsupported(f"column {apart[0]!r}, atoms: {method} cannot keep them; {remedy}")
        kept = [column.name for column in self.columns if column.keeps_null]
        if kept:
            remedy = "give a number instead, or use the method moments"
            raise Unsupported(f"column {kept[0]!r}, missing='null': {method} needs numbers; {remedy}")

    def _repr_html_(self) -> str:
        """For notebooks: unit, relation and the first columns, escaped."""
        rows = "".join(
            f"<tr><th>{html.escape(column.name)}</th><td>{html.escape(str(column.kind))}</td></tr>"
            for column in self.columns[:NOTEBOOK_COLUMNS]
        )
        more = len(self.columns) - NOTEBOOK_COLUMNS
        rest = f"<p>and {more} more columns</p>" if more > 0 else ""
        head = html.escape(f"{self.neighbours} per {self.unit}, {self.width} columns")
        return f"<div><p>{head}</p><table>{rows}</table>{rest}</div>"

    def by_row(self) -> "Schema":
        """The same columns row by row, for tables without ids such as released ones."""
        if self.person is None:
            return self
        return replace(self, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, person=None)

    def require_closed(self, *, bought: bool = True) -> "Schema":
        """Refuse a schema whose patterns wait for names or (`bought`) whose columns wait for bounds."""
        waiting = [column.name for column in self.columns if column.private] if bought else []
        steps = "buy it by the method bounds, then run `adumbra schema fill`"
        require(not waiting, f"column {''.join(waiting[:1])!r}, private=true: what it may hold is not "
                f"known yet; {steps}")  # fmt: skip
        open_patterns = ", ".join(repr(pattern.match) for pattern in self.patterns)
        remedy = "expand it with `adumbra schema check SCHEMA DATA --expanded OUT`"
        require(
            not self.patterns, f"match={open_patterns}: the number of columns is not known yet; {remedy}"
        )
        return self

    def facts(self) -> Facts:
        """The schema as plain values, for the card and the digest."""
        given: Facts = {
            "format": self.format,
            "unit": str(self.unit),
            "neighbours": str(self.neighbours),
            "max_rows": self.max_rows,
            "columns": [column.facts() for column in self.columns],
        }
        optional = {"rows": self.rows, "label": self.label, "declared_by": self.declared_by or None}
        optional |= {"header": self.header, "delimiter": self.delimiter, "encoding": self.encoding}
        given |= {name: value for name, value in optional.items() if value is not None}
        given |= {} if self.person is None else self.person.facts()
        if self.items is not None:
            given["items"] = self.items.facts()
        if self.patterns:
            given["patterns"] = [
                {"match": p.match, "at": p.at, "template": p.template.facts()} for p in self.patterns
            ]
        if self.constraints:
            given["constraints"] = [order.facts() for order in self.constraints]
        if self.rules:
            given["rules"] = [rule.facts() for rule in self.rules]
        if self.derived:
            given["derived"] = [one.facts() for one in self.derived]
        return given

    @property
    def format(self) -> str:
        """The first format that can say all this: a schema of the first keeps its digest."""
        templates = (pattern.template for pattern in self.patterns)
        newer_columns = any(column.newer_field for column in (*self.columns, *templates))
        newer_columns = newer_columns or bool(self.delimiter or self.encoding)
        newer_rows = isinstance(self.neighbours, Moves) or bool(self.items and self.items.ids)
        newer = self.rules or self.derived or self.person or newer_columns or newer_rows
        return FORMAT if newer else FIRST_FORMAT

    def digest(self) -> str:
        """SHA-256 of the canonical JSON (RFC 8785) of `facts`."""
        try:
            return hashlib.sha256(rfc8785.dumps(self.facts())).hexdigest()  # type: ignore[arg-type]
        except rfc8785.CanonicalizationError:
            raise InvalidInput("schema: holds text that is not Unicode; correct its names") from None

    def to_toml(self) -> str:
        """The schema file; `Schema.parse` gives the same schema back."""
        from adumbra.schema.writing import write_schema  # noqa: PLC0415  (the file format builds on us)

        return write_schema(self)

    @staticmethod
    def parse(text: str, filename: str = "schema") -> "Schema":
        """Read TOML text; every fault at once, with its line."""
        from adumbra.schema.reading import parse_schema  # noqa: PLC0415  (as above)

        return parse_schema(text, filename)

    @staticmethod
    def read(path: str | Path) -> "Schema":
        """Read a TOML file; every fault at once, with its line."""
        from adumbra.schema.reading import read_schema  # noqa: PLC0415  (as above)

        return read_schema(Path(path))

    @staticmethod
    def numeric(  # noqa: PLR0913  (a shorthand for arrays; all but the bounds have defaults)
        n_columns: int,
        lower: float | Sequence[float],
        upper: float | Sequence[float],
        *,
        unit: Unit = Unit.ROW,
        neighbours: Relation = Neighbours.REPLACE_ONE,
        names: Sequence[str] | None = None,
        rows: int | None = None,
    ) -> "Schema":
        """An all-number schema for an array, with one pair of bounds or one pair per column."""
        is_count = hasattr(type(n_columns), "__index__")  # numpy's whole numbers too
        kind, remedy = type(n_columns).__name__, "give a number, and names by names=[...]"
        require(is_count, f"n_columns of type {kind}: must be the number of columns; {remedy}")
        require(n_columns >= 1, f"n_columns={n_columns}: must be at least 1")
        lowers = _one_each(lower, n_columns, "lower")
        uppers = _one_each(upper, n_columns, "upper")
        titles = tuple(names) if names is not None else tuple(f"x{i}" for i in range(n_columns))
        require(
            len(titles) == n_columns, f"names={len(titles)}: need one for each of {n_columns} columns"
        )
        columns = tuple(
            Column(name=name, kind=Kind.NUMBER, lower=low, upper=high)
            for name, low, high in zip(titles, lowers, uppers, strict=True)
        )
        return Schema(columns=columns, unit=unit, neighbours=neighbours, rows=rows)


def _one_each(value: float | Sequence[float], count: int, name: str) -> list[float]:
    """One bound for each column."""
    values = [float(value)] * count if isinstance(value, int | float) else [float(v) for v in value]
    if len(values) != count:
        raise InvalidInput(f"{name}={len(values)} values: need one, or one for each of {count} columns")
    return values
