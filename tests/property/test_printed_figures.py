"""Printed guarantees are never below the truth, and nothing else prints one."""

import ast
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adumbra
from adumbra.numerics import figure_lower, figure_upper
from adumbra.privacy.guarantee import PrivacyGuarantee, promise, pure
from adumbra.privacy.ledger.accounts import Quote
from adumbra.relations import Neighbours, Unit
from adumbra.release.promise import FORMAT, at_most, delta_figure

ROW = Unit.ROW, Neighbours.REPLACE_ONE
ROOT = Path(adumbra.__file__).parent
EPSILONS = st.floats(1e-9, 1e3)
DELTAS = st.floats(1e-12, 0.4)
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
GUARANTEE = {"epsilon", "delta", "mu", "rho", "takes", "spent", "left", "cap", "budget", "claimed"}
# Format 1 printed a delta to nearest, and its cards must verify; the third is an error message.
ELSEWHERE = {
    ("release/promise.py", "delta"),
    ("release/promise.py", "guarantee.delta"),
    ("privacy/conversion.py", "epsilon"),
}


def truth(value):
    """The number that a person wrote: the shortest decimal of this float."""
    return Decimal(repr(value))


def on_the_page(text):
    """Powers of ten, with a factor or without, back as numbers."""
    found = re.fullmatch(r"(?:([0-9.]+) × )?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    if found is None:
        return Decimal(text)
    factor, power = found.groups()
    return Decimal(factor or 1).scaleb(int(power.translate(DIGITS)))


@given(st.floats(1e-300, 1e300), st.integers(2, 15))
def test_printed_guarantees_are_never_below_the_truth(value, digits):
    exact, step = truth(value), Decimal(10) ** (1 - digits)
    assert exact <= Decimal(figure_upper(value, digits)) < exact * (1 + step)
    assert exact >= Decimal(figure_lower(value, digits)) > exact * (1 - step)
    assert float(figure_upper(value, digits)) >= value >= float(figure_lower(value, digits))


def test_round_figures_stay_as_they_were_asked_for():
    for text in ("0.1", "1", "0.5", "1e-06", "2.5", "1000", "1e-05", "0.3"):
        assert figure_upper(float(text)) == figure_lower(float(text)) == text
    assert (figure_lower(0.0), figure_upper(0.0)) == ("0", "0")
    assert figure_upper(1.2345649e-6) == "1.23457e-06"  # to nearest it is 1.23456e-06
    assert figure_upper(9.999999) == "10"


@settings(max_examples=60, deadline=None)
@given(EPSILONS, DELTAS)
def test_every_figure_of_a_sentence_is_rounded_up(epsilon, delta):
    for guarantee in (
        pure(epsilon, *ROW),
        PrivacyGuarantee(unit=ROW[0], neighbours=ROW[1], mu=min(epsilon, 30.0), delta=delta),
    ):
        said = dict(re.findall(r"(epsilon|delta|mu)=([^ ),]+)", guarantee.sentence()))
        assert Decimal(said["epsilon"]) >= truth(guarantee.epsilon_at(guarantee.delta))
        if guarantee.mu is not None:
            assert truth(guarantee.delta) <= Decimal(said["delta"]) < truth(guarantee.delta * 1.0001)
            assert truth(guarantee.mu) <= Decimal(said["mu"]) < truth(guarantee.mu) * Decimal("1.001")


@given(EPSILONS, DELTAS)
def test_every_figure_of_a_page_is_rounded_up(epsilon, delta):
    assert truth(epsilon) <= on_the_page(at_most(epsilon)) < truth(epsilon) * Decimal("1.001")
    assert truth(delta) <= on_the_page(delta_figure(delta, FORMAT)) < truth(delta) * Decimal("1.001")


@given(st.lists(st.floats(1e-9, 1e3), min_size=4, max_size=4), DELTAS)
def test_a_price_is_rounded_up_and_what_is_left_down(amounts, delta):
    cap, takes, left, after = amounts
    quote = Quote(population="p", delta=delta, cap=cap, takes=takes, left=left, left_after=after)
    pattern = r"p: takes epsilon=(\S+) of (\S+) at delta=(\S+); (\S+) left before, (\S+) after .*"
    said = [Decimal(text) for text in re.fullmatch(pattern, quote.sentence()).groups()]
    assert said[0] >= truth(takes)
    assert said[1] >= truth(cap)
    assert said[2] >= truth(delta)
    assert said[3] <= truth(left)
    assert said[4] <= truth(after)


def printed_otherwise(source):
    """Expressions that are named like a guarantee and formatted by anything but the two functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            shown = node.value
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("round", "format"):
            if len(node.args) < 2:  # to a whole number: arithmetic, not print
                continue
            shown = node.args[0]
        else:
            continue
        names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(shown)}
        calls = {"figure_upper", "figure_lower"} & names
        if not calls and any(GUARANTEE & set(name.split("_")) for name in names):
            yield ast.unparse(shown)


def test_no_guarantee_is_formatted_elsewhere():
    found = {
        (path.relative_to(ROOT).as_posix(), shown)
        for path in sorted(ROOT.rglob("*.py"))
        for shown in printed_otherwise(path.read_text())
    }
    assert found == ELSEWHERE
    for template in sorted(ROOT.rglob("*.j2")):
        filters = re.findall(r"guarantee[.a-z_]*\|([a-z_]+)", template.read_text())
        assert set(filters) <= {"at_most"}, template


@pytest.mark.parametrize("text", ['f"{epsilon:g}"', 'f"{a.delta:.3g}"', "round(x.epsilon_at(d), 3)"])
def test_the_search_finds_what_it_looks_for(text):
    assert list(printed_otherwise(text))
    assert not list(printed_otherwise('f"{figure_upper(epsilon)} {low:g}"'))


def test_what_was_asked_for_is_what_is_printed():
    assert promise(1.0, 1e-6, *ROW).sentence().startswith("epsilon=1 at delta=1e-06 (mu=")
