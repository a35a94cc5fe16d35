"""Rows per person: one row each, by this person's rows alone, whatever the files and the spelling."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adumbra as ad
from adumbra.data import person_sizes
from adumbra.data.person_sizes import PERSON, ROWS, STEPS, level_names, sizes_schema
from adumbra.mechanisms.bounds.filling import persons_within
from adumbra.schema.table import PersonSpec

SCHEMA = ad.Schema(
    columns=(ad.Column(name="x", kind=ad.Kind.NUMBER, lower=0.0, upper=1.0),),
    unit=ad.Unit.PERSON,
    neighbours=ad.Neighbours.ADD_REMOVE_PERSON,
    declared_by="test",
    person=PersonSpec(column="who", max_rows=2),
)


def table(ids):
    return pa.table({"who": pa.array(ids, pa.string()), "x": np.linspace(0.0, 1.0, len(ids))})


def levels(data, schema=SCHEMA):
    """How many persons lie in each cell."""
    found, _ = ad.rows_per_person(data, schema)
    assert found[PERSON].to_pylist() == list(range(len(found)))
    return Counter(found[ROWS].to_pylist())


def cell(count):
    """The cell of a number of rows, by its words."""
    for name in level_names()[:-1]:
        first, _, last = name.partition(" to ")
        if int(first) <= count <= int(last or first):
            return name
    return level_names()[-1]


def test_the_grid_has_a_cell_for_every_number():
    assert level_names()[:4] == ("1", "2", "3 to 4", "5 to 8")
    assert level_names()[-2:] == ("513 to 1024", "more than 1024")
    for count in (1, 2, 3, 4, 5, 8, 9, 1024, 1025, 5000):
        assert levels(table(["a"] * count)) == {cell(count): 1}


def test_ids_are_read_as_a_release_reads_them():
    ids = ["7", "07", " 7.0", "b", "B", None, "", "c"]
    assert levels(table(ids)) == {"3 to 4": 1, "2": 1, "1": 1}
    one = replace(SCHEMA, person=replace(SCHEMA.person, no_person="one-person"))
    assert levels(table(ids), one) == {"3 to 4": 1, "2": 2, "1": 1}
    exact = replace(SCHEMA, person=replace(SCHEMA.person, ids="as-written"))
    assert levels(table(ids), exact) == {"1": 6}


def test_rows_in_many_files_and_pieces_are_counted_together(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 400, 3_000)
    for number, part in enumerate(np.array_split(ids, 3)):
        kind = pa.int64() if number else pa.string()
        who = pa.array(part.tolist() if number else [str(one) for one in part], kind)
        pq.write_table(
            pa.table({"who": who, "x": np.zeros(len(part))}),
            tmp_path / f"{number}.parquet",
            row_group_size=100,
        )
    wanted = Counter(cell(count) for count in Counter(ids.tolist()).values())
    assert levels(tmp_path) == wanted
    merges = []
    right = person_sizes._counted
    monkeypatch.setattr(
        person_sizes, "_counted", lambda parts: (merges.append(len(parts)), right(parts))[1]
    )
    assert levels(tmp_path) == wanted
    assert max(merges) > 1


def test_item_sets_and_no_rows():
    items = ad.Schema(
        unit=ad.Unit.PERSON,
        neighbours=ad.Neighbours.REPLACE_PERSON,
        items=ad.ItemSpec(upper=3),
        person=PersonSpec(column="who", max_rows=2),
    )
    sets = pa.table({"items": pa.array([[1], [], [2, 3]], pa.list_(pa.int64())), "who": ["a", "b", "a"]})
    assert levels(sets, items) == {"2": 1, "1": 1}
    assert levels(table([])) == {}


PERSONS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 12))


@given(PERSONS, st.integers(0, 2000), st.randoms())
def test_a_person_moves_one_row(persons, count, random):
    """Whoever comes with any number of rows, anywhere in the table, adds one row to the counted one."""
    rows = [who for who, many in persons.items() for _ in range(many)]
    with_one = [*rows, *["new"] * count]
    random.shuffle(with_one)
    before, after = levels(table(rows)), levels(table(with_one))
    assert after - before == ({cell(count): 1} if count else {})
    assert before - after == {}


def test_one_person_moves_the_counts_by_what_is_paid_for():
    counting = sizes_schema(SCHEMA)
    assert counting.person.max_rows == 1
    assert (counting.unit, counting.neighbours) == (SCHEMA.unit, SCHEMA.neighbours)
    planned = ad.plan(ad.BoundsConfig(epsilon=1.0), counting)
    assert planned.noise[0].sensitivity == pytest.approx(1.0)
    exchanged = sizes_schema(replace(SCHEMA, neighbours=ad.Neighbours.REPLACE_PERSON))
    assert ad.plan(ad.BoundsConfig(epsilon=1.0), exchanged).noise[0].sensitivity == pytest.approx(2**0.5)


def test_persons_above_the_limit_are_cut_by_the_order_of_ids():
    """One person more, wherever it comes, moves at most one other out."""
    limited = replace(SCHEMA, max_rows=40)
    ids = [f"p{who}" for who in range(120) for _ in range(1 + who % 9)]
    before = levels(table(ids), limited)
    assert sum(before.values()) == 40
    for who in range(60):
        after = levels(table([f"new{who}", *ids]), limited)
        assert sum(((after - before) + (before - after)).values()) <= 2


def test_empty_cells_add_no_persons():
    """Noise below zero is not cut before it is summed; the curve never falls and ends at one."""
    made = SimpleNamespace(
        schema=sizes_schema(SCHEMA),
        card={"method": {"name": "bounds"}},
        arrays={"counts": np.array([90.0, -20.0, 30.0, *[-5.0, 5.0] * 4, 0.0])},
    )
    found = tuple(persons_within(made).values())
    assert found[:3] == (0.9, 0.9, 1.0)
    assert set(found[3:]) == {1.0}


def test_a_table_of_rows_is_refused():
    rows = ad.Schema(
        columns=SCHEMA.columns, unit=ad.Unit.ROW, neighbours=ad.Neighbours.ADD_REMOVE, declared_by="test"
    )
    with pytest.raises(ad.InvalidInput, match="person is absent"):
        ad.rows_per_person(table(["a"]), rows)


def test_it_is_bought_from_the_account_of_the_same_people(tmp_path):
    ids = [str(who) for who in range(2_000) for _ in range(1 + who % 8)]
    counted, counting = ad.rows_per_person(table(ids), SCHEMA)
    with ad.create_ledger(tmp_path / "l.db") as ledger:
        ledger.register(ad.Population("people", SCHEMA.unit, SCHEMA.neighbours, 4.0, 1e-6))
        made = ad.release(
            counted,
            ad.BoundsConfig(epsilon=0.5),
            schema=counting,
            ledger=ledger,
            population="people",
            out=tmp_path / "look",
        )
        assert ledger.quote("people", made.guarantee)[0].left < 4.0
    found = ad.persons_within(made)
    assert tuple(found) == STEPS
    exact = {1: 0.125, 2: 0.25, 4: 0.5, 8: 1.0, 1024: 1.0}
    for most, part in exact.items():
        assert found[most] == pytest.approx(part, abs=0.1)  # noise of a cell: 27 persons of 2,000
    other = ad.load(tmp_path / "look")
    assert ad.persons_within(other) == found
    with pytest.raises(ad.InvalidInput, match="holds no rows per person"):
        ad.persons_within(replace(other, card={**other.card, "method": {"name": "moments"}}))
