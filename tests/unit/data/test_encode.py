"""Encoding: ranges to the last bit, one-hot groups, labels, norm bound."""

import math
from functools import partial

import numpy as np
import pytest

from adumbra.data.encode import Encoder, scale_number
from adumbra.data.sources import Batch
from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Pattern, Schema
from support.data import BOOLEAN, CATEGORY, INTEGER, MIXED, NUMBER, table

BATCH = Batch(8192, np.array([[-10.0, 0.0, 0.0, 0.0], [10.0, 7.0, 3.0, 1.0], [0.0, 3.5, 1.0, 1.0]]))


def test_layout_of_a_mixed_table():
    encoder = Encoder(table())
    assert encoder.names == ("a", "i", "b=x", "b=y", "b=z w", "b=", "c=false", "c=true")
    assert encoder.numeric == (0, 1)
    assert encoder.groups == (slice(2, 6), slice(6, 8))
    assert (encoder.width, encoder.starts, encoder.places) == (8, (0, 1, 2, 6), (0, 1, 2, 3))
    assert encoder.norm_upper() == math.sqrt(2.5)
    assert Encoder(table(), centred=False).norm_upper() == 2.0
    assert encoder.encode(BATCH).tolist() == [
        [-0.5, -0.5, 1, 0, 0, 0, 1, 0],
        [0.5, 0.5, 0, 0, 0, 1, 0, 1],
        [0.0, 0.0, 0, 1, 0, 0, 0, 1],
    ]
    assert Encoder(table(), centred=False).encode(BATCH)[:, 0].tolist() == [0, 1, 0.5]
    assert encoder.encode(BATCH.slice(1, 2)).tolist() == [[0.5, 0.5, 0, 0, 0, 1, 0, 1]]
    assert BATCH.noise_block == 2


@pytest.mark.parametrize("lower", [-1e300, -3.7, -0.1, 0.0, 1e-300, 7.3, 123456.789])
@pytest.mark.parametrize("width", [1e-3, 0.1, 3.0, 1e6])
def test_scaled_numbers_never_leave_the_range(lower, width):
    upper = lower + width * max(abs(lower), 1.0)
    column = Column(name="a", kind=Kind.NUMBER, lower=lower, upper=upper)
    values = np.clip(lower + (upper - lower) * np.random.default_rng(0).random(1000), lower, upper)
    values[:4] = [lower, upper, np.nextafter(upper, lower), np.nextafter(lower, upper)]
    for centred, low in ((True, -0.5), (False, 0.0)):
        out = np.empty(1000)
        scale_number(column, values, out, centred=centred)
        assert (out[0], out[1]) == (low, low + 1)
        assert np.all((out >= low) & (out <= low + 1))


def test_symmetric_bounds_agree_with_the_general_rule():
    column = Column(name="a", kind=Kind.NUMBER, lower=-3.7, upper=3.7)
    values = np.random.default_rng(1).uniform(-3.7, 3.7, 1000)
    out = np.empty(1000)
    scale_number(column, values, out, centred=True)
    assert np.allclose(out, (values + 3.7) / 7.4 - 0.5, rtol=0, atol=2**-52)
    assert np.all(np.abs(out) <= 0.5)


def test_labels_and_targets():
    by_category = Encoder(table(label="b"))
    assert "b=x" not in by_category.names
    assert by_category.label is CATEGORY
    assert by_category.label_levels == 4
    assert by_category.labels(BATCH).tolist() == [0, 3, 1]
    by_integer = Encoder(table(NUMBER, Column(name="i", kind=Kind.INTEGER, lower=2, upper=5), label="i"))
    batch = Batch(0, np.array([[0.0, 2.0], [0.0, 5.0]]))
    assert by_integer.label_levels == 4
    assert by_integer.labels(batch).tolist() == [0, 3]
    assert by_integer.targets(batch).tolist() == [-1, 1]
    by_number = Encoder(table(label="a"))
    assert by_number.targets(BATCH).tolist() == [-1, 1, 0]
    with pytest.raises(InvalidInput, match="label='a': a number has no classes"):
        by_number.labels(BATCH)
    assert Encoder(table(label="c")).labels(BATCH).tolist() == [0, 1, 1]
    for method in ("labels", "targets"):
        with pytest.raises(InvalidInput, match="label is absent"):
            getattr(Encoder(table()), method)(BATCH)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (table(NUMBER, label="a"), "the label is the only one"),
        (
            Schema(items=ItemSpec(upper=3), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE),
            "item sets are counted, not encoded",
        ),
        (table(*MIXED, patterns=(Pattern(match="x*", template=NUMBER, at=0),)), "not known yet"),
    ],
)
def test_refusals(schema, message):
    with pytest.raises(InvalidInput, match=message):
        Encoder(schema)


def test_memory_order_does_not_change_a_bit():
    values = np.random.default_rng(0).random((50, 2))
    encoder = Encoder(table(NUMBER, INTEGER))
    assert np.array_equal(
        encoder.encode(Batch(0, values)), encoder.encode(Batch(0, np.asfortranarray(values)))
    )
    assert Encoder(table(BOOLEAN)).norm_upper() == 1.0


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("rows", [0, 3, 5_000])
def test_neighbouring_numbers_are_scaled_as_alone(rows, centred):
    rng = np.random.default_rng(rows)
    number = partial(Column, kind=Kind.NUMBER)
    columns = [number(name=f"n{j}", lower=-1.0 - j % 3, upper=1.0 + j % 2) for j in range(40)]
    columns[7] = Column(name="w", kind=Kind.CATEGORY, categories=("x", "y", "z"))
    columns[20] = Column(name="t", kind=Kind.BOOLEAN)
    table = Schema(columns=tuple(columns), label="t", unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    encoder = Encoder(table, centred=centred)
    lower, upper = np.array([column.limits for column in columns]).T
    values = lower + rng.uniform(0.0, 1.0, (rows, len(columns))) * (upper - lower)
    values[:, [7, 20]] = np.rint(values[:, [7, 20]])
    encoded = encoder.encode(Batch(0, values))
    for column, place, start in zip(encoder.features, encoder.places, encoder.starts, strict=True):
        if column.is_numeric:
            alone = np.empty(rows)
            scale_number(column, values[:, place], alone, centred=centred)
            assert np.array_equal(encoded[:, start], alone)
