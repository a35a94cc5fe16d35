"""JSON lines as a source: one object per line, read by the declared names; total on any bytes.

A line that holds something but no object is one row of missing values, and a blank line is none. Names
stand in the rows, so none is compared, shown or matched: a name that a row lacks is a missing value.
Texts, numbers and truths are read as cells of any other source are; nested values are missing.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from adumbra.data.cells import CELLS, read_cells
from adumbra.data.files import PIECE_ROWS, FileSource, match_columns, require_rows
from adumbra.data.lines import read_lines
from adumbra.errors import require
from adumbra.schema.schema import Schema

_NO_OBJECT = b"0\n"  # in the place of a line that is too long


class JsonSource(FileSource):
    """Lines of JSON files."""

    __slots__ = ()

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - as they are read
        """The declared columns from row `start` on."""
        return self._pieces(list(self.schema.names), start)

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""
        return self._pieces(names, 0)

    def storage(self, name: str) -> list[pa.DataType]:  # noqa: ARG002 - of any column
        """Cells of any type."""
        return [CELLS]

    def _pieces(self, names: list[str], skip: int) -> Iterator[pa.RecordBatch]:
        for lines in _lines(self.paths):
            for first in range(min(skip, len(lines)), len(lines), PIECE_ROWS):
                found = [_object(line) for line in lines[first : first + PIECE_ROWS]]
                columns = [read_cells(row.get(name) for row in found) for name in names]
                yield pa.RecordBatch.from_arrays(columns, names)
            skip = max(skip - len(lines), 0)


def _lines(paths: tuple[Path, ...]) -> Iterator[list[bytes]]:
    """Lines that hold something, in blocks."""
    for path in paths:
        for block in read_lines(path, _NO_OBJECT):
            yield [line for line in block.split(b"\n") if line.strip(b" \t\r")]


def _object(line: bytes) -> dict[str, object]:
    """The object of one line; empty if it is none."""
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):  # no JSON, a number of too many digits, too deep
        return {}
    return found if isinstance(found, dict) else {}


def open_jsonl(paths: tuple[Path, ...], schema: Schema) -> JsonSource:
    """Check the public number of rows; names are those of the schema."""
    rule = "names of JSON lines stand in every row, and a row is never shown; list the columns"
    require(not schema.patterns, f"data={paths[0].name!r}: a pattern needs public names; {rule}")
    wanted = [*schema.names, *([] if schema.person is None else [schema.person.column])]
    schema = match_columns(schema, dict.fromkeys(wanted, pa.null()), wanted, f"data={paths[0].name!r}")
    if not schema.neighbours.rows_are_public:
        return JsonSource(paths, schema)
    return JsonSource(paths, schema, require_rows(schema, sum(map(len, _lines(paths)))))
