"""A stranger's words stay words: whatever a card says, its page has the tags of a harmless one."""

import copy

import numpy as np
import pytest

from adumbra.errors import visible
from adumbra.report.page import render
from support.page import Page
from support.release import FULL, example_card

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    '" autofocus onfocus=alert(1) x="',
    "javascript:alert(1)",
    "<!--",
    "-->",
    "{{ 7*7 }}",
    "{% include 'x' %}",
    "${7*7}",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "<iframe src=//evil.example>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "&lt;b&gt;",
    "&#60;b&#62;",
    "<a href=//evil.example>x</a>",
    "\u202egnp.exe",
    "\x00\x1b[31m",
    "]]>",
    "<![CDATA[<b>]]>",
    "<math><mtext></mtext>",
    "url(//evil.example)",
    "<style>*{background:url(//evil.example)}</style>",
]
DRAWS = 40 if FULL else 4


def words(value, place=()):
    """The places of all text in a card, keys of open objects included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from words(inner, (*place, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from words(inner, (*place, i))
    elif isinstance(value, str):
        yield place


def harmless_card():
    card = example_card(
        wide=1,
        about=dict.fromkeys(["title", "date", "curator", "population", "intended_use"], "word"),
        facts={f"fact {i}": {"inner": ["word", {"deep": "word"}]} for i in range(40)},
        config={f"option {i}": "word" for i in range(40)},
        expected_error={f"error {i}": "word" for i in range(40)},
        limits=["word"] * 40,
        schema_dict={
            "columns": [
                {"name": f"c{i}", "kind": "category", "categories": [f"a{i}", "b"], "missing": "b"}
                for i in range(30)
            ],
            "items": {"column": "basket", "dictionary": "word"},
        },
    )
    table = {"rows": 3, "columns": [[f"y{i}", "double"] for i in range(5)]}
    card["contents"] = {"main": "data", "tables": {"data": table}, "arrays": {}}
    card["files"] = {"data/data.parquet": {"bytes": 3, "sha256": "word"}}
    return card


FIXED = {"distribution", "neighbours", "unit"}  # the card's schema lets these hold known words only


@pytest.mark.parametrize("draw", range(DRAWS))
def test_hostile_words_never_become_tags(draw):
    card = harmless_card()
    plain_page = Page(render(card))
    assert plain_page.faults() == []
    rng = np.random.default_rng(draw)
    hostile = copy.deepcopy(card)
    placed = 0
    for place in words(card):
        if place[-1] in FIXED:
            continue
        inner = hostile
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = f"{placed}{PAYLOADS[int(rng.integers(len(PAYLOADS)))]}"
        placed += 1
    for name in ("facts", "accuracy"):
        items = list(hostile[name].items())
        hostile[name] = {
            f"{PAYLOADS[i % len(PAYLOADS)]}{i}": value for i, (_, value) in enumerate(items)
        }
    hostile["method"]["config"] = {f"{p}{i}": p for i, p in enumerate([*PAYLOADS, *PAYLOADS][:40])}
    made = Page(render(hostile))
    assert placed >= 300
    assert made.tags == plain_page.tags
    assert made.faults() == []
    names = [(tag, name) for tag, name, _ in made.attributes]
    assert names == [(tag, name) for tag, name, _ in plain_page.attributes]


def test_the_comparison_would_notice(monkeypatch):
    """The same check fails on a page whose words are not escaped."""
    card = harmless_card()
    before = Page(render(card)).tags
    raw = render({**card, "before_dp": "MARK"}).replace("MARK", PAYLOADS[4])
    made = Page(raw)
    assert made.tags != before
    assert made.faults() == ["tag img", "img src", "img onerror"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_terminals_get_letters_only(payload):
    assert visible(payload).isprintable()
    assert "\x1b" not in visible(payload)
