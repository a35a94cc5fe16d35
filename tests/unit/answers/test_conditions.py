"""The grammar of conditions and questions: what it reads, and how it refuses."""

import pytest

from adumbra.answers.asking import ask
from adumbra.answers.conditions import IS_MISSING, Clause, read_where, suggestion
from adumbra.answers.estimate import Asked
from adumbra.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("region=north", [("region", "=", "north")]),
        ("marital-status = 'Never married'", [("marital-status", "=", "Never married")]),
        ('"two words">=3 and b!=x', [("two words", ">=", "3"), ("b", "!=", "x")]),
        ("income=>50K and income!=<=50K", [("income", "=", ">50K"), ("income", "!=", "<=50K")]),
        ("age == 30 AND x is missing", [("age", "=", "30"), ("x", IS_MISSING, "")]),
        ("a=-1.5e3", [("a", "=", "-1.5e3")]),
        ("größe<1", [("größe", "<", "1")]),
    ],
)
def test_conditions_are_read(text, clauses):
    assert read_where(text) == tuple(Clause(*clause) for clause in clauses)


def test_a_dict_is_a_list_of_equalities():
    assert read_where({"region": "north", "smoker": True, "age": 3}) == (
        Clause("region", "=", "north"),
        Clause("smoker", "=", "true"),
        Clause("age", "=", "3"),
    )
    assert read_where(None) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected before 'the end'"),
        ("age", "write age=VALUE"),
        ("age=", "no value"),
        ("age=3 or b=4", "'or b=4': not understood"),
        ("age=3 and", "expected before"),
        ("__import__('os').system('true')", "no comparison"),
        ("a=1; b=2", "not understood"),
    ],
)
def test_what_is_not_understood_is_named(text, said):
    with pytest.raises(InvalidInput, match="." if said == "" else said.replace("(", r"\(")):
        read_where(text)
    with pytest.raises(InvalidInput, match="of type int"):
        read_where(3)


def test_an_error_steers_no_terminal_and_stays_short():
    with pytest.raises(InvalidInput) as caught:
        read_where("age=1 \x1b[31m" + "x" * 5000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_near_names_are_suggested_first():
    assert suggestion("agee", ["income", "age"]) == "did you mean 'age'?"
    assert suggestion("zzz", list("abcdefg")) == "known are 'a', 'b', 'c', 'd', 'e' and 2 more"


class Recorder:
    """Says which method was called with what."""

    def __getattr__(self, name):
        return lambda *arguments: (name, *arguments[:-1])


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("mean age", ("mean", "age", ())),
        ("mean age where risk=high", ("mean", "age", (Clause("risk", "=", "high"),))),
        ("MEDIAN age", ("quantile", "age", 0.5, ())),
        ("quantile 0.9 of age", ("quantile", "age", 0.9, ())),
        ("variance 'my age'", ("variance", "my age", ())),
        ("share a=b given c=d", ("share", (Clause("a", "=", "b"),), (Clause("c", "=", "d"),))),
        ("count", ("count", ())),
        ("count where a=b", ("count", (Clause("a", "=", "b"),))),
        ("crosstab a by b", ("crosstab", "a", "b")),
        ("crosstab a, b", ("crosstab", "a", "b")),
        ("correlation a and b", ("correlation", "a", "b")),
        ("compare age by risk", ("compare", "age", "risk", None)),
        ("regress charges ~ age + bmi+smoker", ("regress", "charges", ("age", "bmi", "smoker"))),
        ("components 3", ("principal_components", 3)),
        ("mean of age", ("mean", "age", ())),
        ("mean of age where of=1", ("mean", "age", (Clause("of", "=", "1"),))),
        ("mean of", ("mean", "of", ())),
        ("mean of where a=b", ("mean", "of", (Clause("a", "=", "b"),))),
        ("median of 'of'", ("quantile", "of", 0.5, ())),
        ("quantile 0.9 of", ("quantile", "of", 0.9, ())),
        ("correlation of a and b", ("correlation", "a", "b")),
        ("correlation of and b", ("correlation", "of", "b")),
        ("crosstab of, b", ("crosstab", "of", "b")),
    ],
)
def test_questions_are_read(text, called):
    assert ask(Recorder(), text, Asked()) == called


@pytest.mark.parametrize(
    "text",
    [
        "", "mean", "meen age", "mean age age", "share", "quantile x of age", "compare age",
        "regress y x", "components inf", "components nan", "components 2.7", "components 1e400",
        "distance inf and 1", "distance 1 and nan",
    ],
)  # fmt: skip
def test_no_question_is_half_understood(text):
    with pytest.raises(InvalidInput):
        ask(Recorder(), text, Asked())


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan"), "0.95"])
def test_a_level_is_a_share(level):
    with pytest.raises(InvalidInput, match="level"):
        Asked(level=level)
