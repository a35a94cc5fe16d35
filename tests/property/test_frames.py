"""Objects in memory: a cell reads as itself, whatever type the library chose for its whole column."""

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.opening import open_source
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from support.cells import HOSTILE, Liar, objects
from support.data import BOOLEAN, CATEGORY, DIGITS, INTEGER, NUMBER, TRUTHS, reference_value, table

KINDS = (NUMBER, INTEGER, BOOLEAN, CATEGORY, DIGITS, TRUTHS)


POLARS = (pl.Boolean, pl.Int64, pl.Float64, pl.String, pl.Decimal, pl.Object)  # readable, one by one


def read(data):
    """The rows of a table that has the same cells in a column of each kind, by whichever door it has."""
    is_cast = isinstance(data, pl.DataFrame)  # whose types are stored ones: text is no number there
    batches = open_source(data, table(*(replace(kind, cast=is_cast) for kind in KINDS))).batches(4096)
    found = [batch.values for batch in batches]  # noqa: PD011  (no pandas here)
    return np.concatenate(found).tolist() if found else []


def frame(values, dtype=None):
    column = pd.Series(values, dtype=dtype)
    return pd.DataFrame({kind.name: column for kind in KINDS})


def matrix(cells):
    """A column for each kind, all the same."""
    return np.repeat(cells.reshape(-1, 1), len(KINDS), axis=1)


def by_cell(values):
    """Each cell in a table of its own, as a Python object."""
    found = []
    for value in values:
        cell = np.empty(1, dtype=object)
        cell[0] = value
        found += read(matrix(cell))
    return found


SMALL = st.integers(-3, 9)
WHOLE = SMALL | st.integers(-(2**63), 2**63 - 1)
REAL = st.floats() | SMALL.map(float) | st.sampled_from([0.5, -0.0, 1e300])
WORDS = st.sampled_from(["x", "y", "1", "01", "1.0", "True", "false", " 2", "", "nan", "0.5"])


def lists_of(cells):
    return st.lists(cells, min_size=1, max_size=8)


NATIVE = [
    ("bool", st.booleans()),
    ("boolean", st.none() | st.booleans()),
    ("bool[pyarrow]", st.none() | st.booleans()),
    ("int64", WHOLE),
    ("uint64", st.integers(0, 2**64 - 1)),
    ("int8", SMALL),
    ("Int64", st.none() | WHOLE),
    ("int64[pyarrow]", st.none() | WHOLE),
    ("float64", REAL),
    ("float32", st.floats(width=32) | st.just(0.1)),
    ("Float64", st.none() | REAL),
    ("Sparse[int64]", SMALL),
    ("Sparse[float64]", REAL),
    ("complex128", REAL | st.sampled_from([1 + 2j, 1j])),
    ("str", st.none() | WORDS),
    ("string", st.none() | WORDS),
    (pd.ArrowDtype(pa.string()), st.none() | WORDS),
    (pd.ArrowDtype(pa.decimal128(9, 2)), st.none() | SMALL.map(lambda i: Decimal(i) / 4)),
    ("datetime64[ns]", st.just(pd.Timestamp("2020-01-01")) | st.just(pd.NaT)),
    ("datetime64[us, UTC]", st.just(pd.Timestamp("2020-01-01", tz="UTC"))),
    ("timedelta64[s]", st.just(pd.Timedelta(5, "s"))),
    ("period[M]", st.just(pd.Period("2020-01"))),
    ("interval[float64]", st.just(pd.Interval(0.0, 1.0))),
    (pd.ArrowDtype(pa.date32()), st.none() | st.just(dt.date(2020, 1, 1))),
    (pd.ArrowDtype(pa.timestamp("s")), st.none() | st.just(dt.datetime(2020, 1, 1))),  # noqa: DTZ001
]
OBJECTS = st.none() | st.booleans() | WHOLE | REAL | WORDS | WORDS.map(str.encode)


@pytest.mark.parametrize(("dtype", "cells"), NATIVE, ids=lambda value: str(value)[:20])
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_a_pandas_type_of_its_own_reads_as_its_cells(dtype, cells, data):
    held = pd.Series(data.draw(lists_of(cells)), dtype=dtype)
    expected = by_cell(held.astype(object).tolist())
    assert read(frame(held)) == expected
    assert read(frame(held.astype(object), object)) == expected
    assert read(frame(held.astype("category"))) == expected


@settings(max_examples=20, deadline=None)
@given(lists_of(OBJECTS))
def test_whatever_type_a_library_infers_cells_read_as_themselves(values):
    expected = by_cell(values)
    assert read(frame(values)) == expected
    assert read(frame(objects(values), object)) == expected
    assert read(matrix(objects(values))) == expected
    assert read(frame(pd.Categorical(objects(values)))) == expected
    for cell, got in zip(values, expected, strict=True):
        plain = float(cell) if isinstance(cell, int) else cell
        text = plain.encode() if isinstance(plain, str) else plain
        assert got == [reference_value(kind, text) for kind in KINDS]


@settings(max_examples=20, deadline=None)
@given(lists_of(st.booleans() | SMALL | REAL))
def test_numpy_may_widen_truths_and_numbers(values):
    expected = by_cell(values)
    wide = matrix(np.array(values))
    assert read(wide) == expected
    assert read(wide + 0j) == expected
    assert read(sp.csr_array(wide)) == expected
    assert read(sp.csr_array(wide + 0j)) == expected
    assert read(np.ma.MaskedArray(wide, mask=False)) == expected


@settings(max_examples=20, deadline=None)
@given(lists_of(st.booleans() | SMALL | REAL))
def test_the_text_of_a_truth_or_a_number_has_its_value(values):
    texts = [str(value) for value in values]
    is_number = [kind.kind is not BOOLEAN.kind for kind in KINDS]  # -0.0 is no word for false
    assert np.array_equal(
        np.array(by_cell(texts))[:, is_number], np.array(by_cell(values))[:, is_number]
    )


@pytest.mark.parametrize(
    "base",
    [
        [True, False, True],
        [1, 0, 2],
        [1.0, 0.5, math.nan],
        ["x", "1", "true"],
        [pd.Timestamp("2020"), pd.Timestamp("2021"), pd.NaT],
        [pd.Interval(0, 1), pd.Interval(1, 2), pd.Interval(2, 3)],
        [[1], [2], [3]],
    ],
    ids=lambda base: type(base[0]).__name__,
)
def test_a_hostile_cell_changes_no_other_row_and_raises_nothing(base):
    before = read(frame(base))
    assert before == by_cell(base)
    for cell in HOSTILE if type(base[0]) in (bool, int, str) else HOSTILE[::4]:
        values = [*base[:1], cell, *base[2:]]
        expected = [before[0], *by_cell([cell]), before[2]]
        doors = [matrix(objects(values)), frame(objects(values), object)]
        makes = [frame, lambda cells: frame(pd.Categorical(objects(cells)))]
        if type(cell) not in (Liar, np.ndarray):  # polars calls and converts these itself
            makes.append(polars_frame)
        for make in makes:
            try:
                doors.append(make(values))
            except BaseException:  # noqa: BLE001, S112  (the library itself refuses such a column)
                continue
        wrong = [
            str(getattr(door, "dtypes", "array"))
            for door in doors
            if door is not None and read(door) != expected
        ]
        assert wrong == [], type(cell)


def polars_frame(values):
    """None if polars chose a type that is refused as such, as it is in Arrow (dates, lists)."""
    column = pl.Series(values)
    return pl.DataFrame({kind.name: column for kind in KINDS}) if column.dtype in POLARS else None


ITEMS = Schema(items=ItemSpec(upper=5), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)


def sets_of(data):
    batch = next(open_source(data, ITEMS).batches(4096))
    return [batch.indices[a:b].tolist() for a, b in zip(batch.indptr, batch.indptr[1:], strict=False)]


def test_a_hostile_cell_changes_no_other_item_set():
    for cell in HOSTILE:
        lists = pd.DataFrame({"items": objects([[0, 1], [cell, 2], cell, [5]])})
        found = sets_of(lists)
        assert (found[0], found[3], 2 in found[1]) == ([0, 1], [5], True)
        rows = np.zeros((3, 6), dtype=object)
        rows[0, [0, 1]], rows[2, 5], rows[1, 3], rows[1, 2] = 1, True, cell, 1.0
        found = sets_of(rows)
        assert (found[0], found[2], 2 in found[1]) == ([0, 1], [5], True)


def numbers(data):
    return [row[0] for row in read(data)]


def test_what_cannot_be_a_python_object_is_missing_alone():
    far = pa.array([0, 2**62, None], pa.timestamp("s"))  # beyond the years of Python
    assert numbers(frame(pd.Series(far, dtype=pd.ArrowDtype(far.type)))) == [3, 3, 3]
    lone = pd.Series(["1", "\ud800"], dtype=pd.StringDtype("python"))
    assert numbers(frame(lone)) == [1, 3]
    struct = pa.array([{"t": 1}, {"t": 2**62}], pa.struct([("t", pa.timestamp("s"))]))
    assert numbers(frame(pd.Series(struct, dtype=pd.ArrowDtype(struct.type)))) == [3, 3]


def test_csv_files_that_pandas_wrote_in_another_type_read_alike(tmp_path):
    path = tmp_path / "t.csv"
    for base in ([True, False, True], [1, 0, 2], [0.5, 1.0, 0.0]):
        expected = read(frame(base))
        for cell in (None, math.nan, 0.25, "CANARY", True, 7, pd.Timestamp("2020-01-01"), [1]):
            data = frame([base[0], cell, base[2]])
            data.to_csv(path, index=False)
            found = read(path)
            assert [found[0], found[2]] == [expected[0], expected[2]], (data.dtypes.iloc[0], cell)


class OwnFrame(pd.DataFrame):
    """As geopandas has one."""


def test_frames_of_ones_own_kind_and_blocks_read_alike():
    values = [True, None, "1", 0.5, b"x", 2, "true", object(), 1j]
    data = frame(objects(values), object)
    whole = read(data)
    assert whole == by_cell(values)
    assert read(OwnFrame(data)) == whole
    for shape in (data, data.astype("category")):
        source = open_source(shape, table(*KINDS))
        blocks = [batch.values.tolist() for batch in source.batches(2)]  # noqa: PD011
        assert [row for block in blocks for row in block] == whole
        later = [batch.values.tolist() for batch in source.batches(2, start=4, stop=8)]  # noqa: PD011
        assert later == blocks[2:4]


def test_masked_cells_are_missing():
    mask = matrix(np.array([0, 1]))
    assert numbers(np.ma.MaskedArray(matrix(np.array([1.0, 2.0])), mask=mask)) == [1, 3]
    assert numbers(np.ma.MaskedArray(matrix(np.array(["1", "2"])), mask=mask)) == [1, 3]
    assert numbers(matrix(np.array(["2020-01-01"], "M8[D]"))) == [3]


def test_polars_types_that_arrow_lacks():
    for values, dtype, expected in (
        ([object(), 1], pl.Object, [3, 1]),
        ([2**100, 1], pl.Int128, [10, 1]),
    ):
        column = pl.Series(values, dtype=dtype)
        assert numbers(pl.DataFrame({kind.name: column for kind in KINDS})) == expected
