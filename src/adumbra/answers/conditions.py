"""Conditions on rows, such as `region=north and age >= 30`: a small grammar, never evaluated as code.

    conditions = clause { "and" clause }
    clause     = column operator value  |  column "is" "missing"
    operator   = "="  "!="  "<"  "<="  ">"  ">="

A name or value with spaces stands in quotes. A value that is not quoted ends at the next space.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from adumbra.errors import InvalidInput

OPERATORS = ("<=", ">=", "!=", "==", "=", "<", ">")
IS_MISSING = "is missing"
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'|`([^`]*)`")
_NAME = re.compile(r"[^\s\"'`<>=!~+(),]+")
_OPERATOR = re.compile("|".join(map(re.escape, OPERATORS)))
_VALUE = re.compile(r"[^\s\"'`(),]+")
LONGEST = 60  # letters of a name that an error repeats
FEW = 5  # names that are listed where none is near


@dataclass(frozen=True, slots=True)
class Clause:
    """One column compared with one value."""

    column: str
    operator: str
    value: str = ""

    def __str__(self) -> str:
        if self.operator == IS_MISSING:
            return f"{self.column} {IS_MISSING}"
        return f"{self.column}{self.operator}{self.value}"


Conditions = tuple[Clause, ...]
Where = str | Mapping[str, object] | None


class Scanner:
    """A text read from left to right, name by name."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def rest(self) -> str:
        """What is not read yet, without spaces around it."""
        return self.text[self.place :].strip()

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """The next piece, if it is of this kind."""
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        found = pattern.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        inner = [part for part in found.groups() if part is not None]
        return inner[0] if inner else found.group()

    def word(self, *words: str) -> str | None:
        """The next word, if it is one of these."""
        start = self.place
        found = self.take(_NAME)
        if found is not None and found.lower() in words:
            return found.lower()
        self.place = start
        return None

    def symbol(self, mark: str) -> bool:
        """Whether the next piece is this mark; it is read if so."""
        return self.take(re.compile(re.escape(mark))) is not None

    def name(self, what: str) -> str:
        """The next name, quoted or not."""
        found = self.take(_QUOTED)
        found = self.take(_NAME) if found is None else found
        if found is None:
            raise InvalidInput(f"{what}: expected before {shown(self.rest() or 'the end')}")
        return found

    def clause(self) -> Clause:
        """One comparison."""
        column = self.name("a column's name")
        operator = self.take(_OPERATOR)
        if operator is None:
            if self.word("is") and self.word("missing"):
                return Clause(column, IS_MISSING)
            remedy = f"write {column}=VALUE, with one of {' '.join(OPERATORS)}, or {column} is missing"
            raise InvalidInput(f"condition on {shown(column)}: no comparison; {remedy}")
        value = self.take(_QUOTED)
        value = self.take(_VALUE) if value is None else value
        if value is None:
            remedy = "quote a value that has spaces, quotes or brackets"
            raise InvalidInput(f"condition {shown(column + operator)}: no value; {remedy}")
        return Clause(column, "=" if operator == "==" else operator, value)

    def conditions(self) -> Conditions:
        """Comparisons joined by `and`."""
        found = [self.clause()]
        while self.word("and"):
            found.append(self.clause())
        return tuple(found)

    def end(self) -> None:
        """Refuse what is left over."""
        if self.rest():
            remedy = "join conditions by `and`, and quote names and values that have spaces"
            raise InvalidInput(f"{shown(self.rest())}: not understood; {remedy}")


def read_where(where: Where) -> Conditions:
    """Conditions from text, or from a mapping of columns to values."""
    if where is None:
        return ()
    if isinstance(where, str):
        scanner = Scanner(where)
        found = scanner.conditions()
        scanner.end()
        return found
    if isinstance(where, Mapping):
        return tuple(Clause(str(column), "=", _text(value)) for column, value in where.items())
    kind = type(where).__name__
    raise InvalidInput(f"where of type {kind}: give text such as 'region=north', or a dict")


def _text(value: object) -> str:
    """A value as the grammar writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown(text: str) -> str:
    """Text for an error: quoted, short, without control characters."""
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def suggestion(wrong: str, known: list[str]) -> str:
    """The nearest known names, or a few of them."""
    near = get_close_matches(wrong, known, n=3, cutoff=0.5)
    few = ", ".join(shown(name) for name in near or known[:FEW])
    if near:
        return f"did you mean {few}?"
    more = f" and {len(known) - FEW} more" if len(known) > FEW else ""
    return f"known are {few}{more}"
