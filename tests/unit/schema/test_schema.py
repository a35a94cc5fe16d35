"""Schemas as values: rules, defaults, expansion, digest."""

import math
import sys

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput, Unsupported
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Pattern, Schema
from support.data import BOOLEAN, CATEGORY, INTEGER, NUMBER, table


def number(**fields):
    return Column(**({"name": "a", "kind": Kind.NUMBER, "lower": 0, "upper": 1} | fields))


BAD_COLUMNS = [
    ({"name": ""}, "name='': a column needs a name"),
    ({"lower": None}, "lower is absent: a number column needs bounds"),
    ({"upper": None}, "upper is absent"),
    ({"lower": math.nan}, "lower=nan: must be finite"),
    ({"upper": math.inf}, "upper=inf: must be finite"),
    ({"upper": 10**400}, "must be finite"),
    ({"lower": 1, "upper": 1}, "upper=1: must be above lower=1"),
    ({"lower": -1e308, "upper": 1e308}, "upper=1e+308: the distance to lower=-1e+308 overflows float64"),
    ({"kind": Kind.INTEGER, "upper": 1.5}, "upper=1.5: must be a whole number"),
    ({"kind": Kind.INTEGER, "upper": 2**53}, "must be a whole number between -2^53 and 2^53"),
    ({"kind": Kind.INTEGER, "upper": 3, "missing": 1.5}, "missing=1.5: must be a whole number"),
    ({"upper": sys.float_info.max, "missing": "null"}, "missing='null': needs a number above upper="),
    ({"missing": 2}, "missing=2: must lie within the bounds, 0 to 1"),
    ({"missing": "x"}, "missing='x': must be a number from 0 to 1"),
    ({"missing": True}, "missing=True: must be a number from 0 to 1"),
    ({"categories": ("x",)}, "categories: a column of kind number has none"),
    ({"kind": Kind.ITEMS, "lower": None, "upper": None}, "item sets are declared by [items]"),
    ({"kind": Kind.BOOLEAN, "upper": None}, "lower: a column of kind boolean has no bounds"),
    ({"kind": Kind.BOOLEAN, "lower": None}, "upper: a column of kind boolean has no bounds"),
]


@pytest.mark.parametrize(("fields", "message"), BAD_COLUMNS)
def test_numeric_rules(fields, message):
    with pytest.raises(InvalidInput) as caught:
        number(**fields)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (Kind.CATEGORY, {}, "categories are absent"),
        (Kind.CATEGORY, {"categories": ("x", "y", "x")}, "categories: 'x' more than once"),
        (
            Kind.CATEGORY,
            {"categories": ("x",), "missing": "q"},
            "missing='q': must be one of the categories",
        ),
        (
            Kind.CATEGORY,
            {"categories": ("category",), "missing": "category"},
            "is a category and also means",
        ),
        (Kind.BOOLEAN, {"missing": "no"}, "missing='no': a boolean column takes true or false"),
        (Kind.BOOLEAN, {"missing": 1}, "missing=1: a boolean column takes true or false"),
    ],
)
def test_level_rules(kind, fields, message):
    with pytest.raises(InvalidInput) as caught:
        Column(name="a", kind=kind, **fields)
    assert message in str(caught.value)


def test_a_number_that_stays_missing_has_a_value_that_no_other_cell_has():
    kept = number(lower=0, upper=5, missing="null")
    whole = Column(name="b", kind=Kind.INTEGER, lower=0, upper=5, missing="null", cast=True)
    assert kept.keeps_null
    assert kept.fill == np.nextafter(5.0, 9.0)
    assert whole.fill == 6.0
    assert whole.facts()["missing"] == "null"
    table = pa.table({kept.name: [None, 99.0, 2.0], "b": ["?", "7", "3"]})
    schema = Schema(columns=(kept, whole), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    (batch,) = open_source(table, schema).batches(4096)
    assert batch.values.tolist() == [[kept.fill, 6.0], [5.0, 5.0], [2.0, 3.0]]
    with pytest.raises(Unsupported, match="missing='null': LDA needs numbers; give a number"):
        schema.require_filled("LDA")
    assert not Column(name="c", kind=Kind.CATEGORY, categories=("null",), missing="null").keeps_null


def test_missing_values_and_limits():
    assert (NUMBER.fill, number().fill, INTEGER.fill) == (3.0, 0.5, 4.0)
    assert (CATEGORY.fill, CATEGORY.levels, CATEGORY.limits) == (3.0, 4, (0.0, 3.0))
    plain = Column(name="b", kind=Kind.CATEGORY, categories=("x", "y"))
    assert (plain.fill, plain.levels) == (0.0, 2)
    chosen = Column(name="b", kind=Kind.CATEGORY, categories=("x", "y"), missing="y")
    assert (chosen.fill, chosen.levels) == (1.0, 2)
    assert (BOOLEAN.fill, BOOLEAN.levels, Column(name="c", kind=Kind.BOOLEAN).fill) == (1.0, 2, 0.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"columns": ()}, "columns are absent"),
        ({"columns": (NUMBER, NUMBER)}, "columns 'a': declared more than once"),
        ({"items": ItemSpec(upper=3)}, "a table has either columns or item sets"),
        ({"label": "q"}, "label='q': is not a column"),
        ({"rows": 0}, "rows=0: must lie between 1 and max_rows=2147483648"),
        ({"rows": 5, "max_rows": 4}, "rows=5: must lie between 1 and max_rows=4"),
        ({"max_rows": 0}, "max_rows=0: must lie between 1 and 2^31"),
        ({"rows": 5, "neighbours": Neighbours.ADD_REMOVE}, "rows=5: is private under add-remove"),
        ({"unit": Unit.ELEMENT}, "neighbours=replace-one: not legal with unit=element"),
    ],
)
def test_table_rules(fields, message):
    facts = {"columns": (NUMBER,), "unit": Unit.ROW, "neighbours": Neighbours.REPLACE_ONE} | fields
    with pytest.raises(InvalidInput) as caught:
        Schema(**facts)
    assert message in str(caught.value)


def test_every_table_fault_is_said_at_once():
    with pytest.raises(InvalidInput) as caught:
        table(NUMBER, NUMBER, label="q", max_rows=0)
    assert all(word in str(caught.value) for word in ("more than once", "label='q'", "max_rows=0"))


def test_items_need_a_universe():
    for fields in ({"upper": -1}, {"upper": 2**31}, {"lower": 4, "upper": 3}, {"lower": -1, "upper": 3}):
        with pytest.raises(InvalidInput, match="need 0 <= lower <= upper"):
            ItemSpec(**fields)
    with pytest.raises(InvalidInput, match="name the column"):
        ItemSpec(upper=3, column="")
    assert ItemSpec(lower=2, upper=5).width == 4


def test_patterns_expand_in_place_and_take_what_is_left():
    template = number(name="g*")
    schema = table(
        INTEGER, BOOLEAN, patterns=(Pattern(match="g*", template=template, at=1),), label="g2"
    )
    with pytest.raises(InvalidInput, match="number of columns is not known yet"):
        schema.require_closed()
    expanded = schema.expand(["other", "g2", "c", "g1"])
    assert expanded.names == ("i", "g2", "g1", "c")
    assert expanded.label_index == 1
    assert expanded.require_closed() is expanded
    assert expanded.expand(["whatever"]) is expanded
    with pytest.raises(InvalidInput, match=r"match='g\*': matches no column"):
        schema.expand(["other"])
    with pytest.raises(InvalidInput, match="label='g2': is not a column"):
        schema.expand(["g7"])


def test_numeric_schemas():
    schema = Schema.numeric(3, 0, [1, 2, 3], rows=9)
    assert schema.names == ("x0", "x1", "x2")
    assert [column.limits for column in schema.columns] == [(0, 1), (0, 2), (0, 3)]
    assert (schema.row_limit, Schema.numeric(1, 0, 1).row_limit) == (9, 2**31)
    assert schema.label_index is None
    for arguments, message in [
        ((0, 0, 1), "n_columns=0"),
        ((2, [0], 1), "lower=1 values: need one, or one for each of 2 columns"),
        ((2, 0, 1), "names=1: need one for each of 2 columns"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            Schema.numeric(*arguments, names=["only"] if "names" in message else None)


def test_digests_tell_schemas_apart():
    digests = {
        table().digest(),
        table(neighbours=Neighbours.ADD_REMOVE).digest(),
        table(label="b").digest(),
        table(rows=5).digest(),
        table(declared_by="me").digest(),
        Schema.numeric(4, 0, 1).digest(),
        table(NUMBER, patterns=(Pattern(match="g*", template=number(), at=0),)).digest(),
        Schema(items=ItemSpec(upper=5), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE).digest(),
        Schema(
            items=ItemSpec(upper=5, dictionary="d"), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE
        ).digest(),
    }
    assert len(digests) == 9
    assert Schema.numeric(2, 0, 1).digest() == Schema.numeric(2, 0.0, 1.0).digest()


def test_huge_bounds_have_a_digest():
    assert number(lower=-(10**20), upper=10**20, missing=2**60).facts()["missing"] == 2.0**60
    assert len(table(number(upper=10**20)).digest()) == 64
