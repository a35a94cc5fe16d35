"""CSV files as a source: total on any bytes, with the declared kinds.

A record is a line, or several where a quoted field holds line ends (RFC 4180). In a file of one column a
blank line is a record whose field is empty, so that n depends on no value; in others it is no record.
A record with too few or too many fields, with an open quote, or longer than the limits counts as one row
of missing values, so the number of rows is kept. Values are read as bytes: text that is not UTF-8 equals
no category and is no number. pyarrow tokenises and converts, but sees well-formed records only.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from adumbra.data.batch import Batch
from adumbra.data.blocks import match_columns, rechunk, require_range, require_rows
from adumbra.data.files import pin_files
from adumbra.data.lines import read_lines
from adumbra.data.schema import Schema
from adumbra.errors import InvalidInput
from adumbra.numerics import Ints

LONGEST_QUOTED = (
    2**20
)  # bytes; a quote that stays open longer is a stray one, its record ends with the line
_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Layout:
    """How one kind of CSV file is cut: its delimiter and its number of fields."""

    delimiter: bytes
    fields: int

    @property
    def unreadable(self) -> bytes:
        """A record with one field too many."""
        return self.delimiter * self.fields + b"\n"

    @property
    def blank(self) -> bytes:
        """A well-formed record of empty fields."""
        return self.delimiter * (self.fields - 1) + b"\n"

    def pattern(self, repeat: str) -> re.Pattern[bytes]:
        """A record with `repeat` fields after the first; possessive, so that no input makes it slow."""
        sign = re.escape(self.delimiter)
        field = rb'(?:"(?:[^"]++|"")*+"[^%b\n]*+|[^"%b\n][^%b\n]*+|)' % (sign, sign, sign)
        return re.compile(field + rb"(?:%b%b)" % (sign, field) + repeat.encode() + rb"\n")


@dataclass(frozen=True, slots=True)
class Records:
    """Whole, well-formed records, and the places of those that stand in for malformed ones."""

    data: bytes = field(repr=False)
    count: int
    malformed: Ints = field(repr=False)


def split_records(
    blocks: Iterable[bytes], layout: Layout, *, longest: int = LONGEST_QUOTED
) -> Iterator[Records]:
    """Cut blocks of whole lines into records."""
    any_record = layout.pattern("*+")
    right_record = layout.pattern(f"{{{layout.fields - 1}}}")
    held = b""
    for block in blocks:
        data = held + block
        used, quoted = _quoted_records(data, any_record, longest, is_last=False)
        yield _records(data[:used], quoted, right_record, layout)
        held = data[used:]
    if held:
        used, quoted = _quoted_records(held, any_record, longest, is_last=True)
        yield _records(held, quoted, right_record, layout)


def _quoted_records(
    data: bytes, pattern: re.Pattern[bytes], longest: int, *, is_last: bool
) -> tuple[int, list[tuple[int, int]]]:
    """The ranges of records that hold a quote, and how many bytes are whole records."""
    quoted: list[tuple[int, int]] = []
    end = 0
    while (quote := data.find(b'"', end)) >= 0:
        begin = data.rfind(b"\n", end, quote) + 1 or end
        found = pattern.match(data, begin, begin + longest)
        if found is None and not is_last and len(data) - begin < longest:
            return begin, quoted  # the next block may close the quote
        end = found.end() if found else data.find(b"\n", quote) + 1
        quoted.append((begin, end))
    return len(data), quoted


def _records(
    data: bytes, quoted: list[tuple[int, int]], right: re.Pattern[bytes], layout: Layout
) -> Records:
    """Drop blank lines that are no records; put a blank record in the place of every malformed one."""
    view = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(view == _NEWLINE) + 1
    commas = np.searchsorted(np.flatnonzero(view == layout.delimiter[0]), ends)
    if quoted:
        spans = np.array(quoted, np.int64)
        # A line end inside a quoted record ends none; the field counts of these come from the pattern.
        after = np.searchsorted(spans[:, 0], ends, side="left") - 1
        inside = (after >= 0) & (ends < spans[np.maximum(after, 0), 1])
        ends, commas = ends[~inside], commas[~inside]
    is_right = np.diff(commas, prepend=0) == layout.fields - 1
    if quoted:
        wrong = [right.fullmatch(data, begin, end) is None for begin, end in quoted]
        is_right[np.searchsorted(ends, spans[:, 1])] = ~np.array(wrong)
    is_blank = (np.diff(ends, prepend=0) == 1) & (layout.fields > 1)
    if bool(np.all(is_right & ~is_blank)):
        return Records(data, len(ends), np.empty(0, np.int64))
    pieces = []
    kept = 0
    for index in np.flatnonzero(~is_right | is_blank):
        start = int(ends[index - 1]) if index else 0
        pieces += [data[kept:start], b"" if is_blank[index] else layout.blank]
        kept = int(ends[index])
    malformed = np.flatnonzero(~is_right[~is_blank])
    return Records(b"".join([*pieces, data[kept:]]), int(np.sum(~is_blank)), malformed)


def read_header(path: Path) -> tuple[str, ...]:
    """The names in the first record."""
    delimiter = _delimiter(path)
    pattern, held = Layout(delimiter, 1).pattern("*+"), b""
    for block in read_lines(path, b"\n"):
        held = (held + block).lstrip(b"\n")
        line = held[: held.find(b"\n") + 1]
        if b'"' in line:
            found = pattern.match(held, 0, LONGEST_QUOTED)
            line = found[0] if found else b""
        if line:
            return tuple(name.decode(errors="replace") for name in _fields(line, delimiter))
        if len(held) > LONGEST_QUOTED:
            break
    rule = "has an open quote" if held else "is absent"
    raise InvalidInput(f"data={path.name!r}: the line of column names {rule}; correct the first line")


def _fields(record: bytes, delimiter: bytes) -> list[bytes]:
    """The fields of one well-formed record."""
    sign = re.escape(delimiter)
    pattern = rb'(?:"((?:[^"]++|"")*+)"([^%b\n]*+)|([^"%b\n][^%b\n]*+|))(?:%b|\n)' % (
        sign,
        sign,
        sign,
        sign,
    )
    return [
        inner.replace(b'""', b'"') + rest + plain for inner, rest, plain in re.findall(pattern, record)
    ]


def parse_records(records: Records, layout: Layout, numbers: dict[int, bool]) -> pa.Table:
    """Chosen fields (by place; is it a number) as float64 or bytes, null in malformed records."""
    names = {
        str(place): pa.float64() if is_number else pa.binary() for place, is_number in numbers.items()
    }
    try:
        table = _convert(records.data, layout, names)
    except pa.ArrowInvalid:  # some cell is no number, which the message would show; read all as bytes
        table = _convert(records.data, layout, dict.fromkeys(names, pa.binary()))
    if len(records.malformed):
        mask = np.zeros(records.count, np.bool_)
        mask[records.malformed] = True
        hidden = pa.array(mask)
        columns = [pc.if_else(hidden, pa.scalar(None, column.type), column) for column in table.columns]
        table = pa.table(columns, names=table.column_names)
    return table


def _convert(data: bytes, layout: Layout, types: dict[str, pa.DataType]) -> pa.Table:
    """Tokenise and convert with pyarrow, as one block."""
    # The blank record ahead keeps a byte order mark inside the data what it is: data.
    whole = layout.blank + data
    table = pa_csv.read_csv(
        pa.BufferReader(whole),
        pa_csv.ReadOptions(
            column_names=[str(place) for place in range(layout.fields)], block_size=len(whole) + 1
        ),
        pa_csv.ParseOptions(
            delimiter=layout.delimiter.decode(), newlines_in_values=True, ignore_empty_lines=False
        ),
        pa_csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=False, check_utf8=False
        ),
    )
    return table.slice(1)


@dataclass(frozen=True, slots=True)
class CsvSource:
    """Rows of CSV files; holds paths and public facts only."""

    paths: tuple[Path, ...]
    schema: Schema
    counted: int | None = None  # records, where their number is public

    @property
    def width(self) -> int:
        """Values a row."""
        return self.schema.width

    def public_rows(self) -> int | None:
        """The number of records when the source was opened, where it is public."""
        return self.counted

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Blocks of fixed row ranges."""
        require_range(rows, start, stop)
        last = self.schema.max_rows if stop is None else min(stop, self.schema.max_rows)
        return rechunk(self._pieces(start), self.schema, rows, start, max(last - start, 0))

    def pin(self) -> str:
        """A digest of names, sizes and modification times."""
        return pin_files(self.paths)

    def _pieces(self, skip: int) -> Iterator[pa.RecordBatch]:
        """Converted records from global row `skip` on."""
        for path in self.paths:
            header = read_header(path)
            chosen = {header.index(column.name): column for column in self.schema.columns}
            numbers = {place: column.is_numeric for place, column in chosen.items()}
            layout, blocks = file_records(path)
            skip += 1  # the header is a record too
            for records in blocks:
                if skip < records.count:
                    table = parse_records(records, layout, numbers).slice(skip)
                    names = [chosen[int(name)].name for name in table.column_names]
                    yield from table.rename_columns(names).to_batches()
                skip = max(skip - records.count, 0)


def file_records(path: Path) -> tuple[Layout, Iterator[Records]]:
    """The layout that the header sets, and all records of a file, the header's first."""
    layout = Layout(_delimiter(path), len(read_header(path)))
    return layout, split_records(_from_header(read_lines(path, layout.unreadable)), layout)


def _from_header(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks without the blank lines before the first record, which are none in any file."""
    is_ahead = True
    for block in blocks:
        kept = block.lstrip(b"\n") if is_ahead else block
        is_ahead = is_ahead and not kept
        if kept:
            yield kept


def _delimiter(path: Path) -> bytes:
    return b"\t" if path.suffix.lower() == ".tsv" else b","


def open_csv(paths: tuple[Path, ...], schema: Schema) -> CsvSource:
    """Check the names in every file and, if rows are declared, their number."""
    for path in paths:
        names = list(read_header(path))
        types = dict.fromkeys(names, pa.binary())
        schema = match_columns(schema, types, names, f"data={path.name!r}")
    if not schema.neighbours.rows_are_public:
        return CsvSource(paths, schema)
    # Counting looks for line ends, quotes and delimiters only.
    counts = (records.count for path in paths for records in file_records(path)[1])
    return CsvSource(paths, schema, require_rows(schema, sum(counts) - len(paths)))
