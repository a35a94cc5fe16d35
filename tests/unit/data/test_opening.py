"""Opening data: what is public is checked and said; what is private is only ever missing or clamped."""

import math
import os
import warnings
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from adumbra.data import opening
from adumbra.data.columns import fill_column, is_readable, value_type
from adumbra.data.opening import compare, describe, find_files, open_source
from adumbra.data.sources import Batch, Source
from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Pattern, Schema
from support.data import BOOLEAN, CATEGORY, INTEGER, NUMBER, table

DATA = pa.table(
    {"a": [1.5, -99.0, None], "i": [1, 2, 99], "b": ["x", "q", None], "c": [True, None, False]}
)


class Unexportable:
    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError("CANARY")


CASTING = table(*(replace(column, cast=True) for column in table().columns))
VALUES = [[1.5, 1, 0, 1], [-10, 2, 3, 1], [3, 7, 3, 0]]


def values(data, schema=None, rows=4096):
    batches = list(open_source(data, schema or table()).batches(rows))
    return np.concatenate([batch.values for batch in batches]).tolist()  # noqa: PD011  (no pandas here)


def filled(column, array):
    out = np.empty(len(array))
    fill_column(column, array, out)
    return out.tolist()


def test_every_table_object_gives_the_same_rows(tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet")
    frame = pl.from_arrow(DATA)
    objects = [
        DATA,
        DATA.combine_chunks().to_batches()[0],
        pa.RecordBatchReader.from_batches(DATA.schema, DATA.to_batches()),
        frame,
        DATA.to_pandas(),
        tmp_path / "t.parquet",
        str(tmp_path),
        str(tmp_path / "*.parquet"),
    ]
    for data in objects:
        assert values(data) == VALUES, type(data)


def test_sources_satisfy_the_protocol(tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,i,b,c\n1,1,x,1\n")
    sets = Schema(items=ItemSpec(upper=3), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    sources = [
        open_source(tmp_path / "t.parquet", table()),
        open_source(tmp_path / "t.csv", table()),
        open_source(DATA, table()),
        open_source(np.zeros((3, 4)), table()),
        open_source(np.eye(4), sets),
    ]
    assert all(isinstance(source, Source) for source in sources)
    assert [source.width for source in sources] == [4] * 5
    assert [source.public_rows() for source in sources] == [3, 1, 3, 3, None]
    assert sources[2].pin() == sources[3].pin() == sources[4].pin() == "memory"


def test_no_repr_shows_a_value():
    data = pa.table({"a": ["CANARY"], "i": [1], "b": ["CANARY"], "c": [True]})
    source = open_source(data, CASTING)
    batch = next(source.batches(4096))
    array = np.full((1, 4), 123456.0)
    shown = repr(source) + repr(batch) + repr(open_source(array, table())) + repr(Batch(0, array))
    assert "CANARY" not in shown
    assert "123456" not in shown


def test_arrays_dense_sparse_and_of_objects():
    array = np.array([[1.5, 1, 5, 1], [-99, 2, 0, math.nan], [math.nan, 99, 1, 0]])
    expected = [[1.5, 1, 3, 1], [-10, 2, 3, 1], [3, 7, 3, 0]]
    assert values(array) == expected
    assert values(np.asfortranarray(array)) == expected
    assert values(sp.csr_array(array)) == expected
    assert values(sp.coo_matrix(array)) == expected
    assert values(array.astype(np.float32)) == expected
    assert values(np.array([[1, 1, 1, 0]], dtype=np.int8)) == [[1, 1, 3, 0]]
    assert values(np.array([["1.5", "1", "x", "yes"]])) == [[1.5, 1, 0, 1]]
    assert values(np.array([[b"1.5", b"1", b"x", b"yes"]])) == [[1.5, 1, 0, 1]]
    strange = np.array([[None, Decimal("2.5"), "x", object()]], dtype=object)
    assert values(strange) == [[3, 2, 0, 1]]


class Unprintable:
    def __str__(self):
        raise ValueError("CANARY")


def test_numbers_that_numpy_made_durations_are_still_numbers():
    schema = table(NUMBER, INTEGER)
    for last in (np.timedelta64(5, "s"), np.timedelta64("NaT", "s")):
        data = np.array([[7, 1], [8, 2], [9, last]])
        assert data.dtype.kind == "m"
        assert values(data, schema) == [[7, 1], [8, 2], [9, 4 if np.isnat(last) else 5]]


def test_a_long_double_beyond_float64_is_missing_without_a_warning():
    data = np.array([[np.longdouble("1e4000")], [np.longdouble(1)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(data, table(NUMBER)) == [[3], [1]]


def test_run_ends_that_arrow_cannot_decode_are_refused_at_opening():
    for held in (pa.array(["1", None]).dictionary_encode(), pa.array(["1", None], pa.string_view())):
        runs = pa.RunEndEncodedArray.from_arrays([2, 3], held)
        with pytest.raises(InvalidInput, match="run_end_encoded.* cannot be read as number"):
            open_source(pa.table({"a": runs}), table(NUMBER))
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["1", None]))
    assert values(pa.table({"a": runs}), table(replace(NUMBER, cast=True))) == [[1], [1], [3]]


def test_objects_without_text_are_missing():
    frame = pd.DataFrame({"a": [Unprintable()], "i": [10**30], "b": ["x"], "c": [None]}, dtype=object)
    assert values(frame) == [[3, 7, 0, 1]]
    lone = np.array([["1", "1", "\ud800", "1"]], dtype=object)
    assert values(lone) == [[1, 1, 3, 1]]


def test_a_mixed_pandas_column_does_not_change_its_neighbours():
    one = pd.DataFrame({"a": [1, 2.5], "i": [1, 1], "b": ["x", "y"], "c": [True, True]}).astype(object)
    other = one.copy()
    other.iloc[1, 0] = "CANARY"
    assert values(one)[0] == values(other)[0]
    assert values(other)[1] == [3, 1, 1, 1]


def test_pandas_names_need_not_be_text():
    schema = table(Column(name="0", kind=Kind.BOOLEAN), Column(name="1", kind=Kind.BOOLEAN))
    assert values(pd.DataFrame(np.array([[True, False]])), schema) == [[1, 0]]


@pytest.mark.parametrize(
    ("column", "array", "expected"),
    [
        (NUMBER, pa.array([1, None], pa.int64()), [1, 3]),
        (NUMBER, pa.array([2**64 - 1], pa.uint64()), [10]),
        (NUMBER, pa.array([True, False, None]), [1, 0, 3]),
        (NUMBER, pa.array([Decimal("1.25"), None]), [1.25, 3]),
        (NUMBER, pa.array(["1.5", " 2 ", "abc", "1e400", None, ""]), [1.5, 2, 3, 3, 3, 3]),
        (NUMBER, pa.array([b"1", b"\xff"]), [1, 3]),
        (NUMBER, pa.array(["4", "q"]).dictionary_encode(), [4, 3]),
        (NUMBER, pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([5.0, math.nan])), [5, 5, 3]),
        (NUMBER, pa.array([1.5, 2.5], pa.float16()), [1.5, 2.5]),
        (NUMBER, pa.array([1e308, -1e308, 1e308, 1e308]), [10, -10, 10, 10]),
        (NUMBER, pa.array([math.inf, -math.inf]), [3, 3]),
        (NUMBER, pa.nulls(2), [3, 3]),
        (NUMBER, pa.array([[1], [2]]), [3, 3]),
        (INTEGER, pa.array([0.4, 0.6, 2.5, 9.0]), [0, 1, 2, 7]),
        (INTEGER, pa.array(["3.0", "3.6"]), [3, 4]),
        (CATEGORY, pa.array(["x", "z w", " x", "X", None]), [0, 2, 3, 3, 3]),
        (CATEGORY, pa.array(["y", "?"]).dictionary_encode(), [1, 3]),
        (CATEGORY, pa.array(["y", "?"], pa.string_view()), [1, 3]),
        (CATEGORY, pa.array([b"y", b"\xff"]), [1, 3]),
        (CATEGORY, pa.array([1.0, 2.0]), [3, 3]),
        (CATEGORY, pa.array([True, None]), [3, 3]),
        (BOOLEAN, pa.array([True, False, None]), [1, 0, 1]),
        (BOOLEAN, pa.array([1, 0, 2, None]), [1, 0, 1, 1]),
        (BOOLEAN, pa.array([0.0, math.nan]), [0, 1]),
        (BOOLEAN, pa.array([" TRUE", "no", "maybe", None]), [1, 0, 1, 1]),
        (BOOLEAN, pa.array([[True]]), [1]),
    ],
)
def test_cells(column, array, expected):
    assert filled(column, array) == expected


def test_categories_that_are_numbers_or_truths():
    numbers = Column(name="n", kind=Kind.CATEGORY, categories=("1", "10", "1.0", "x"), missing="x")
    assert filled(numbers, pa.array([1, 10, 7, None])) == [0, 1, 3, 3]
    assert filled(numbers, pa.array([1.0, math.nan])) == [0, 3]
    truths = Column(name="t", kind=Kind.CATEGORY, categories=("maybe", "True"))
    assert filled(truths, pa.array([True, False, None])) == [1, 0, 0]


def test_extension_types_are_read_by_their_storage():
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16], pa.binary(16)))
    assert value_type(array.type) == pa.binary(16)
    assert filled(CATEGORY, array) == [3]


def test_readable_storage():
    assert all(is_readable(kind) for kind in (pa.int8(), pa.string(), pa.decimal128(5, 1), pa.bool_()))
    assert is_readable(pa.dictionary(pa.int8(), pa.string_view()))
    unreadable = [pa.date32(), pa.timestamp("s"), pa.list_(pa.int8()), pa.struct([("q", pa.int8())])]
    assert not any(is_readable(kind) for kind in unreadable)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            DATA.drop_columns(["a", "c"]),
            "data: columns 'a', 'c' absent; rename in the data or the schema",
        ),
        (
            DATA.rename_columns(["a", "i", "b", "c_"]),
            "data: column 'c' absent (did you mean 'c_'?); rename in the data or the schema",
        ),
        (pa.table([DATA["a"], *DATA.columns], names=["a", *DATA.column_names]), "column 'a' twice"),
        (
            DATA.set_column(0, "a", pa.array([[1]] * 3)),
            "column 'a' of type list<item: int64> cannot be read as",
        ),
        (
            DATA.set_column(0, "a", pa.array([1] * 3, pa.date32())),
            "column 'a' of type date32[day] cannot",
        ),
        (np.zeros(3), "data of 1 dimensions: need rows x columns"),
        (np.zeros((3, 2)), "data of 2 columns: the schema declares 4"),
        (sp.csr_array((3, 2)), "data of 2 columns: the schema declares 4"),
        (object(), "data of type object: cannot be read; give a path"),
        (Unexportable(), "data of type Unexportable: cannot be exported to Arrow"),
        ("absent.parquet", "data='absent.parquet': no such file, folder or pattern"),
    ],
)
def test_refusals_at_open(data, message):
    with pytest.raises(InvalidInput) as caught:
        open_source(data, table())
    assert message in str(caught.value)
    assert caught.value.__cause__ is None


def test_remedies_fit_the_fault(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a;i\n1;2\n")
    (tmp_path / "t.csv.zip").write_bytes(b"")
    (tmp_path / "t.csv.gz").write_bytes(b"a,i,b,c\n")
    for data, schema, message in (
        (tmp_path / "t.csv", table(), "the first line has one field only; delimiters are commas"),
        (tmp_path / "t.csv.zip", table(), "suffix '.zip' is unknown; unpack it first"),
        (tmp_path / "t.csv.gz", table(), "cannot be unpacked; check that the file is whole"),
        (pd.Series([1.0], name="a"), table(NUMBER), r"give a table, with to_frame\(\)"),
        (DATA, "t.toml", r"schema of type str: .*Schema.read\(path\)"),
    ):
        with pytest.raises(InvalidInput, match=message):
            open_source(data, schema)
    with pytest.raises(InvalidInput, match="n_columns of type list: must be the number of columns"):
        Schema.numeric(["a", "b"], 0, 1)
    assert Schema.numeric(np.int64(2), 0, 1).width == 2


def test_many_absent_columns_are_counted():
    schema = Schema.numeric(9, 0, 1)
    with pytest.raises(InvalidInput, match="'x4' and 4 more absent"):
        open_source(DATA, schema)


def test_declared_rows_are_compared_before_a_value_is_read(tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,i,b,c\n1,1,x,1\n\n2,2\n")
    schema = table(rows=4)
    for data, count in [
        (DATA, 3),
        (np.zeros((5, 4)), 5),
        (tmp_path / "t.parquet", 3),
        (tmp_path / "t.csv", 2),
    ]:
        with pytest.raises(
            InvalidInput, match=f"rows=4: the data has {count}; correct the schema or the data"
        ):
            open_source(data, schema)
        with pytest.raises(InvalidInput, match=f"max_rows=1: the data has {count} rows; raise max_rows"):
            open_source(data, table(max_rows=1))
    assert open_source(DATA, table(rows=3)).public_rows() == 3


def test_private_row_counts_never_leave(tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,i,b,c\n1,1,x,1\n2,2,y,0\n3,3,x,1\n")
    schema = table(neighbours=Neighbours.ADD_REMOVE, max_rows=2)
    for data in (DATA, tmp_path / "t.parquet", tmp_path / "t.csv", np.zeros((3, 4))):
        source = open_source(data, schema)
        assert source.public_rows() is None
        assert [len(batch) for batch in source.batches(4)] == [2]  # the first max_rows rows count
        assert [len(batch) for batch in source.batches(1)] == [1, 1]
        assert list(source.batches(1, start=5)) == []


@pytest.mark.parametrize(
    ("rows", "start", "stop"), [(0, 0, None), (4, 2, None), (4, 0, 5), (4, -4, None)]
)
def test_block_arguments(rows, start, stop):
    with pytest.raises(InvalidInput, match=r"at least one row|not whole blocks"):
        open_source(DATA, table()).batches(rows, start, stop)


def test_ranges_of_blocks():
    array = np.tile(np.arange(10.0)[:, None] / 2, (1, 4))
    table_of = pa.table(dict.fromkeys("aibc", array[:, 0]))
    for data in (array, table_of, sp.csr_array(array)):
        source = open_source(data, CASTING)
        assert [(b.start, len(b)) for b in source.batches(4)] == [(0, 4), (4, 4), (8, 2)]
        assert [(b.start, len(b)) for b in source.batches(4, start=4, stop=8)] == [(4, 4)]
        assert [b.values[0, 0] for b in source.batches(4, start=8)] == [4.0]  # noqa: PD011


def test_files_are_found_sorted_and_of_one_kind(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("b.parquet", "a.parquet", "_side.parquet", ".hidden.parquet", "notes.md"):
        (tmp_path / name).write_bytes(b"")
    (inner / "c.pq").write_bytes(b"")
    assert [path.name for path in find_files(tmp_path)] == ["a.parquet", "b.parquet", "c.pq"]
    assert [path.name for path in find_files(str(tmp_path / "**" / "*.pq"))] == ["c.pq"]
    (inner / "d.csv").write_bytes(b"")
    for location, message in [
        (tmp_path, "mixes csv and parquet"),
        (tmp_path / "notes.md", "suffix '.md' is unknown"),
        (tmp_path / "*.toml", "no such file"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            find_files(location)
    (tmp_path / "void").mkdir()
    with pytest.raises(InvalidInput, match="holds no file"):
        find_files(tmp_path / "void")


def test_pins_change_with_the_files(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(DATA, path)
    source = open_source(path, table())
    before = source.pin()
    assert source.pin() == before
    os.utime(path, ns=(1, 1))
    assert source.pin() != before


def test_damaged_parquet_is_refused_without_its_text(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"CANARY")
    with pytest.raises(InvalidInput, match=r"'t\.parquet': cannot be read as Parquet"):
        open_source(path, table())
    rows = pa.table({name: np.random.default_rng(0).random(5000) for name in "aibc"})
    pq.write_table(rows, path, compression="zstd")
    source = open_source(path, CASTING)
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xaa" * 56
    path.write_bytes(bytes(data))
    with pytest.raises(InvalidInput, match=r"'t\.parquet': cannot be read as Parquet"):
        list(source.batches(4096))


def test_files_with_their_own_column_order(tmp_path):
    pq.write_table(DATA, tmp_path / "1.parquet")
    pq.write_table(DATA.select(["c", "b", "i", "a"]), tmp_path / "2.parquet")
    pq.write_table(DATA.slice(0, 0), tmp_path / "3.parquet")
    assert values(tmp_path) == VALUES * 2


def test_patterns_take_the_names_of_the_data():
    template = Column(name="x*", kind=Kind.NUMBER, lower=0, upper=1)
    schema = table(BOOLEAN, patterns=(Pattern(match="x*", template=template, at=0),))
    data = pa.table({"x2": [0.5], "c": [True], "x1": [0.25]})
    source = open_source(data, schema)
    assert source.schema.names == ("x2", "x1", "c")
    assert next(source.batches(4)).values.tolist() == [[0.5, 0.25, 1]]  # noqa: PD011
    with pytest.raises(InvalidInput, match="not known yet"):
        open_source(np.zeros((1, 3)), schema)


def test_describe_and_compare_look_at_names_and_types(tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet")
    assert describe(tmp_path / "t.parquet")[0][1][:2] == [("a", pa.float64()), ("i", pa.int64())]
    assert describe(DATA)[0][0] == "data"
    with pytest.raises(InvalidInput, match="data of type ndarray: has no column names"):
        describe(np.zeros((2, 2)))
    assert compare(DATA, table()) == (table(), [])
    pattern = Pattern(match="gene*", template=NUMBER, at=0)
    assert compare(DATA, table(patterns=(pattern,)))[1] == [
        "match='gene*': matches no column of the data; correct the pattern"
    ]
    assert "absent" in compare(DATA.drop_columns("a"), table())[1][0]


def test_a_near_name_is_shown_of_parquet_and_never_of_csv(tmp_path):
    """The first line of a CSV file may be a person's."""
    renamed = DATA.rename_columns(["a", "i", "b", "c_"])
    pq.write_table(renamed, tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=r"column 'c' absent \(did you mean 'c_'\?\)"):
        open_source(tmp_path / "t.parquet", table())
    (tmp_path / "t.csv").write_text("a,i,b,c_\n1,1,x,true\n")
    with pytest.raises(InvalidInput, match="column 'c' absent; rename") as refused:
        open_source(tmp_path / "t.csv", table())
    assert "c_" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["s3://", "S3://", "nosuch://", "simplecache::s3://"])
def test_no_form_of_an_address_is_repeated(scheme):
    """What looks like an address is never taken for a path: messages of paths quote them."""
    with pytest.raises(InvalidInput, match="the store cannot be read") as caught:
        open_source(f"{scheme}KEY:SECRET@bucket/x.parquet", Schema.numeric(2, lower=0.0, upper=1.0))
    assert "SECRET" not in str(caught.value)


def test_every_file_that_is_unlike_the_one_before_it_is_compared_with_the_schema(tmp_path):
    pq.write_table(DATA, tmp_path / "1.parquet")
    pq.write_table(DATA, tmp_path / "2.parquet")
    pq.write_table(DATA.drop_columns(["c"]), tmp_path / "3.parquet")
    with pytest.raises(InvalidInput, match=r"'3\.parquet': column 'c' absent"):
        open_source(tmp_path, table())


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_that_change_while_they_are_opened_are_refused(tmp_path, monkeypatch, ending):
    path = tmp_path / f"t.{ending}"

    def write(rows):
        if ending == "parquet":
            pq.write_table(DATA.slice(0, rows), path)
        else:
            DATA.slice(0, rows).to_pandas().to_csv(path, index=False)

    write(3)
    opened = opening._open_kind

    def meddle(found, schema):
        source = opened(found, schema)
        write(2)
        return source

    monkeypatch.setattr(opening, "_open_kind", meddle)
    with pytest.raises(InvalidInput, match="data: changed while it was opened; try again"):
        open_source(path, table(header=True))
