"""Declared constraints: refused where they cannot hold, kept in every synthetic row."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.encode import Encoder
from adumbra.errors import InvalidInput, SchemaError
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.postprocess.decode import decode_rows, keep_orders
from adumbra.relations import Neighbours, Unit
from adumbra.schema.orders import Order
from adumbra.schema.schema import Column, Kind, Schema
from support.moments import run

ROW = {"unit": Unit.ROW, "neighbours": Neighbours.REPLACE_ONE}
TEXT = """format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"
label = "y"

[[columns]]
name = "a"
kind = "integer"
lower = 0
upper = 9

[[columns]]
name = "b"
kind = "number"
lower = 5.5
upper = 20.5

[[columns]]
name = "c"
kind = "boolean"

[[columns]]
name = "y"
kind = "integer"
lower = 0
upper = 1

"""


def constraint(lower, upper):
    return f'[[constraints]]\nlower = "{lower}"\nupper = "{upper}"\n'


def test_a_schema_reads_and_writes_its_constraints():
    schema = Schema.parse(TEXT + constraint("a", "b"))
    assert schema.constraints == (Order(lower="a", upper="b"),)
    assert Schema.parse(schema.to_toml()) == schema
    assert schema.facts()["constraints"] == [{"lower": "a", "upper": "b"}]
    assert schema.digest() != Schema.parse(TEXT).digest()
    assert "constraints" not in Schema.parse(TEXT).facts()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (constraint("a", "z"), "schema:30: constraint 'a' <= 'z': both must be declared columns"),
        (constraint("a", "c"), "both must be numbers, or both dates"),
        (constraint("a", "y"), "the label is drawn first"),
        (constraint("a", "b") + constraint("b", "a"), "closes a circle"),
        (constraint("a", "a"), "closes a circle"),
        ("[constraints]\nlower = 1\n", "constraints: must be tables"),
        ('[[constraints]]\nlower = "a"\n', "upper is absent"),
        ('[[constraints]]\nlower = "a"\nupper = "b"\nby = 1\n', "by: is not a field"),
    ],
)
def test_wrong_constraints_are_refused_with_their_line(wrong, message):
    with pytest.raises(SchemaError, match=message):
        Schema.parse(TEXT + wrong)


def test_bounds_must_allow_the_constraint():
    columns = (
        Column(name="a", kind=Kind.NUMBER, lower=5.0, upper=9.0),
        Column(name="b", kind=Kind.NUMBER, lower=0.0, upper=4.0),
    )
    with pytest.raises(InvalidInput, match="the bounds allow no such row"):
        Schema(columns=columns, constraints=(Order(lower="a", upper="b"),), **ROW)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_chains_are_kept_within_bounds_and_types(data):
    width = data.draw(st.integers(2, 5))
    columns = []
    for i in range(width):
        lower = data.draw(st.integers(-20, 0))
        upper = data.draw(st.integers(1, 20))
        kind = data.draw(st.sampled_from([Kind.NUMBER, Kind.INTEGER]))
        columns.append(Column(name=f"x{i}", kind=kind, lower=lower, upper=upper))
    orders = tuple(Order(lower=f"x{i}", upper=f"x{i + 1}") for i in range(width - 1))
    schema = Schema(columns=tuple(columns), constraints=orders, **ROW)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    numbers = {}
    for column in columns:
        drawn = rng.uniform(*column.limits, 200)
        numbers[column.name] = np.rint(drawn) if column.kind is Kind.INTEGER else drawn
    keep_orders(schema, numbers)
    for order in orders:
        assert np.all(numbers[order.lower] <= numbers[order.upper])
    for column in columns:
        values = numbers[column.name]
        assert column.limits[0] <= values.min()
        assert values.max() <= column.limits[1]
        assert column.kind is Kind.NUMBER or np.array_equal(values, np.rint(values))


def test_synthetic_rows_of_both_decoders_keep_the_constraint():
    schema = Schema.parse(TEXT + constraint("a", "b"))
    rng = np.random.default_rng(0)
    encoder = Encoder(schema)
    rows = rng.uniform(-0.5, 0.5, (500, encoder.width))
    table = decode_rows(encoder, rows)
    assert np.all(table["a"].to_numpy() <= table["b"].to_numpy())
    real = pa.table(
        {
            "a": rng.integers(0, 10, 400),
            "b": rng.uniform(9.0, 20.0, 400),
            "c": rng.random(400) < 0.5,
            "y": rng.integers(0, 2, 400),
        }
    )
    made = run(real, schema, MomentsConfig(epsilon=0.2)).tables["data"]
    assert np.all(made["a"].to_numpy() <= made["b"].to_numpy())
