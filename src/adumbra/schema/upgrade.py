"""Older schema files in today's format: their text is kept, comments too, but for the format's line."""

import re
import tomllib

from adumbra.errors import SchemaError
from adumbra.schema.fields import find_lines
from adumbra.schema.schema import FIRST_FORMAT, FORMAT

_VALUE = re.compile(rf"""(["']){re.escape(FIRST_FORMAT)}\1""")


def upgraded(text: str, filename: str) -> str:
    """The same schema in today's format; its digest is the same. A draft may be unfinished."""
    try:
        form = tomllib.loads(text.replace("\r\n", "\n")).get("format")
    except tomllib.TOMLDecodeError:
        found = f"{filename}:1: not valid TOML; `adumbra schema check` says where"
        raise SchemaError((found,)) from None
    if form == FORMAT:
        return text
    line = find_lines(text.replace("\r\n", "\n")).get(("format",))
    lines = text.split("\n")
    if form != FIRST_FORMAT or line is None or not _VALUE.search(lines[line - 1]):
        rule = f"must be {FIRST_FORMAT!r} to be upgraded, on a line of its own"
        raise SchemaError((f"{filename}:{line or 1}: format: {rule}",))
    lines[line - 1] = _VALUE.sub(f'"{FORMAT}"', lines[line - 1], count=1)
    return "\n".join(lines)
