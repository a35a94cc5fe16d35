"""Bought bounds and levels: what is counted, found, refused, and written into a schema."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.bounds import BoundsConfig
from adumbra.mechanisms.bounds.plan import USUAL
from adumbra.postprocess.found import bounds_of, found_range, grid, one_further
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.schema.table import PersonSpec
from support.components import draft_of

LOUD = {"epsilon": 1000.0, "delta": 1e-6}  # next to no noise
N = 4000
LEVELS = ("a", "b", "absent", "never")
# Cells of these rows hold more than twice what is needed; four or more of them make a doubling.
SURE = {"epsilon": 10.0, "chance": 1e-9, "expected_rows": N}
AGES = 95  # the end of the cell that holds 90


def schema(neighbours=Neighbours.ADD_REMOVE, **changes):
    columns = (
        Column(name="age", kind=Kind.INTEGER, private=True),
        Column(name="income", kind=Kind.NUMBER, private=True),
        Column(name="day", kind=Kind.DATE, private=True),
        Column(name="city", kind=Kind.CATEGORY, categories=LEVELS, private=True),
        Column(name="pain", kind=Kind.ORDINAL, categories=("no", "some", "much"), private=True),
        Column(name="known", kind=Kind.NUMBER, lower=0.0, upper=1.0),
    )
    return Schema(columns=columns, unit=Unit.ROW, neighbours=neighbours, **changes)


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2015-01-01") + rng.integers(0, 900, n)
    return pa.table(
        {
            "age": pa.array(rng.integers(17, 91, n), mask=rng.random(n) < 0.3),
            "income": pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-300.0, 1000.0, n))),
            "day": pa.array(days.astype("datetime64[D]")),
            "city": pa.array(np.array([*LEVELS[:3], "?"])[rng.choice(4, n, p=[0.6, 0.3, 0.0, 0.1])]),
            "pain": pa.array(np.array(["no", "some"])[rng.choice(2, n)]),
            "known": pa.array(rng.random(n)),
        }
    )


def released(out, config=None, table=None, declared=None):
    declared = declared or schema()
    ledger = memory_ledger()
    config = config or BoundsConfig(**SURE)
    ledger.register(Population("p", declared.unit, declared.neighbours, 1e3, config.delta))
    data = rows() if table is None else table
    return ad.release(data, config, schema=declared, ledger=ledger, population="p", out=out)


def test_a_plan_speaks_of_levels_only_where_there_are_some():
    config, whole = BoundsConfig(epsilon=1.0), schema()
    said = "Levels are found among those that the schema lists, and no others."
    assert said in ad.plan(config, whole).notes
    numbers = replace(whole, columns=tuple(one for one in whole.columns if not one.categories))
    assert said not in ad.plan(config, numbers).notes


def test_the_counts_are_those_of_a_naive_loop():
    """Noise far below 1/2: the rounded counts are exact. Missing cells count nowhere."""
    data, declared = rows(), schema()
    draft = draft_of(data, declared, BoundsConfig(**LOUD))
    private = [column for column in declared.columns if column.private]
    wanted = []
    for column in private:
        cells = data[column.name].to_pylist()
        if column.kind.lists_levels:
            wanted += [cells.count(level) for level in column.categories]
            continue
        edges, counts = grid(column, USUAL), {}
        for cell in cells:
            if cell is None or cell != cell:
                continue
            day = isinstance(cell, dt.date)
            value = (cell - dt.date(1970, 1, 1)).days if day else float(cell)
            counts[at] = counts.get(at := int(np.searchsorted(edges, value, "right")) - 1, 0) + 1
        wanted += [counts.get(at, 0) for at in range(len(edges) - 1)]
    assert np.array_equal(np.rint(draft.arrays["counts"]), wanted)
    assert draft.facts["found"]["age"] == {"lower": 0, "upper": 95}  # 80 to 95 are one cell


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_bounds_enclose_the_rows_and_levels_are_those_with_rows(delta):
    found = draft_of(rows(), schema(), BoundsConfig(**SURE, delta=delta)).facts["found"]
    assert found["age"] == {"lower": 0, "upper": AGES}  # a lower bound of 16 is near zero beside it
    assert found["income"] == {"lower": -320.0, "upper": 1024.0}
    assert "2014-03-01" < found["day"]["lower"] <= "2015-01-01"
    assert "2017-06-01" < found["day"]["upper"] < "2018-05-01"  # few rows lie beyond
    assert found["city"] == {"categories": ["a", "b"]}
    assert found["pain"] == {"categories": ["no", "some"]}


def test_nothing_is_found_in_noise(tmp_path):
    empty = rows(n=3)
    made = released(tmp_path / "r", BoundsConfig(epsilon=0.1, chance=1e-9), empty)
    assert set(made.card["facts"]["found"].values()) == {None}
    assert made.data.column("found").to_pylist() == [False] * 5
    assert ad.fill_schema(schema(), made) == schema()


def test_cells_are_exact_binary_numbers_that_grow_by_a_sixteenth():
    edges = grid(Column(name="x", kind=Kind.NUMBER, lower=-3.0, upper=1e6, private=True))
    assert edges[0] == -3.0
    assert edges[-1] == np.nextafter(1e6, np.inf)
    assert np.all(np.diff(edges) > 0)
    assert 0.0 in edges
    assert {16.0, 17.0, 2048.0, 1984.0} <= set(edges)
    above = edges[(edges > 2.0**-19) & (edges < 1e6)]
    assert np.all(np.diff(above) / above[:-1] <= 1 / 16)
    whole = grid(Column(name="x", kind=Kind.INTEGER, private=True))
    assert np.array_equal(whole, np.rint(whole))
    assert set(range(-32, 33)) <= set(whole)
    years = grid(Column(name="x", kind=Kind.DATETIME, private=True))
    assert len(years) - 1 <= 1024
    assert np.all(np.diff(years)[:-1] == years[1] - years[0])
    assert list(grid(Column(name="x", kind=Kind.INTEGER, lower=3, upper=5, private=True))) == [
        3,
        4,
        5,
        6,
    ]


def test_the_grid_is_finer_the_more_rows_there_are():
    told = [
        ad.plan(BoundsConfig(epsilon=1.0, expected_rows=rows), schema()).details["cells_per_doubling"]
        for rows in (1_000, 10_000, 30_000, 10**6)
    ]
    assert told == sorted(told)
    assert told[0] == 1
    assert told[-1] == 16
    assert ad.plan(BoundsConfig(epsilon=1.0), schema()).details["cells_per_doubling"] == USUAL


def test_thin_tails_are_found_by_larger_blocks():
    counts = np.zeros(64)
    counts[20], counts[48:64] = 1000.0, 9.0
    assert found_range(counts, lambda width: 50.0 * width**0.5) == (20, 20)
    assert found_range(counts, lambda width: 25.0 * width**0.5) == (20, 63)
    assert found_range(counts[::-1], lambda width: 25.0 * width**0.5) == (0, 43)
    assert found_range(np.zeros(5), lambda _: 1.0) is None
    assert found_range(np.full(8, 9.0), lambda width: 25.0 * width**0.5) == (0, 7)


def test_on_the_coarsest_grid_bounds_go_one_cell_further():
    edges = np.array([-8.0, -2.0, 0.0, 2.0, 4.0, 8.0])
    assert one_further(edges, (1, 2)) == (0, 3)
    assert one_further(edges, (0, 4)) == (0, 4)
    assert one_further(edges, (2, 3)) == (2, 4)
    assert one_further(edges, (1, 1)) == (0, 1)
    found = draft_of(rows(), schema(), BoundsConfig(epsilon=0.5, chance=1e-9, expected_rows=N)).facts
    assert found["found"]["age"] == {"lower": 0, "upper": 255}  # 64 to 127, and one more


def test_a_bound_is_put_at_zero_if_the_other_is_far():
    column = Column(name="x", kind=Kind.NUMBER, private=True)
    edges = np.array([-8.0, -2.0, -1.0, 1.0, 2.0, 3.0, 8.0])
    assert bounds_of(column, edges, (4, 5)) == (0.0, 8.0)
    assert bounds_of(column, edges, (5, 5)) == (3.0, 8.0)
    assert bounds_of(column, edges, (0, 0)) == (-8.0, 0.0)
    enclosed = Column(name="x", kind=Kind.NUMBER, lower=0.5, upper=9.0, private=True)
    assert bounds_of(enclosed, edges, (4, 5)) == (0.5, 8.0)


@pytest.mark.parametrize(("cell", "wanted"), [(0, (0.0, 1.0)), (9, (8.0, 9.0)), (4, (4.0, 5.0))])
def test_one_value_makes_bounds_that_differ(cell, wanted):
    column = Column(name="x", kind=Kind.INTEGER, lower=0, upper=9, private=True)
    assert bounds_of(column, grid(column), (cell, cell)) == wanted


def test_a_filled_schema_cites_the_release_and_can_be_released(tmp_path):
    made = released(tmp_path / "r")
    filled = ad.fill_schema(schema(), made)
    age, income, day, city, pain, known = filled.columns
    assert not any(column.private for column in filled.columns)
    assert (age.lower, age.upper) == (0, AGES)
    assert day.text(day.limits[0]) <= "2015-01-01"
    assert city.categories == ("a", "b")
    assert city.missing == "category"
    assert pain.missing == "null"
    assert known == schema().columns[-1]
    assert income.source == age.source
    digest = ad.verify(tmp_path / "r").digest[:12]
    assert age.source == f"bought: release {digest}, {made.guarantee.sentence()}"
    assert Schema.parse(filled.to_toml()) == filled
    declared = replace(filled, rows=None)
    ledger = memory_ledger()
    ledger.register(Population("p", declared.unit, declared.neighbours, 9.0, 1e-6))
    config = ad.MomentsConfig(epsilon=1.0, synthetic_rows=50)
    later = ad.release(
        rows(), config, schema=declared, ledger=ledger, population="p", out=tmp_path / "s"
    )
    columns = {one["name"]: one for one in later.card["public_inputs"]["schema"]["columns"]}
    assert columns["age"]["source"] == age.source
    page = (tmp_path / "s" / "card.html").read_text(encoding="utf-8")
    assert page.count(digest) >= 5
    assert "known from" in page


def test_declared_missing_values_and_atoms_stay_inside(tmp_path):
    columns = [replace(one, missing=0) if one.name == "age" else one for one in schema().columns]
    columns = [replace(one, atoms=(-2000.0,)) if one.name == "income" else one for one in columns]
    columns = [replace(one, missing="never") if one.name == "city" else one for one in columns]
    columns = [replace(one, missing="some") if one.name == "pain" else one for one in columns]
    declared = replace(schema(), columns=tuple(columns))
    age, income, _, city, pain, _ = ad.fill_schema(
        declared, released(tmp_path / "r", declared=declared)
    ).columns
    assert (age.lower, age.upper, age.missing) == (0, AGES, 0)
    assert income.lower == -2000.0
    assert city.missing == "category"  # the declared one was not found
    assert pain.missing == "some"  # this one was


def test_other_methods_refuse_private_columns_and_say_the_way():
    other = {"n_components": 2, "epsilon": 1.0}
    for config in (
        ad.MomentsConfig(epsilon=1.0, synthetic_rows=9),
        ad.AnswersConfig(epsilon=1.0),
        ad.RONGaussConfig(**other, synthetic_rows=9),
        ad.PCAConfig(**other, output="sample", synthetic_rows=9),
        ad.TopKConfig(k=1, epsilon=1.0),
    ):
        with pytest.raises(InvalidInput, match=r"'age', private=true: .*adumbra schema fill"):
            ad.plan(config, schema())


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        (replace(schema(), columns=schema().columns[-1:]), InvalidInput, "private: no column asks"),
        (Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=3)),
         InvalidInput, "items: item sets have no bounds"),
        (replace(schema(), unit=Unit.ELEMENT, neighbours=Neighbours.ONE_ELEMENT),
         Unsupported, "unit=element"),
        (replace(schema(), columns=(replace(schema().columns[1], upper=1e300),)),
         InvalidInput, "must lie between -1e60 and 1e60"),  # else numpy warns if some cell is missing
    ],
)  # fmt: skip
def test_what_cannot_be_bought_is_refused_in_the_plan(declared, error, message):
    with pytest.raises(error, match=message):
        ad.plan(BoundsConfig(epsilon=1.0), declared)


def test_levels_need_a_list_and_truths_have_nothing_to_buy():
    with pytest.raises(InvalidInput, match="lists its values, also those of which the frequent ones"):
        Column(name="x", kind=Kind.CATEGORY, private=True)
    with pytest.raises(InvalidInput, match="a boolean column has nothing to buy"):
        Column(name="x", kind=Kind.BOOLEAN, private=True)
    with pytest.raises(InvalidInput, match="private='yes': must be true or false"):
        Column(name="x", kind=Kind.NUMBER, lower=0, upper=1, private="yes")
    with pytest.raises(InvalidInput, match="chance=0.7: must lie between"):
        BoundsConfig(epsilon=1.0, chance=0.7)


def test_a_release_that_does_not_fit_is_refused(tmp_path):
    made = released(tmp_path / "r")
    other = replace(schema(), columns=(Column(name="z", kind=Kind.NUMBER, private=True),))
    with pytest.raises(InvalidInput, match="none of the schema's private columns"):
        ad.fill_schema(other, made)
    other = replace(schema(), columns=(Column(name="age", kind=Kind.NUMBER, private=True),))
    with pytest.raises(InvalidInput, match="'age': is of another kind"):
        ad.fill_schema(other, made)
    columns = tuple(column for column in schema().columns if not column.private)
    ledger = memory_ledger()
    ledger.register(Population("p", Unit.ROW, Neighbours.ADD_REMOVE, 9.0, 1e-6))
    config = ad.MomentsConfig(epsilon=1.0, synthetic_rows=9)
    later = ad.release(rows(), config, schema=replace(schema(), columns=columns), ledger=ledger,
                       population="p", out=tmp_path / "s")  # fmt: skip
    with pytest.raises(InvalidInput, match="release by moments: bounds are bought by"):
        ad.fill_schema(schema(), later)


def test_bounds_that_hide_rows_are_none_for_persons(tmp_path):
    """One person of many rows may have made them; the later card would promise to hide that person."""
    made = released(tmp_path / "r")
    person = PersonSpec(column="who", max_rows=1)
    persons = replace(
        schema(), unit=Unit.PERSON, neighbours=Neighbours.ADD_REMOVE_PERSON, person=person, rows=None
    )
    with pytest.raises(InvalidInput, match="release per row: .*buy it again with unit='person'"):
        ad.fill_schema(persons, made)


def test_an_ordinal_of_one_level_stays_private(tmp_path):
    data = rows()
    data = data.set_column(4, "pain", pa.array(["no"] * N))
    pain = ad.fill_schema(schema(), released(tmp_path / "r", table=data)).columns[4]
    assert pain == schema().columns[4]


def test_the_plan_says_what_it_takes_to_be_found():
    told = ad.plan(BoundsConfig(epsilon=0.01, expected_rows=1000), schema())
    assert told.expected["rows_to_be_found"] > 1000
    assert told.expected["share_to_be_found"] > 1
    assert any("No column can be found" in note for note in told.notes)
    assert any("among those that the schema lists" in note for note in told.notes)
    assert "share_to_be_found" not in ad.plan(BoundsConfig(epsilon=1.0), schema()).expected
