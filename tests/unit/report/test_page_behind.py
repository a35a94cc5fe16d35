"""The card's template is compiled while rows are read."""

import re
import time
from functools import cache
from importlib import resources
from threading import Thread

import jinja2
import pytest

from adumbra.report import page


def test_one_caller_compiles_and_the_other_waits_for_it(monkeypatch):
    made = []

    @cache
    def slow(name):
        made.append(name)
        time.sleep(0.05)
        return jinja2.Environment(
            autoescape=True, loader=jinja2.DictLoader(dict.fromkeys(page.CARD_PARTS, ""))
        ).from_string("")

    monkeypatch.setattr(page, "_compiled", slow)
    behind = Thread(target=page.compile_card)
    behind.start()
    while not made:
        time.sleep(0.001)
    assert page.template(page.CARD) is page.template(page.CARD)
    behind.join()
    page.compile_card()
    assert made == [page.CARD]


@pytest.fixture
def fresh():
    page._compiled.cache_clear()
    yield
    page._compiled.cache_clear()


def test_every_part_of_the_card_is_compiled_before_it_is_filled_in(fresh):
    page.compile_card()
    source = (resources.files("adumbra.report") / "templates" / page.CARD).read_text(encoding="utf-8")
    included = set(re.findall(r'{% include "(.+?)" %}', source))
    compiled = {name for _, name in page.template(page.CARD).environment.cache}
    assert included == set(page.CARD_PARTS)
    assert compiled == {page.CARD, *included}
