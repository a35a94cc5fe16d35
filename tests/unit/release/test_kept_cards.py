"""The JSON Schema that ships with the package holds for every method's card, today's and the kept ones.

`tests/data/release-2` has a card of each method as the first version of that format wrote it; whoever
changes the schema or the promise's words must keep reading them. `test_exports.py` makes fresh ones.
"""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from adumbra.mechanisms.methods import METHODS, config_of
from adumbra.release.card import canonical, card_schema, content_sha256
from adumbra.release.promise import FORMATS, card_faults
from adumbra.schema.facts import schema_of

DATA = Path(__file__).resolve().parents[2] / "data"
KEPT = sorted([*DATA.glob("release-1/*/card.json"), *DATA.glob("release-2/*.json")])


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_card_is_still_a_card(path):
    raw = path.read_bytes()
    card = json.loads(raw)
    assert list(Draft202012Validator(card_schema()).iter_errors(card)) == []
    assert canonical(card) == raw
    assert content_sha256(card) == card["proof"]["content_sha256"]
    assert card_faults(card) == []


def test_every_method_and_every_format_is_kept():
    cards = [json.loads(path.read_bytes()) for path in KEPT]
    assert {card["format"] for card in cards} == set(FORMATS)
    newest = [card for card in cards if card["format"] == FORMATS[-1]]
    assert {card["method"]["name"].split()[0] for card in newest} == {one.name for one in METHODS}
    for card in newest:  # and a kept card can be made into a config and a schema again
        assert config_of(card["method"]["name"], card["method"]["config"]).epsilon == 1.5
        assert schema_of(card["public_inputs"]["schema"]).facts() == card["public_inputs"]["schema"]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_a_card_must_say_cannot_be_left_out(path):
    card = json.loads(path.read_bytes())
    validator = Draft202012Validator(card_schema())
    for name in card_schema()["required"]:
        assert list(validator.iter_errors({key: card[key] for key in card if key != name}))
    assert list(validator.iter_errors({**card, "unknown": 1}))
