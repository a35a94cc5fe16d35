"""Dates, times, ordered levels and atoms: what may be declared, and what it means."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from adumbra.errors import InvalidInput, SchemaError, Unsupported
from adumbra.postprocess.decode import arrow_type, column_array
from adumbra.postprocess.derived import derived_array
from adumbra.postprocess.moments.design import number_edges, with_atoms
from adumbra.postprocess.rules import code_values
from adumbra.relations import Neighbours, Unit
from adumbra.schema.conditions import compile_condition, read_condition
from adumbra.schema.facts import schema_of
from adumbra.schema.row_rules import Derived
from adumbra.schema.schema import FIRST_FORMAT, FORMAT, Column, Kind, Schema
from adumbra.schema.times import instant_of, instant_text

TEXT = """format = "adumbra-schema/2"
[table]
unit = "row"
neighbours = "replace-one"
[[columns]]
name = "day"
kind = "date"
lower = 2020-01-01
upper = "2024-12-31"
missing = "null"
[[columns]]
name = "seen"
kind = "datetime"
lower = 2020-01-01T00:00:00
upper = "2024-12-31T23:59:59.5+01:00"
atoms = ["2022-01-01"]
[[columns]]
name = "pain"
kind = "ordinal"
categories = ["none", "mild", "<mild", "worst"]
missing = "mild"
[[columns]]
name = "pay"
kind = "number"
lower = -10
upper = 10
atoms = [2.5, 0]
"""
DAY = Column(name="day", kind=Kind.DATE, lower="2020-01-01", upper=dt.date(2024, 12, 31))
RANK = Column(name="rank", kind=Kind.ORDINAL, categories=("low", "mid", "high"), missing="null")


def test_files_cards_and_python_say_the_same():
    schema = Schema.parse(TEXT)
    day, seen, pain, pay = schema.columns
    assert day.limits == (18262.0, 20088.0)
    assert seen.limits == (1577836800e6, 1735685999.5e6)
    assert seen.atoms == (1640995200 * 10**6,)
    assert pain.limits == (0.0, 3.0)
    assert pay.atoms == (0, 2.5)
    assert [c.fill for c in schema.columns] == [20089.0, (seen.limits[0] + seen.limits[1]) / 2, 1, 0]
    assert schema.format == FORMAT
    assert schema == Schema.parse(schema.to_toml()) == schema_of(schema.facts())
    assert schema.facts()["columns"][0]["lower"] == "2020-01-01"
    with pytest.raises(SchemaError, match="kind='date': needs format"):
        Schema.parse(TEXT.replace("schema/2", "schema/1"))


def test_older_schemas_keep_their_format():
    plain = Column(name="a", kind=Kind.NUMBER, lower=0, upper=1)
    schema = Schema(columns=(plain,), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    assert schema.format == FIRST_FORMAT
    assert "atoms" not in plain.facts()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lower = 2020-01-01\n", "lower = 2025-01-01\n", "upper=2024-12-31: must be above"),
        ("lower = 2020-01-01\n", "lower = 3\n", "lower='3': must be a date such as 2020-01-31"),
        ("lower = 2020-01-01\n", 'lower = "2020-02-30"\n', "must be a date such as"),
        ("lower = 2020-01-01\n", 'lower = "TODO"\n', "lower='TODO': declare the lowest"),
        ("lower = 2020-01-01\n", "", "lower is absent: a date column needs bounds"),
        ('missing = "null"', "missing = 2019-12-31", "missing=2019-12-31: must lie within the bounds"),
        ("lower = 2020-01-01T00:00:00", "lower = 1500-01-01T00:00:00", "must lie between 1684-07-29"),
        ('atoms = ["2022-01-01"]', "atoms = [3]", "must be a list of values of the column"),
        ('missing = "mild"', 'missing = "category"', "must be one of the levels, or 'null'"),
        ('missing = "mild"', "atoms = [1]", "atoms: a column of kind ordinal has none"),
        ('["none", "mild", "<mild", "worst"]', '["mild"]', "two levels or more"),
        ("atoms = [2.5, 0]", "atoms = [11]", "atoms, 11: must lie within the bounds, -10 to 10"),
        ("atoms = [2.5, 0]", "atoms = [1, 1]", "list each value once"),
        ("atoms = [2.5, 0]", 'atoms = ["x"]', "must be a list of values of the column"),
        ("atoms = [2.5, 0]", "atoms = 3", "must be a list of values of the column"),
    ],
)  # fmt: skip
def test_faults_name_their_line(old, new, words):
    assert old in TEXT
    with pytest.raises(SchemaError) as caught:
        Schema.parse(TEXT.replace(old, new))
    assert words in str(caught.value)


def test_python_refuses_what_is_no_date():
    with pytest.raises(InvalidInput, match="must be a date such as"):
        Column(name="d", kind=Kind.DATE, lower="soon", upper="2020-01-01")
    with pytest.raises(InvalidInput, match="must be a whole number in an integer column"):
        Column(name="d", kind=Kind.INTEGER, lower=0, upper=9, missing=1.5)


@pytest.mark.parametrize(
    ("text", "date", "datetime"),
    [
        ("1970-01-02", 1, 86_400_000_000),
        ("1969-12-31T23:59:59.999999", -1, -1),
        ("2000-02-29 12:00", 11016, 951825600000000),
        ("2000-02-29T00:30+02:00", 11015, 951777000000000),
        ("0001-01-01", -719162, -62135596800000000),
        ("1900-02-29", None, None),
        ("2020-01-01T24:00", None, None),
        ("2020-1-1", None, None),
        ("2020-01-01\n", 18262, 1577836800000000),
        ("20200101", None, None),
    ],
)
def test_texts_are_read_as_iso_says(text, date, datetime):
    assert (instant_of("date", text), instant_of("datetime", text)) == (date, datetime)
    if datetime is not None:
        assert instant_of("datetime", instant_text("datetime", datetime)) == datetime
        assert instant_of("date", instant_text("date", date)) == date


@pytest.mark.parametrize(
    ("given", "spans"),
    [
        ("2020-01-02", [(18263, 18263)]),
        (dt.date(2020, 1, 2), [(18263, 18263)]),
        ("<2020-01-03", [(18262, 18263)]),
        ("2024-12-30..2030-01-01", [(20087, 20088)]),
        ({"not": ">= 2020-01-02"}, [(18262, 18262)]),
    ],
)
def test_conditions_on_dates(given, spans):
    assert list(compile_condition(read_condition(given), DAY).spans) == spans


@pytest.mark.parametrize(
    ("given", "spans", "missing"),
    [
        ("mid", [(1, 1)], False),
        (">low", [(1, 2)], False),
        ("<= mid", [(0, 1)], False),
        ("low..mid", [(0, 1)], False),
        (["high", "missing"], [(2, 2)], True),
        ({"not": "high"}, [(0, 1)], True),
    ],
)
def test_conditions_on_ordered_levels(given, spans, missing):
    found = compile_condition(read_condition(given), RANK)
    assert (list(found.spans), found.missing) == (spans, missing)


@pytest.mark.parametrize(
    ("given", "column"), [(3, DAY), ("soon", DAY), ("<5", DAY), ("tall", RANK), ("<5", RANK), (1, RANK)]
)
def test_conditions_that_fit_no_value_are_refused(given, column):
    with pytest.raises(InvalidInput, match=column.name):
        compile_condition(read_condition(given), column)


def test_a_level_that_looks_like_a_comparison_is_a_level():
    pain = Schema.parse(TEXT).columns[2]
    assert compile_condition(read_condition("<mild"), pain).spans == ((2.0, 2.0),)


def test_released_columns_have_their_own_types_and_read_back():
    for column, values in (
        (DAY, np.array([18262.0, 20088.0])),
        (Schema.parse(TEXT).columns[1], np.array([1577836800e6, 1577836800e6 + 1])),
        (RANK, np.array([0.0, 3.0, 2.0])),
    ):
        array = column_array(column, values)
        assert array.type == arrow_type(column)
        assert code_values(column, pa.chunked_array([array])).tolist() == values.tolist()
    assert column_array(RANK, np.array([0.0, 3.0])).to_pylist() == ["low", None]
    assert column_array(DAY, np.array([18262.0])).to_pylist() == [dt.date(2020, 1, 1)]


def test_dates_are_cut_and_taken_from_each_other():
    cut = Derived.read({"name": "y", "cut": "day", "at": ["2021-01-01", dt.date(2022, 1, 1)]})
    cut.check([DAY])
    values = np.array([instant_of("date", t) for t in ("2020-12-31", "2021-01-01", "2022-06-01")], float)
    assert derived_array(cut, [(DAY, values)]).to_pylist() == [0, 1, 2]
    stay = Derived.read({"name": "stay", "sum": ["out", "day"], "times": [1, -1]})
    out = Column(name="out", kind=Kind.DATE, lower="2020-01-01", upper="2025-12-31")
    stay.check([DAY, out])
    assert derived_array(stay, [(out, values + 3), (DAY, values)]).to_pylist() == [3, 3, 3]
    with pytest.raises(InvalidInput, match="gives the days between them"):
        Derived.read({"name": "stay", "sum": ["out", "day"]}).check([DAY, out])
    with pytest.raises(InvalidInput, match="must be a list of dates"):
        Derived.read({"name": "y", "cut": "day", "at": [1, 2]}).check([DAY])


def test_orders_compare_like_with_like():
    text = TEXT + '[[constraints]]\nlower = "day"\nupper = "seen"\n'
    with pytest.raises(SchemaError, match="a date is compared with dates alone"):
        Schema.parse(text)
    with pytest.raises(SchemaError, match="both must be numbers, or both dates"):
        Schema.parse(text.replace('"seen"\n[[', '"seen"\n').replace('upper = "seen"', 'upper = "pain"'))


@pytest.mark.parametrize("is_integer", [False, True])
def test_each_atom_has_a_cell_of_its_own(is_integer):
    atoms = (-10.0, 0.0, 1.0, 7.0, 1000.0)
    plain = number_edges(-10.0, 1000.0, 16, is_integer=is_integer, is_fine=True)
    edges = with_atoms(plain, atoms, -10.0, 1000.0, is_integer=is_integer)
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[-1]) == (plain[0], plain[-1])
    below, above = (-1.0, 1.0) if is_integer else (-1e-9, 1e-9)
    cell = {v: np.searchsorted(edges, v, side="right") for a in atoms for v in (a + below, a, a + above)}
    for atom in atoms:
        assert cell[atom] not in (cell[atom + below], cell[atom + above])
    if is_integer:  # no cell beside an atom without a whole number, where noise alone would be counted
        held = np.ceil(edges[1:]) - np.ceil(edges[:-1])
        for atom in atoms:
            place = int(cell[atom]) - 1
            assert held[place] == 1
            assert (held[max(place - 1, 0) : place + 2] >= 1).all()


def test_methods_without_a_place_for_atoms_refuse_them():
    schema = Schema.parse(TEXT)
    with pytest.raises(Unsupported, match="column 'seen', atoms: RON-Gauss cannot keep them"):
        schema.require_filled("RON-Gauss")
