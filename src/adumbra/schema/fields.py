"""The fields of a schema file: what each means, where it stands, and how it is read with its faults.

tomllib does not say lines. Plain `[table]`, `[[table]]` and `key = value` lines are placed; anything
fancier is found by its parent.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from adumbra.errors import SchemaError
from adumbra.schema.column import Kind
from adumbra.schema.schema import FORMAT
from adumbra.schema.times import instant_of

SAME_FAULTS = 5  # from more lines than these the same fault is said once
Place = tuple[str | int, ...]  # ("table", "unit"), ("columns", 3), ("columns", 3, "lower")

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*(?:([A-Za-z0-9_-]+)|"([^"\\]*)"|'([^']*)')\s*=(.*)$""", re.DOTALL)
_TOKEN = re.compile(
    r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]',
)

TODO = "TODO"  # the placeholder of a draft
_COLUMN_FIELDS = (
    "kind",
    "lower",
    "upper",
    "atoms",
    "categories",
    "missing",
    "cast",
    "source",
    "private",
)
CSV = ("header", "delimiter", "encoding")
NEW = ("rules", "derived")  # of the second format
PERSON = ("person", "max_rows_per_person", "bound", "no_person", "ids")  # as well
_FIELDS = {
    "": ("format", "table", "columns", "groups", "items", "constraints", *NEW),
    "table": ("unit", "neighbours", "amount", "rows", "max_rows", "label", "declared_by", *CSV, *PERSON),
    "columns": ("name", *_COLUMN_FIELDS),
    "groups": ("match", "names", *_COLUMN_FIELDS),
    "constraints": ("lower", "upper"),
    "items": ("column", "universe", "lower", "upper", "ids", "dictionary"),
}
_MEANINGS = {
    "format": f"{FORMAT!r}",
    "name": "the column's name",
    "kind": "number, integer, date, datetime, category, ordinal or boolean",
    "unit": "row, element or person, whose change is hidden",
    "neighbours": "replace-one, add-remove or one-element (of persons replace-person or "
    "add-remove-person; of small changes cell-moves or row-moves), which two tables must look alike",
    "amount": "how far one cell (cell-moves) or one row in L2 (row-moves) moves, in the columns' units",
    "person": "the name of the column that holds the ids of persons",
    "max_rows_per_person": "how many rows of one person are used",
    "lower": "the lowest value that is publicly possible",
    "upper": "the highest value that is publicly possible",
    "categories": "the values that are publicly possible",
    "declared_by": "who declares this, and on what basis",
    "universe": "how many items are publicly possible",
    "delimiter": "what stands between two fields of a CSV file",
    "encoding": "how a CSV file writes its text",
    "header": "true if the first line of a CSV file holds public names, false if it is a row",
}
_TYPES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list of texts",
    bool: "true or false",
}
T = TypeVar("T")


def find_lines(text: str) -> dict[Place, int]:
    """The line (from 1) of every table header and key of a valid TOML text."""
    lines: dict[Place, int] = {}
    counts: dict[str, int] = {}
    table: Place = ()
    depth, quote = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        rest = line
        if not depth and not quote:
            header, key = _HEADER.match(line), _KEY.match(line)
            if header:
                name = header[2]
                if header[1] == "[[":
                    table = (name, counts.setdefault(name, 0))
                    counts[name] += 1
                    lines.setdefault((name,), number)
                else:
                    table = (name,)
                lines.setdefault(table, number)
                continue
            if key:
                name = next(part for part in key.groups()[:3] if part is not None)
                lines.setdefault((*table, name), number)
                rest = key[4]
        depth, quote = _scan(rest, depth, quote)
    return lines


def _scan(text: str, depth: int, quote: str) -> tuple[int, str]:
    """Bracket depth and open multi-line quote after a piece of a value."""
    position = 0
    while position < len(text):
        if quote:
            end = text.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        token = _TOKEN.search(text, position)
        if token is None:
            break
        word, position = token[0], token.end()
        if word in ('"""', "'''"):
            quote = word
        elif word in "[{":
            depth += 1
        elif word in "]}":
            depth -= 1
    return depth, quote


@dataclass(slots=True)
class Faults:
    """Faults and their lines, sorted when reading is over."""

    filename: str
    lines: dict[Place, int]
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, place: Place, message: str) -> None:
        """Note a fault at a place, or at the nearest one around it that has a line."""
        while place and place not in self.lines:
            place = place[:-1]
        self.found.append((self.lines.get(place, 1), message))

    def finish(self) -> None:
        """Raise if there was any."""
        if self.found:
            alike: dict[str, list[int]] = {}
            for line, text in sorted(self.found, key=lambda fault: fault[0]):
                alike.setdefault(text, []).append(line)
            raise SchemaError(tuple(self._worded(text, lines) for text, lines in _few_each(alike)))

    def _worded(self, text: str, lines: list[int]) -> str:
        """One fault; a fresh draft has the same one in each of its columns."""
        more = f" (and the same on {len(lines) - 1:,} more lines, up to {lines[-1]})"
        return f"{self.filename}:{lines[0]}: {text}" + (more if len(lines) > 1 else "")


def _few_each(alike: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
    """Faults by line; those that many lines have are said once."""
    said = [
        (text, each)
        for text, lines in alike.items()
        for each in ([lines] if len(lines) > SAME_FAULTS else [[line] for line in lines])
    ]
    return sorted(said, key=lambda fault: fault[1][0])


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the file, whose fields are checked as they are read."""

    values: dict[str, object]
    place: Place
    faults: Faults

    def fault(self, name: str, message: str) -> None:
        """Note a fault of one field."""
        self.faults.add((*self.place, name), message)

    def refuse_unknown(self) -> None:
        """A typing error must not become a default."""
        known = _FIELDS[str(self.place[0]) if self.place else ""]
        for name in self.values:
            if name not in known:
                where = f"[{self.place[0]}]" if self.place else "a schema"
                self.fault(name, f"{name}: is not a field of {where}; known are {', '.join(known)}")

    def get(self, name: str, kind: type[T], *, needed: bool = False) -> T | None:
        """A field of the right type; else None, and a fault unless it is only absent and not needed."""
        value = self.values.get(name)
        if value is None:
            if needed:
                self.fault(name, f"{name} is absent; declare {_MEANINGS.get(name, _TYPES[kind])}")
            return None
        if value == TODO or (isinstance(value, list) and TODO in value):
            self.fault(name, f"{name}='TODO': declare {_MEANINGS.get(name, _TYPES[kind])}")
            return None
        if kind is list:
            is_right = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        else:
            accepted = (int, float) if kind is float else kind
            is_right = isinstance(value, accepted) and (kind is bool) == isinstance(value, bool)
        if not is_right:
            shown = f"={value!r}" if isinstance(value, str | int | float) else ""
            self.fault(name, f"{name}{shown}: must be {_TYPES[kind]}")
            return None
        return value  # type: ignore[return-value]  # its type was checked just above

    def choice(self, name: str, parse: Callable[[str], T]) -> T | None:
        """A field with one of a few words."""
        word = self.get(name, str, needed=True)
        try:
            return None if word is None else parse(word)
        except ValueError:
            self.fault(name, f"{name}={word!r}: must be {_MEANINGS[name]}")
            return None

    def instant(self, name: str, kind: Kind) -> float | None:
        """A date or time, as TOML has them or in quotes."""
        value = self.values.get(name)
        if value is None or value == TODO:
            self.get(name, str)  # notes the fault of a TODO
            return None
        found = instant_of(kind, value)
        if found is None:
            form = "2020-01-31" if kind is Kind.DATE else "2020-01-31T08:30:00"
            self.fault(name, f"{name}={str(value)!r}: must be a {kind} such as {form}")
        return found

    def numbers(self, name: str, kind: Kind | None) -> tuple[float, ...]:
        """A list of numbers, or of dates and times."""
        values = self.values.get(name, [])
        if not isinstance(values, list):
            self.fault(name, f"{name}: must be a list of values of the column")
            return ()
        is_time = kind is not None and kind.is_time
        found = [instant_of(kind, value) if kind is not None and is_time else value for value in values]
        wrong = [v for v in found if not isinstance(v, int | float) or isinstance(v, bool)]
        if wrong:
            self.fault(name, f"{name}: must be a list of values of the column, such as [0]")
            return ()
        return tuple(found)  # type: ignore[arg-type]  # checked just above
