"""The first record of a CSV file: names and delimiter, or, with `header = false`, a row like any other.

Nobody can tell names from a row by their looks. So the names of a column come from the schema, and those
of the first line are compared with them; they are shown, and matched with patterns, only where the
schema declares them public (`header = true`).

A record ends with LF or CR LF. A CR elsewhere is part of a cell, for csv.writer and pandas leave it
without quotes, and reads as a blank. A header that ends in a lone CR is refused: were CR the end of
lines, the LF that a cell begins with would make it CR LF.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from adumbra.data.csv_records import Layout
from adumbra.data.lines import MARK
from adumbra.errors import InvalidInput, require
from adumbra.schema.schema import Schema

PACKED = ("gzip", "zip")
FOREIGN = (
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"\x1f\x8b", PACKED[0]),
    (b"PK\x03\x04", PACKED[1]),
)
LONGEST_HEADER = 2**26
_FIRST_READ = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Names to the letter, and where the rows begin."""

    names: tuple[str, ...]
    layout: Layout
    size: int  # bytes up to the first row


def table_header(path: Path, schema: Schema) -> Header:
    """The names and the layout of a file, as far as the schema lets its first line say them."""
    if schema.header is False:  # the first bytes are private: no look at them may refuse the file
        with path.open("rb") as file:
            begin = len(MARK) if file.read(len(MARK)) == MARK else 0
        return Header(names=schema.names, layout=Layout(_delimiter(path), schema.width), size=begin)
    require_names(schema, f"data={path.name!r}")
    return read_header(path)


def require_names(schema: Schema, where: str) -> None:
    """Refuse patterns on a first line that nobody declared public."""
    remedy = "declare header = true in [table] (or give --header) if the first line holds public names"
    require(
        not schema.patterns or schema.header is True,
        f"{where}: a pattern takes column names from the first line of a CSV file, which may be a row; "
        f"{remedy}, else list the columns and declare header = false",
    )


def look_like_values(names: Iterable[str]) -> bool:
    """Whether some name is a number, a date or the like: digits, and no letter but an exponent's."""
    plain = (re.sub(r"(?<=\d)[eE](?=[-+]?\d)", "", name) for name in names)
    return any(re.search(r"\d", name) and not re.search(r"[^\W\d_]", name) for name in plain)


def _delimiter(path: Path) -> bytes:
    """What stands between two fields."""
    return b"\t" if path.suffix.lower() == ".tsv" else b","


def read_header(path: Path) -> Header:
    """The names in the first record, and what it says of the others."""
    delimiter = _delimiter(path)
    sign, where = re.escape(delimiter), f"data={path.name!r}"
    name = rb'(?:"(?:[^"]++|"")*+"[^%b\r\n]*+|[^"%b\r\n][^%b\r\n]*+|)' % (sign, sign, sign)
    record = re.compile(rb"[\r\n]*+(%b(?:%b%b)*+)(\r\n|\n|\r(?!\n)|\Z)" % (name, sign, name))
    with path.open("rb") as file:
        start = file.read(4)
        _require_text(next((kind for first, kind in FOREIGN if start.startswith(first)), None), where)
        begin = len(MARK) if start.startswith(MARK) else 0
        file.seek(begin)
        data, wanted, is_whole, found = b"", _FIRST_READ, False, None
        while found is None and not is_whole and len(data) < LONGEST_HEADER:
            piece = file.read(wanted)
            data, wanted, is_whole = data + piece, 8 * wanted, len(piece) < wanted
            found = record.match(data)
            if found is not None and found.end() == len(data) and not is_whole:
                found = None  # what was read ends too early to tell how the line does
    if found is None or not found[1]:
        rule = "has an open quote" if data.strip(b"\r\n") else "is absent"
        raise InvalidInput(f"{where}: the line of column names {rule}; correct the first line")
    _require_text("UTF-16 or no text" if b"\0" in found[1] else None, where)
    require(
        found[2] != b"\r",
        f"{where}: its first line ends in CR; write it with LF or CR LF, in Python with newline=''",
    )
    fields = re.findall(name + sign, found[1] + delimiter)
    names = tuple(_unquoted(one[:-1]).decode(errors="replace") for one in fields)
    layout = Layout(delimiter, len(names))
    return Header(names=names, layout=layout, size=begin + found.end())


def _unquoted(field: bytes) -> bytes:
    """What a field says."""
    parts = re.fullmatch(rb'"((?:[^"]++|"")*+)"(.*)', field, re.DOTALL)
    return parts[1].replace(b'""', b'"') + parts[2] if parts else field


def _require_text(foreign: str | None, where: str) -> None:
    """Refuse a file whose first bytes are no text in UTF-8."""
    remedy = "unpack it first" if foreign in PACKED else "save it as UTF-8"
    require(foreign is None, f"{where}: the file is {foreign}; {remedy}")


def read_rows(path: Path, header: Header, size: int) -> Iterator[bytes]:
    """All that follows the header, in pieces; CR LF, in quotes too, is LF, and any other CR a blank."""
    held = b""
    with path.open("rb") as file:
        file.seek(header.size)
        while piece := file.read(size):
            chunk = held + piece
            held = b"\r" if chunk.endswith(b"\r") else b""  # it may be followed by LF
            chunk = chunk.removesuffix(b"\r")
            yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b" ") if b"\r" in chunk else chunk
    if held:
        yield b" "
