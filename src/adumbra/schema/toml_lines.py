"""On which line each field of a TOML file stands (tomllib does not say).

Plain `[table]`, `[[table]]` and `key = value` lines are placed; anything fancier is found by its parent.
"""

import re
from dataclasses import dataclass, field

from adumbra.errors import SchemaError

SAME_FAULTS = 5  # from more lines than these the same fault is told once
Place = tuple[str | int, ...]  # ("table", "unit"), ("columns", 3), ("columns", 3, "lower")

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*(?:([A-Za-z0-9_-]+)|"([^"\\]*)"|'([^']*)')\s*=(.*)$""", re.DOTALL)
_TOKEN = re.compile(
    r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]',
)


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
            raise SchemaError(tuple(self._told(text, lines) for text, lines in _few_each(alike)))

    def _told(self, text: str, lines: list[int]) -> str:
        """One fault; a fresh draft has the same one in each of its columns."""
        more = f" (and the same on {len(lines) - 1:,} more lines, up to {lines[-1]})"
        return f"{self.filename}:{lines[0]}: {text}" + (more if len(lines) > 1 else "")


def _few_each(alike: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
    """Faults by line; those that many lines have are told once."""
    told = [
        (text, each)
        for text, lines in alike.items()
        for each in ([lines] if len(lines) > SAME_FAULTS else [[line] for line in lines])
    ]
    return sorted(told, key=lambda fault: fault[1][0])
