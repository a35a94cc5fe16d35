"""Packed files, other delimiters and encodings, JSON lines, datasets: the laws of every other reader."""

import gzip
import json
import math
import tempfile
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.drafting import draft_schema
from adumbra.data.opening import compare, describe, fields_by, open_source
from adumbra.errors import InvalidInput, SchemaError
from adumbra.relations import Neighbours
from adumbra.schema.schema import FORMAT, Schema
from support.data import MIXED, table

NAMES = [column.name for column in MIXED]
PRIVATE = table(neighbours=Neighbours.ADD_REMOVE)
CELLS = st.sampled_from(
    ["1", "-2.5", "x", "y", "true", "", " 3 ", "é", 'q"t', "a,b", "c;d", "2020-01-01"]
)
ROWS = st.lists(st.lists(CELLS, min_size=len(NAMES), max_size=len(NAMES)), max_size=6)


def rows_of(data, schema):
    blocks = [np.asarray(batch.values) for batch in open_source(data, schema).batches(2)]
    return np.concatenate([np.empty((0, schema.width)), *blocks]).tolist()


def written(rows, sign):
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in [NAMES, *rows]]
    return "".join(sign.join(row) + "\n" for row in quoted)


def with_csv(**declared):
    facts = {name: getattr(PRIVATE, name) for name in ("columns", "unit", "neighbours")}
    return Schema(**facts, **declared)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_packing_delimiter_and_encoding_change_no_row(folder, rows):
    (folder / "plain.csv").write_text(written(rows, ","), encoding="utf-8")
    expected = rows_of(folder / "plain.csv", PRIVATE)
    assert len(expected) == len(rows)
    (folder / "p.csv.gz").write_bytes(gzip.compress(written(rows, ",").encode(), 1))
    assert rows_of(folder / "p.csv.gz", PRIVATE) == expected
    (folder / "t.tsv.gz").write_bytes(gzip.compress(written(rows, "\t").encode(), 1))
    assert rows_of(folder / "t.tsv.gz", PRIVATE) == expected
    for sign in (";", "|"):
        (folder / "s.csv").write_text(written(rows, sign), encoding="utf-8")
        assert rows_of(folder / "s.csv", with_csv(delimiter=sign)) == expected
    for encoding in ("latin-1", "windows-1252", "utf-16", "utf-8"):
        (folder / "e.csv").write_text(written(rows, ","), encoding=encoding)
        assert rows_of(folder / "e.csv", with_csv(encoding=encoding)) == expected


@settings(max_examples=100, deadline=None)
@given(
    data=st.binary(max_size=200), encoding=st.sampled_from([None, "latin-1", "windows-1252", "utf-16"])
)
def test_any_bytes_are_rows_in_any_encoding(folder, data, encoding):
    (folder / "any.csv").write_bytes(data)
    (folder / "any.csv.gz").write_bytes(gzip.compress(data, 1))
    schema = with_csv(header=False, encoding=encoding, delimiter=";")
    assert rows_of(folder / "any.csv", schema) == rows_of(folder / "any.csv.gz", schema)


def test_a_packed_file_that_is_cut_is_refused_without_a_word_of_it(tmp_path):
    whole = gzip.compress(written([["1", "2", "CANARY", "true"]] * 2000, ",").encode())
    for bad in (whole[: len(whole) // 2], whole[:-4] + b"\0\0\0\0", b"CANARY,1\n", b""):
        (tmp_path / "cut.csv.gz").write_bytes(bad)
        with pytest.raises(InvalidInput) as caught:
            rows_of(tmp_path / "cut.csv.gz", PRIVATE)
        assert "CANARY" not in str(caught.value)
        assert caught.value.__cause__ is None


LINES = st.one_of(
    st.binary(max_size=30).map(lambda raw: raw.translate(None, b"\n\r\xef")),
    st.dictionaries(
        st.sampled_from([*NAMES, "other"]),
        st.none() | st.booleans() | st.integers() | st.floats() | CELLS | st.just([1]),
    ).map(lambda found: json.dumps(found).encode()),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES, max_size=6))
def test_each_json_line_is_a_row_by_itself(folder, lines):
    (folder / "l.jsonl").write_bytes(b"\n".join(lines))
    (folder / "l.ndjson.gz").write_bytes(gzip.compress(b"\n".join(lines), 1))
    found = rows_of(folder / "l.jsonl", PRIVATE)
    assert rows_of(folder / "l.ndjson.gz", PRIVATE) == found
    alone = []
    for line in lines:
        (folder / "one.jsonl").write_bytes(line + b"\n")
        alone += rows_of(folder / "one.jsonl", PRIVATE)
    assert found == alone
    assert len(found) == sum(bool(line.strip(b" \t\r")) for line in lines)
    assert all(math.isfinite(value) for row in found for value in row)


def test_json_lines_read_as_frames_do(tmp_path):
    rows = [
        {"a": 1.5, "i": 2, "b": "x", "c": True},
        {"a": "7", "i": None, "b": [1], "c": "no"},
        {"i": 3, "b": "y"},
    ]
    (tmp_path / "r.jsonl").write_text("\n\n".join(map(json.dumps, rows)) + '\n"text"\n{"a": 1\n')
    frame = [[row.get(name) for name in NAMES] for row in rows] + [[None] * len(NAMES)] * 2

    expected = rows_of(pd.DataFrame(frame, columns=NAMES, dtype=object), PRIVATE)
    assert rows_of(tmp_path / "r.jsonl", PRIVATE) == expected
    assert open_source(tmp_path / "r.jsonl", table()).public_rows() == 5
    (tmp_path / "long.jsonl").write_text('{"i": ' + "9" * 5000 + "}\n" + "[" * 5000 + "\n")
    assert len(rows_of(tmp_path / "long.jsonl", PRIVATE)) == 2


def test_names_of_json_lines_are_private(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"CANARY": 1}\n')
    with pytest.raises(InvalidInput) as caught:
        describe(tmp_path / "r.jsonl", header=True)
    assert "CANARY" not in str(caught.value)
    assert compare(tmp_path / "r.jsonl", PRIVATE) == (PRIVATE, [])
    assert [name for name, _ in fields_by(tmp_path / "r.jsonl", PRIVATE)[0][1]] == NAMES
    text = f'format = "{FORMAT}"\n[table]\nunit = "row"\nneighbours = "add-remove"\n'
    pattern = Schema.parse(text + '[[groups]]\nmatch = "C*"\nkind = "boolean"\n')
    with pytest.raises(InvalidInput, match="a pattern needs public names"):
        open_source(tmp_path / "r.jsonl", pattern)


def test_datasets_and_lazy_frames_are_their_tables(tmp_path):
    data = pa.table({"c": [True, None] * 5, "a": np.arange(10.0), "i": range(10), "b": ["x", "y"] * 5})
    for part in range(2):
        pq.write_table(data.slice(5 * part, 5), tmp_path / f"p{part}.parquet")
    expected = rows_of(data, PRIVATE)
    held = ds.dataset(tmp_path, format="parquet")
    for given_data in (held, ds.dataset(data), pl.from_arrow(data).lazy()):
        assert rows_of(given_data, PRIVATE) == expected
        assert open_source(given_data, table()).public_rows() == 10
        source = open_source(given_data, PRIVATE)
        assert [np.asarray(b.values).tolist() for b in source.batches(4, start=4)] == [
            expected[4:8],
            expected[8:],
        ]
        assert compare(given_data, PRIVATE) == (PRIVATE, [])
    before = open_source(held, PRIVATE).pin()
    assert before == open_source(ds.dataset(tmp_path, format="parquet"), PRIVATE).pin()
    pq.write_table(data, tmp_path / "p1.parquet")
    assert open_source(ds.dataset(tmp_path, format="parquet"), PRIVATE).pin() != before
    with pytest.raises(InvalidInput, match="column 'a' absent"):
        open_source(ds.dataset(data.drop_columns(["a"])), PRIVATE)


def test_a_dataset_that_cannot_be_read_says_nothing_of_its_cells(tmp_path):
    (tmp_path / "x.csv").write_text("a,i,b,c\n1,2,x,true\nCANARY,2,x,true\n")
    types = pa.schema([("a", pa.float64()), ("i", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    source = open_source(ds.dataset(tmp_path / "x.csv", format="csv", schema=types), PRIVATE)
    with pytest.raises(InvalidInput, match="the dataset cannot be read") as caught:
        list(source.batches(4))
    assert "CANARY" not in str(caught.value) + repr(caught.value.__context__)


def test_a_lazy_frame_that_fails_says_nothing_of_its_cells():
    lazy = pl.LazyFrame({"a": ["CANARY"]}).with_columns(pl.col("a").cast(pl.Float64))
    with pytest.raises(InvalidInput) as caught:
        open_source(lazy, PRIVATE)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_declared_forms_are_checked_and_drafted(tmp_path):
    (tmp_path / "s.csv").write_text("a;i;b;c\n1;2;x;1\n")
    ((_, fields),) = describe(tmp_path / "s.csv", header=True)
    assert [name for name, _ in fields] == NAMES
    text = draft_schema(fields, header=True, delimiter=";")
    assert 'header = true\ndelimiter = ";"\n' in text
    for wrong, words in (
        ('delimiter = " "', "delimiter=' ': must be one of"),
        ('encoding = "x"', "encoding='x'"),
    ):
        head = f'format = "{FORMAT}"\n[table]\nunit = "row"\nneighbours = "add-remove"\n{wrong}\n'
        with pytest.raises(SchemaError, match=words):
            Schema.parse(head + '[[columns]]\nname = "a"\nkind = "boolean"\n')
    schema = with_csv(delimiter=";", encoding="latin-1")
    assert schema.format == FORMAT
    assert Schema.parse(schema.to_toml()) == schema
    with pytest.raises(SchemaError, match="delimiter: needs format"):
        Schema.parse(schema.to_toml().replace("schema/2", "schema/1"))


def test_parquet_files_of_an_object_store_are_their_table(tmp_path):
    data = pa.table({"c": [True, None] * 5, "a": np.arange(10.0), "i": range(10), "b": ["x", "y"] * 5})
    store = fsspec.filesystem("memory")
    store.makedirs("/visits", exist_ok=True)
    for part, name in enumerate(("p0.parquet", "p1.parquet")):
        with store.open(f"/visits/{name}", "wb") as file:
            pq.write_table(data.slice(5 * part, 5), file)
    store.pipe("/visits/_SUCCESS", b"")
    address = "memory://visits"
    expected = rows_of(data, PRIVATE)
    assert rows_of(address, PRIVATE) == expected
    assert open_source(address, table()).public_rows() == 10
    assert rows_of("memory://visits/p0.parquet", PRIVATE) == expected[:5]
    assert compare(address, PRIVATE) == (PRIVATE, [])
    assert [name for name, _ in describe(address)[0][1]] == ["c", "a", "i", "b"]
    store.pipe("/visits/more.csv", b"a,i,b,c\nCANARY,1,x,1\n")
    for wrong, words in (
        (address, "other files than Parquet"),
        ("memory://nothing", "no file there"),
        ("nosuch://CANARY@store/x", "the store cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            open_source(wrong, PRIVATE)
        assert "CANARY" not in str(caught.value)
        assert caught.value.__cause__ is None
    store.rm("/visits", recursive=True)
