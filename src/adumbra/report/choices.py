"""A drawing of plans over the budget: expected error of each method, and the attacker's chance.

A file of its own (SVG), with its colours for light and dark. Only our own names and numbers go in.
"""

import html
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from adumbra.release.promise import percent
from adumbra.report.drawing import figure

PANEL_WIDTH, PANEL_HEIGHT, MARGIN = 310, 220, 20
LEFT, TOP, BOTTOM = 20, 66, 34
STYLE = (
    "<style>text{font:11px system-ui,sans-serif;fill:#1c2330}.t{font-weight:600;font-size:13px}"
    ".m{fill:#566070}.a{fill:none;stroke:#566070;stroke-width:.8}.l{fill:none;stroke:#0a6b6b;stroke-width:2}"
    ".d{fill:#0a6b6b}.s{stroke:#9a4f0a}.e{fill:#9a4f0a}.p{fill:#fffefb}"
    "@media(prefers-color-scheme:dark){text{fill:#e9e6df}.m{fill:#a9b3c1}.a{stroke:#a9b3c1}.l{stroke:#62cfc6}"
    ".d{fill:#62cfc6}.s{stroke:#f2ad66}.e{fill:#f2ad66}.p{fill:#1a202a}}</style>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One method over budgets."""

    method: str
    words: str  # what the error is
    at: tuple[float, ...]
    errors: tuple[float, ...]
    chances: tuple[float, ...]


def choices_figure(curves: Sequence[Curve]) -> str:
    """The drawing: the attacker's chance first, then one panel per method."""
    panels = []
    alike: dict[tuple[tuple[float, ...], tuple[float, ...]], list[str]] = {}
    for one in curves:
        alike.setdefault((one.at, one.chances), []).append(one.method)
    for (at, chances), names in alike.items():
        points = [(x, float(percent(chance))) for x, chance in zip(at, chances, strict=True)]
        words = "the best attacker is right at most so often, in % (50 is a blind guess)"
        words = words if len(alike) == 1 else f"{', '.join(names)}: {words}"
        panels.append(_panel("attacker", words, points, is_log=False, style="s"))
    panels += [
        _panel(
            one.method, f"expected {one.words}", list(zip(one.at, one.errors, strict=True)), is_log=True
        )
        for one in curves
    ]
    columns = min(max(len(panels), 1), 3)
    rows = math.ceil(max(len(panels), 1) / columns)
    width, height = columns * PANEL_WIDTH + MARGIN, rows * PANEL_HEIGHT + MARGIN
    placed = "".join(
        f'<g transform="translate({MARGIN // 2 + PANEL_WIDTH * (at % columns)} '
        f'{MARGIN // 2 + PANEL_HEIGHT * (at // columns)})">{panel}</g>'
        for at, panel in enumerate(panels)
    )
    listed = ", ".join(one.method for one in curves)
    title = f"Attacker's chance and expected error by epsilon: {listed}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f'<title>{html.escape(title)}</title>{STYLE}<rect class="p" width="{width}" height="{height}"/>'
        f"{placed}</svg>\n"
    )


def _panel(
    title: str, words: str, points: Sequence[tuple[float, float]], *, is_log: bool, style: str = ""
) -> str:
    """One pair of axes; epsilon is logarithmic, the error too where it is above 0."""
    budgets, values = [x for x, _ in points], [y for _, y in points]
    is_log = is_log and min(values) > 0
    low, high = (min(values) * 0.9, max(values) * 1.1) if is_log else (50.0, max([55.0, *values]))
    if not is_log and style == "":
        low, high = min([0.0, *values]), max([1e-9, *values])

    def across(x: float) -> float:
        ends = math.log(min(budgets)), math.log(max(budgets))
        part = (math.log(x) - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5
        return round(LEFT + 30 + part * (PANEL_WIDTH - LEFT - 98), 1)

    def up(y: float) -> float:
        scale = math.log if is_log else float
        part = (scale(y) - scale(low)) / (scale(high) - scale(low))
        return round(PANEL_HEIGHT - BOTTOM - part * (PANEL_HEIGHT - TOP - BOTTOM), 1)

    ground = PANEL_HEIGHT - BOTTOM
    path = "M" + "L".join(f"{across(x)} {up(y)}" for x, y in points)
    line = f'<path class="l {style}" d="{path}"/>'
    anchor = ' text-anchor="end"' if style else ""  # the attacker's line rises, errors fall
    dots = "".join(
        f'<circle class="{"e" if style else "d"}" cx="{across(x)}" cy="{up(y)}" r="3.5"/>'
        f'<text x="{across(x) + (3 if style else 5)}" y="{up(y) - 7}"{anchor}>{figure(y)}</text>'
        f'<text class="m" x="{across(x)}" y="{ground + 14}" text-anchor="middle">{x:g}</text>'
        for x, y in points
    )
    said = "".join(
        f'<text class="m" x="4" y="{26 + 12 * at}">{html.escape(part)}</text>'
        for at, part in enumerate(_wrapped(words))
    )
    return (
        f'<text class="t" x="4" y="12">{html.escape(title)}</text>{said}'
        f'<path class="a" d="M{LEFT} {TOP - 8}V{ground}H{PANEL_WIDTH - 20}"/>{line}{dots}'
        f'<text class="m" x="{PANEL_WIDTH // 2 + 10}" y="{PANEL_HEIGHT - 6}" text-anchor="middle">'
        "epsilon</text>"
    )


def _wrapped(words: str, most: int = 50) -> list[str]:
    """At most three lines."""
    lines = textwrap.wrap(words, most)
    return lines if len(lines) <= 3 else [*lines[:2], f"{lines[2][: most - 1]}…"]
