"""Plans side by side: every budget, every method that fits, and why the others do not."""

import json

import pytest

from adumbra.cli.comparing import compare, epsilons_of, headline, show
from adumbra.errors import InvalidInput
from adumbra.mechanisms.methods import METHODS
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema

TABLE = Schema(
    columns=(
        Column(name="a", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="b", kind=Kind.NUMBER, lower=0.0, upper=1.0),
        Column(name="y", kind=Kind.CATEGORY, categories=("n", "p")),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
    label="y",
    rows=10_000,
)
SETS = Schema(
    columns=(), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, items=ItemSpec(upper=9), rows=10_000
)
ALL = [method.name for method in METHODS]


def test_budgets_are_numbers_with_commas():
    assert epsilons_of("1") == [1.0]
    assert epsilons_of("0.1, 0.3,3") == [0.1, 0.3, 3.0]
    for text in ("", "1,", "a", "0.1;3"):
        with pytest.raises(InvalidInput, match="with commas"):
            epsilons_of(text)


def test_a_larger_budget_has_the_smaller_error_and_the_better_attacker():
    low, high = compare(TABLE, [0.1, 3.0], ["moments"], None, [])
    name = "one_way_total_variation_mean"
    assert low.plan.expected[name] > high.plan.expected[name]
    assert 0.5 < low.success < high.success < 1.0
    assert low.facts()["attacker_success_at_most"] == low.success


def test_every_method_is_planned_or_says_why_not():
    found = {one.method: one for one in compare(TABLE, [1.0], ALL, None, ["n_components=1"])}
    assert set(found) == set(ALL)
    assert found["top-k"].plan is None
    assert "takes item sets" in found["top-k"].refusal
    planned = {name for name, one in found.items() if one.plan is not None}
    assert planned == set(ALL) - {"bounds", "top-k"}
    assert "no column asks for it" in found["bounds"].refusal
    assert found["dppro"].plan.details["standard_error_by_n_components"]
    for name in planned:
        assert headline(found[name].plan)
    sets = {one.method: one.plan is not None for one in compare(SETS, [1.0], ALL, None, ["k=2"])}
    assert sets["top-k"]
    assert sets["moments"]
    assert not sets["lda"]


def test_an_option_that_no_method_has_is_refused():
    with pytest.raises(InvalidInput, match="option nonsense: none of moments"):
        compare(TABLE, [1.0], ["moments"], None, ["nonsense=1"])


def test_what_is_shown(capsys):
    found = compare(TABLE, [0.5, 1.0], ["moments", "top-k"], None, [])
    show(found, json=False)
    text = " ".join(capsys.readouterr().out.split())
    assert "at most 54.8 %" in text
    assert "not compared: top-k" in text
    assert "A blind guess is right 50 %" in text
    show(found, json=True)
    listed = json.loads(capsys.readouterr().out)
    assert [(one["method"], one["epsilon"]) for one in listed[:2]] == [
        ("moments", 0.5),
        ("moments", 1.0),
    ]
    assert "refused" in listed[2]
