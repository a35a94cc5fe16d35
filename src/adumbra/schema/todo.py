"""How much of a drafted schema is left to declare."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from adumbra.schema.fields import TODO


def text_of(path: Path) -> str:
    """The text of a schema file that was read before."""
    return path.read_bytes().decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


def count_todos(text: str) -> int:
    """Values that are still TODO; 0 of a text that is no TOML."""
    try:
        return sum(1 for value in _leaves(tomllib.loads(text)) if value == TODO)
    except tomllib.TOMLDecodeError:
        return 0


def to_do(text: str) -> str:
    """The same in words."""
    count = count_todos(text)
    if not count:
        return "no value is left to declare"
    return f"{count} value{'' if count == 1 else 's'} left to declare: replace every TODO"


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    else:
        yield value
