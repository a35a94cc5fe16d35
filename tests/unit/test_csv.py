"""CSV files: the rules of records, headers and limits, one by one."""

import numpy as np
import pytest

from adumbra.data.csv import Layout, read_header, split_records
from adumbra.data.lines import read_lines
from adumbra.data.sources import describe, open_source
from adumbra.errors import InvalidInput
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
        (b"1,2,x,0\r2,3,y,0\r", [[1, 2, 0, 0], [2, 3, 1, 0]]),
        (b"\n\n1,2,x,0\n\n", [[1, 2, 0, 0]]),
        (b'"1","2","x","false"\n', [[1, 2, 0, 0]]),
        (b'"a ""quoted""\n, text",2,x,0\n', [[3, 2, 0, 0]]),
        (b"1,2\n", [MISSING]),
        (b"1,2,x,0,9\n", [MISSING]),
        (b'"1,2,x,0\n1,1,y,0\n', [MISSING, [1, 1, 1, 0]]),
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


def test_an_empty_category_is_not_a_malformed_record(tmp_path):
    from adumbra.data.schema import Column, Kind

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
    assert describe(path)[0][1][0] == ("zz", None)


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
    ],
)
def test_headers_are_public_and_refused(tmp_path, data, message):
    with pytest.raises(InvalidInput, match=message):
        open_source(write(tmp_path, data), table())


def test_headers_with_quotes_line_ends_and_marks(tmp_path):
    path = write(tmp_path, b'\xef\xbb\xbf\n"a ""b""\nc",d\n1,2\n')
    assert read_header(path) == ('a "b"\nc', "d")
    assert read_header(write(tmp_path, b"\xff,b\n")) == ("\ufffd", "b")


def test_a_long_open_quote_in_the_header_ends_the_search(tmp_path):
    path = write(tmp_path, b'"' + b"a\n" * 2**20)
    with pytest.raises(InvalidInput, match="open quote"):
        read_header(path)


def test_item_sets_are_not_csv(tmp_path):
    from adumbra.data.schema import ItemSpec, Schema
    from adumbra.relations import Unit

    schema = Schema(items=ItemSpec(upper=3), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(InvalidInput, match="CSV files hold no item sets"):
        open_source(write(tmp_path, b"items\n1\n"), schema)


def test_over_long_lines_are_one_row(tmp_path):
    layout = Layout(b",", 2)
    path = write(tmp_path, b"1,2\n" + b"x" * 100 + b",3\n4,5\n")
    lines = list(read_lines(path, layout.unreadable, size=8, longest=20))
    parts = list(split_records(lines, layout))
    assert sum(part.count for part in parts) == 3
    assert b"".join(part.data for part in parts) == b"1,2\n,\n4,5\n"
    assert "1,2" not in repr(parts)


def test_a_stray_quote_swallows_at_most_the_limit(tmp_path):
    layout = Layout(b",", 2)
    body = b'"1,2\n' + b"3,4\n" * 50
    parts = list(split_records([body], layout, longest=20))
    assert sum(part.count for part in parts) == 51
    assert [part.malformed.tolist() for part in parts if part.count] == [[0]]


def test_large_files_in_several_reads(tmp_path):
    rows = 40_000
    body = b"".join(b"%d.5,%d,x,%d\n" % (i % 7, i % 5, i % 2) for i in range(rows))
    path = write(tmp_path, b"a,i,b,c\n" + body)
    source = open_source(path, table())
    assert source.public_rows() == rows
    found = np.concatenate([batch.values for batch in source.batches(4096)])
    assert found[:, 0].tolist() == [i % 7 + 0.5 for i in range(rows)]
    assert found[:, 1].tolist() == [i % 5 for i in range(rows)]
