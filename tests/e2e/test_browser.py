"""Every kind of page in headless Chromium: phone, tablet and desktop, light, dark and printed."""

import pytest

from adumbra.evaluate import beside, learning
from support.browser import Browser
from support.pages import KINDS, evaluation_of, figure_of, notebook_of, release_of

WIDTHS = (320, 768, 1280)
PAPER = 680  # pixels between the margins of an A4 page
VIEWS = [(width, scheme, "screen") for width in WIDTHS for scheme in ("light", "dark")]
VIEWS.append((PAPER, "dark", "print"))  # paper is white for a reader who prefers dark, too
DRAWN = '<svg aria-label="a" viewBox="0 0 90 20" width="90">'
PLANTED = {  # one fault each, and the words that must name it
    "contrast": ('<p style="color:#999">pale words</p>', "contrast 2.8"),
    "contrast on a shape": (
        f'{DRAWN}<rect width="90" height="20" fill="#222"/><text x="2" y="14">dark on dark</text></svg>',
        "contrast 1.",
    ),
    "contrast by opacity": ('<div style="opacity:.4"><p>faded words</p></div>', "contrast "),
    "part of a picture": (
        f'{DRAWN}<path class="bar" fill="#ddd" d="M0 0h9v9z"/></svg>',
        "picture's part",
    ),
    "width": ('<p style="width:2000px">wide</p>', "the page is 2"),
    "cut": ('<p style="overflow:hidden;white-space:nowrap;width:40px">many more words</p>', "cut off"),
    "covered": (
        '<p>hidden words</p><p style="background:#fff;position:relative;top:-2.2em">above</p>',
        "covered by",
    ),
    "script": ("<script>1</script>", "active"),
    "handler": ('<p onclick="1">words</p>', "handler"),
    "words": ('<svg viewBox="0 0 9 9" width="9"></svg>', "picture without words"),
    "heading": ("<h4>too deep</h4>", "leaves a level out"),
    "id": ('<p id="one">a</p><p id="one">b</p>', "two elements with id"),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def few_models():
    """Trees and SDMetrics take most of the time, and a page shows one model as it shows three."""
    with pytest.MonkeyPatch.context() as patch:
        for models in (learning.CLASSIFIERS, learning.REGRESSORS):
            patch.delitem(models, "boosted trees")
        patch.delitem(learning.CLASSIFIERS, "random forest")
        patch.setattr(beside, "JUDGED_COLUMNS", 4)  # SDMetrics takes a fit for each pair of them
        yield


@pytest.fixture(scope="module")
def pages(tmp_path_factory, few_models):
    """The file of every kind of page."""
    folder = tmp_path_factory.mktemp("pages")
    made = {name: release_of(name, folder / name) for name in KINDS}
    found = {name: folder / name / "card.html" for name in KINDS}
    found["figure of plans"] = figure_of(folder)
    found["evaluation"] = folder / "evaluation.html"
    evaluation_of([made["moments"], folder / "moments"]).save(found["evaluation"])
    found["notebook"] = folder / "notebook.html"
    found["notebook"].write_text(notebook_of(made["moments"]), encoding="utf-8")
    return found


@pytest.mark.parametrize("name", [*KINDS, "evaluation", "figure of plans", "notebook"])
def test_a_page_is_clean_in_every_view(browser, pages, name):
    assert browser.open(pages[name].as_uri()) == []
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    found = []
    for view in VIEWS if name != "notebook" else VIEWS[:6:2]:  # a notebook has its own colours
        browser.view(*view)
        found += [f"{view}: {fault}" for fault in browser.faults()]
    assert found == []
    assert browser.heard() == []


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(browser, tmp_path, name):
    body, words = PLANTED[name]
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>t</title><body style='background:#fff'><h1>One</h1>{body}")
    browser.open(page.as_uri())
    browser.view(320)
    assert [fault for fault in browser.faults() if words in fault]


def test_requests_and_the_console_are_heard(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><h1>One</h1><img alt=a src=absent.png><script>console.log(1)</script>"
    )
    heard = browser.open(page.as_uri())
    assert any("absent.png" in line for line in heard)
    assert any("consoleAPICalled" in line for line in heard)
    page.write_text("<!doctype html><h1>One</h1><p>clean")
    assert browser.open(page.as_uri()) == []
    browser.view(320)
    assert browser.faults() == []


def test_closed_parts_are_printed(browser, pages):
    """Paper cannot be clicked: what a reader would open is there, or its absence is said."""
    browser.open(pages["moments"].as_uri())
    inside = "[...document.querySelectorAll('details .minis li')]"
    count = f"{inside}.filter((one) => one.checkVisibility()).length"
    browser.view(PAPER)
    assert browser.run(count) == 0
    browser.view(PAPER, media="print")
    assert browser.run(count) > 0
