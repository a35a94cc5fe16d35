"""Fields of configs: every branch of the check of their types."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.mechanisms.fields import settle_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    whole: int = 1
    number: float = 1.0
    truth: bool = False
    text: str = ""
    either: int | Literal["auto"] = "auto"
    absent: float | None = None
    words: Literal["a", "b"] = "a"  # a rule of its own

    def __post_init__(self):
        settle_fields(self)


def test_legal_values_stay_and_those_of_numpy_become_pythons():
    plain = Config(whole=2, number=3, truth=True, text="t", either=4, absent=0.5, words="zzz")
    assert (plain.number, type(plain.number)) == (3, int)
    narrow = Config(
        whole=np.int16(2),
        number=np.float32(3),
        truth=np.True_,
        text="t",
        either=np.uint8(4),
        absent=np.float64(0.5),
        words="zzz",
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
        ({"absent": []}, r"absent=\[\]: must be a number or None"),
    ],
)
def test_other_values_are_refused_by_name(keywords, message):
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        Config(**keywords)
