"""CSV text in ranges: from where a first pass sees a record begin, a reader finds all that follow."""

import atexit
import gzip
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adumbra.data import csv
from adumbra.data.csv_header import table_header
from adumbra.data.csv_records import checked
from adumbra.data.opening import open_source
from adumbra.data.split import split
from adumbra.relations import Neighbours
from support.data import INTEGER, NUMBER, table

SIGNS = [b'"', b",", b"\n", b"\r", b"\r\n", b" ", b"1", b"x", b'""', b"\xef\xbb\xbf", b"\x00", b"\xff"]
ROWS = [b"1,2\n", b"3,4\r\n", b'"5",6\n', b'7,"a\nb"\r\n', b'"8\r\n","9"\n', b"\n", b"10\n"]
TEXTS = st.lists(st.sampled_from(SIGNS + 3 * ROWS), max_size=40).map(b"".join)
FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
SCHEMA = replace(table(NUMBER, INTEGER), header=True)
HEAD = f"{NUMBER.name},{INTEGER.name}\n".encode()


def records_of(found, layout):
    """Every record, and whether it is malformed."""
    listed = []
    for block in found:
        if block.count == 0:
            continue
        one = checked(replace(block, data=bytes(block.data)), layout)
        table = csv.parse_records(one, layout, {0: False, 1: False})
        listed += zip(*(column.to_pylist() for column in table.columns), strict=True)
    return listed


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(1, 40))
@example(text=b'1,2\r\n"a\r\nb",3\r\n4,5\r\n', size=8)
@example(text=b'1,2\n"open,3\n4,5\n', size=4)
@example(text=b"1,2\r\r\n3,4\r", size=1)
def test_records_from_every_mark_are_the_rest_of_all_records(text, size):
    path = Path(FOLDER.name) / "t.csv"
    path.write_bytes(HEAD + text)
    header = table_header(path, SCHEMA)
    whole = records_of(csv.file_records(path, header), header.layout)
    with mock.patch.object(csv, "COUNT_BYTES", size):
        marks = csv.file_marks(path, SCHEMA)
    assert (marks.rows[0], marks.offsets[0], marks.count) == (0, len(HEAD), len(whole))
    for row, offset in zip(marks.rows, marks.offsets, strict=True):
        found = csv.records_from(path, header, offset, max(size, 16))
        assert records_of(found, header.layout) == whole[row:]


def rows_of(source, rows):
    found = [(batch.start, batch.values) for batch in source.batches(rows)]
    return [
        (start + at, tuple(row)) for start, values in found for at, row in enumerate(values.tolist())
    ]


@pytest.mark.parametrize("kind", ["lf", "crlf", "quoted", "gz", "utf-16", "no header"])
@pytest.mark.parametrize("relation", [Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE])
def test_ranges_are_the_rows_each_once(tmp_path, kind, relation, monkeypatch):
    """Files of several lengths, an empty one among them; whole blocks or not."""
    monkeypatch.setattr(csv, "COUNT_BYTES", 100)
    rng, end = np.random.default_rng(5), "\r\n" if kind == "crlf" else "\n"
    for index, count in enumerate((5, 40, 0, 1, 217)):
        numbers = rng.uniform(-9.0, 9.0, count)
        quoted = kind == "quoted"
        lines = [f'"{x}",{i}' if quoted and i % 3 == 0 else f"{x},{i}" for i, x in enumerate(numbers)]
        lines = [*([] if kind == "no header" else [f"{NUMBER.name},{INTEGER.name}"]), *lines, ""]
        text = end.join(lines).encode("utf-16" if kind == "utf-16" else "utf-8")
        name = f"{index}.csv.gz" if kind == "gz" else f"{index}.csv"
        (tmp_path / name).write_bytes(gzip.compress(text) if kind == "gz" else text)
    schema = replace(SCHEMA, neighbours=relation, header=kind != "no header")
    schema = replace(schema, encoding="utf-16") if kind == "utf-16" else schema
    source = open_source(tmp_path, schema)
    whole = rows_of(source, 8)
    assert len(whole) == 263
    for rows, count, shares in ((1, 1, 1), (1, 7, 2), (8, 5, 2), (64, 3, 3), (512, 4, 2)):
        found = split(source, rows, count, shares)
        assert len(found.parts) == count
        assert [row for part in found.parts for row in rows_of(part, 8)] == whole
        assert all("263" not in repr(part) for part in found.parts)


def test_large_files_are_cut_where_records_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "COUNT_BYTES", 64)
    (tmp_path / "a.csv").write_bytes(HEAD + b"1.5,2\n" * 1000)
    found = split(open_source(tmp_path, SCHEMA), 1, 4, 2)
    sizes = [stop - start for start, stop in found.spans]
    assert sum(sizes) == 1000
    assert max(sizes) < 300
    assert len({part.byte for part in found.parts}) == 4
