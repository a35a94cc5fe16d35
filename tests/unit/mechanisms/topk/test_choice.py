"""Which algorithm `auto` is: by a public rule of epsilon, k and the number of rows."""

import dataclasses

import pytest

from adumbra.errors import InvalidInput
from adumbra.mechanisms.topk import Algorithm, TopKConfig
from adumbra.mechanisms.topk.choice import FEW, FEW_TRUTHS, NEAR, SPARSE, WIDE, settled_config
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, PersonSpec, Schema
from adumbra.workflow import plan

SETS = Schema(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=ItemSpec(upper=499), rows=1000)
PRIVATE = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=499))


def chosen(schema, **options):
    return settled_config(TopKConfig(**{"epsilon": 1.0, "delta": 0.0, "k": 5, **options}), schema).chosen


@pytest.mark.parametrize(
    ("delta", "few", "many"),
    [(0.0, Algorithm.JOINT, Algorithm.TPS_REFINE), (1e-6, Algorithm.GUMBEL, Algorithm.FREFIRST)],
)
def test_few_columns_of_many_rows_are_selected_and_many_are_counted(delta, few, many):
    edge = int((1000 / FEW) ** 0.5)
    assert chosen(SETS, delta=delta, k=edge) is few
    assert chosen(SETS, delta=delta, k=edge + 1) is many
    assert chosen(SETS, delta=delta, k=edge, epsilon=0.5) is many
    assert chosen(PRIVATE, delta=delta, k=1) is many  # no number of rows is known
    assert chosen(PRIVATE, delta=delta, k=edge, expected_rows=1000) is few
    assert chosen(PRIVATE, delta=delta, k=edge, expected_rows=100) is many


@pytest.mark.parametrize(
    ("relation", "moved"), [(Neighbours.ADD_REMOVE, 1.0), (Neighbours.REPLACE_ONE, 2.0)]
)
def test_one_count_is_made_where_epsilon_n_is_of_the_order_of_the_columns(relation, moved):
    schema = dataclasses.replace(PRIVATE, neighbours=relation)
    least, most = moved * (500 / 10_000) ** 2 / WIDE, moved * 500 / 10_000 / NEAR
    crowd = {"k": 100, "expected_rows": 10_000}
    for delta in (0.0, 1e-6):
        assert chosen(schema, epsilon=least * 1.01, delta=delta, **crowd) is Algorithm.FREFIRST
        assert chosen(schema, epsilon=most * 0.99, delta=delta, **crowd) is Algorithm.FREFIRST
    assert chosen(schema, epsilon=least * 0.99, **crowd) is Algorithm.TPS_REFINE
    assert chosen(schema, epsilon=most * 1.01, **crowd) is Algorithm.TPS_REFINE
    as_wide = int(500 / SPARSE)  # rows that are few for so many columns
    assert chosen(schema, k=100, epsilon=1.0, expected_rows=as_wide) is Algorithm.TPS_REFINE
    words = plan(TopKConfig(epsilon=most * 0.99, delta=0.0, **crowd), schema)
    assert words.method == "top-k frefirst"
    assert words.notes[0].startswith("auto is frefirst here, as epsilon times the rows is of the order")


def test_a_selection_pays_earlier_in_a_table_of_truths():
    columns = tuple(Column(name=f"v{j}", kind=Kind.BOOLEAN) for j in range(60))
    truths = Schema(unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, columns=columns, rows=1000)
    edge = int((1000 / FEW_TRUTHS) ** 0.5)
    assert chosen(truths, k=edge) is Algorithm.JOINT
    assert chosen(truths, k=edge + 1) is not Algorithm.JOINT
    planned = plan(TopKConfig(k=2, epsilon=1.0, delta=0.0), truths)
    assert "epsilon times the rows is at least 4 k^2" in planned.notes[0]


def test_the_rows_of_a_person_count_once():
    person = PersonSpec(column="who", max_rows=10)
    replaced = {"unit": Unit.PERSON, "neighbours": Neighbours.ADD_REMOVE_PERSON, "person": person}
    persons = dataclasses.replace(PRIVATE, **replaced)
    assert chosen(PRIVATE, k=5, expected_rows=1000) is Algorithm.JOINT
    assert chosen(persons, k=5, expected_rows=1000) is Algorithm.TPS_REFINE


@pytest.mark.parametrize("asked", [{"all_counts": True}, {"length": 3}, {"max_length": 9}])
def test_whoever_asks_for_counts_gets_them(asked):
    assert chosen(SETS, k=1, **asked) is Algorithm.TPS_REFINE
    with pytest.raises(InvalidInput, match="expected_rows=9: has no effect with all_counts, length"):
        plan(TopKConfig(k=1, epsilon=1.0, delta=0.0, expected_rows=9, **asked), PRIVATE)


def test_the_plan_says_what_auto_is_and_how_to_have_counts():
    planned = plan(TopKConfig(k=2, epsilon=1.0, delta=0.0), SETS)
    assert planned.method == "top-k joint"
    assert planned.notes[0].startswith(
        "auto is joint here, as epsilon times the rows is at least 18 k^2"
    )
    assert "algorithm=tps-refine has counts" in planned.notes[0]
    named = plan(TopKConfig(k=2, epsilon=1.0, delta=0.0, algorithm="joint"), SETS)
    assert not any("auto" in note for note in named.notes)
    guessed = plan(TopKConfig(k=2, epsilon=1.0, delta=0.0, expected_rows=7), SETS)
    assert any("expected_rows=7 is not used" in note for note in guessed.notes)
