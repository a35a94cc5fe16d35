"""What a codebook declares of columns: kinds, bounds and categories, never a statistic of the data.

    CSV                 name, kind, lower, upper, categories (a|b|c), missing, atoms; nothing else
    Frictionless        fields with type and constraints (minimum, maximum, enum)
    JSON Schema         properties with type, minimum, maximum, enum
    DDI codebook (XML)  var with valrng and catgry; sumStat and catStat are statistics and are not read

`@ages` and the like, in the categories of a CSV codebook, name a list of `builtin.py`.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from adumbra.errors import InvalidInput, require
from adumbra.schema.builtin import BUILTIN
from adumbra.schema.times import DATE, DATETIME, instant_of, instant_text

Entry = dict[str, object]
TIMES = (DATE, DATETIME)
MOST_BYTES = 64 * 2**20
_KINDS = {
    "number": "number numeric float double decimal real",
    "integer": "integer int whole",
    "category": "category categorical string text enum factor code nominal",
    "boolean": "boolean bool logical",
    "ordinal": "ordinal ordered",
    "date": "date",
    "datetime": "datetime timestamp date-time",
}
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_HEADS = {
    "name": ("name", "column", "variable", "field"),
    "kind": ("kind", "type"),
    "lower": ("lower", "minimum"),
    "upper": ("upper", "maximum"),
    "categories": ("categories", "levels", "values", "codes", "enum"),
    "missing": ("missing",),
    "atoms": ("atoms",),
}


def read_codebook(path: Path) -> dict[str, Entry]:
    """What the file declares, by column name; raises InvalidInput where it is no codebook."""
    try:
        require(path.stat().st_size <= MOST_BYTES, f"codebook={path.name!r}: is larger than 64 MiB")
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"codebook={path.name!r}: is not a UTF-8 file; check the path") from None
    kind = path.suffix.lower()
    readers = {".csv": _csv_entries, ".json": _json_entries, ".xml": _ddi_entries}
    known = "a CSV table, Frictionless or JSON Schema (.json), or DDI (.xml)"
    require(kind in readers, f"codebook={path.name!r}: must be {known}")
    try:
        entries = dict(readers[kind](text))
    except InvalidInput as problem:
        raise InvalidInput(f"codebook={path.name!r}: {problem}") from None
    except (ValueError, TypeError, AttributeError, KeyError, csv.Error, ET.ParseError):
        raise InvalidInput(f"codebook={path.name!r}: cannot be read as {known}") from None
    require(bool(entries), f"codebook={path.name!r}: declares no column; it must be {known}")
    return entries


def _csv_entries(text: str) -> Iterator[tuple[str, Entry]]:
    rows = csv.DictReader(io.StringIO(text))
    heads = [str(head).strip().lower() for head in rows.fieldnames or ()]
    place = {
        field: next((heads.index(word) for word in words if word in heads), None)
        for field, words in _HEADS.items()
    }
    require(place["name"] is not None, "its first line names no column `name`")
    names = list(rows.fieldnames or ())
    for row in rows:
        cells = {field: (row[names[at]] or "").strip() for field, at in place.items() if at is not None}
        entry = _entry(cells.get("kind", ""), _levels(cells.get("categories", "")))
        for end in ("lower", "upper"):
            if "kind" in entry or not cells.get("kind"):  # of an unknown kind a number is no bound
                _put_bound(entry, end, cells.get(end, ""))
        _put_atoms(entry, _levels(cells.get("atoms", "")))
        entry = _named_list(entry, cells.get("categories", ""))
        word = cells.get("missing", "")
        if word and (word == "null" or entry.get("kind") in ("category", "ordinal")):
            entry = {**entry, "missing": word}
        if cells["name"]:
            yield cells["name"], entry


def _named_list(entry: Entry, cell: str) -> Entry:
    """An entry with the list that the cell names."""
    if not cell.startswith("@"):
        return entry
    known = ", ".join(f"@{name}" for name in BUILTIN)
    require(cell[1:] in BUILTIN, f"{cell[:40]!r}: is not a built-in list; known are {known}")
    return dict(BUILTIN[cell[1:]])


def _levels(cell: str) -> list[str]:
    parts = [part.strip() for part in re.split(r"\s*\|\s*", cell)] if cell[:1] != "@" else []
    return [part for part in parts if part]


def _entry(kind: str, levels: list[str]) -> Entry:
    """Kind and categories; a list of values makes a category, whatever its values look like."""
    levels = list(dict.fromkeys(levels))
    found = _KIND_OF.get(kind.strip().lower())
    if levels:
        is_ordered = found == "ordinal" and len(levels) > 1
        return {"kind": "ordinal" if is_ordered else "category", "categories": levels}
    return {"kind": found} if found else {}


def _put_bound(entry: Entry, end: str, value: object) -> None:
    """A finite bound of a number, whole for an integer, or a date; else it is left to be declared."""
    kind = str(entry.get("kind", "number"))
    if kind in TIMES:
        instant = instant_of(kind, value)
        entry |= {} if instant is None else {end: instant_text(kind, instant)}
    is_number = kind in ("number", "integer")
    if not is_number or value in ("", None) or isinstance(value, bool):
        return
    try:
        number = float(str(value))
    except ValueError:
        return
    if math.isfinite(number):
        entry.setdefault("kind", "number")
        is_whole = number == int(number) and entry["kind"] == "integer"
        entry[end] = int(number) if is_whole else number


def _put_atoms(entry: Entry, words: list[str]) -> None:
    """Values that many rows share, of a number; what is none is left out."""
    if entry.get("kind") not in ("number", "integer"):
        return
    with suppress(ValueError):
        numbers = [float(word) for word in words]
        if numbers and all(map(math.isfinite, numbers)):
            entry["atoms"] = [int(n) if n == int(n) else n for n in dict.fromkeys(numbers)]


def _json_entries(text: str) -> Iterator[tuple[str, Entry]]:
    document = json.loads(text)
    if "properties" in document:
        for name, given in document["properties"].items():
            yield str(name), _typed(given, given)
        return
    tables = [document, *(one.get("schema", {}) for one in document.get("resources", ()))]
    for table in tables:
        for given in table.get("fields", ()) if isinstance(table, Mapping) else ():
            yield str(given["name"]), _typed(given, given.get("constraints", {}))


def _typed(given: Mapping[str, Any], limits: Mapping[str, Any]) -> Entry:
    types = given.get("type", "")
    types = types if isinstance(types, list) else [types]
    kind = next((str(one) for one in types if one != "null"), "")
    if kind == "string" and given.get("format") in ("date", "date-time"):
        kind = str(given["format"])
    levels = [_text(one) for one in limits.get("enum", ()) if one is not None]
    if kind == "boolean":
        return {"kind": "boolean"}
    entry = _entry(kind, levels)
    if "kind" in entry or not kind:
        _put_bound(entry, "lower", limits.get("minimum"))
        _put_bound(entry, "upper", limits.get("maximum"))
    return entry


def _text(value: object) -> str:
    """A listed value as a category's text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ddi_entries(text: str) -> Iterator[tuple[str, Entry]]:
    require("<!" not in re.sub(r"<!--.*?-->|<!\[CDATA\[", "", text, flags=re.DOTALL), "holds a DOCTYPE")
    root = ET.fromstring(text)  # noqa: S314 - without a DOCTYPE there are no entities
    for var in root.iter():
        if _tag(var) != "var" or not var.get("name"):
            continue
        levels = [
            (part.text or "").strip()
            for category in var
            if _tag(category) == "catgry" and category.get("missing", "N").upper() != "Y"
            for part in category
            if _tag(part) == "catValu"
        ]
        shape = next((one for one in var if _tag(one) == "varFormat"), None)
        is_numeric = shape is not None and shape.get("type") == "numeric"
        decimals = var.get("dcml", "")
        kind = ("integer" if decimals == "0" else "number") if is_numeric else "category"
        entry = _entry("" if shape is None else kind, [one for one in levels if one])
        for limits in (one for part in var if _tag(part) == "valrng" for one in part):
            if _tag(limits) == "range":
                _put_bound(entry, "lower", limits.get("min"))
                _put_bound(entry, "upper", limits.get("max"))
        yield str(var.get("name")), entry


def _tag(element: ET.Element) -> str:
    """The name without its namespace."""
    return str(element.tag).rsplit("}", maxsplit=1)[-1]
