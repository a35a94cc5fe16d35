"""Any bytes are a CSV file: no exception, the row count of the rule, and the cells of a plain reader."""

import atexit
import csv
import itertools
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adumbra.data import csv_records
from adumbra.data.csv import file_records
from adumbra.data.csv_header import read_header, read_rows
from adumbra.data.csv_records import checked, split_records
from adumbra.data.lines import read_chunks, read_lines
from adumbra.data.opening import open_source
from support.data import MIXED, reference_records, reference_value, table

SIGNS = [
    b",",
    b",",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'"',
    b'""',
    b" ",
    b"\t",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
]
WORDS = [
    b"1",
    b"-2.5",
    b"1e308",
    b"+3",
    b"1e999",
    b"1e-99999999999",
    b"nan",
    b"inf",
    b"NA",
    b"x",
    b"y",
    b"z w",
]
WORDS += [
    b"true",
    b"No",
    b"1.0",
    b"0x10",
    b"1_000",
    b"CANARY",
    b".5",
    b"5.",
    b"-",
    b"1e",
    "é".encode(),
    b"\x0b7",
]
BYTES = st.lists(st.sampled_from(SIGNS + WORDS), max_size=40).map(b"".join)
ROWS = st.lists(
    st.lists(st.sampled_from([*WORDS, b"", b'"x"', b'"y\n"']), min_size=4, max_size=4), max_size=12
)
FOLDER, NUMBER = tempfile.TemporaryDirectory(), itertools.count()
atexit.register(FOLDER.cleanup)


def write(data: bytes) -> Path:
    path = Path(FOLDER.name) / f"{next(NUMBER)}.csv"
    path.write_bytes(data)
    return path


def read(path: Path, rows: int = 4096) -> np.ndarray:
    batches = list(open_source(path, table()).batches(rows))
    return np.concatenate([batch.values for batch in batches]) if batches else np.empty((0, 4))


def expected(data: bytes) -> np.ndarray:
    records = reference_records(data)[1:]
    cells = [record if record is not None and len(record) == 4 else [None] * 4 for record in records]
    values = [[reference_value(c, cell) for c, cell in zip(MIXED, row, strict=True)] for row in cells]
    return np.array(values).reshape(-1, 4)


@settings(max_examples=300, deadline=None)
@given(BYTES)
@example(b'"')
@example(b'1,2,x,"true\n1,2,x,1\n')
@example(b'1,2,x,a"b"\n')
@example(b"\xef\xbb\xbf1,2,x,1\n")
def test_any_bytes_are_rows(body):
    data = b"a,i,b,c\n" + body
    values = read(write(data))
    assert np.array_equal(values, expected(data))


@settings(max_examples=150, deadline=None)
@given(BYTES.map(lambda body: body.replace(b"1,", b"1")))
@example(b"")
@example(b"\n\n")
@example(b"1\n\n\r\n2")
@example(b'"\n\n')
def test_any_bytes_are_rows_of_one_column(body):
    data = b"\n\na\n" + body
    source = open_source(write(data), table(MIXED[0]))
    found = [value for batch in source.batches(4096) for value in batch.values[:, 0]]
    records = reference_records(data, one_field=True)[1:]
    cells = [record[0] if record is not None and len(record) == 1 else None for record in records]
    assert found == [reference_value(MIXED[0], cell) for cell in cells]
    assert source.public_rows() == len(cells)


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_a_cell_is_read_the_same_whatever_stands_beside_it(rows):
    # One unreadable number sends its whole block the slow way; the other cells must not notice.
    data = b"a,i,b,c\n" + b"".join(b",".join(row) + b"\n" for row in rows)
    assert np.array_equal(read(write(data)), expected(data))


def split(path, size, longest):
    header = read_header(path)
    cut = split_records(read_rows(path, header, size), header.layout, longest=longest)
    parts = [checked(part, header.layout) for part in cut]
    malformed, before = [], 0
    for part in parts:
        malformed += [before + int(place) for place in part.malformed]
        before += part.count
    return b"".join(part.data for part in parts), before, malformed


def read_in_place(path, size):
    """The same of the way that reads into one piece of memory."""
    header = read_header(path)
    data, malformed, before = [], [], 0
    for found in file_records(path, header, size):
        part = checked(found, header.layout)
        data.append(bytes(part.data))
        malformed += [before + int(place) for place in part.malformed]
        before += part.count
    return b"".join(data), before, malformed


@settings(max_examples=300, deadline=None)
@given(BYTES, st.integers(1, 30), st.integers(1, 60), st.sampled_from([b"\n", b"\r\n"]))
@example(b'1,"aaaa""",2\n3,"b"\n', 3, 2, b"\n")
@example(b'1,"aaaa"b"c,2\n3,"b"\n', 3, 2, b"\n")
@example(b'"' + b'"' * 30 + b"\n3,4\n", 7, 4, b"\n")
@example(b",,,,,,,,,,,,,,,,\n1,2\n", 2, 1, b"\n")
@example(b"a\rb,2\n3,\r\n4,5\r\n", 2, 9, b"\n")
def test_records_do_not_depend_on_the_sizes_of_reads(body, size, longest, end):
    data = b"a,b" + end + body
    path = write(data)
    found = split(path, size, longest)
    assert found == split(path, 2**20, longest)
    with patch.object(csv_records, "LONGEST_FIELD", longest):
        assert read_in_place(path, size) == found
    reference = reference_records(data, longest)[1:]
    wrong = [i for i, record in enumerate(reference) if record is None or len(record) != 2]
    assert found[1:] == (len(reference), wrong)
    # What is left are well-formed records, with all short cells and no long one.
    again = reference_records(b"a,b\n" + found[0])[1:]
    assert again == [[b"", b""] if i in wrong else cells for i, cells in enumerate(reference)]
    assert all(len(cell) <= longest for cells in again for cell in cells)


TEXTS = st.lists(
    st.sampled_from([*'",\n\r\t; x1é', "\r\n", '""', "\ufeff", "\x00", "\u2028", "\x85"]), max_size=8
).map("".join)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), TEXTS, TEXTS), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
@example([(1, "a\rb", "c\r"), (2, "\r", "\n")], "\n", csv.QUOTE_MINIMAL)
def test_no_text_changes_the_rows_that_csv_writer_wrote(rows, end, quoting):
    path = write(b"")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=end, quoting=quoting)
        writer.writerow(["note", "i", "more"])
        writer.writerows((before, number, after) for number, before, after in rows)
    source = open_source(path, table(MIXED[1]))
    assert source.public_rows() == len(rows)
    found = [value for batch in source.batches(4) for value in batch.values[:, 0]]
    assert found == [number for number, _, _ in rows]


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=6), st.sampled_from(["\n", "\r\n"]))
@example(["", "\r", "\n", "x"], "\n")
def test_no_text_changes_the_rows_of_one_column(texts, end):
    path = write(b"")
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end).writerows([["b"], *([text] for text in texts)])
    assert open_source(path, table(MIXED[2])).public_rows() == len(texts)


@settings(max_examples=200, deadline=None)
@given(BYTES, st.integers(1, 20), st.integers(1, 50))
def test_lines_do_not_depend_on_the_sizes_of_reads(body, size, longest):
    path = write(body)
    text = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text += b"\n" if text and not text.endswith(b"\n") else b""
    assert b"".join(read_chunks(path, size)) == text
    expected_lines = [
        b"?\n" if len(line) + 1 > longest else line + b"\n" for line in text.split(b"\n")[:-1]
    ]
    found = list(read_lines(path, b"?\n", size=min(size, longest), longest=longest))
    assert b"".join(found) == b"".join(expected_lines)
    assert all(block.endswith(b"\n") for block in found)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=6).filter(lambda name: "\0" not in name), min_size=1, max_size=5))
def test_headers_round_trip(names):
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    path = write(quoted.encode("utf-8", "replace") + b"\n1\n")
    assert read_header(path).names == tuple(name.encode("utf-8", "replace").decode() for name in names)
