"""Laws of the data layer: layout is nothing, cells are read alone, what is encoded can be decoded."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.columns import fill_column, is_readable
from adumbra.data.encode import Encoder
from adumbra.data.fimi import parse_lines
from adumbra.data.opening import open_source
from adumbra.data.sets import Lists, make_sets
from adumbra.data.sources import Batch
from adumbra.numerics import ROW_BITS
from adumbra.postprocess.decode import decode_rows
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.data import (
    BOOLEAN,
    CATEGORY,
    DIGITS,
    INTEGER,
    MIXED,
    NUMBER,
    TRUTHS,
    reference_value,
    table,
)

FLOATS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [math.nan, math.inf, 1e308, -0.0, 5e-324]
)
TEXTS = st.binary(max_size=6) | st.sampled_from(
    [b"1", b" 2 ", b"x", b"y", b"true", b"FALSE ", b"1e5", b"nan", b"inf", b"+3", b"1.0", b".5", b"\xff"]
)
OBJECTS = (
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=4) | st.binary(max_size=4)
)


def filled(column: Column, array: pa.Array) -> np.ndarray:
    out = np.empty(len(array))
    fill_column(column, array, out)
    return out


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | TEXTS, max_size=12), st.sampled_from((*MIXED, DIGITS, TRUTHS)))
def test_text_cells_are_read_alone(cells, column):
    values = filled(column, pa.array(cells, type=pa.binary()))
    assert values.tolist() == [reference_value(column, cell) for cell in cells]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | FLOATS, max_size=12), st.sampled_from(MIXED))
def test_stored_numbers_are_finite_and_within_bounds(cells, column):
    values = filled(column, pa.array(cells, type=pa.float64()))
    lower, upper = column.limits
    assert np.all((values >= lower) & (values <= upper))
    for cell, value in zip(cells, values, strict=True):
        if cell is None or not math.isfinite(cell):
            assert value == column.fill
        elif column is NUMBER:
            assert value == min(max(cell, lower), upper)


TYPES = st.sampled_from(
    [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.bool_(),
        pa.string(),
        pa.large_binary(),
        pa.null(),
        pa.string_view(),
        pa.decimal128(9, 2),
        pa.date32(),
        pa.timestamp("s"),
        pa.list_(pa.int8()),
        pa.binary(3),
    ]
)


@settings(max_examples=150, deadline=None)
@given(TYPES, st.integers(0, 5), st.sampled_from(MIXED), st.booleans())
def test_every_storage_type_gives_values_within_bounds(storage, length, column, as_dictionary):
    array = pa.nulls(length, storage)
    if as_dictionary and is_readable(storage) and not pa.types.is_null(storage):
        array = array.dictionary_encode() if not pa.types.is_string_view(storage) else array
    assert filled(column, array).tolist() == [column.fill] * length


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 60),
    st.lists(st.integers(1, 25), min_size=1, max_size=4),
    st.sampled_from([4, 8, 20]),
    st.integers(0, 3),
)
def test_layout_does_not_change_batches(count, cuts, rows, seed):
    rng = np.random.default_rng(seed)
    data = pa.table(
        {
            "b": rng.choice(["x", "y", "other"], count),
            "a": rng.normal(size=count) * 8,
            "c": rng.random(count) < 0.5,
            "i": rng.integers(-3, 12, count),
        }
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = number = 0
        while start < count or number == 0:
            size = cuts[number % len(cuts)]
            pq.write_table(
                data.slice(start, size),
                folder / f"part-{number:03d}.parquet",
                row_group_size=1 + size // 2,
            )
            start, number = start + size, number + 1
        whole = list(open_source(data, table()).batches(rows))
        split = list(open_source(folder, table()).batches(rows))
        assert [batch.start for batch in split] == list(range(0, count, rows))
        assert [batch.start for batch in whole] == [batch.start for batch in split]
        assert all(np.array_equal(a.values, b.values) for a, b in zip(whole, split, strict=True))
        assert all(len(batch) == rows for batch in split[:-1])
        later = list(open_source(folder, table()).batches(rows, start=rows, stop=2 * rows))
        assert [batch.start for batch in later] == [batch.start for batch in split[1:2]]
        assert all(np.array_equal(a.values, b.values) for a, b in zip(later, split[1:2], strict=True))


@st.composite
def schemas_and_rows(draw):
    number = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    columns = [
        Column(name="n", kind=Kind.NUMBER, lower=number, upper=number + width),
        Column(name="i", kind=Kind.INTEGER, lower=-5, upper=draw(st.integers(-4, 300))),
        CATEGORY,
        BOOLEAN,
        INTEGER.__class__(name="only", kind=Kind.CATEGORY, categories=("single",)),
    ]
    label = draw(st.sampled_from([None, "i", "b", "c"]))
    chosen = Schema(
        columns=tuple(columns), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label=label
    )
    count = draw(st.integers(0, 6))
    parts = draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    values = [
        [
            min(number + part * width, number + width),
            float(draw(st.integers(-5, int(columns[1].upper)))),
            float(draw(st.integers(0, 3))),
            float(draw(st.integers(0, 1))),
            0.0,
        ]
        for part in parts
    ]
    return chosen, np.array(values).reshape(-1, 5)


@settings(max_examples=150, deadline=None)
@given(schemas_and_rows(), st.booleans(), st.sampled_from("CF"))
def test_decode_undoes_encode(schema_and_rows, centred, order):
    schema, values = schema_and_rows
    encoder = Encoder(schema, centred)
    batch = Batch(0, np.asarray(values, order=order))
    encoded = encoder.encode(batch)
    low = -0.5 if centred else 0.0
    assert np.all((encoded[:, encoder.numeric] >= low) & (encoded[:, encoder.numeric] <= low + 1))
    assert all(np.all(encoded[:, group].sum(axis=1) == 1) for group in encoder.groups)
    assert np.all(np.linalg.norm(encoded, axis=1) <= encoder.norm_upper() * (1 + 1e-12))
    labels = None if schema.label is None else encoder.labels(batch)
    decoded = decode_rows(encoder, encoded, labels=labels)
    assert decoded.schema.names == list(schema.names)
    back = list(open_source(decoded, schema).batches(4096))
    returned = back[0].values if back else np.empty((0, 5))
    lower, upper = schema.columns[0].limits
    tolerance = 4 * np.finfo(float).eps * max(abs(lower), abs(upper), upper - lower)
    assert np.all(np.abs(returned[:, 0] - values[:, 0]) <= tolerance)
    assert np.array_equal(returned[:, 1:], values[:, 1:])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40) | st.text("0123456789 \n-x.", max_size=40).map(str.encode))
def test_any_bytes_are_item_sets(body):
    schema = Schema(items=ItemSpec(lower=2, upper=30), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    text = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.split(b"\n")[: -1 if text.endswith(b"\n") or not text else None]
    expected = []
    for line in lines:
        words = [word for word in line.split() if word.isdigit() and len(word) <= 10]
        expected.append(sorted({int(word) - 2 for word in words if 2 <= int(word) <= 30}))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.dat"
        path.write_bytes(body)
        batches = list(open_source(path, schema).batches(2))
    found = [b.indices[b.indptr[i] : b.indptr[i + 1]].tolist() for b in batches for i in range(len(b))]
    assert found == expected
    assert [batch.start for batch in batches] == list(range(0, len(lines), 2))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(-5, 40), max_size=6), max_size=8))
def test_sets_are_sorted_and_without_doubles(rows):
    lists = Lists(
        np.array([len(row) for row in rows], np.int64),
        np.array([item for row in rows for item in row], np.int64),
    )
    batch = make_sets(lists, ItemSpec(lower=1, upper=30), 8)
    found = [batch.indices[batch.indptr[i] : batch.indptr[i + 1]].tolist() for i in range(len(batch))]
    assert found == [sorted({item - 1 for item in row if 1 <= item <= 30}) for row in rows]
    assert batch.lengths.tolist() == [len(row) for row in found]


def test_long_words_are_no_items():
    assert parse_lines(b"4294967296 99999999999 1\n")[1].tolist() == [4294967296, -1, 1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(OBJECTS, OBJECTS, OBJECTS, OBJECTS), min_size=1, max_size=5))
def test_object_arrays_never_raise_and_cells_are_read_alone(rows):
    cells = np.empty((len(rows), 4), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            cells[i, j] = cell
    together = next(open_source(cells, table()).batches(4096)).values
    alone = [
        next(open_source(cells[i : i + 1], table()).batches(4096)).values[0] for i in range(len(rows))
    ]
    assert np.array_equal(together, np.array(alone))
    assert np.all(np.isfinite(together))


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda t: t != "TODO"
)


@st.composite
def schemas(draw):
    names = draw(
        st.lists(
            NAMES | st.integers(0, 40).map(lambda i: f"px_{i}"), min_size=1, max_size=8, unique=True
        )
    )
    columns = []
    for name in names:
        kind = draw(st.sampled_from([Kind.NUMBER, Kind.INTEGER, Kind.CATEGORY, Kind.BOOLEAN]))
        if kind is Kind.NUMBER:
            fields = {
                "lower": draw(st.floats(-1e300, 0)),
                "upper": draw(st.floats(1e-300, 1e300) | st.integers(1, 2**70)),
            }
        elif kind is Kind.INTEGER:
            fields = {
                "lower": 0,
                "upper": draw(st.integers(1, 2**53 - 1)),
                "missing": draw(st.none() | st.just(1)),
            }
        elif kind is Kind.CATEGORY:
            words = draw(
                st.lists(NAMES.filter(lambda t: t != "category"), min_size=1, max_size=4, unique=True)
            )
            fields = {
                "categories": tuple(words),
                "missing": draw(st.sampled_from([None, "category", words[-1]])),
            }
        else:
            fields = {"missing": draw(st.sampled_from([None, True, False]))}
        columns.append(Column(name=name, kind=kind, **fields))
    neighbours = draw(st.sampled_from([one for one in Neighbours if not one.value.endswith("-person")]))
    unit = Unit.ELEMENT if neighbours is Neighbours.ONE_ELEMENT else Unit.ROW
    rows = draw(st.none() | st.integers(1, 2**31)) if neighbours.rows_are_public else None
    return Schema(
        columns=tuple(columns),
        unit=unit,
        neighbours=neighbours,
        rows=rows,
        label=draw(st.none() | st.sampled_from(names)),
        declared_by=draw(st.just("") | NAMES),
    )


@settings(max_examples=200, deadline=None)
@given(schemas())
def test_schema_files_round_trip(schema):
    text = schema.to_toml()
    again = Schema.parse(text)
    assert again == schema
    assert again.digest() == schema.digest()
    assert again.to_toml() == text


def test_the_row_lattice_is_finer_than_the_norm_bound_needs():
    # sqrt(p1/4 + p2) is exact for squares, and never below the true root elsewhere.
    for numbers in range(1, 50):
        encoder = Encoder(Schema.numeric(numbers, 0, 1))
        assert encoder.norm_upper() ** 2 * (1 + 2.0**-52) >= numbers / 4
        assert encoder.norm_upper() <= math.sqrt(numbers / 4) * (1 + 2.0 ** -(ROW_BITS + 30))
