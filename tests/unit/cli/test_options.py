"""From words on the command line to a config."""

import pytest

from adumbra.cli.options import make_config
from adumbra.errors import InvalidInput


@pytest.mark.parametrize(
    ("method", "option", "text"),
    [
        ("moments", "epsilon=2", "option epsilon: has a flag of its own; give --epsilon"),
        ("moments", "delta=0", "option delta: has a flag of its own; give --delta"),
        ("moments", "before-dp=none", "option before_dp: has a flag of its own; give --before-dp"),
        ("moments", "method=pca", "option method: has a flag of its own; give --method"),
        ("moments", "memory=2GB", "option memory: has a flag of its own; give --memory"),
        (
            "moments",
            "synthetic_rows",
            "option synthetic_rows: needs a value; write -o synthetic_rows=...",
        ),
        ("moments", "samplerows", "option samplerows: is not an option of method=moments"),
    ],
)
def test_one_thing_is_said_in_one_way(method, option, text):
    with pytest.raises(InvalidInput) as problem:
        make_config(method, 1.0, None, [option])
    assert text in str(problem.value)


def test_an_option_is_given_once():
    with pytest.raises(InvalidInput, match="option synthetic_rows: is given twice; give it once"):
        make_config("moments", 1.0, None, ["synthetic_rows=5", "synthetic-rows=6"])


def test_the_algorithm_of_top_k_is_an_option_and_the_method_a_flag():
    assert make_config("top-k", 1.0, 0.0, ["k=3", "algorithm=svt"]).algorithm == "svt"
    with pytest.raises(InvalidInput, match="option method: has a flag of its own"):
        make_config("top-k", 1.0, 0.0, ["k=3", "method=svt"])
