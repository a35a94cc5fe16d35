"""The card's template is compiled while rows are read."""

import subprocess
import sys
import time
from functools import cache

from adumbra.report import page


def test_one_caller_compiles_and_the_other_waits_for_it(monkeypatch):
    made = []

    @cache
    def slow(name):
        made.append(name)
        time.sleep(0.05)
        return object()

    monkeypatch.setattr(page, "_compiled", slow)
    page.compile_behind()
    while not made:
        time.sleep(0.001)
    assert page.template(page.CARD) is page.template(page.CARD)
    page.compile_behind()
    assert made == [page.CARD]


def test_a_template_that_was_compiled_behind_is_the_one_that_is_used():
    code = (
        "from adumbra.report import page\n"
        "page.compile_behind()\n"
        "print(page.template(page.CARD).name, page._compiled.cache_info().misses)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["card.html.j2", "1"]
