"""On which line each field of a TOML file stands (tomllib does not say).

Plain `[table]`, `[[table]]` and `key = value` lines are placed; anything fancier is found by its parent.
"""

import re

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
