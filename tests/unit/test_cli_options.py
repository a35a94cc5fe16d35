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
        ("moments", "sample_rows", "option sample_rows: needs a value; write -o sample_rows=..."),
        ("moments", "samplerows", "option samplerows: is not an option of method=moments"),
    ],
)
def test_one_thing_is_said_in_one_way(method, option, text):
    with pytest.raises(InvalidInput) as problem:
        make_config(method, 1.0, None, [option])
    assert text in str(problem.value)


def test_an_option_is_given_once():
    with pytest.raises(InvalidInput, match="option sample_rows: is given twice; give it once"):
        make_config("moments", 1.0, None, ["sample_rows=5", "sample-rows=6"])


def test_an_option_may_share_its_name_with_a_flag_that_means_something_else():
    assert make_config("top-k", 1.0, None, ["k=3", "method=svt"]).method == "svt"
