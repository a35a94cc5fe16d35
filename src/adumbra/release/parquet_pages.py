"""What the pages of a Parquet list column really hold, by their own headers.

A flat column has as many values as rows. A list column has as many as its pages say, whatever the footer
claims: a file of 300 bytes may unfold to gigabytes. So the headers are read (thrift, compact protocol)
before any page is.
"""

from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

HEADER_BYTES = 2**16  # more than any header of ours takes
UNCOMPRESSED, COMPRESSED = 2, 3  # fields of a page header
DATA_PAGES = (5, 8)  # its two kinds of data page, whose first field counts values
STOP, TRUE, FALSE, BINARY, STRUCT, WHOLE = 0, 1, 2, 8, 12, (4, 5, 6)  # kinds of field
DEEPEST = 4


def list_bytes(path: Path, footer: pq.FileMetaData) -> int:
    """Bytes that the list columns of a file unfold to: sixteen per value, or the pages themselves.

    Raises ValueError or IndexError where a header is none.
    """
    schema = footer.schema
    lists = [place for place in range(len(schema)) if schema.column(place).max_repetition_level > 0]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    with path.open("rb") as file:
        return sum(_chunk_bytes(file, group.column(place)) for group in groups for place in lists)


def _chunk_bytes(file: BinaryIO, chunk: Any) -> int:  # noqa: ANN401 - pyarrow has no name for it
    """The same of one column of one row group."""
    offsets = [chunk.data_page_offset, chunk.dictionary_page_offset]
    start = min(offset for offset in offsets if offset is not None and offset > 0)
    end, total = start + chunk.total_compressed_size, 0
    while start < end:
        file.seek(start)
        header = Reader(file.read(HEADER_BYTES))
        fields = header.struct()
        counted = [fields[kind] for kind in DATA_PAGES if kind in fields]
        counts: list[Any] = [page.get(1) for page in counted if isinstance(page, dict)]
        sizes = [fields.get(COMPRESSED), fields.get(UNCOMPRESSED), *counts]
        if len(counts) != len(counted) or any(not isinstance(n, int) or n < 0 for n in sizes):
            raise ValueError("a page header without its counts")
        total += max(16 * sum(counts), fields[UNCOMPRESSED])
        start += header.at + fields[COMPRESSED]
    return total


class Reader:
    """Thrift's compact protocol, as much as a page header uses; IndexError or ValueError on others."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct by number: whole numbers and structs; others are stepped over."""
        if depth == DEEPEST:
            raise ValueError("a page header that is nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self.byte()) != STOP:
            number = number + (head >> 4) if head >> 4 else self.whole()
            fields[number] = self.value(head & 15, depth)
        return fields

    def value(self, kind: int, depth: int) -> Any:  # noqa: ANN401 - a number or a struct
        """One value of this kind."""
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind == BINARY:
            length = self.varint()
            self.at += length
            return None
        if kind not in WHOLE:
            raise ValueError("a page header of unknown fields")
        return self.whole()

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self.raw[self.at - 1]

    def varint(self) -> int:
        """An unsigned number, seven bits per byte."""
        value = shift = 0
        while (part := self.byte()) & 128:
            value, shift = value | (part & 127) << shift, shift + 7
        return value | part << shift

    def whole(self) -> int:
        """A signed number in zigzag."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)
