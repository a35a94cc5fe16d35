"""Pictures on the page: small, escaped, readable without a script, the same bytes each time."""

import re

import numpy as np
import pytest

from adumbra.postprocess.pictures import (
    Bars,
    Curve,
    Direction,
    Heat,
    Histogram,
    Pair,
    Pictures,
    Spectrum,
)
from adumbra.report.drawing import (
    FIRST,
    MOST_HISTOGRAMS,
    bar_lines,
    drawn,
    drawn_or_nothing,
    figure,
    map_svg,
    mini,
    short,
)
from adumbra.report.page import render
from support.page import Page
from support.release import example_card

HOSTILE = '"><script>alert(1)</script><svg onload=x>&'
CONTENTS = {"contents": {"main": None, "tables": {}, "arrays": {}}, "files": {}}


def full(columns=30, name="c"):
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(34), columns)
    numbers = [
        Histogram(name=f"{name}{i}", shares=one - 0.001, reach=0.004, limits=(-1e9, 0.0001))
        for i, one in enumerate(shares)
    ]
    levels = Histogram(
        name=name,
        shares=np.array([0.5, 0.3, -0.1, 0.2]),
        reach=0.1,
        levels=(name, "b", "c", "d"),
        missing=0.1,
    )
    values = rng.uniform(-1, 1, (4, 4))
    np.fill_diagonal(values, np.nan)
    pair = Pair(first=name, second=name, correlation=-0.5, reach=0.1)
    return Pictures(
        histograms=(*numbers, levels),
        bars=(
            Bars(title=name, caption=name, names=(name, "z"), values=(2.0, -1.0), reaches=(0.5, None)),
        ),
        heat=Heat(names=(name,) * 4, values=values, pairs=(pair,), standing_out=1, compared=6),
        spectrum=Spectrum(values=np.array([3.0, 1.0, 0.1, -1.0]), edge=0.5, width=9),
        curve=Curve(at=(1.0, 4.0, 9.0), errors=(3.0, 2.0, 5.0), chosen=(4.0, 2.0), distance=1.0),
        directions=(Direction(title=name, names=(name, "y"), weights=(0.5, -0.25)),),
        directions_are="Directions.",
    )


def page(pictures):
    return render({**example_card(), **CONTENTS}, pictures)


def test_the_page_shows_every_kind_and_runs_nothing():
    source = page(full())
    made = Page(source)
    assert made.faults() == []
    for words in (
        "What it shows",
        "Values of 31 columns",
        f"{31 - FIRST} more columns",
        "Correlations",
        "1 of 6 pairs of columns stand out",
        "Directions that stand out",
        "2 of 9 stand above the noise edge",
        "Error of distances",
        "4 components, error 2. That is more than the distance itself",
        "−0.50 ± 0.10",
        "missing 10 %",
    ):
        assert words in made.text, words
    labels = [value for tag, name, value in made.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(labels) == made.tags.count("svg")
    assert all(labels)
    assert made.tags.count("details") == 1


def test_without_pictures_the_page_has_no_such_section():
    assert "What it shows" not in page(Pictures())
    assert ".minis" not in page(Pictures())


def test_a_strangers_names_are_text():
    plain, hostile = Page(page(full())), Page(page(full(name=HOSTILE)))
    assert hostile.tags == plain.tags
    assert hostile.faults() == []
    assert HOSTILE[:20] in hostile.text


def test_the_bytes_are_a_function_of_the_numbers():
    assert page(full()) == page(full())
    assert page(full()) != page(full(columns=29))


@pytest.mark.parametrize("columns", [300, 3000])
def test_a_wide_card_stays_small(columns):
    source = page(full(columns))
    assert len(source.encode()) < 1_000_000
    if columns > MOST_HISTOGRAMS:
        assert f"And {columns + 1 - MOST_HISTOGRAMS:,}".replace(",", " ") in Page(source).text


def test_the_clearest_columns_come_first():
    flat = Histogram(name="flat", shares=np.full(4, 0.25), reach=0.01)
    sharp = Histogram(name="sharp", shares=np.array([0.9, 0.1, 0, 0]), reach=0.01)
    shown = drawn(Pictures(histograms=(flat, sharp)))
    assert [one.name for one in shown["minis"]] == ["sharp", "flat"]


def test_bars_and_bands_have_the_right_heights():
    made = mini(
        Histogram(name="a", shares=np.array([0.5, 0.25, -0.1]), reach=0.1, levels=("x", "y", "z"))
    )
    bars = re.search(r'class="bar" d="([^"]*)"', made.svg)[1]
    assert [int(h) for h in re.findall(r"v-(\d+)", bars)] == [33, 17]  # 40 * 0.5 / 0.6, 40 * 0.25 / 0.6
    band = re.search(r'class="band" d="([^"]*)"', made.svg)[1]
    assert [int(y) for y in re.findall(r"V(\d+)h20", band)] == [0, 17, 33]  # tops: 0.6, 0.35, 0.1
    assert made.words == "x 50 %, y 25 %, z 0.0 %"


def test_lists_of_bars_keep_their_scale():
    lines = bar_lines(
        Bars(
            title="t",
            caption="c",
            names=("a", "b"),
            values=(8.0, 4.0),
            reaches=(2.0, 5.0),
            are_shares=False,
        )
    )
    assert [line.length for line in lines] == ["80.0", "40.0"]
    assert lines[0].noise == ("60.0", "40.0")
    assert lines[1].noise == ("0.0", "90.0")
    assert lines[1].value == "4 ± 5"


def test_figures_are_short():
    assert figure(-12345.0) == "−12\u202f345"
    assert figure(0.25) == "0.25"
    assert figure(0.0) == "0"
    assert figure(1.2e9) == "1.20 × 10⁹"
    assert figure(4e-5) == "4.00 × 10⁻⁵"
    assert short("x" * 80) == "x" * 47 + "…"


@pytest.mark.parametrize(
    "odd",
    [
        Pictures(spectrum=Spectrum(values=np.array([-1.0, -2.0]), edge=0.5, width=2)),
        Pictures(spectrum=Spectrum(values=np.array([1e-300, 0.0]), edge=1e300, width=2)),
        Pictures(curve=Curve(at=(3.0,), errors=(1.0,), chosen=(3.0, 1.0), distance=1.0)),
        Pictures(curve=Curve(at=(1.0, 2.0), errors=(0.0, 1.0), chosen=(1.0, 0.0), distance=1.0)),
        Pictures(histograms=(Histogram(name="", shares=np.full(1, -5.0), reach=0.0),)),
        Pictures(bars=(Bars(title="", caption="", names=("a",), values=(-9.0,), reaches=(1.0,)),)),
        Pictures(directions=(Direction(title="", names=("a",), weights=(0.0,)),)),
    ],
)
def test_any_released_number_can_be_drawn(odd):
    drawn(odd)  # does not raise
    source = page(odd)
    assert Page(source).faults() == []
    assert "nan" not in source.split("</style>")[1].lower().replace("finance", "")


def test_what_cannot_be_drawn_is_left_out():
    heat = Heat(names=("a", "b", "c"), values=np.zeros((2, 2)), pairs=(), standing_out=0, compared=1)
    broken = Pictures(heat=heat)
    assert drawn_or_nothing(broken) is None
    assert "What it shows" not in page(broken)


def test_bars_of_shares_reach_from_0_to_1():
    bars = Bars(
        title="classes",
        caption="",
        names=("a", "b"),
        values=(0.3, 0.2),
        reaches=(0.01, 0.01),
        are_shares=True,
    )
    assert [line.length for line in bar_lines(bars)] == ["30.0", "20.0"]


@pytest.mark.parametrize("count", [2, 4, 12, 40])
def test_a_map_of_few_columns_is_drawn_no_larger_than_one_of_twelve(count):
    """Its numbers grew with its squares: four columns had numerals as large as a headline."""
    _, _, wide, high = map(int, re.search(r'viewBox="(\S+) (\S+) (\d+) (\d+)"', svg_of(count)).groups())
    assert wide == max(10 * count, 120) + 17
    assert high == 10 * count + 15


def svg_of(count):
    return map_svg(np.full((count, count), 0.5), count, "a map")
