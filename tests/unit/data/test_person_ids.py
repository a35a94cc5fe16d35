"""Ids of any type: one person stays one, whatever the type, the file and the cells beside it."""

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adumbra.data.cells import CELLS, id_column, read_cells
from adumbra.data.person_ids import Reading, is_id_type, read_ids, reading_of
from adumbra.errors import InvalidInput

EXACT, ROUNDED, WRITTEN = Reading(), Reading(rounded=True), Reading(as_written=True)


def words(array, reading=ROUNDED):
    ids = read_ids(array, reading)
    return [tuple(row) if there else None for row, there in zip(ids.words, ids.is_there, strict=True)]


def one(array, reading=ROUNDED):
    (word,) = words(array, reading)
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
    exact = [array for array in SEVEN if array.type not in (pa.float64(), pa.float32(), CELLS)]
    assert {one(array, EXACT) for array in exact} == {one(pa.array([7.0]))}
    assert len(exact) > 10
    assert one(pa.array([-0.0])) == one(pa.array(["0"])) == one(pa.array([False]))
    assert one(pa.array([np.inf])) == one(pa.array(["inf"])) == one(pa.array([" INF "]))


def test_doubtful_texts_merge():
    spellings = ["Ann-Marie", " ann-marie", "ANN-MARIE\t", "ann\uff0dmarie"]
    for reading in (EXACT, ROUNDED):
        assert len({one(pa.array([text]), reading) for text in spellings}) == 1
    assert len({one(pa.array([2**53 + step])) for step in (0, 1)}) == 1  # float64 cannot tell them apart


# Numbers that a source tells apart: each is another person.
APART = (
    0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**63) - 1,
    10**18, 10**19, 10**20, 10**20 + 1, Decimal("0.1"), Decimal("0.10000000000000000001"),
    Decimal("1e-30"),
)  # fmt: skip


def test_numbers_of_any_width_are_exact():
    texts = [one(pa.array([f"{value:f}"]), EXACT) for value in map(Decimal, APART)]
    assert len(set(texts)) == len(APART)
    for value, word in zip(APART, texts, strict=True):
        digits = f"{Decimal(value):f}"
        point = digits if "." in digits else f"{digits}."
        for text in (f" {digits}", f"{point}000", f"{digits}e0", f"{Decimal(value) * 10:f}e-1"):
            assert one(pa.array([text]), EXACT) == word, text
        stored = [pa.decimal256(60, 31)]
        if isinstance(value, int):
            stored += [pa.int64()] * (-(2**63) <= value < 2**63) + [pa.uint64()] * (0 <= value < 2**64)
        for kind in stored:
            held = Decimal(value) if pa.types.is_decimal(kind) else value
            assert one(pa.array([held], kind), EXACT) == word, (value, kind)


def test_hostile_numbers_are_read_and_merge():
    zeros = ["0", "-0", "0e99", "00.000", "0e" + "9" * 5000, ".0", "0."]
    assert {one(pa.array([text]), EXACT) for text in zeros} == {(0, 0)} == {one(pa.array([0.0]))}
    huge = ["1e" + "9" * 700, "20e" + "9" * 6000]
    assert len({one(pa.array([text]), EXACT) for text in huge}) == 1
    long = ["1" * 6000, "1" * 6000 + ".0", "0" + "1" * 6000, "1" * 6000 + "2"]
    found = [one(pa.array([text]), EXACT) for text in long]
    assert len(set(found[:3])) == 1
    assert found[3] != found[0]
    assert (
        len({one(pa.array([text]), EXACT) for text in ("inf", "nan", "1e", "e1", ".", "+", "0x7")}) == 7
    )


def test_ids_as_written_tell_every_letter_apart():
    texts = ["Ann", "ann", " ann", "7", "07", "7.0", "+7", "-0", "0", "0e1", "0e2", "\uff17", "true"]
    assert len(set(words(pa.array(texts), WRITTEN))) == len(texts)
    for value in (7, 0, -5, 2**53 + 1, 2**63 - 1, -(2**63)):
        assert one(pa.array([value]), WRITTEN) == one(pa.array([str(value)]), WRITTEN)
    assert one(pa.array([2**64 - 1], pa.uint64()), WRITTEN) == one(pa.array([str(2**64 - 1)]), WRITTEN)
    assert words(pa.array(["", None, " "]), WRITTEN)[:2] == [None, None]
    assert len({one(pa.array([cell], pa.binary()), WRITTEN) for cell in (b"\xff", b"\xfe", b"x")}) == 3


def test_the_reading_follows_from_storage_types_alone():
    assert reading_of("alike", [pa.int64(), pa.string()]) == EXACT
    assert reading_of("alike", [pa.int64(), pa.float64()]) == ROUNDED
    assert reading_of("alike", [CELLS]) == ROUNDED
    assert reading_of("as-written", [pa.int64(), pa.dictionary(pa.int8(), pa.string())]) == WRITTEN
    for kind in (pa.float64(), CELLS, pa.decimal128(5), pa.bool_()):
        with pytest.raises(InvalidInput, match="ids='as-written': needs ids that are stored as text"):
            reading_of("as-written", [pa.string(), kind])


def test_different_persons_stay_apart():
    arrays = (
        pa.array([1, 2, 2**40]),
        pa.array(["a", "b", "a1", "1a", "nan", "null", "-"]),
        pa.array([1.5]),
    )
    for reading in (EXACT, ROUNDED):
        found = [word for array in arrays for word in words(array, reading)]
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
    for reading in (EXACT, ROUNDED, WRITTEN):
        together = words(pa.array(cells), reading)
        assert together == [one(pa.array([cell], pa.binary()), reading) for cell in cells]
        assert (together[1] == together[8]) is (reading is not WRITTEN)
    numbers = [1.0, np.inf, np.nan, -0.0, -np.inf]
    assert words(pa.array(numbers)) == [one(pa.array([number])) for number in numbers]


def test_dates_and_objects_are_the_text_they_print():
    day = dt.date(2024, 5, 1)
    name = uuid.UUID(int=5)
    assert one(id_column(pd.Series([name]))) == one(pa.array([str(name).upper()]))
    assert one(id_column(pd.Series([day]))) == one(pa.array([str(day)]))


def test_objects_that_print_their_place_in_memory_split_no_person():
    """psycopg2 hands out bytes as memory views, each of which prints another address."""
    views = pd.Series([memoryview(b"ann"), memoryview(b"ann"), memoryview(b"bob")], dtype=object)
    first, again, other = words(id_column(views))
    assert first == again == one(id_column(pd.Series([b"ann"], dtype=object)))
    assert other != first
    plain = pd.Series([object(), [object()], Plain()], dtype=object)
    assert words(id_column(plain)) == [None, None, None]


class Plain:
    pass


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
        pa.decimal128(25, 3),
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
        pa.binary(),
    ):
        assert not is_id_type(kind), kind
