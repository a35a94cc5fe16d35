"""Ids of any type: one person stays one, whatever the type, the file and the cells beside it."""

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adumbra.data.cells import id_column, read_cells
from adumbra.data.person_ids import is_id_type, read_ids


def words(array):
    ids = read_ids(array)
    return [tuple(row) if there else None for row, there in zip(ids.words, ids.is_there, strict=True)]


def one(array):
    (word,) = words(array)
    return word


SEVEN = (
    pa.array([7]), pa.array([7], pa.uint8()), pa.array([7.0]), pa.array([7.0], pa.float32()),
    pa.array(["7"]), pa.array([" 7 "]), pa.array(["007"]), pa.array(["7.0"]), pa.array(["+7"]),
    pa.array(["7e0"]), pa.array([b"7"]), pa.array(["7"]).dictionary_encode(), pa.array(["\uff17"]),
    pa.array([Decimal("7.0")]), read_cells([7]), read_cells(["7"]), read_cells([np.int64(7)]),
    pa.array(["7"], pa.large_string()), pa.array(["7"], pa.string_view()),
)  # fmt: skip


def test_one_id_in_many_types_is_one_person():
    assert len({one(array) for array in SEVEN}) == 1
    assert one(pa.array([-0.0])) == one(pa.array(["0"])) == one(pa.array([False]))
    assert one(pa.array([np.inf])) == one(pa.array(["inf"])) == one(pa.array([" INF "]))


def test_doubtful_texts_merge():
    spellings = ["Ann-Marie", " ann-marie", "ANN-MARIE\t", "ann\uff0dmarie"]
    assert len({one(pa.array([text])) for text in spellings}) == 1
    assert len({one(pa.array([2**53 + step])) for step in (0, 1)}) == 1  # float64 cannot tell them apart


def test_different_persons_stay_apart():
    arrays = (
        pa.array([1, 2, 2**40]),
        pa.array(["a", "b", "a1", "1a", "nan", "null", "-"]),
        pa.array([1.5]),
    )
    found = [word for array in arrays for word in words(array)]
    assert len(set(found)) == len(found)
    assert None not in found


@pytest.mark.parametrize(
    "array",
    [
        pa.array([None], pa.int64()), pa.array([np.nan]), pa.array([None], pa.string()), pa.array([""]),
        pa.array(["  \t"]), pa.nulls(1), read_cells([None]), read_cells([[1]]),
        id_column(pd.Series([pd.NaT])),
    ],
)  # fmt: skip
def test_no_id(array):
    assert words(array) == [None]


def test_each_cell_is_read_on_its_own():
    cells = [
        b"7",
        b"x",
        b"\xff\xfe",
        b"inf",
        b"",
        b"9" * 400,
        b"\xc3\x28",
        None,
        b" X ",
        b"1e999",
        b"7,5",
    ]
    together = words(pa.array(cells))
    assert together == [one(pa.array([cell], pa.binary())) for cell in cells]
    assert together[1] == together[8]
    numbers = [1.0, np.inf, np.nan, -0.0, -np.inf]
    assert words(pa.array(numbers)) == [one(pa.array([number])) for number in numbers]


def test_dates_and_objects_are_the_text_they_print():
    day = dt.date(2024, 5, 1)
    name = uuid.UUID(int=5)
    assert one(id_column(pd.Series([name]))) == one(pa.array([str(name).upper()]))
    assert one(id_column(pd.Series([day]))) == one(pa.array([str(day)]))


class Hostile:
    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        return 0

    def __str__(self):
        raise RuntimeError("no")


def test_no_object_raises():
    assert words(id_column(pd.Series([Hostile(), 3], dtype=object))) == [None, one(pa.array([3]))]


def test_types_that_hold_no_ids():
    assert not is_id_type(pa.list_(pa.int64()))
    assert not is_id_type(pa.struct([("a", pa.int64())]))
    for kind in (
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.null(),
    ):
        assert is_id_type(kind)


def test_types_that_say_one_value_in_several_ways_hold_no_ids():
    """One instant in milliseconds and in microseconds would be two persons."""
    for kind in (
        pa.timestamp("ms"),
        pa.timestamp("us", "UTC"),
        pa.date32(),
        pa.duration("s"),
        pa.float32(),
        pa.decimal128(25, 3),
        pa.binary(),
    ):
        assert not is_id_type(kind), kind
