"""Every synthetic row keeps the rules, whatever was drawn; derived columns are what they say."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.mechanisms.moments import MomentsConfig
from adumbra.postprocess.decode import column_array
from adumbra.postprocess.rules import broken_rows, finish
from adumbra.relations import Neighbours, Unit
from adumbra.schema.orders import Order
from adumbra.schema.row_rules import Derived, Rule
from adumbra.schema.schema import Column, Kind, Schema
from support.moments import mixed_schema, mixed_table, run

COLUMNS = (
    Column(name="a", kind=Kind.INTEGER, lower=0, upper=6),
    Column(name="b", kind=Kind.NUMBER, lower=-1.0, upper=3.0, missing="null"),
    Column(name="c", kind=Kind.CATEGORY, categories=("x", "y", "z"), missing="category"),
    Column(name="d", kind=Kind.BOOLEAN),
    Column(name="e", kind=Kind.INTEGER, lower=2, upper=9, missing="null"),
)
CONDITIONS = {
    "a": [3, "<2", ">=4", "1..3", [0, 6], {"not": "2..5"}, "!=3"],
    "b": ["missing", "<0.5", {"not": "missing"}, ["missing", ">1"], "<= -0.5"],
    "c": ["x", ["x", "missing"], {"not": "y"}, "missing"],
    "d": [True, False],
    "e": ["missing", ">5", "2..4", {"not": [3, "missing"]}],
}


def meets(value, condition):
    """A condition by the words of the documentation, with no use of the product's own reading."""
    if isinstance(condition, dict):
        return not meets(value, condition["not"])
    if isinstance(condition, list):
        return any(meets(value, one) for one in condition)
    if condition == "missing":
        return value is None
    if value is None or isinstance(value, str | bool):
        return value is condition if isinstance(value, bool) else value == condition
    if isinstance(condition, str) and ".." in condition:
        low, high = map(float, condition.split(".."))
        return low <= value <= high
    for sign in ("<=", ">=", "!=", "<", ">"):
        if isinstance(condition, str) and condition.startswith(sign):
            limit = float(condition[len(sign) :])
            return {
                "<=": value <= limit,
                ">=": value >= limit,
                "!=": value != limit,
                "<": value < limit,
                ">": value > limit,
            }[sign]
    return value == condition


def keeps(row, rule):
    facts = rule.facts()
    if "never" in facts:
        return not all(meets(row[name], one) for name, one in facts["never"].items())
    bound = all(meets(row[name], one) for name, one in facts["when"].items())
    return not bound or all(meets(row[name], one) for name, one in facts["then"].items())


def table_of(schema, rows, seed):
    rng = np.random.default_rng(seed)
    drawn = {}
    for column in schema.columns:
        low, high = column.limits
        values = rng.uniform(low - 0.4, high + 0.4, rows).clip(low, high)
        values = values if column.kind is Kind.NUMBER else np.rint(values)
        if column.keeps_null:
            values = np.where(rng.random(rows) < 0.3, column.fill, values)
        drawn[column.name] = column_array(column, values)
    return pa.table(drawn)


@st.composite
def rules(draw):
    def some(names, most):
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True))
        return {name: draw(st.sampled_from(CONDITIONS[name])) for name in chosen}

    if draw(st.booleans()):
        return Rule.of({"never": some(list("abcde"), 3)})
    when = some(list("abcde"), 2)
    return Rule.of({"when": when, "then": some([n for n in "abcde" if n not in when], 2)})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(rules(), min_size=1, max_size=5),
    st.booleans(),
    st.integers(0, 40),
    st.integers(0, 9),
)
def test_no_row_breaks_a_rule_whatever_was_drawn(declared, is_ordered, rows, seed):
    orders = (Order(lower="a", upper="e"),) if is_ordered else ()
    try:
        schema = Schema(
            columns=COLUMNS,
            unit=Unit.ROW,
            neighbours=Neighbours.REPLACE_ONE,
            rules=tuple(declared),
            constraints=orders,
        )
    except ValueError as problem:
        assert "no row" in str(problem)  # noqa: PT017 - the only fault that these can have
        return
    drawn = table_of(schema, rows, seed)
    made = finish(schema, drawn, seed).table
    assert made.schema == drawn.schema
    assert broken_rows(schema, made) == 0
    for row in made.to_pylist():
        assert all(keeps(row, rule) for rule in declared), row
        for column in COLUMNS:
            if column.is_numeric and row[column.name] is not None:
                assert column.lower <= row[column.name] <= column.upper
        if is_ordered and row["e"] is not None:
            assert row["a"] <= row["e"]


def test_broken_rows_are_counted():
    schema = replace(mixed_schema(), rules=(Rule.of({"never": {"smoker": True, "job": "x"}}),))
    table = pa.table(
        {"age": [1, 2], "income": [0.0, 0.0], "smoker": [True, False], "region": ["a", "a"]}
        | {"job": pa.array(["x", "x"]).dictionary_encode(), "risk": ["low", "low"]}
    )
    wide = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array(["x", "y", "z"]))
    table = table.set_column(4, "job", wide)
    assert broken_rows(schema, table) == 1
    assert broken_rows(mixed_schema(), table) == 0


def test_an_exchange_leaves_every_marginal_alone():
    rng = np.random.default_rng(3)
    age = rng.integers(0, 7, 5000)
    income = np.where(rng.random(5000) < 2 / 7, COLUMNS[1].fill, rng.uniform(-1, 3, 5000))
    schema = Schema(
        columns=COLUMNS[:2],
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
        rules=(Rule.of({"when": {"a": "<2"}, "then": {"b": "missing"}}),),
    )
    drawn = pa.table({"a": age, "b": column_array(COLUMNS[1], income)})
    made = finish(schema, drawn, 0)
    wanted = np.count_nonzero(age < 2) - drawn["b"].null_count  # rows without a partner to give to
    assert made.table["b"].null_count == drawn["b"].null_count + max(wanted, 0)
    assert made.shift.columns["b"] == pytest.approx(max(wanted, 0) / 5000, abs=1e-12)
    assert 0.2 < made.shift.rows < 0.6  # two rows for each one that was wrong
    assert made.table["a"].equals(drawn["a"])


def test_derived_columns_are_what_their_words_say():
    schema = Schema(
        columns=COLUMNS,
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
        derived=(
            Derived.read({"name": "m", "map": "c", "values": {"first": ["x", "missing"], "last": "z"}}),
            Derived.read(
                {"name": "w", "map": "a", "kind": "integer", "values": {"-7": "<3", "12": "4..6"}}
            ),
            Derived.read({"name": "cut", "cut": "b", "at": [0, 1.5]}),
            Derived.read({"name": "named", "cut": "e", "at": [5], "labels": ["low", "high"]}),
            Derived.read({"name": "s", "sum": ["a", "e"], "times": [2, -1]}),
            Derived.read({"name": "f", "sum": ["a", "b"]}),
        ),
    )
    made = finish(schema, table_of(schema, 400, 1), 0).table
    assert made.column_names == ["a", "b", "c", "d", "e", "m", "w", "cut", "named", "s", "f"]
    assert [str(made.schema.field(n).type) for n in ("w", "cut", "s", "f")] == ["int64"] * 3 + ["double"]
    for row in made.to_pylist():
        assert row["m"] == {"x": "first", None: "first", "z": "last"}.get(row["c"])
        assert row["w"] == (-7 if row["a"] < 3 else 12 if row["a"] >= 4 else None)
        b = row["b"]
        assert row["cut"] == (None if b is None else 0 if b < 0 else 1 if b < 1.5 else 2)
        assert row["named"] == (None if row["e"] is None else "low" if row["e"] < 5 else "high")
        assert row["s"] == (None if row["e"] is None else 2 * row["a"] - row["e"])
        assert row["f"] is None if b is None else math.isclose(row["f"], row["a"] + b)


def test_a_release_keeps_its_rules_and_says_what_they_moved():
    schema = replace(
        mixed_schema(),
        rules=(Rule.of({"when": {"age": "<40"}, "then": {"income": 0, "region": ["a", "b"]}}),),
        derived=(Derived.read({"name": "decade", "cut": "age", "at": list(range(10, 100, 10))}),),
    )
    bare = run(mixed_table(), mixed_schema(), MomentsConfig(epsilon=2.0))
    draft = run(mixed_table(), schema, MomentsConfig(epsilon=2.0))
    table = draft.tables["data"]
    assert broken_rows(schema, bare.tables["data"]) > 0
    assert broken_rows(schema, table) == 0
    assert table["decade"].to_pylist() == [age // 10 for age in table["age"].to_pylist()]
    assert table["age"].equals(bare.tables["data"]["age"])  # `when` columns stay
    for name, values in bare.arrays.items():
        assert np.array_equal(values, draft.arrays[name])  # nothing else was measured
    assert 0 < draft.facts["rows_changed_by_rules"] < 1
    assert set(draft.facts["shift_by_rules"]) <= {"income", "region"}
    assert "shift_by_rules" not in bare.facts
