"""The page: true words, nothing that runs or fetches, legible in light, dark and print."""

import re
import subprocess
import sys
from importlib import resources

import pytest

from adumbra.postprocess.pictures import Pictures
from adumbra.report import page
from adumbra.report.page import at_most, number, render
from support.page import Page
from support.release import example_card, example_guarantee, example_release

CONTENTS = {
    "contents": {
        "main": "data",
        "tables": {
            "data": {
                "rows": 50000,
                "columns": [[f"y{i}", "double"] for i in range(16)] + [["n", "int32"], ["w", "string"]],
            },
            "more": {"rows": 3, "columns": [["b", "bool"]]},
        },
        "arrays": {"matrix": {"dtype": "F64", "shape": [302, 16]}, "one": {"dtype": "F64", "shape": []}},
    },
    "files": {"data/data.parquet": {"bytes": 3236123, "sha256": "cd" * 32}},
}


def example(guarantee=None, **changes):
    return {**example_card(guarantee, **changes), **CONTENTS}


@pytest.fixture(scope="module")
def plain_page():
    return Page(render(example(wide=300)))


def test_the_page_says_the_promise_in_words_and_numbers(plain_page):
    text = plain_page.text
    guarantee = example_guarantee()
    for part in (
        "Torn between two equally likely candidates for one row, an attacker picks the right one",
        "at most 54.8 % of the time",
        "A blind guess is right 50 % of the time",
        guarantee.sentence(),
        "The figure at the top is Phi(mu / 2), which bounds the success rate of the best test, averaged",
        "one row replaced",
        "10⁻⁶",
        "County hospital",
        "2026-11-16",
    ):
        assert part in text
    assert at_most(guarantee.mu) in text


def test_the_page_says_what_left_and_who_declared_it(plain_page):
    text = plain_page.text
    for part in (
        "50 000 rows of 18 columns: 16 of decimal numbers, 1 of whole numbers, 1 of text",
        "3 rows of 1 column: 1 of yes or no",
        "302 × 16 numbers",
        "Registry of the county hospital",
        "gene_0 … gene_299",
        "0 to 12.5",
        "north, south, east",
        "the number of rows",
        "rounded normal, standard deviation 17",
        "± 11.47",
        "± 33.32",
        "4 (L2)",
        "adumbra verify .",
        "cd" * 32,
        "3.24 MB",
        "Single rows are drowned in noise",
        "Done to the data, or learned from it, before: not declared.",
    ):
        assert part in text, part
    titles = ["What was released", "What the promise means", "How much noise, how much error"]
    titles += ["Who declared what", "How it was made", "Check it yourself", "What it does not promise"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)


def test_the_page_runs_nothing_and_fetches_nothing(plain_page):
    assert plain_page.faults() == []
    source = render(example())
    assert "http:" not in source
    assert "https:" not in source
    assert "<script" not in source
    policy = [v for t, n, v in plain_page.attributes if n == "content" and v.startswith("default-src")]
    assert policy[0].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    head = plain_page.tags[: plain_page.tags.index("style")]
    assert head[2:4] == ["meta", "meta"]  # the policy comes before anything it must cover


def test_ids_are_unique_and_every_reference_has_one(plain_page):
    ids = [value for _, name, value in plain_page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = [v[1:] for _, n, v in plain_page.attributes if n == "href"]
    links += [v for _, n, v in plain_page.attributes if n == "aria-labelledby"]
    links += [re.search(r"#([\w-]+)", v)[1] for _, n, v in plain_page.attributes if n == "clip-path"]
    assert set(links) <= set(ids)
    assert plain_page.tags.count("svg") == 2
    assert all(
        value for tag, name, value in plain_page.attributes if (tag, name) == ("svg", "aria-label")
    )


def test_a_pure_laplace_release_has_its_own_picture():
    text = Page(render(example(example_guarantee("presence", epsilon=2.0, delta=0.0)))).text
    assert "the factor e to the power 2" in text
    assert "at most 88.1 %" in text
    assert "0 (pure)" in text
    assert "one row more or less" in text
    assert "discrete Laplace, scale 4" in text
    assert "4 (L1)" in text
    assert "standard deviations apart" not in text
    assert (
        "does not cover: column names, kinds, bounds, categories and the label column the method" in text
    )
    assert "the number of rows Done" not in text


def test_a_choice_has_no_curve_of_numbers():
    uses = [
        {"purpose": "choice", "distribution": "gumbel", "scale": 2.0, "sensitivity": None, "grid": 0.0}
    ]
    made = Page(render(example(example_guarantee(delta=0.0), mechanisms=uses, expected_error={})))
    assert made.tags.count("svg") == 1
    assert "Gumbel, for a choice, scale 2" in made.text
    assert "Expected error" not in made.text


def test_several_scales_are_shown_by_their_ends_and_no_noise_by_no_table():
    uses = [{"purpose": "gram", "distribution": "gaussian", "scale": [1.0, 3.0, 2.0], "grid": 0.3}]
    text = Page(render(example(mechanisms=uses))).text
    assert "standard deviation 1 to 3" in text
    assert "± 1.96 to ± 5.88" in text
    without = Page(render(example(mechanisms=[])))
    assert "half of it within" not in without.text


def test_long_declarations_point_to_the_card():
    levels = [[f"l{i}_{j}" for j in range(i % 3 + 8)] for i in range(50)]
    columns = [
        {"name": f"c{i}", "kind": "category", "categories": some} for i, some in enumerate(levels)
    ]
    columns[0]["missing"] = "category"
    columns[1]["missing"] = "l1_3"
    columns[2] = {"name": "odd", "kind": "unknown"}
    schema = {"columns": columns, "items": {"column": "basket", "lower": 0, "upper": 9}}
    text = Page(render(example(schema_dict=schema, declared_by=""))).text
    assert "And 10 more declarations, in card.json." in text
    assert "and 1 more" in text
    assert "a category of its own" in text
    assert "l1_3" in text
    assert "nobody named" in text
    assert "Rows are sets of items: column: basket, lower: 0, upper: 9." in text


def test_nothing_declared_needs_no_table():
    about = {"title": "t", "population": "cohort", "intended_use": "teaching"}
    text = Page(render(example(schema_dict={}, about=about))).text
    assert "anything else counts as" not in text
    assert "Meant for: teaching" in text
    assert "population cohort" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1\u202f234\u202f567"),
        (-3, "−3"),
        (0.1, "0.1"),
        (1e-6, "10⁻⁶"),
        (-2.5e-12, "−2.5 × 10⁻¹²"),
        (148812.3, "1.488 × 10⁵"),
        (True, "True"),
        ("word", "word"),
        (None, "None"),
    ],
)
def test_numbers_for_people(value, shown):
    assert number(value) == shown


def test_parts_of_the_promise_round_up():
    assert at_most(0.23671) == "0.2368"
    assert at_most(1.0) == "1"
    assert at_most(1e-6) == "10⁻⁶"
    assert at_most(None) == "–"


def test_values_of_any_kind_fit_on_one_line():
    value = {"a": None, "b": [True, False], "c": {"d": 1e-7}, "e": "x", "f": 3}
    assert page._value(value) == "a: none, b: yes, no, c: d: 10⁻⁷, e: x, f: 3"


@pytest.mark.parametrize(("size", "shown"), [(999, "999 bytes"), (1000, "1 kB"), (5 * 10**9, "5 GB")])
def test_sizes_for_people(size, shown):
    assert page._bytes(size) == shown


SCRIPT = """
import sys; sys.path.insert(0, sys.argv[1])
from test_page import example
from adumbra.report.page import render
print(render(example()), end="")
"""


def test_the_same_card_gives_the_same_bytes_in_any_process():
    folder = __file__.rsplit("/", 1)[0]
    environment = {"PYTHONHASHSEED": "2", "PYTHONPATH": f"{folder}/../..", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", SCRIPT, folder]
    run = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert run.stdout.decode() == render(example())


def test_drawing_waits_until_a_page_is_made():
    code = (
        "import sys, adumbra.report.page, adumbra.release.storage, adumbra.cli.release_views;"
        "print([m for m in ('matplotlib', 'jinja2', 'jsonschema', 'sqlalchemy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout.strip() == "[]"


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def themes():
    css = resources.files("adumbra.report").joinpath("templates/card.css").read_text()
    found = []
    for block in re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", block))
        found.append(
            {n: "#" + "".join(2 * d for d in c[1:]) if len(c) == 4 else c for n, c in colours.items()}
        )
    return found


def test_every_text_colour_has_enough_contrast_in_every_theme():
    light, dark, paper = themes()
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    for theme in (light, dark, paper):
        for text in ("ink", "muted", "accent", "second"):
            for behind in ("paper", "card", "wash"):
                assert contrast(theme[text], theme[behind]) >= 4.5, (text, behind, theme)


def test_a_written_release_carries_the_page(tmp_path):
    example_release(tmp_path / "r", page=render)
    made = Page((tmp_path / "r/card.html").read_text())
    assert made.faults() == []
    assert "Cohort 7, projected" in made.text


def test_the_page_says_what_each_part_is():
    said = {"data": "Rows <of> all.", "more": "A second table.", "matrix": "The map of it."}
    text = Page(render(example(), Pictures(words=said))).text
    assert all(words in text for words in said.values())
    assert "<of>" not in Page(render(example())).text  # nothing is said of what no method described
