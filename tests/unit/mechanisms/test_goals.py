"""One set of goals, and a public rule from a goal and a schema to a method, with its reason."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from adumbra.errors import InvalidInput
from adumbra.mechanisms.goals import (
    SERVED_BY,
    Goal,
    best_components,
    choose,
    goal_named,
    learning_options,
    require_serves,
)
from adumbra.mechanisms.methods import METHODS, method_named
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Pattern, Schema

NUMBERS = Schema.numeric(6, 0.0, 1.0, rows=1000)
GROUP = Column(name="g", kind=Kind.CATEGORY, categories=("a", "b", "c"))
MIXED = replace(NUMBERS, columns=(*NUMBERS.columns, GROUP), label="g")
HOLED = replace(MIXED, columns=(replace(NUMBERS.columns[0], missing="null"), GROUP))
CELLS = {"unit": Unit.ELEMENT, "neighbours": Neighbours.ONE_ELEMENT}
TRUTHS = Schema(
    columns=(
        Column(name="a", kind=Kind.BOOLEAN),
        Column(name="b", kind=Kind.INTEGER, lower=0, upper=1),
    ),
    unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE,
)  # fmt: skip
SETS = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=9))


@pytest.mark.parametrize(
    ("schema", "goal", "delta", "method"),
    [
        (NUMBERS, None, None, "moments"),
        (SETS, None, None, "top-k"),
        (NUMBERS, "distances", None, "dppro"),
        (NUMBERS, "distances", 0.0, "jl-laplace"),
        (replace(NUMBERS, **CELLS), "distances", None, "jl-laplace"),
        (replace(NUMBERS, **CELLS), "distances", 1e-6, "dppro"),
        (replace(NUMBERS, **CELLS), "clusters", None, "jl-laplace"),
        (NUMBERS, "clusters", None, "ron-gauss"),
        (MIXED, "clusters", None, "moments"),
        (SETS, "clusters", 0.0, "jl-laplace"),
        (MIXED, "classify", None, "moments"),
        (replace(MIXED, **CELLS), "classify", None, "jl-laplace"),
        (replace(MIXED, **CELLS), "classify", 0.0, "jl-laplace"),
        (replace(MIXED, **CELLS), "classify", 1e-6, "dppro"),
        (replace(NUMBERS, label="x0"), "regress", None, "ron-gauss"),
        (NUMBERS, "regress", None, "moments"),
        (MIXED, "regress", None, "moments"),
        (MIXED, "answers", None, "answers"),
        (HOLED, "answers", None, "moments"),
        (SETS, "top-k", None, "top-k"),
        (TRUTHS, "top-k", None, "top-k"),
    ],
)
def test_the_rule(schema, goal, delta, method):
    wanted = None if goal is None else goal_named(goal)
    choice = choose(schema, wanted, delta)
    assert choice.method == method
    assert choice.reason
    if wanted is not None:
        require_serves(choice.method, wanted)
    given = {"epsilon": 1.0, **({} if delta is None else {"delta": delta})}
    if wanted is Goal.CLASSIFY and method in SERVED_BY[Goal.DISTANCES]:
        told = learning_options(schema)
        given |= {**told, "n_components": int(told["n_components"])}
    elif method in SERVED_BY[Goal.DISTANCES] and schema.items is None:
        given["n_components"] = best_components(method, 1.0, delta, schema)
    elif method == "top-k" or schema.items is not None:
        return  # needs k, or a public length
    kind = method_named(method)
    assert kind.settle(kind.config(**given), schema).plan.method.startswith(method)


@pytest.mark.parametrize(
    ("schema", "goal", "words"),
    [
        (NUMBERS, "classify", "declare a label of classes"),
        (replace(NUMBERS, label="x0"), "classify", "declare a label of classes"),
        (
            Schema(columns=(GROUP,), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE),
            "regress",
            "no column",
        ),
        (SETS, "answers", "choose goal top-k"),
        (NUMBERS, "top-k", "declare [items]"),
        (replace(MIXED, **CELLS, label=None), "classify", "declare a label of classes"),
    ],
)
def test_a_schema_that_cannot_serve_a_goal_is_refused_with_a_remedy(schema, goal, words):
    with pytest.raises(InvalidInput, match=re.escape(words)):
        choose(schema, goal_named(goal), None)


def test_open_patterns_count_by_their_template():
    open_schema = Schema(
        columns=(), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE,
        patterns=(Pattern(match="g*", template=GROUP, at=0),),
    )  # fmt: skip
    assert choose(open_schema, Goal.CLUSTERS, None).method == "moments"


def test_the_best_number_of_components_is_the_forecasts():
    best = best_components("dppro", 1.0, None, NUMBERS)
    config = method_named("dppro").config(epsilon=1.0, n_components=best)
    plan = method_named("dppro").settle(config, NUMBERS).plan
    assert plan.expected["best_n_components"] == best
    assert best_components("pca", 1.0, None, NUMBERS) is None  # its plan names no best one


def test_names_are_those_of_the_documentation():
    assert [str(goal) for goal in Goal] == [
        "distances", "clusters", "classify", "regress", "answers", "top-k",
    ]  # fmt: skip
    known = {method.name for method in METHODS}
    assert all(set(served) <= known for served in SERVED_BY.values())
    page = (Path(__file__).parents[3] / "docs/how-to/choose-epsilon.md").read_text(encoding="utf-8")
    assert all(f"| `{goal}` |" in page for goal in Goal)
    with pytest.raises(InvalidInput, match="choose one of distances, clusters"):
        goal_named("fun")
    with pytest.raises(InvalidInput, match="does not serve goal=top-k"):
        require_serves("moments", Goal.TOP_K)
    with pytest.raises(InvalidInput, match="unknown; choose one of"):
        require_serves("nonsense", Goal.TOP_K)


def test_classes_are_learned_from_unprojected_rows_with_a_randomised_label():
    schema = replace(MIXED, **CELLS)
    assert learning_options(schema) == {
        "n_components": "6", "family": "identity", "label": "randomised",
    }  # fmt: skip
