"""The quick check of a card says what jsonschema says, on every card that the schema has a word on."""

import copy
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adumbra.release.card import card_schema
from adumbra.release.card_rules import compiled
from support.release import FULL, example_card

KEEPS = compiled(card_schema())


@cache
def library(part=None):
    """The rules of jsonschema for a whole card, or for one of which only this part was changed."""
    schema = card_schema()
    rules = {name: rule if part in (None, name) else True for name, rule in schema["properties"].items()}
    return Draft202012Validator({**schema, "properties": rules})


ATOMS = st.one_of(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 0.0, 1.0, 0.5, 2**53, 1e308, "", "x", "a" * 64, {}, []]
    ),
    st.text(max_size=5),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    parts = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, part in parts:
        yield from places(part, (*path, name))


WRITTEN = {
    "contents": {
        "main": "data",
        "tables": {"data": {"rows": 3, "columns": [["a", "double"], ["b", "string"]]}},
        "arrays": {"sums": {"dtype": "F64", "shape": [2, 3]}},
    },
    "files": {"data/data.parquet": {"sha256": "0" * 64, "bytes": 7}},
}
CARD = {**example_card(), **WRITTEN}
PLACES = list(places(CARD))


def changed(path, act, value):
    """The card with one part taken, replaced, or joined by another."""
    card = copy.deepcopy(CARD)
    if not path:
        return value
    whole = card
    for name in path[:-1]:
        whole = whole[name]
    if act == "take":
        del whole[path[-1]]
    elif act == "join" and isinstance(whole, list):
        whole.insert(path[-1], value)
    elif act == "join":
        whole[f"{path[-1]}x"] = value
    else:
        whole[path[-1]] = value
    return card


def test_the_example_keeps_its_schema():
    assert KEEPS(CARD)
    assert library().is_valid(CARD)


@settings(max_examples=20_000 if FULL else 400)
@given(st.sampled_from(PLACES), st.sampled_from(["take", "join", "replace"]), VALUES)
def test_both_say_the_same(path, act, value):
    card = changed(path, act, value)
    assert KEEPS(card) == library(*path[:1]).is_valid(card)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: "/".join(map(str, path)))
def test_every_place_is_held_to_its_rule(path):
    """Each part taken, and replaced by a value of every type."""
    values = [
        None,
        True,
        0,
        -1,
        0.5,
        1,
        "x",
        "a" * 20_001,
        "a" * 64,
        [],
        [0],
        [["a", "bool"]],
        {},
        {"x": 1},
    ]
    acts = [("take", None), *((act, value) for act in ("join", "replace") for value in values)]
    for act, value in acts:
        card = changed(path, act, value)
        assert KEEPS(card) == library(*path[:1]).is_valid(card), (act, value)


@pytest.mark.parametrize("schema", [{"multipleOf": 2}, {"$ref": "https://elsewhere"}, {"not": {}}])
def test_an_unknown_rule_is_no_rule_that_all_keep(schema):
    with pytest.raises((NotImplementedError, ValueError)):
        compiled(schema)
