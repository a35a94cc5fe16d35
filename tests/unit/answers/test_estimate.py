"""How an answer reads: its value, the interval with its level, and only then the standard error."""

import math

from adumbra.answers.estimate import Asked, Estimate, hidden


def test_the_interval_comes_before_the_standard_error():
    one = Estimate(
        value=41.1,
        std_error=0.4,
        interval=(40.316, 41.884),
        level=0.95,
        privacy=0.4,
        sampling=0.0,
        target="mean",
    )
    assert str(one) == "41.1, 95 % interval 40.316 to 41.884 (standard error 0.4)"
    assert "±" not in str(one)  # it would be read as the interval


def test_a_hidden_answer_shows_what_is_possible():
    none = hidden(Asked(level=0.9), "mean", "few rows", (0.0, 9.0))
    assert math.isnan(none.value)
    assert str(none) == "hidden by noise (between 0 and 9)"
