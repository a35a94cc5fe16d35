"""Decoding is total on floats and gives the schema's own types."""

import math

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data.encode import Encoder
from adumbra.errors import InvalidInput
from adumbra.postprocess.decode import column_array, decode_rows, table_schema
from support.data import BOOLEAN, CATEGORY, INTEGER, NUMBER, table


def test_types_and_values():
    encoder = Encoder(table())
    rows = np.array(
        [
            [0.0, 0.07, 0.1, 0.9, 0.2, 0.3, 5.0, 4.0],
            [9.0, -9.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0],
            [math.nan, math.inf, math.nan, math.nan, 0.0, -1.0, math.nan, math.nan],
        ]
    )
    decoded = decode_rows(encoder, rows)
    assert decoded.schema == table_schema(encoder)
    assert decoded.schema.types == [
        pa.float64(),
        pa.int64(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.bool_(),
    ]
    assert decoded.to_pydict() == {
        "a": [0.0, 10.0, 3.0],
        "i": [4, 0, 7],
        "b": ["y", None, "z w"],
        "c": [False, True, False],
    }


def test_uncentred_rows():
    decoded = decode_rows(Encoder(table(NUMBER, INTEGER), centred=False), np.array([[0.25, 1.0]]))
    assert decoded.to_pydict() == {"a": [-5.0], "i": [7]}


@pytest.mark.parametrize(
    ("label", "given", "expected"),
    [
        ("b", {"labels": np.array([0, 3, 9, -2])}, ["x", None, None, "x"]),
        ("i", {"labels": np.array([0, 3, 9, -2])}, [0, 3, 7, 0]),
        ("c", {"labels": np.array([0, 1, 9, -2])}, [False, True, True, False]),
        ("a", {"targets": np.array([-1.0, 0.5, 9.0, math.nan])}, [-10.0, 5.0, 10.0, 3.0]),
        ("b", {"targets": np.array([-1.0, 1.0, 9.0, -0.2])}, ["x", None, None, "y"]),
    ],
)
def test_labels_stand_in_their_place(label, given, expected):
    encoder = Encoder(table(label=label))
    rows = np.zeros((4, encoder.width))
    decoded = decode_rows(encoder, rows, **given)
    assert decoded.column_names == ["a", "i", "b", "c"]
    assert decoded[label].to_pylist() == expected
    without = decode_rows(encoder, rows)
    assert without.column_names == [name for name in "aibc" if name != label]


def test_single_columns_in_their_storage_types():
    codes = np.array([0.0, 1.0])
    assert column_array(NUMBER, codes).equals(pa.array([0.0, 1.0]))
    assert column_array(INTEGER, codes).equals(pa.array([0, 1]))
    assert column_array(BOOLEAN, codes).to_pylist() == [False, True]
    assert column_array(CATEGORY, np.array([2.0, 3.0])).to_pylist() == ["z w", None]


def test_refusals():
    encoder = Encoder(table())
    for rows in (np.zeros((2, 3)), np.zeros(8)):
        with pytest.raises(InvalidInput, match="need 8 columns"):
            decode_rows(encoder, rows)
    with pytest.raises(InvalidInput, match="declares no label"):
        decode_rows(encoder, np.zeros((1, 8)), labels=np.array([0]))
