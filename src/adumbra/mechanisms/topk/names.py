"""Names of items from a public dictionary: a text file of `item,name` lines (a tab serves too)."""

from pathlib import Path

from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import Schema

HEADER = "item"  # a first line that starts with this word is a heading


def read_names(schema: Schema) -> dict[int, str] | None:
    """The name of each item in the dictionary, or of each column; None if no dictionary is declared."""
    if schema.items is None:
        return dict(enumerate(schema.names))
    if schema.items.dictionary is None:
        return None
    dictionary = schema.items.dictionary
    names: dict[int, str] = {}
    for number, line in enumerate(_read(Path(dictionary)).splitlines(), start=1):
        first, _, name = line.partition("\t" if "\t" in line else ",")
        if not line.strip() or (number == 1 and first.strip().lower() == HEADER):
            continue
        if not (first.strip().isdecimal() and name.strip()):
            raise InvalidInput(f"dictionary={dictionary}, line {number}: must read item,name")
        names[int(first)] = name.strip().strip('"')
    return names


def _read(path: Path) -> str:
    """The text of a public file."""
    remedy = "give a public file of item,name lines"
    require(path.is_file(), f"dictionary={path}: no such file; {remedy}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"dictionary={path}: cannot be read as UTF-8; {remedy}") from fault
