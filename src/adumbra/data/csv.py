"""CSV files as a source: total on any bytes, with the declared kinds.

csv_header.py says what ends a line, csv_records.py what ends a record. In a file of one column a blank
line is a record whose field is empty, so that n depends on no value; in others it is no record. A record
with too few or too many fields, or with a quote that nothing closes, is one row of missing values.
Values are read as bytes: text that is not UTF-8 equals no category and is no number. pyarrow tokenises
and converts, but sees well-formed records only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from adumbra.data.csv_header import Header, read_rows, rest_of_rows, table_header
from adumbra.data.csv_numbers import plain_table, ready_loop, uses_loop
from adumbra.data.csv_records import Layout, Records, checked, plain_records, split_records
from adumbra.data.files import FileSource, match_columns, require_rows
from adumbra.data.lines import MARK, READ_BYTES, is_utf8
from adumbra.schema.schema import Schema

COUNT_BYTES = 2**20  # read at once where records are only counted


def parse_records(
    records: Records, layout: Layout, numbers: dict[int, bool], *, loop: bool = False
) -> pa.Table:
    """Chosen fields (by place; is it a number) as float64 or bytes, null in malformed records.

    With `loop` plain numbers are read by a compiled loop, in the same bits.
    """
    table = plain_table(records, layout, numbers) if loop else None
    if table is not None:
        return table
    names = {
        str(place): pa.float64() if is_number else pa.binary() for place, is_number in numbers.items()
    }
    table = _converted(records, layout, names)
    if table is None and not records.is_checked:  # perhaps some record has another number of fields
        records = checked(records, layout)
        table = _converted(records, layout, names) if len(records.malformed) else None
    if table is None:  # some cell is no number: read all as bytes
        table = _convert(records.data, layout, dict.fromkeys(names, pa.binary()))
    if len(records.malformed):
        mask = np.zeros(records.count, np.bool_)
        mask[records.malformed] = True
        hidden = pa.array(mask)
        columns = [pc.if_else(hidden, pa.scalar(None, column.type), column) for column in table.columns]
        table = pa.table(columns, names=table.column_names)
    return table


def _converted(records: Records, layout: Layout, types: dict[str, pa.DataType]) -> pa.Table | None:
    """The records in these types; None where pyarrow takes one of them otherwise, or not at all."""
    try:
        table = _convert(records.data, layout, types)
    except pa.ArrowInvalid:  # its message would show a cell
        return None
    return table if table.num_rows == records.count else None


def _convert(data: bytes | memoryview, layout: Layout, types: dict[str, pa.DataType]) -> pa.Table:
    """Tokenise and convert with pyarrow, as one block."""
    # A blank record ahead keeps a byte order mark inside the data what it is: data.
    ahead = data[: len(MARK)] == MARK
    whole = layout.blank + bytes(data) if ahead else data
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
    return table.slice(1) if ahead else table


class CsvSource(FileSource):
    """Records of CSV files."""

    __slots__ = ()

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - as they are read
        """The declared columns from row `start` on."""
        return self._pieces(self.schema.names, start)

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        return self._pieces(tuple(names), 0)

    def storage(self, name: str) -> list[pa.DataType]:  # noqa: ARG002 - of any column
        """Text."""
        return [pa.large_string()]

    def _pieces(self, names: tuple[str, ...], skip: int) -> Iterator[pa.RecordBatch]:
        """Converted records from global row `skip` on."""
        return csv_pieces(self.paths, self.schema, names, skip)


def csv_pieces(
    paths: tuple[Path, ...], schema: Schema, names: tuple[str, ...], skip: int, offset: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Converted records of files, less the first `skip`; of the first file from a byte on, if given."""
    numeric = {column.name for column in schema.columns if column.kind.reads_numbers}
    loop = uses_loop(_bytes(paths))
    for number, path in enumerate(paths):
        header = table_header(path, schema)
        chosen = {header.names.index(name): name for name in names}
        numbers = {place: name in numeric for place, name in chosen.items()}
        is_inside = number == 0 and offset is not None and offset != header.size
        found = (
            records_from(path, header, offset or 0, READ_BYTES)
            if is_inside
            else file_records(path, header)
        )
        for records in found:
            if skip < records.count:
                table = parse_records(records, header.layout, numbers, loop=loop).slice(skip)
                named = [chosen[int(place)] for place in table.column_names]
                yield from table.rename_columns(named).to_batches()
            skip = max(skip - records.count, 0)


def _bytes(paths: tuple[Path, ...]) -> int:
    """Of text in all files."""
    return sum(path.stat().st_size for path in paths)


def file_records(path: Path, header: Header, size: int = READ_BYTES) -> Iterator[Records]:
    """All records of a file after its header; what is handed out may be overwritten by the next step."""
    if not is_utf8(path, header.encoding):
        yield from split_records(read_rows(path, header, size), header.layout)
        return
    yield from records_from(path, header, header.size, size)


def records_from(path: Path, header: Header, offset: int, size: int) -> Iterator[Records]:
    """The records of a UTF-8 file from a byte on at which one begins."""
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        yield from plain_records(file, header.layout, size, partial(rest_of_rows, file, size))


@dataclass(frozen=True, slots=True)
class Marks:
    """Places of a file at which a record begins, as far as they were looked for: a pass of its own."""

    rows: tuple[int, ...] = field(repr=False)  # records before each; the first is 0
    offsets: tuple[int, ...] = field(repr=False)  # the byte of each
    count: int = field(repr=False)  # records of the whole file


def file_marks(path: Path, schema: Schema) -> Marks:
    """Where records begin, about every block of a read; of a packed or recoded file its first alone.

    The records are those of `file_records`, so a mark is no other law of what a record is. What was read
    behind the last record of a block, and a CR at its end that may belong to an LF, are not in it yet.
    """
    header = table_header(path, schema)
    rows, offsets, count = [0], [header.size], 0
    if not is_utf8(path, header.encoding):
        return Marks((0,), (header.size,), sum(one.count for one in file_records(path, header)))
    with path.open("rb", buffering=0) as file:
        file.seek(header.size)
        rest = partial(rest_of_rows, file, COUNT_BYTES)
        for records in plain_records(file, header.layout, COUNT_BYTES, rest):
            count += records.count
            if records.left is not None:
                end = file.tell()
                file.seek(end - 1)
                waiting = file.read(1) == b"\r"
                rows.append(count)
                offsets.append(end - records.left - waiting)
    return Marks(tuple(rows), tuple(offsets), count)


def open_csv(paths: tuple[Path, ...], schema: Schema) -> CsvSource:
    """Check the names in every file and, if rows are declared, their number."""
    for path in paths:
        names = list(table_header(path, schema).names)
        types = dict.fromkeys(names, pa.null())  # a text file stores none
        schema = match_columns(schema, types, names, f"data={path.name!r}")
    ready_loop(_bytes(paths))
    if not schema.neighbours.rows_are_public:
        return CsvSource(paths, schema)
    # Counting looks for line ends, quotes and delimiters only.
    headers = ((path, table_header(path, schema)) for path in paths)
    counts = (
        records.count for path, header in headers for records in file_records(path, header, COUNT_BYTES)
    )
    return CsvSource(paths, schema, require_rows(schema, sum(counts)))
