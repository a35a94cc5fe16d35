"""The promise is the same in every place, and a forger who makes all hashes right cannot change one."""

import copy
import json
import shutil
from pathlib import Path

import pytest

from adumbra import workflow
from adumbra.errors import VerificationFailed
from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
from adumbra.relations import Neighbours
from adumbra.release.artifact import find_faults, load, verify
from adumbra.release.promise import (
    FIRST_FORMAT,
    FORMAT,
    ONE_ITEM,
    PAGE_LIMIT,
    WORDS,
    Sections,
    card_faults,
    page_faults,
    words_for,
)
from adumbra.release.storage import _is_release
from adumbra.report.page import render
from support.projection import items
from support.release import example_card, example_guarantee, example_release, reseal

OLD = Path(__file__).parents[2] / "data" / "release-1"  # written by the last version with that format
ITEMS = {
    "rows": 500,
    "max_rows": 1000,
    "columns": [],
    "items": {"column": "items", "lower": 0, "upper": 9},
}
EXCHANGE = "any other value"


def made(folder, kind="row", delta=1.2345649e-6, **changes):
    guarantee = example_guarantee(kind, epsilon=0.7654321, delta=delta)
    example_release(folder, card=example_card(guarantee, wide=2, **changes))
    return folder


@pytest.mark.parametrize("kind", ["row", "presence", "element"])
@pytest.mark.parametrize("delta", [0.0, 1.2345649e-6])
@pytest.mark.parametrize("schema", [{}, {"schema_dict": ITEMS}], ids=["table", "items"])
def test_every_true_release_verifies(tmp_path, kind, delta, schema):
    if kind == "presence" and schema:
        schema = {"schema_dict": {**ITEMS, "rows": None}}
    assert verify(made(tmp_path / "r", kind, delta, **schema)).card["format"] == FORMAT


@pytest.mark.parametrize("name", ["row", "presence", "items"])
def test_releases_of_the_first_format_still_verify(tmp_path, name):
    assert verify(OLD / name).card["format"] == FIRST_FORMAT
    assert load(OLD / name).guarantee.sentence()
    assert _is_release(OLD / name)
    copied = shutil.copytree(OLD / name, tmp_path / "r")
    reseal(copied, lambda card: card | {"format": FORMAT})  # its words are not those of format 2
    assert find_faults(copied)[0]


def test_what_the_first_format_rounded_down():
    """The reason for the second one: the card and the page of the same delta, before and after."""
    old = json.loads((OLD / "row" / "card.json").read_bytes())
    delta = old["guarantee"]["quoted"]["delta"]
    assert delta == 1.2345649e-6
    assert "delta=1.23456e-06" in old["guarantee"]["sentence"]
    assert "delta=1.23457e-06" in load(OLD / "row").guarantee.sentence()
    assert ">1.235 × 10⁻⁶<" in render(old)
    assert ">1.234 × 10⁻⁶<" in render(_with_delta(old, 1.2342e-6))
    assert ">1.235 × 10⁻⁶<" in render(_with_delta(old, 1.2342e-6) | {"format": FORMAT})


def _with_delta(card, delta):
    card = copy.deepcopy(card)
    card["guarantee"]["quoted"]["delta"] = delta
    return card


def put(*path):
    """A change of one place of a card."""
    *way, last, value = path

    def change(card):
        place = card
        for name in way:
            place = place[name]
        place[last] = value(place[last]) if callable(value) else value
        return card

    return change


FORGED = {
    "epsilon in the sentence": (
        put("guarantee", "sentence", lambda text: text.replace("0.765433", "0.1")),
        "guarantee/sentence",
    ),
    "delta in the sentence": (
        put("guarantee", "sentence", lambda text: text.replace("1.23457e-06", "1.23456e-06")),
        "guarantee/sentence",
    ),
    "quoted epsilon": (put("guarantee", "quoted", "epsilon", 0.1), "guarantee/quoted"),
    "quoted epsilon, by little": (
        put("guarantee", "quoted", "epsilon", lambda value: value * (1 - 1e-8)),
        "guarantee/quoted",
    ),
    "quoted delta": (put("guarantee", "quoted", "delta", 1e-9), "guarantee/quoted"),
    "variant": (put("guarantee", "variant", "pure"), "guarantee/variant"),
    "success": (put("guarantee", "attacker", "success_at_most", 0.51), "guarantee/attacker"),
    "attacker's sentence": (
        put("guarantee", "attacker", "sentence", lambda text: text.replace("at most", "below")),
        "guarantee/attacker",
    ),
    "rule": (put("guarantee", "attacker", "rule", "none"), "guarantee/attacker"),
    "unit's sentence": (put("unit", "sentence", "Everything is protected."), "unit/sentence"),
    "format": (put("format", FIRST_FORMAT), "guarantee/sentence"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_card_fails_although_every_hash_is_right(tmp_path, name):
    change, place = FORGED[name]
    folder = made(tmp_path / "r")
    reseal(folder, change)
    faults, verified = find_faults(folder)
    assert verified is None
    assert f"card.json at {place}: is not what its guarantee says" in faults


def test_quoted_and_sentence_forged_together_fail(tmp_path):
    folder = made(tmp_path / "r")

    def change(card):
        card["guarantee"]["quoted"]["epsilon"] = 0.1
        card["guarantee"]["sentence"] = card["guarantee"]["sentence"].replace("0.765433", "0.1")
        return card

    reseal(folder, change)
    with pytest.raises(VerificationFailed, match="guarantee/quoted"):
        verify(folder)


PAGES = {
    "epsilon": ("<dd>0.7655</dd>", "<dd>0.1</dd>"),
    "delta": ("<dd>1.235 × 10⁻⁶</dd>", "<dd>10⁻⁹</dd>"),
    "relation": ("<dd>one row replaced</dd>", "<dd>everything</dd>"),
    "headline": ("<strong>53.8 %</strong>", "<strong>50.1 %</strong>"),
    "text for the blind": ("reach 53.8 percent", "reach 50.1 percent"),
    "sentence": ("epsilon=0.765433 at", "epsilon=0.1 at"),
    "unit": ("One whole row is protected", "One whole family is protected"),
    "caption": ("it is right at most 53.8 %", "it is right at most 50.1 %"),
    "a comment": ('<section class="promise"', '<!-- <section class="promise"'),
    "a second promise": ("<main>", '<main><section aria-labelledby="promise">epsilon 0.1</section>'),
    "a picture": ('<dl class="facts">', '<svg><text>epsilon 0.1</text></svg><dl class="facts">'),
    "no promise": ('aria-labelledby="promise"', 'aria-labelledby="other"'),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_forged_page_fails_although_every_hash_is_right(tmp_path, name):
    folder = made(tmp_path / "r")
    page = (folder / "card.html").read_text()
    before, after = PAGES[name]
    assert before in page
    (folder / "card.html").write_text(page.replace(before, after, 1))
    reseal(folder)
    faults, verified = find_faults(folder)
    assert verified is None
    assert all("does not show the guarantee of card.json" in fault for fault in faults)


@pytest.mark.parametrize("page", [b"", b"\xff", b"<p>no section</p>", b"<![x", b"x" * (PAGE_LIMIT + 1)])
def test_a_page_that_is_none_is_a_fault_and_no_crash(page):
    card = {**example_card(), "contents": {}, "files": {}}
    assert page_faults(page, card)


def test_a_page_too_long_to_read_is_not_written(tmp_path):
    example_release(tmp_path / "r", page=lambda card: render(card) + " " * PAGE_LIMIT)
    assert "card.html" not in verify(tmp_path / "r").card["files"]
    assert not (tmp_path / "r" / "card.html").exists()


def test_sections_are_read_as_a_reader_reads_them():
    read = Sections(
        '<p>no</p><section aria-labelledby="promise">A <b>bold</b>&amp;<i>new</i>'
        '<svg aria-label="curve"><text>9</text></svg></section><p>no</p>'
    )
    assert read.text("promise") == "A bold & new [curve]"
    assert read.text("meaning") == ""


# Item sets: one element is one item more or less; an exchange is not promised.


def test_one_element_of_an_item_set_is_promised_in_its_own_words(tmp_path):
    folder = made(tmp_path / "r", "element", 0.0, schema_dict=ITEMS)
    card, page = load(folder).card, (folder / "card.html").read_text()
    assert card["unit"]["sentence"] == ONE_ITEM.protects
    assert "one item more or one item less. An exchange" in page
    assert "<dd>one item more or less in one row</dd>" in page
    assert EXCHANGE not in page
    assert "two candidates" not in page
    assert "one value" not in page
    table = example_card(example_guarantee("element"))
    assert table["unit"]["sentence"] == WORDS[Neighbours.ONE_ELEMENT].protects
    assert EXCHANGE in table["unit"]["sentence"]


def test_item_sets_by_row_have_the_words_of_rows():
    for relation in (Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE):
        assert words_for(relation, item_sets=True) == WORDS[relation]


def test_a_card_of_item_sets_with_the_words_of_tables_fails(tmp_path):
    folder = made(tmp_path / "r", "element", schema_dict=ITEMS)
    reseal(folder, put("unit", "sentence", WORDS[Neighbours.ONE_ELEMENT].protects))
    with pytest.raises(VerificationFailed, match="unit/sentence"):
        verify(folder)


@pytest.mark.parametrize(
    "config",
    [
        DPProConfig(n_components=4, epsilon=1.0, delta=1e-6),
        JLLaplaceConfig(n_components=4, epsilon=1.0),
    ],
)
def test_a_plan_for_item_sets_says_what_one_element_is(config):
    first = workflow.plan(config, items(12, "element")).notes[0]
    assert first.startswith("One element of an item set is one item more or less in one row.")
    assert "exchange" in first


def test_a_card_without_a_guarantee_is_a_fault():
    assert card_faults(put("guarantee", "value", {})(example_card())) == [
        "card.json at guarantee/value: is not a guarantee"
    ]
