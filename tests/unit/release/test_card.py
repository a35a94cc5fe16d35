"""The card: what it says, what it refuses, and that its words are true."""

import datetime as dt
import enum
import hashlib
import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from jsonschema import Draft202012Validator

from adumbra.errors import InvalidInput
from adumbra.release.card import (
    build_card,
    canonical,
    card_faults,
    card_schema,
    content_sha256,
    plain,
    seal_card,
)
from adumbra.release.promise import FORMAT, WORDS, attacker_gain
from support.release import example_card, example_guarantee


def gain_of(guarantee):
    return attacker_gain(guarantee, WORDS[guarantee.neighbours])


def finished(card):
    return seal_card({**card, "contents": {"main": None, "tables": {}, "arrays": {}}, "files": {}})


@pytest.mark.parametrize("kind", ["row", "presence", "element"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_kind_of_guarantee_makes_a_valid_card(kind, delta):
    guarantee = example_guarantee(kind, delta=delta)
    card = finished(example_card(guarantee))
    assert card_faults(card) == ()
    assert card["format"] == FORMAT
    assert card["guarantee"]["sentence"] == guarantee.sentence()
    assert type(guarantee).from_dict(card["guarantee"]["value"]) == guarantee
    assert card["guarantee"]["quoted"] == {"epsilon": guarantee.epsilon_at(delta), "delta": delta}
    public = kind != "presence"
    assert ("the number of rows" in card["public_inputs"]["unprotected"]) is public
    assert ("public" if public else "private") in card["unit"]["sentence"]


def test_the_schema_is_itself_a_valid_one():
    Draft202012Validator.check_schema(card_schema())


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 20.0])
def test_what_a_pure_guarantee_gives_an_attacker(epsilon):
    gain = gain_of(example_guarantee(epsilon=epsilon, delta=0.0))
    with mpmath.workdps(40):
        truth = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        assert truth <= gain["success_at_most"] <= min(truth + mpmath.mpf(10) ** -13, 1)
    assert "e^epsilon" in gain["rule"]


@pytest.mark.parametrize("epsilon", [1e-2, 0.1, 1.0, 5.0, 50.0])
def test_what_a_gaussian_guarantee_gives_an_attacker(epsilon):
    guarantee = example_guarantee(epsilon=epsilon)
    gain = gain_of(guarantee)
    with mpmath.workdps(40):
        truth = mpmath.ncdf(mpmath.mpf(guarantee.mu) / 2)
        assert truth <= gain["success_at_most"] <= min(truth + mpmath.mpf(10) ** -13, 1)
    assert "Phi(mu / 2)" in gain["rule"]
    # The bound is the best test's: half of one minus the smallest sum of both errors, seen on a grid.
    shifts = np.linspace(-8, 8 + guarantee.mu, 2001)
    rates = [(float(mpmath.ncdf(t)) + 1 - float(mpmath.ncdf(t - guarantee.mu))) / 2 for t in shifts]
    assert max(rates) <= gain["success_at_most"] <= max(rates) + 1e-3


def test_the_sentence_rounds_against_us():
    sentence = gain_of(example_guarantee(epsilon=1.0, delta=0.0))["sentence"]
    assert "at most 73.2 % of the time" in sentence  # e/(1+e) = 0.73106


def test_a_card_says_a_day_and_the_callers_day_wins():
    today = dt.datetime.now(tz=dt.UTC).date()
    made = example_card(about={})["about"]["date"]
    assert made in {today.isoformat(), (today + dt.timedelta(days=1)).isoformat()}
    assert example_card()["about"]["date"] == "2026-11-16"


def test_private_row_numbers_are_refused():
    with pytest.raises(InvalidInput, match="add-remove: it is private"):
        example_card(example_guarantee("presence"), schema_dict={"rows": 12})


def test_nothing_but_the_declared_names_may_be_told_about_a_release():
    with pytest.raises(InvalidInput, match="is not a part of a card"):
        example_card(about={"user": "alice"})
    card = finished(example_card())
    card["about"]["user"] = "alice"
    assert any("about" in fault and "additionalProperties" in fault for fault in card_faults(card))


def test_faults_name_place_and_rule_but_no_value():
    card = finished(example_card())
    card["unit"]["unit"] = "<script>\x1b[31m"
    card["proof"] = {}
    faults = card_faults(card)
    assert faults == tuple(sorted(faults, key=lambda fault: "proof" in fault))
    assert any("unit/unit: breaks the rule `enum`" in fault for fault in faults)
    assert not any("script" in fault or "\x1b" in fault for fault in faults)
    assert card_faults([]) == ("card.json at the whole card: breaks the rule `type`",)


class Colour(enum.Enum):
    RED = "red"


def test_plain_knows_what_json_knows():
    value = {
        "a": (1, 2.5, None, True),
        "b": np.float64(0.1),
        "c": np.int64(3),
        "d": Colour.RED,
        "e": np.bool_(True),
        "f": np.str_("x"),
    }
    made = plain(value, "x")
    assert made == {"a": [1, 2.5, None, True], "b": 0.1, "c": 3, "d": "red", "e": True, "f": "x"}
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (float("nan"), "not finite"),
        (np.inf, "not finite"),
        (b"bytes", "a bytes has no place"),
        (Path("home"), "has no place"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "a datetime has no place"),
        ({1: 2}, "every name must be text"),
        ("\ud800", "not Unicode"),
        ({"\ud800": 1}, "not Unicode"),
        (np.ones(2), "a ndarray has no place"),
    ],
)
def test_plain_refuses_the_rest(value, rule):
    with pytest.raises(InvalidInput, match=rule):
        plain({"inner": [value]}, "facts")


def test_floats_keep_their_last_bit():
    value = {"x": 0.1 + 0.2, "y": 5e-324, "z": 2.0**-30}
    assert json.loads(canonical(value)) == value


def test_the_seal_covers_everything_but_itself():
    card = finished(example_card())
    assert card["proof"]["content_sha256"] == content_sha256(card)
    text = canonical(card).decode().replace(card["proof"]["content_sha256"], "0" * 64)
    assert hashlib.sha256(text.encode()).hexdigest() == card["proof"]["content_sha256"]
    assert content_sha256({**card, "before_dp": "none"}) != content_sha256(card)


def test_build_card_takes_public_values_only_by_keyword():
    with pytest.raises(TypeError):
        build_card("dppro")
