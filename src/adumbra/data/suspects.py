"""Columns that a draft leaves out: identifiers and free text, by name and stored type, not by value."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import pyarrow as pa

from adumbra.schema.schema import Schema

IDENTIFIER, FREE_TEXT = "an identifier", "free text"
_IDENTIFIERS = (
    "id ids uuid guid ssn nino mrn nhs passport email mail phone telephone mobile fax address street "
    "iban bic surname firstname lastname fullname username login password token hash ip url plate "
    "signature"
)
_NAMES = "first last full patient person given family maiden user customer client employee"
_TEXTS = (
    "note notes comment comments remark remarks description narrative memo freetext text message "
    "history letter summary"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def suspect(name: str, storage: pa.DataType | None) -> str | None:
    """What a column looks like that should not be released as it is; else None."""
    words = [part.lower() for part in _PART.findall(name)]
    if storage is not None and pa.types.is_boolean(storage):
        return None
    is_uuid = isinstance(storage, pa.BaseExtensionType) and "uuid" in storage.extension_name
    named = words == ["name"] or ("name" in words and _has(words, _NAMES))
    if is_uuid or named or _has(words, _IDENTIFIERS):
        return IDENTIFIER
    is_number = storage is not None and (
        pa.types.is_integer(storage) or pa.types.is_floating(storage) or pa.types.is_decimal(storage)
    )
    return FREE_TEXT if _has(words, _TEXTS) and not is_number else None


def _has(words: list[str], known: str) -> bool:
    return not set(words).isdisjoint(known.split())


def wide_patterns(schema: Schema, names: Sequence[str]) -> list[str]:
    """A sentence per pattern `prefix*` that takes names of another shape beside numbered ones.

    It quotes no name: a first line that was declared by mistake may be a row.
    """
    taken = {*schema.names, *(one.name for one in schema.derived)}
    said = []
    for pattern in schema.patterns:
        found = [name for name in names if name not in taken and fnmatchcase(name, pattern.match)]
        taken.update(found)
        prefix = pattern.match[:-1]
        is_prefix = prefix and pattern.match.endswith("*")
        if not is_prefix or any(sign in prefix for sign in "*?["):
            continue
        others = [name for name in found if not name[len(prefix) :].isdigit()]
        if others and len(others) < len(found):
            remedy = f"write a range, {prefix}{{0..9}}, or declare them apart"
            count = f"{len(others)} of another shape"
            said.append(f"match={pattern.match!r}: takes numbered columns and {count}; {remedy}")
    return said
