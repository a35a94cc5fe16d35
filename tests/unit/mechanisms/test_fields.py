"""Fields of configs: every branch of the check of their types."""

from dataclasses import dataclass, fields
from typing import Literal, get_type_hints

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.mechanisms.fields import config_facts, settle_fields
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.methods import METHODS
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    whole: int = 1
    number: float = 1.0
    truth: bool = False
    text: str = ""
    either: int | Literal["auto"] = "auto"
    absent: float | None = None
    words: Literal["a", "b"] = "a"

    def __post_init__(self):
        settle_fields(self)


def test_legal_values_stay_and_those_of_numpy_become_pythons():
    plain = Config(whole=2, number=3, truth=True, text="t", either=4, absent=0.5, words="b")
    assert (plain.number, type(plain.number)) == (3, int)
    narrow = Config(
        whole=np.int16(2),
        number=np.float32(3),
        truth=np.True_,
        text="t",
        either=np.uint8(4),
        absent=np.float64(0.5),
        words="b",
    )
    assert narrow == plain
    assert [type(value) for value in (narrow.whole, narrow.number, narrow.truth)] == [int, float, bool]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"whole": 1.0}, "whole=1.0: must be a whole number"),
        ({"whole": True}, "whole=True: must be a whole number"),
        ({"number": "1"}, "number='1': must be a number"),
        ({"number": False}, "number=False: must be a number"),
        ({"number": None}, "number=None: must be a number"),
        ({"truth": 1}, "truth=1: must be True or False"),
        ({"text": 1}, "text=1: must be a text"),
        ({"either": "own"}, "either='own': must be a whole number or auto"),
        ({"words": "zzz"}, "words='zzz': must be one of a, b"),
        ({"absent": []}, r"absent=\[\]: must be a number or None"),
    ],
)
def test_other_values_are_refused_by_name(keywords, message):
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        Config(**keywords)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_config_holds_a_whole_number_that_json_does_not(method):
    """The ledger's log refuses it: that must not wait until a release is paid for."""
    given = {"epsilon": 1.0} | ({"n_components": 1} if "n_components" in names_of(method) else {})
    given |= {"k": 1} if "k" in names_of(method) else {}
    whole = [name for name, hint in get_type_hints(method.config).items() if "int" in str(hint)]
    assert whole
    for name in whole:
        with pytest.raises(InvalidInput, match=f"{name}={2**53}: must lie below 2"):
            method.config(**given | {name: 2**53})


def names_of(method):
    return {field.name for field in fields(method.config)}


@pytest.mark.parametrize("config", [LDAConfig, MomentsConfig, RONGaussConfig])
def test_rows_to_draw_have_a_limit(config):
    assert config(epsilon=1.0, synthetic_rows=10**9).synthetic_rows == 10**9
    for name, most in (("synthetic_rows", 10**9), ("expected_rows", 2**31)):
        with pytest.raises(InvalidInput, match=f"{name}={most + 1}: must be at most {most}"):
            config(epsilon=1.0, **{name: most + 1})


def test_config_facts_are_plain():
    assert config_facts(LDAConfig(epsilon=1.0, synthetic_rows=5))["synthetic_rows"] == 5
