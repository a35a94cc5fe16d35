"""What is publicly known of a table, declared before a row is read and never fitted on rows.

    Schema = columns (kind, bounds or categories, missing value) + label + unit + neighbours + n if public

A schema comes from TOML (`schema_file`), or from `Schema.numeric` for arrays.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

import rfc8785

from adumbra.errors import InvalidInput, require
from adumbra.numerics import EXACT
from adumbra.relations import Neighbours, Unit, require_legal

OWN_CATEGORY = "category"  # `missing = "category"`: whatever is unreadable gets a category of its own
MAX_ROWS = 2**32

Missing = float | str | bool | None
Facts = dict[str, object]


class Kind(StrEnum):
    """How the values of a column are read."""

    NUMBER = "number"
    INTEGER = "integer"
    CATEGORY = "category"
    BOOLEAN = "boolean"
    ITEMS = "items"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; `missing` is the value that anything unreadable gets.

    By default that is the middle of the bounds, the first category, or false.
    """

    name: str
    kind: Kind
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    missing: Missing = None

    def __post_init__(self) -> None:
        faults = column_faults(self)
        require(not faults, "; ".join(f"column {self.name!r}, {message}" for _, message in faults))

    @property
    def is_numeric(self) -> bool:
        """Whether the column has bounds (else it has levels)."""
        return self.kind in (Kind.NUMBER, Kind.INTEGER)

    @property
    def limits(self) -> tuple[float, float]:
        """The closed range of the column's float64 values: its bounds, or its first and last code."""
        if self.lower is not None and self.upper is not None:
            return float(self.lower), float(self.upper)
        return 0.0, float(self.levels - 1)

    @property
    def levels(self) -> int:
        """How many codes there are; 0 for a numeric column."""
        if self.kind is Kind.BOOLEAN:
            return 2
        return len(self.categories) + (self.missing == OWN_CATEGORY)

    @property
    def fill(self) -> float:
        """The float64 value (number or code) of everything unreadable."""
        if self.is_numeric:
            lower, upper = self.limits
            if self.missing is None:
                middle = lower + (upper - lower) / 2
                return float(round(middle)) if self.kind is Kind.INTEGER else middle
            return float(self.missing)
        if self.kind is Kind.BOOLEAN:
            return float(bool(self.missing))
        if self.missing == OWN_CATEGORY:
            return float(len(self.categories))
        return float(self.categories.index(str(self.missing))) if self.missing is not None else 0.0

    def facts(self) -> Facts:
        """The declared fields, without those left at their default."""
        given: Facts = {"name": self.name, "kind": str(self.kind)}
        if self.is_numeric:
            given |= {"lower": self.lower, "upper": self.upper}
        if self.categories:
            given["categories"] = list(self.categories)
        if self.missing is not None:
            given["missing"] = self.missing
        return given


def column_faults(column: Column) -> list[tuple[str, str]]:
    """Every broken rule of a column as (field, message)."""
    faults: list[tuple[str, str]] = []
    if not column.name:
        faults.append(("name", "name='': a column needs a name"))
    if column.is_numeric:
        faults += _bound_faults(column)
    elif column.lower is not None or column.upper is not None:
        field = "lower" if column.lower is not None else "upper"
        faults.append((field, f"kind={column.kind}: has no bounds; remove lower and upper"))
    if column.kind is Kind.CATEGORY:
        faults += _category_faults(column)
    elif column.categories:
        message = f"kind={column.kind}: has no categories; remove them or use kind='category'"
        faults.append(("categories", message))
    if column.kind is Kind.BOOLEAN and not isinstance(column.missing, bool | None):
        faults.append(("missing", f"missing={column.missing!r}: a boolean column takes true or false"))
    if column.kind is Kind.ITEMS:
        faults.append(("kind", "kind=items: item sets are declared by [items], not as a column"))
    return faults


def _bound_faults(column: Column) -> list[tuple[str, str]]:
    """The rules of bounds: both there, finite, in order, representable."""
    lower, upper = column.lower, column.upper
    absent = [name for name, value in (("lower", lower), ("upper", upper)) if value is None]
    if lower is None or upper is None:
        rule = (
            f"a {column.kind} column needs bounds; declare what is publicly known, not what the data has"
        )
        return [(name, f"{name} is absent: {rule}") for name in absent]
    faults = [
        (name, f"{name}={value}: must be finite")
        for name, value in (("lower", lower), ("upper", upper))
        if not math.isfinite(value)
    ]
    if faults:
        return faults
    if not lower < upper:
        return [("upper", f"lower={lower}, upper={upper}: lower must be below upper")]
    if not math.isfinite(float(upper) - float(lower)):
        return [
            ("upper", f"lower={lower}, upper={upper}: the width must be a finite float64; narrow them")
        ]
    if column.kind is Kind.INTEGER:
        faults += [
            (name, f"{name}={value}: must be a whole number between -2^53 and 2^53")
            for name, value in (("lower", lower), ("upper", upper))
            if value != int(value) or abs(value) > EXACT
        ]
    return faults + _missing_number_faults(column, lower, upper)


def _missing_number_faults(column: Column, lower: float, upper: float) -> list[tuple[str, str]]:
    """A numeric column's missing value lies within its bounds."""
    missing = column.missing
    if missing is None:
        return []
    if isinstance(missing, bool | str):
        return [("missing", f"missing={missing!r}: must be a number from {lower} to {upper}")]
    if not lower <= missing <= upper:
        return [("missing", f"missing={missing}: must lie within the bounds {lower} to {upper}")]
    if column.kind is Kind.INTEGER and missing != int(missing):
        return [("missing", f"missing={missing}: must be a whole number in an integer column")]
    return []


def _category_faults(column: Column) -> list[tuple[str, str]]:
    """The rules of categories: some, no doubles, and a missing value among them."""
    names = column.categories
    if not names:
        rule = (
            "a category column lists its values; declare what is publicly known, not what the data has"
        )
        return [("categories", f"categories are absent: {rule}")]
    faults = []
    doubles = (
        sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if doubles:
        faults.append(
            ("categories", f"categories: {', '.join(map(repr, doubles))} twice; list each once")
        )
    if column.missing == OWN_CATEGORY and OWN_CATEGORY in names:
        rule = "is both a category and the word for a category of its own; name another missing value"
        faults.append(("missing", f"missing={OWN_CATEGORY!r}: {rule}"))
    elif column.missing not in (None, OWN_CATEGORY) and column.missing not in names:
        rule = "must be one of the categories, or 'category' for one of its own"
        faults.append(("missing", f"missing={column.missing!r}: {rule}"))
    return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSpec:
    """Item sets: each row is a set of whole numbers from `lower` to `upper`, the public universe."""

    upper: int
    lower: int = 0
    column: str = "items"
    dictionary: str | None = None  # a public file that names the items

    def __post_init__(self) -> None:
        require(self.column != "", "items, column='': name the column that holds the sets")
        require(
            0 <= self.lower <= self.upper < 2**31,
            f"items, lower={self.lower}, upper={self.upper}: need 0 <= lower <= upper < 2^31",
        )

    @property
    def width(self) -> int:
        """The number of items of the universe."""
        return self.upper - self.lower + 1


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
    neighbours: Neighbours
    label: str | None = None
    rows: int | None = None
    max_rows: int = MAX_ROWS
    declared_by: str = ""
    items: ItemSpec | None = None
    patterns: tuple[Pattern, ...] = ()

    def __post_init__(self) -> None:
        require_legal(self.unit, self.neighbours)
        faults = table_faults(self)
        require(not faults, "; ".join(message for _, message in faults))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in schema order."""
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        """Values a row: columns, or items of the universe."""
        return self.items.width if self.items is not None else len(self.columns)

    @property
    def row_limit(self) -> int:
        """A public number that no count of rows exceeds."""
        return self.rows if self.rows is not None else self.max_rows

    @property
    def label_index(self) -> int | None:
        """The place of the label among the columns."""
        return self.names.index(self.label) if self.label is not None else None

    def expand(self, data_names: Sequence[str]) -> "Schema":
        """Replace the patterns by the data's column names (which are public) that match them."""
        if not self.patterns:
            return self
        taken = set(self.names)
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

    def require_closed(self) -> "Schema":
        """Refuse a schema whose patterns still wait for column names."""
        open_patterns = ", ".join(repr(pattern.match) for pattern in self.patterns)
        remedy = "expand it with `adumbra schema check SCHEMA DATA --expanded OUT`"
        require(
            not self.patterns, f"match={open_patterns}: the number of columns is not known yet; {remedy}"
        )
        return self

    def facts(self) -> Facts:
        """The schema as plain values, for the card and the digest."""
        given: Facts = {
            "format": "adumbra-schema/1",
            "unit": str(self.unit),
            "neighbours": str(self.neighbours),
            "max_rows": self.max_rows,
            "columns": [column.facts() for column in self.columns],
        }
        optional = {"rows": self.rows, "label": self.label, "declared_by": self.declared_by or None}
        given |= {name: value for name, value in optional.items() if value is not None}
        if self.items is not None:
            spec = self.items
            named = {"dictionary": spec.dictionary} if spec.dictionary is not None else {}
            given["items"] = {"column": spec.column, "lower": spec.lower, "upper": spec.upper, **named}
        if self.patterns:
            given["patterns"] = [
                {"match": p.match, "at": p.at, "template": p.template.facts()} for p in self.patterns
            ]
        return given

    def digest(self) -> str:
        """SHA-256 of the canonical JSON (RFC 8785) of `facts`."""
        return hashlib.sha256(rfc8785.dumps(self.facts())).hexdigest()  # type: ignore[arg-type]

    def to_toml(self) -> str:
        """The schema file; `Schema.parse` gives the same schema back."""
        from adumbra.data.schema_file import write_schema  # noqa: PLC0415  (the file format builds on this module)

        return write_schema(self)

    @staticmethod
    def parse(text: str, filename: str = "schema") -> "Schema":
        """Read TOML text; every fault at once, with its line."""
        from adumbra.data.schema_file import parse_schema  # noqa: PLC0415  (as above)

        return parse_schema(text, filename)

    @staticmethod
    def read(path: str | Path) -> "Schema":
        """Read a TOML file; every fault at once, with its line."""
        from adumbra.data.schema_file import read_schema  # noqa: PLC0415  (as above)

        return read_schema(Path(path))

    @staticmethod
    def numeric(
        n_columns: int,
        lower: float | Sequence[float],
        upper: float | Sequence[float],
        *,
        unit: Unit = Unit.ROW,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        names: Sequence[str] | None = None,
        rows: int | None = None,
    ) -> "Schema":
        """An all-number schema for an array, with one pair of bounds or one pair a column."""
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


def table_faults(schema: Schema) -> list[tuple[str, str]]:
    """Every broken rule between the parts of a schema, as (field, message)."""
    faults: list[tuple[str, str]] = []
    names = schema.names
    if len(set(names)) < len(names):
        doubles = sorted({name for name in names if names.count(name) > 1})
        faults.append(
            ("columns", f"columns {', '.join(map(repr, doubles))}: named twice; names must differ")
        )
    filled = bool(schema.columns or schema.patterns)
    if schema.items is None and not filled:
        faults.append(("columns", "columns are absent: declare [[columns]], [[groups]] or [items]"))
    if schema.items is not None and filled:
        faults.append(("items", "items: a table has either columns or item sets; keep one of them"))
    if schema.label is not None and schema.label not in names and not schema.patterns:
        faults.append(("label", f"label={schema.label!r}: is no column; name a declared one"))
    if schema.rows is not None and not 1 <= schema.rows <= schema.max_rows:
        faults.append(("rows", f"rows={schema.rows}: must lie between 1 and max_rows={schema.max_rows}"))
    if schema.rows is not None and not schema.neighbours.rows_are_public:
        faults.append(("rows", f"rows={schema.rows}: is private under {schema.neighbours}; remove it"))
    if not 1 <= schema.max_rows <= MAX_ROWS:
        faults.append(("max_rows", f"max_rows={schema.max_rows}: must lie between 1 and 2^32"))
    return faults
