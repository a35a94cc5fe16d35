"""CSV files: the rules of records, headers and limits, one by one."""

import csv
import gzip
import sys
import tracemalloc

import numpy as np
import pytest

from adumbra.data import csv_numbers
from adumbra.data.csv_header import read_header, read_rows
from adumbra.data.csv_records import Layout, split_records
from adumbra.data.opening import describe, open_source
from adumbra.errors import InvalidInput, Unsupported
from adumbra.relations import Neighbours
from support.data import table

MISSING = [3, 4, 3, 1]


def values(path, schema=None, rows=4096):
    return np.concatenate(
        [batch.values for batch in open_source(path, schema or table()).batches(rows)]
    ).tolist()


def write(folder, data, name="t.csv"):
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"1,2,x,1\n", [[1, 2, 0, 1]]),
        (b"1,2,x,1", [[1, 2, 0, 1]]),
        (b"1,2,x,0\r\n2,3,y,0\r\n", [[1, 2, 0, 0], [2, 3, 1, 0]]),
        (b"1\r,\r2,x\ry,0\r\n2,3,y,0\r", [[1, 2, 3, 0], [2, 3, 1, 0]]),
        (b"\n\n1,2,x,0\n\n", [[1, 2, 0, 0]]),
        (b'"1","2","x","false"\n', [[1, 2, 0, 0]]),
        (b'"a ""quoted""\n, text",2,x,0\n', [[3, 2, 0, 0]]),
        (b"1,2\n", [MISSING]),
        (b"1,2,x,0,9\n", [MISSING]),
        (b'1,1,y,0\n"1,2,x,0\n1,1,y,0\n', [[1, 1, 1, 0], MISSING]),
        (b'1,2,"x,0\n1,1,y,0\n1,1,"y",0\n', [[1, 2, 3, 0]]),
        (b"\xff\xfe,\xff,\xff,\xff\n", [MISSING]),
        (b"1\x00,2,x\x00,0\n", [[3, 2, 3, 0]]),
        (b"1 , 2,x ,no \n", [[1, 2, 3, 0]]),
        (b",,,\n", [MISSING]),
        (b"NA,nan,NULL,n/a\n", [MISSING]),
        (b"1e308,-1e308,x,0\n", [[10, 0, 0, 0]]),
        (b"=1+1,2,x,0\n", [[3, 2, 0, 0]]),
        (b'x"y",2,x,0\n', [[3, 2, 0, 0]]),
        (b'"1"0,2,x,0\n', [[10, 2, 0, 0]]),
    ],
)
def test_records(tmp_path, body, expected):
    assert values(write(tmp_path, b"a,i,b,c\n" + body)) == expected


def test_either_line_end_ends_a_record_in_one_file(tmp_path):
    path = write(tmp_path, b"\r\na,i,b,c\r\n1,2,x,0\n2,3,y,0\r\n")
    assert values(path) == [[1, 2, 0, 0], [2, 3, 1, 0]]


def test_an_empty_category_is_not_a_malformed_record(tmp_path):
    from adumbra.schema.schema import Column, Kind

    schema = table(Column(name="b", kind=Kind.CATEGORY, categories=("", "x"), missing="category"))
    assert values(write(tmp_path, b'b\n""\nx\nq\n"a","b"\n'), schema) == [[0], [1], [2], [2]]


def test_the_number_of_rows_of_one_column_depends_on_no_value(tmp_path):
    schema = table(table().columns[0], rows=3)
    for body, expected in [
        (b"1\n2\n3\n", [1, 2, 3]),
        (b"1\n\n3\n", [1, 3, 3]),
        (b"1\n2\n\n", [1, 2, 3]),
        (b'1\n""\n3', [1, 3, 3]),
        (b"\n\n\n", [3, 3, 3]),
        (b"1\r\n\r\nx", [1, 3, 3]),
    ]:
        source = open_source(write(tmp_path, b"\n\na\n" + body), schema)
        assert source.public_rows() == 3
        assert [value for batch in source.batches(1) for value in batch.values[:, 0]] == expected
        assert [len(batch) for batch in source.batches(1, start=2)] == [1]


def test_other_columns_and_tabs(tmp_path):
    path = write(tmp_path, b"zz\tc\tb\ti\ta\n?\t0\ty\t1\t2.5\n", "t.tsv")
    assert values(path) == [[2.5, 1, 1, 0]]
    assert describe(path, header=True)[0][1][0] == ("zz", None)


def test_every_file_has_its_own_header(tmp_path):
    write(tmp_path, b"a,i,b,c\n1,1,x,0\n", "1.csv")
    write(tmp_path, b"c,b,i,a\n1,y,2,2\n", "2.csv")
    source = open_source(tmp_path, table(rows=2))
    assert source.public_rows() == 2
    assert [batch.values.tolist() for batch in source.batches(1)] == [[[1, 1, 0, 0]], [[2, 2, 1, 1]]]
    assert [batch.values.tolist() for batch in source.batches(1, start=1)] == [[[2, 2, 1, 1]]]
    assert source.pin() == open_source(tmp_path, table()).pin()
    assert open_source(tmp_path, table(neighbours=Neighbours.ADD_REMOVE)).public_rows() is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line of column names is absent"),
        (b"\n\n", "line of column names is absent"),
        (b'"a,b\n', "line of column names has an open quote"),
        (b"a,i,b\n", "column 'c' absent"),
        (b"a,i,b,c,a\n", "column 'a' twice"),
        (b"a,i,b,c\r\r\n1,2,x,1\r\r\n", "first line ends in CR; write it with LF"),
        (b"a,i,b,c\r1,2,x,1\r", "first line ends in CR; write it with LF"),
        (b"a,i,b,c\r", "first line ends in CR; write it with LF"),
        ("a,i,b,c\n".encode("utf-16"), "the file is UTF-16; save it as UTF-8"),
        ("a,i,b,c\n".encode("utf-16-be"), "the file is UTF-16 or no text; save it as UTF-8"),
        (gzip.compress(b"a,i,b,c\n", mtime=0), "the file is gzip; unpack it first"),
    ],
)
def test_headers_are_public_and_refused(tmp_path, data, message):
    with pytest.raises(InvalidInput, match=message):
        open_source(write(tmp_path, data), table())


def test_headers_with_quotes_line_ends_and_marks(tmp_path):
    path = write(tmp_path, b'\xef\xbb\xbf\n"a ""b""\nc",d\n1,2\n')
    assert read_header(path).names == ('a "b"\nc', "d")
    assert read_header(write(tmp_path, b"\xff,b\n")).names == ("\ufffd", "b")


def test_a_long_open_quote_in_the_header_ends_the_search(tmp_path):
    path = write(tmp_path, b'"' + b"a\n" * 2**20)
    with pytest.raises(InvalidInput, match="open quote"):
        read_header(path)


def test_item_sets_are_not_csv(tmp_path):
    from adumbra.relations import Unit
    from adumbra.schema.schema import ItemSpec, Schema

    schema = Schema(items=ItemSpec(upper=3), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(InvalidInput, match="CSV files hold no item sets"):
        open_source(write(tmp_path, b"items\n1\n"), schema)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_long_cell_is_missing_alone_and_stays_one_cell(tmp_path, end):
    path = tmp_path / "t.csv"
    for text in (
        "9,7,y,1\n" * 150_000,
        'x"\r\n,' * 200_000,
        "x" * (2**20 + 1),
        ('"' * 999 + "\n") * 1100,
    ):
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator=end)
            writer.writerows([["a", "i", "note", "b", "c"], [1, 2, "", "x", 0]])
            writer.writerows([[2, 3, text, "y", 0], [3, 4, "", text, 1], [4, 5, "", "x", 0]])
        assert values(path) == [[1, 2, 0, 0], [2, 3, 1, 0], [3, 4, 3, 1], [4, 5, 0, 0]]


def test_a_cell_of_the_limit_is_read(tmp_path):
    layout = Layout(b",", 2)
    assert layout.longest == 2**20
    assert Layout(b",", 3000).longest == 2**27 // 3000
    for size, expected in ((layout.longest, -10), (layout.longest + 1, 3)):
        path = write(tmp_path, b"a\n" + b"-99".rjust(size) + b"\n-99\n")
        assert values(path, table(table().columns[0])) == [[expected], [-10]]


@pytest.mark.parametrize("start", [b'1,2,"\n', b'1,2,"x"', b"1,2,", b'1,2,""""', b",,,,,,"])
@pytest.mark.parametrize("inside", [b"1,2,x,1,", b'""', b"x"])
def test_memory_is_bounded_whatever_a_record_holds(start, inside):
    layout, limit = Layout(b",", 4), 1024
    piece = inside * (2**13 // len(inside))
    tracemalloc.start()
    try:
        parts = split_records([b"1,2,x,1\n", start, *(100 * [piece]), b'",0\n'], layout, longest=limit)
        count = sum(part.count for part in parts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count >= 2
    assert peak < 40 * len(piece)


def test_a_quote_that_nothing_closes_is_one_row_to_the_end(tmp_path):
    path = write(tmp_path, b'a,i,b,c\n1,1,x,0\n"1,2\n' + b"3,4,x,1\n" * 500_000)
    source = open_source(path, table())
    assert source.public_rows() == 2
    assert values(path) == [[1, 1, 0, 0], MISSING]
    header = read_header(path)
    parts = list(split_records(read_rows(path, header, 2**16), header.layout))
    assert sum(part.count for part in parts) == 2
    assert "1,1" not in repr(parts)


def test_large_files_in_several_reads(tmp_path):
    rows = 40_000
    body = b"".join(b"%d.5,%d,x,%d\n" % (i % 7, i % 5, i % 2) for i in range(rows))
    path = write(tmp_path, b"a,i,b,c\n" + body)
    source = open_source(path, table())
    assert source.public_rows() == rows
    found = np.concatenate([batch.values for batch in source.batches(4096)])
    assert found[:, 0].tolist() == [i % 7 + 0.5 for i in range(rows)]
    assert found[:, 1].tolist() == [i % 5 for i in range(rows)]


def test_the_compiled_loop_is_loaded_before_a_charge_or_refused(tmp_path, monkeypatch):
    path = write(tmp_path, b"a,i,b,c\n1,2,x,1\n")
    monkeypatch.setenv("ADUMBRA_NOISE", "numba")
    csv_numbers.compiled_parser.cache_clear()
    open_source(path, table())
    assert csv_numbers.compiled_parser.cache_info().currsize == 1
    csv_numbers.compiled_parser.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)  # installed, and broken
    with pytest.raises(Unsupported, match=r"numba: .* cannot be loaded; install it again"):
        open_source(path, table())
