"""Pictures of released numbers as inline SVG: plain shapes, the page's colours, always the same bytes.

Names from outside never enter a picture: they stand beside it as escaped text. Lists of bars
are lists of HTML, which a screen reader reads as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adumbra.numerics import Array
from adumbra.postprocess.pictures import Bars, Curve, Direction, Heat, Histogram, Pictures, Spectrum
from adumbra.release.promise import raised

FIRST = 12  # histograms shown at once; the others open on demand
MOST_HISTOGRAMS = 400
NUMBERED = 12  # columns of a map up to which each one has its number
LONGEST_NAME = 48
HEIGHT = 40  # of a histogram
SHADES = 5  # steps of a correlation's colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Mini:
    """One column's histogram."""

    name: str
    svg: str
    left: str
    right: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One bar of a list: where it starts and how long it is, in per cent of the space."""

    name: str
    start: str
    length: str
    noise: tuple[str, str] | None  # start and length of the band
    value: str
    is_negative: bool = False


def drawn_or_nothing(pictures: Pictures) -> dict[str, Any] | None:
    """All pictures, or none where one cannot be drawn: its release is paid for by then."""
    try:
        return drawn(pictures)
    except (ArithmeticError, ValueError, IndexError, TypeError):
        return None


def drawn(pictures: Pictures) -> dict[str, Any] | None:
    """All pictures for the template; None where there are none."""
    if not pictures:
        return None
    ordered = sorted(pictures.histograms, key=lambda one: -one.contrast)  # stable: ties in column order
    minis = [mini(one) for one in ordered[:MOST_HISTOGRAMS]]
    return {
        "minis": minis[:FIRST],
        "more": minis[FIRST:],
        "columns": len(ordered),
        "left_out": len(ordered) - len(minis),
        "bars": [(one.title, one.caption, bar_lines(one)) for one in pictures.bars],
        "heat": _heat(pictures.heat),
        "spectrum": _spectrum(pictures.spectrum),
        "curve": _curve(pictures.curve),
        "directions": [(one.title, direction_lines(one)) for one in pictures.directions],
        "directions_are": pictures.directions_are,
    }


def mini(one: Histogram) -> Mini:
    """A histogram with the band of its noise; its levels or bounds stand below."""
    shares = np.maximum(one.shares, 0.0)
    top = max(float((shares + one.reach).max()), 1e-9)
    up = shares + one.reach
    down = np.maximum(shares - one.reach, 0.0)
    width = max(60 // len(shares), 2)
    bars = _steps(shares / top, width, 0)
    band = _band(up / top, down / top, width)
    alt = f"Histogram of {len(shares)} cells; the largest share is {_share(float(shares.max()))}"
    svg = (
        f'<svg viewBox="0 0 {width * len(shares)} {HEIGHT}" role="img" aria-label="{alt}" '
        f'preserveAspectRatio="none"><path class="bar" d="{bars}"/><path class="band" d="{band}"/></svg>'
    )
    ends = one.ends or (figure(one.limits[0]), figure(one.limits[1]))
    left, right = ("", "") if one.levels else ends
    words = _levels_in_words(one) if one.levels else ""
    if one.missing is not None:
        words = f"missing {_share(max(one.missing, 0.0))}"
    return Mini(name=short(one.name), svg=svg, left=left, right=right, words=words)


def _levels_in_words(one: Histogram) -> str:
    """The commonest levels with their shares."""
    order = np.argsort(-one.shares, kind="stable")[:3]
    said = [f"{short(one.levels[i], 18)} {_share(max(float(one.shares[i]), 0.0))}" for i in order]
    return ", ".join(said) + (" …" if len(one.levels) > 3 else "")


def _steps(heights: Array, width: int, gap: int) -> str:
    """Bars from the ground up, as one path."""
    return "".join(
        f"M{width * i} {HEIGHT}v{-max(round(HEIGHT * float(h)), 0)}h{width - gap}V{HEIGHT}z"
        for i, h in enumerate(heights)
        if round(HEIGHT * float(h)) > 0
    )


def _band(up: Array, down: Array, width: int) -> str:
    """The area between two step curves."""
    tops = [HEIGHT - round(HEIGHT * float(h)) for h in up]
    ends = [HEIGHT - round(HEIGHT * float(h)) for h in down]
    forth = "".join(f"V{y}h{width}" for y in tops)
    back = "".join(f"V{y}h{-width}" for y in reversed(ends))
    return f"M0 {ends[0]}{forth}{back}z"


def bar_lines(bars: Bars) -> list[Line]:
    """Bars from 0 to 1 for shares, else to the largest value and its noise."""
    tops = [value + (reach or 0.0) for value, reach in zip(bars.values, bars.reaches, strict=True)]
    top = 1.0 if bars.are_shares and max(tops, default=0.0) <= 1.0 else max([*tops, 1e-12])
    lines = []
    for name, value, reach in zip(bars.names, bars.values, bars.reaches, strict=True):
        size = max(value, 0.0)
        noise = None
        if reach is not None:
            low = max(value - reach, 0.0)
            noise = (_percent(low / top), _percent(max(value + reach - low, 0.0) / top))
        said = _share(size) if bars.are_shares else figure(value)
        error = "" if reach is None else f" ± {_share(reach) if bars.are_shares else figure(reach)}"
        lines.append(
            Line(
                name=short(name), start="0", length=_percent(size / top), noise=noise, value=said + error
            )
        )
    return lines


def direction_lines(direction: Direction) -> list[Line]:
    """Weights to both sides of the middle."""
    top = max((abs(weight) for weight in direction.weights), default=1.0) or 1.0
    return [
        Line(
            name=short(name),
            start=_percent(0.5 + min(weight, 0.0) / top / 2.0),
            length=_percent(abs(weight) / top / 2.0),
            noise=None,
            value=f"{weight:+.2f}".replace("-", "−"),
            is_negative=weight < 0,
        )
        for name, weight in zip(direction.names, direction.weights, strict=True)
    ]


def map_svg(values: Array, count: int, alt: str) -> str:
    """Numbered squares, coloured by sign and size of a number from -1 to 1; NaN is left empty."""
    shades: dict[tuple[str, int], list[str]] = {}
    for row in range(count):
        for column in range(count):
            value = float(values[row, column])
            shade = 0 if math.isnan(value) else round(SHADES * abs(value))
            if shade:
                sign = "more" if value > 0 else "less"
                place = f"M{10 * column} {10 * row}h9v9h-9z"
                shades.setdefault((sign, shade), []).append(place)
    paths = "".join(
        f'<path class="{sign}" fill-opacity="{shade / SHADES:.1f}" d="{"".join(squares)}"/>'
        for (sign, shade), squares in sorted(shades.items())
    )
    side = 10 * count
    wide = max(side, 10 * NUMBERED)  # few columns keep the scale, so that their numbers stay small
    step = 1 if count <= NUMBERED else 4
    ticks = "".join(
        f'<text x="-3" y="{10 * i + 8}" text-anchor="end">{i + 1}</text>'
        f'<text x="{10 * i + 4.5}" y="{side + 10}" text-anchor="middle">{i + 1}</text>'
        for i in range(count)
        if (i + 1) % step == 0 or i == 0
    )
    return (
        f'<svg viewBox="-16 -1 {wide + 17} {side + 15}" role="img" aria-label="{alt}">'
        f'<rect class="ground" x="-1" y="-1" width="{side + 1}" height="{side + 1}"/>{paths}{ticks}'
        "</svg>"
    )


def _heat(heat: Heat | None) -> dict[str, Any] | None:
    """Squares coloured by sign and size, numbered; the names stand in a list."""
    if heat is None:
        return None
    count = len(heat.names)
    alt = f"Map of the correlations of {count} columns; the strongest pairs are listed beside it"
    svg = map_svg(heat.values, count, alt)
    pairs = [
        {
            "first": short(pair.first),
            "second": short(pair.second),
            "value": f"{pair.correlation:+.2f}".replace("-", "−"),
            "reach": f"{pair.reach:.2f}",
        }
        for pair in heat.pairs
    ]
    return {
        "svg": svg,
        "names": [short(name) for name in heat.names],
        "pairs": pairs,
        "standing_out": heat.standing_out,
        "compared": heat.compared,
    }


PLOT_WIDTH, PLOT_HEIGHT, LEFT, BOTTOM = 250, 150, 42, 24


def _spectrum(spectrum: Spectrum | None) -> dict[str, Any] | None:
    """Dots on a logarithmic scale; those below the noise edge are grey."""
    if spectrum is None:
        return None
    values = np.asarray(spectrum.values)
    positive = values[values > 0]
    above = int((values > spectrum.edge).sum())
    if len(positive) == 0 or spectrum.edge <= 0:
        return None
    low = min(float(positive.min()), spectrum.edge) * 0.8
    low = max(low, spectrum.edge / 30.0)
    high = max(float(positive.max()), spectrum.edge) * 1.3
    plot = Plot(x=(0.5, max(len(values), 2) + 0.5), y=(low, high))
    dots = "".join(
        f'<circle class="{"dot" if value > spectrum.edge else "dim"}" cx="{plot.across(i + 1)}" '
        f'cy="{plot.up(float(value))}" r="2.6"/>'
        for i, value in enumerate(values)
        if value >= low
    )
    edge = plot.up(spectrum.edge)
    alt = (
        f"Variances along {len(values)} principal directions; {above} of {spectrum.width} stand above "
        "the noise edge"
    )
    inner = (
        f'<path class="edge" d="M{LEFT} {edge}H{PLOT_WIDTH}"/>'
        f'<text x="{PLOT_WIDTH - 2}" y="{edge - 4}" text-anchor="end">noise edge</text>{dots}'
    )
    svg = plot.framed(inner, alt, [1, len(values)], "direction", "variance")
    return {"svg": svg, "above": above, "width": spectrum.width}


def _curve(curve: Curve | None) -> dict[str, Any] | None:
    """Error over the number of components, both logarithmic."""
    if curve is None or len(curve.at) < 2:
        return None
    every = [*curve.errors, curve.chosen[1], curve.distance]
    if min(every) <= 0 or not all(map(math.isfinite, every)):
        return None
    plot = Plot(x=(min(curve.at), max(curve.at)), y=(min(every) * 0.8, max(every) * 1.25), is_log_x=True)
    points = zip(curve.at, curve.errors, strict=True)
    path = "M" + "L".join(f"{plot.across(k)} {plot.up(error)}" for k, error in points)
    level = plot.up(curve.distance)
    inner = (
        f'<path class="edge" d="M{LEFT} {level}H{PLOT_WIDTH}"/>'
        f'<text x="{PLOT_WIDTH - 2}" y="{level - 4}" text-anchor="end">the distance itself</text>'
        f'<path class="line" d="{path}"/>'
        f'<circle class="dot" r="5" cx="{plot.across(curve.chosen[0])}" '
        f'cy="{plot.up(curve.chosen[1])}"/>'
    )
    alt = (
        f"Expected error of a squared distance by number of components; here {curve.chosen[0]:.0f} "
        f"components give {curve.chosen[1]:.3g}"
    )
    svg = plot.framed(inner, alt, [curve.at[0], curve.at[-1]], "number of components", "error")
    return {
        "svg": svg,
        "k": f"{curve.chosen[0]:.0f}",
        "error": figure(curve.chosen[1]),
        "distance": figure(curve.distance),
        "drowns": curve.chosen[1] > curve.distance,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A pair of axes; the upward one is logarithmic."""

    x: tuple[float, float]
    y: tuple[float, float]
    is_log_x: bool = False

    def across(self, value: float) -> float:
        """Where a value stands from the left."""
        low, high = self.x
        if self.is_log_x:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        part = (value - low) / (high - low) if high > low else 0.5
        return round(LEFT + 8 + part * (PLOT_WIDTH - LEFT - 16), 1)

    def up(self, value: float) -> float:
        """Where a value stands from the top."""
        low, high = math.log(self.y[0]), math.log(self.y[1])
        part = (math.log(max(value, self.y[0])) - low) / (high - low)
        return round(6 + (1.0 - part) * (PLOT_HEIGHT - BOTTOM - 8), 1)

    def framed(self, inner: str, alt: str, ticks: Sequence[float], across: str, upward: str) -> str:
        """The axes with their ends, and what is drawn in them."""
        ground = PLOT_HEIGHT - BOTTOM
        marks = "".join(
            f'<text x="{LEFT if i == 0 else PLOT_WIDTH - 2}" y="{PLOT_HEIGHT - 8}" '
            f'text-anchor="{"start" if i == 0 else "end"}">{tick:g}</text>'
            for i, tick in enumerate(ticks)
        )
        ends = "".join(
            f'<text x="{LEFT - 4}" y="{self.up(value) + (9 if value == self.y[1] else 0)}" '
            f'text-anchor="end">{figure(value, 2)}</text>'
            for value in self.y
        )
        middle = (LEFT + PLOT_WIDTH) // 2
        return (
            f'<svg viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" role="img" aria-label="{alt}">'
            f'<path class="axis" d="M{LEFT} 4V{ground}H{PLOT_WIDTH}"/>{inner}{marks}{ends}'
            f'<text x="{middle}" y="{PLOT_HEIGHT - 8}" text-anchor="middle">{across}</text>'
            f'<text x="11" y="{ground // 2}" text-anchor="middle" '
            f'transform="rotate(-90 11 {ground // 2})">{upward}</text></svg>'
        )


def short(name: str, most: int = LONGEST_NAME) -> str:
    """A name that fits its place."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def figure(value: float, digits: int = 3) -> str:
    """A number for people, in few letters."""
    if value and (abs(value) >= 1e7 or abs(value) < 1e-3):
        return raised(f"{value:.{digits - 1}e}".replace("e+0", "e").replace("e-0", "e-"))
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f").replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def _share(value: float) -> str:
    """A share in per cent."""
    percent = 100.0 * value
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %"


def _percent(part: float) -> str:
    """A length in a style attribute."""
    return f"{min(max(100.0 * part, 0.0), 100.0):.1f}"
