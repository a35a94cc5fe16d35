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
from adumbra.data.lines import MARK, TextFile, open_text
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
    size: int  # bytes up to the first row, in UTF-8
    encoding: str | None = None


def table_header(path: Path, schema: Schema) -> Header:
    """The names and the layout of a file, as far as the schema lets its first line say them."""
    delimiter = None if schema.delimiter is None else schema.delimiter.encode()
    if schema.header is False:  # the first bytes are private: no look at them may refuse the file
        with open_text(path, schema.encoding) as file:
            begin = len(MARK) if file.read(len(MARK)) == MARK else 0
        layout = Layout(delimiter or _delimiter(path), schema.width)
        return Header(names=schema.names, layout=layout, size=begin, encoding=schema.encoding)
    require_names(schema, f"data={path.name!r}")
    return read_header(path, delimiter, schema.encoding)


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
    return b"\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else b","


def likely_delimiter(path: Path) -> str | None:
    """Another delimiter than the suffix says, where that leaves one field of a public first line."""
    if len(read_header(path).names) > 1:
        return None
    counts = {sign: len(read_header(path, sign.encode()).names) for sign in (";", "\t", "|", ",")}
    best = max(counts, key=lambda sign: counts[sign])
    return best if counts[best] > 1 else None


def read_header(path: Path, delimiter: bytes | None = None, encoding: str | None = None) -> Header:
    """The names in the first record, and what it says of the others."""
    delimiter = delimiter or _delimiter(path)
    sign, where = re.escape(delimiter), f"data={path.name!r}"
    name = rb'(?:"(?:[^"]++|"")*+"[^%b\r\n]*+|[^"%b\r\n][^%b\r\n]*+|)' % (sign, sign, sign)
    record = re.compile(rb"[\r\n]*+(%b(?:%b%b)*+)(\r\n|\n|\r(?!\n)|\Z)" % (name, sign, name))
    with open_text(path, encoding) as file:
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
    return Header(names=names, layout=layout, size=begin + found.end(), encoding=encoding)


def _unquoted(field: bytes) -> bytes:
    """What a field says."""
    parts = re.fullmatch(rb'"((?:[^"]++|"")*+)"(.*)', field, re.DOTALL)
    return parts[1].replace(b'""', b'"') + parts[2] if parts else field


def _require_text(foreign: str | None, where: str) -> None:
    """Refuse a file whose first bytes are no text in UTF-8."""
    remedy = "unpack it first, or name it .csv.gz" if foreign in PACKED[:1] else "save it as UTF-8"
    remedy = "unpack it first" if foreign in PACKED[1:] else remedy
    remedy += ", or declare encoding = 'utf-16'" if foreign not in PACKED else ""
    require(foreign is None, f"{where}: the file is {foreign}; {remedy}")


def read_rows(path: Path, header: Header, size: int) -> Iterator[bytes]:
    """All that follows the header, in pieces; CR LF, in quotes too, is LF, and any other CR a blank."""
    with open_text(path, header.encoding) as file:
        file.seek(header.size)
        yield from rest_of_rows(file, size)


def rest_of_rows(file: TextFile, size: int, first: bytes = b"") -> Iterator[bytes]:
    """The same of what stands first and of all that is left of a file."""
    held, piece = b"", first or file.read(size)
    while piece:
        chunk = held + piece
        held = b"\r" if chunk.endswith(b"\r") else b""  # it may be followed by LF
        chunk = chunk.removesuffix(b"\r")
        yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b" ") if b"\r" in chunk else chunk
        piece = file.read(size)
    if held:
        yield b" "
