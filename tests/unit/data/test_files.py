"""A stored type fits the declared kind, or the schema says `cast = true`."""

import math
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.data import files
from adumbra.data.columns import fill_column, fits_kind
from adumbra.data.files import filled, plain_storage
from adumbra.data.opening import compare, open_source
from adumbra.errors import InvalidInput, SchemaError
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.data import table

NUMBER = Column(name="a", kind=Kind.NUMBER, lower=0, upper=100)
INTEGER = Column(name="a", kind=Kind.INTEGER, lower=0, upper=100)
WORDS = Column(name="a", kind=Kind.CATEGORY, categories=("low", "high"))
DIGITS = Column(name="a", kind=Kind.CATEGORY, categories=("1", "2", "other"))
BOOLEAN = Column(name="a", kind=Kind.BOOLEAN)
COLUMNS = {"number": NUMBER, "integer": INTEGER, "words": WORDS, "digits": DIGITS, "boolean": BOOLEAN}
TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.string_view(),
    pa.binary(2),
    pa.dictionary(pa.int8(), pa.string()),
    pa.run_end_encoded(pa.int32(), pa.string()),
]
NUMBERS = [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.bool_()]
NUMBERS += [pa.dictionary(pa.int8(), pa.int64())]


@pytest.mark.parametrize("storage", TEXTS, ids=str)
def test_text_is_a_category_only(storage):
    fitting = {title for title, column in COLUMNS.items() if fits_kind(column, storage)}
    assert fitting == {"words", "digits"}
    assert all(fits_kind(replace(column, cast=True), storage) for column in COLUMNS.values())


@pytest.mark.parametrize("storage", NUMBERS, ids=str)
def test_numbers_and_truths_are_no_words(storage):
    fitting = {title for title, column in COLUMNS.items() if fits_kind(column, storage)}
    assert fitting == {"number", "integer", "digits", "boolean"}
    assert fits_kind(replace(WORDS, cast=True), storage)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_without_values_fits_any_kind(column):
    assert fits_kind(column, pa.null())


AGES = ["30-39", "25", "SECRET"]


@pytest.fixture(params=["parquet", "arrow", "polars"])
def ages(request, tmp_path):
    """A text column that is declared integer: two of three values would be the middle."""
    held = pa.table({"a": AGES})
    pq.write_table(held, tmp_path / "t.parquet")
    return {"parquet": tmp_path / "t.parquet", "arrow": held, "polars": pl.DataFrame({"a": AGES})}[
        request.param
    ]


def test_text_that_is_declared_integer_is_refused_unless_cast(ages):
    message = (
        "string is declared integer, .*; correct the kind, or declare cast = true to read its texts"
    )
    with pytest.raises(InvalidInput, match=message) as caught:
        open_source(ages, table(INTEGER))
    faults = compare(ages, table(INTEGER))[1]
    assert [fault in str(caught.value) for fault in faults] == [True]
    assert "SECRET" not in str(caught.value)
    casting = table(replace(INTEGER, cast=True))
    assert compare(ages, casting) == (casting, [])
    (batch,) = open_source(ages, casting).batches(4)
    assert batch.values.tolist() == [[50], [25], [50]]  # noqa: PD011  (no pandas here)


def test_numbers_that_are_declared_words_are_refused_unless_cast():
    data = pa.table({"a": [Decimal("1.5")]})
    with pytest.raises(InvalidInput, match="is declared category, and no category is a number; correct"):
        open_source(data, table(WORDS))
    (batch,) = open_source(data, table(replace(WORDS, cast=True))).batches(4)
    assert batch.values.tolist() == [[0]]  # noqa: PD011  (no pandas here)


def test_rows_decide_the_types_of_pandas_so_none_is_refused():
    """A refusal would tell whether one private cell holds text."""
    for cells in ([1, 2], [1, "SECRET"], ["1", "SECRET"], [1.5, None], [True, "x"]):
        for dtype in (None, object, "string", "category"):
            data = pd.DataFrame({"a": pd.Series(cells, dtype=dtype)})
            for column in COLUMNS.values():
                assert compare(data, table(column)) == (table(column), [])
                assert len(next(open_source(data, table(column)).batches(4))) == 2


TEXT = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
[[columns]]
name = "a"
kind = "integer"
lower = 0
upper = 100
"""


def test_cast_is_kept_in_file_and_digest():
    schema, plain = Schema.parse(TEXT + "cast = true\n"), Schema.parse(TEXT)
    assert schema.columns == (replace(INTEGER, cast=True),)
    assert Schema.parse(schema.to_toml()) == schema
    assert schema.digest() != plain.digest()
    assert Schema.parse(TEXT + "cast = false\n").digest() == plain.digest()
    # As computed before the key existed: files without it keep their digest.
    assert plain.digest() == "1ff2f88af2a04372ba1429b434e5e4fb58efe1ada5d9deef7833261371a81a45"
    group = TEXT.replace("[[columns]]\nname", "cast = 1\n[[groups]]\nmatch").replace('"a"', '"a*"')
    with pytest.raises(SchemaError, match="cast: is not a field of"):
        Schema.parse(group)
    spread = Schema.parse(group.replace("cast = 1\n", "") + "cast = true\n").expand(["a1", "a2"])
    assert [column.cast for column in spread.columns] == [True, True]
    with pytest.raises(SchemaError, match="f.toml:10: cast='yes': must be true or false"):
        Schema.parse(TEXT + 'cast = "yes"\n', "f.toml")
    with pytest.raises(InvalidInput, match="column 'a', cast=1: must be true or false"):
        replace(INTEGER, cast=1)


@pytest.mark.parametrize("rows", [0, 1, 100])
@pytest.mark.parametrize("wide", [0, 1, 40])
@pytest.mark.parametrize("long", [1, 8192])
def test_numbers_read_in_one_go_are_those_read_alone(rows, wide, long, monkeypatch):
    """Nulls, NaN, infinities and cells beyond the bounds, whole numbers, `missing = "null"`, slices."""
    monkeypatch.setattr(files, "LONG", long)
    rng = np.random.default_rng(wide)
    number = partial(Column, kind=Kind.NUMBER, lower=-1.0)
    columns = [number(name=f"n{j}", upper=1.0 + j) for j in range(wide)]
    columns += [
        number(name="null", upper=1.0, missing="null"),
        number(name="lower", upper=2.0, missing=-1),
    ]
    columns += [Column(name="whole", kind=Kind.INTEGER, lower=-1, upper=3, missing="null")]
    if wide == 40:  # not all of them are stored as float64 numbers
        columns[3] = Column(name="n3", kind=Kind.CATEGORY, categories=("0", "1"))
        columns[30] = Column(name="n30", kind=Kind.DATE, lower="2000-01-01", upper="2001-01-01")
    hostile = [None, math.nan, math.inf, -math.inf, -9.0, 9.0, -0.0, 0.5, 1.0, -1.0]
    pool = hostile + rng.uniform(-1.5, 1.5, 30).tolist()
    cells = [[pool[int(at)] for at in rng.integers(0, len(pool), rows + 2)] for _ in columns]
    cells[:2] = [[0.25] * (rows + 2)] * len(cells[:2])  # nothing to change
    arrays = [pa.array(column, pa.float64()) for column in cells]
    if wide == 40:
        arrays[30] = pa.array([None] * (rows + 2), pa.date32())
        arrays[8] = arrays[8].cast(pa.float32())
    names = [column.name for column in columns]
    piece = pa.record_batch(arrays[::-1], names=names[::-1]).slice(1, rows)
    schema = Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, rows=None)
    cut = [piece.slice(0, rows // 3), piece.slice(rows // 3)]
    for held in ([piece], cut, [piece.select(names)], [one.select(names) for one in cut]):
        block = filled(schema, plain_storage(schema), 0, held)
        assert len(block) == rows
        for index, column in enumerate(columns):
            alone = np.empty(rows)
            fill_column(column, piece.column(column.name), alone)
            assert np.array_equal(block.values.T[index], alone)  # noqa: PD011


def test_a_piece_of_plain_numbers_is_known_without_a_look_at_each_column(monkeypatch):
    """Asked of every column of every block, it kept the interpreter's lock from the other workers."""
    schema = Schema.numeric(20, -1.0, 1.0)
    plain, cells = plain_storage(schema), np.random.default_rng(0).uniform(-2, 2, (50, 20))
    piece = pa.record_batch([pa.array(column) for column in cells.T], names=list(schema.names))
    monkeypatch.setattr(files, "_numbers", lambda *_: pytest.fail("looked at each column"))
    for held in ([piece], [piece.slice(0, 20), piece.slice(20, 0), piece.slice(20)]):
        block = filled(schema, plain, 0, held)
        assert np.array_equal(block.values, np.clip(cells, -1.0, 1.0))
    words = Schema(
        columns=(NUMBER, replace(WORDS, name="b")), unit=Unit.ROW, neighbours=schema.neighbours
    )
    assert plain_storage(words) is None


def test_whole_pieces_are_handed_on_as_they_are():
    """A slice of a hundred columns takes as long as some work on them."""
    pieces = [pa.record_batch([pa.array(np.arange(n))], names=["a"]) for n in (4, 4, 3)]
    found = [held for _, held in files.rechunk(pieces, 4, 0, 100)]
    assert [len(held) for held in found] == [1, 1, 1]
    assert all(held[0] is piece for held, piece in zip(found, pieces, strict=True))
    cut = [(start, [len(one) for one in held]) for start, held in files.rechunk(pieces, 8, 0, 9)]
    assert cut == [(0, [4, 4]), (8, [1])]
