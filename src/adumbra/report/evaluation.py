"""The page of an evaluation, stamped NOT FOR RELEASE: real rows beside released ones.

`render_evaluation` takes plain numbers, as `adumbra.evaluate` made them; names are escaped text beside
the pictures. Nothing here reads rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adumbra.report.drawing import HEIGHT, figure, map_svg, short
from adumbra.report.internal import scores
from adumbra.report.page import template

FIRST = 12  # columns shown at once
MOST = 120  # columns drawn at all
LISTED = 12
STYLES = ("one", "two", "three", "four")  # of the lines of releases; more share the last


def render_evaluation(facts: Mapping[str, Any], *, is_whole: bool = True) -> str:
    """The page, or its first table alone for a notebook."""
    drawn = [_columns(one) for one in facts["histograms"][:MOST]]
    page: str = template("evaluation.html.j2").render(
        facts=facts,
        table=summary(facts),
        first=drawn[:FIRST],
        more=drawn[FIRST:],
        left_out=len(facts["histograms"]) - len(drawn),
        maps=_maps(facts),
        attacks=_attacks(facts),
        styles=[STYLES[min(at, len(STYLES) - 1)] for at in range(len(facts["releases"]))],
        listed=LISTED,
        is_whole=is_whole,
    )
    return page


def summary(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The first table: one line per measure, one column per table."""
    heads = ["real rows", *(one["name"] for one in facts["releases"]), "independent columns"]
    lines = []
    for name, better, values in (*_errors(facts), *_learned(facts), *_judged(facts)):
        shown = zip(heads, map(_figure, values), strict=True)
        lines.append({"name": name, "better": better, "values": list(shown)})
    return {"heads": heads, "lines": lines}


Line = tuple[str, str, Sequence[object]]  # what is measured, which value is best, one value per table


def _errors(facts: Mapping[str, Any]) -> Iterator[Line]:
    """Errors of columns and pairs."""
    ways, pairs = facts["one_way"], facts["pairs"]
    for part, words in (("mean", "mean over columns"), ("worst", "worst column")):
        values = [ways["chance"][part], *(one[part] for one in ways["releases"]), 0.0]
        yield f"error of a column's values, {words}", "0 is best", values
    if pairs is not None:
        for part, words in (("mean", "mean over pairs"), ("worst", "worst pair")):
            released = [one[part] for one in pairs["releases"]]
            values = [pairs["chance"][part], *released, pairs["independent"][part]]
            yield f"error of a pair of columns, {words}", "0 is best", values
    if facts["impossible"]["real"] is not None:
        shares = [facts["impossible"]["real"], *facts["impossible"]["releases"], None]
        yield "share of rows that break a declared rule", "0 is best", shares


def _learned(facts: Mapping[str, Any]) -> Iterator[Line]:
    """What models learned."""
    if facts["classify"] is not None:
        target = short(facts["classify"]["target"], 24)
        for model, found in facts["classify"]["models"].items():
            title = f"{model}, predicting {target}: area under the curve"
            yield title, "1 is best, 0.5 is a guess", [one["auc"] for one in found]
    if facts["regress"] is not None:
        target = short(facts["regress"]["target"], 24)
        for model, found in facts["regress"]["models"].items():
            yield f"{model}, predicting {target}: R²", "1 is best, 0 is the mean", found
    title = f"distance to {facts['clusters']['clusters']} centres found, over that to real centres"
    yield title, "1 is best", facts["clusters"]["ratios"]


def _judged(facts: Mapping[str, Any]) -> Iterator[Line]:
    """SDMetrics' scores."""
    judged = facts["sdmetrics"]
    for name in _properties(judged):
        found = [one.get(name) for one in judged["scores"]]
        yield f"SDMetrics {judged['version']}: {name}", "1 is best", [None, *found, None]


def _properties(judged: Mapping[str, Any]) -> list[str]:
    """The scores that SDMetrics gave to any release."""
    return list(dict.fromkeys(name for one in judged["scores"] for name in one if name != "error"))


def _figure(value: object, digits: int = 3) -> str:
    if not isinstance(value, int | float):
        return "–"
    if 0 < abs(value) < 0.5 * 10.0**-digits:
        return figure(value, 2)
    return f"{value:.{digits}f}".replace("-", "−")


def _columns(one: Mapping[str, Any]) -> dict[str, Any]:
    """One column: real bars, one line per release, its errors."""
    real = np.asarray(one["real"])
    released = [np.asarray(part) for part in one["released"]]
    numeric = one["limits"] is not None
    if numeric and max([real[-1], *(part[-1] for part in released)]) == 0:  # nothing is missing
        real, released = real[:-1], [part[:-1] for part in released]
    top = max(1e-9, float(real.max(initial=0.0)), *(float(part.max(initial=0.0)) for part in released))
    width = max(64 // len(real), 3)
    bars = "".join(
        f"M{width * at} {HEIGHT}v{-round(HEIGHT * share / top)}h{width}V{HEIGHT}z"
        for at, share in enumerate(real)
        if round(HEIGHT * share / top) > 0
    )
    lines = "".join(
        f'<path class="{STYLES[min(at, len(STYLES) - 1)]}" d="{_step_line(part / top, width)}"/>'
        for at, part in enumerate(released)
    )
    alt = f"Histogram of {len(real)} cells: real rows as bars, {len(released)} released as lines"
    svg = (
        f'<svg viewBox="0 -1 {width * len(real)} {HEIGHT + 1}" role="img" aria-label="{alt}" '
        f'preserveAspectRatio="none"><path class="real" d="{bars}"/>{lines}</svg>'
    )
    ends = [figure(end) for end in one["limits"]] if numeric else _ends(one["levels"])
    errors = ", ".join(f"{error:.3f}" for error in one["errors"])
    return {"name": short(one["column"]), "svg": svg, "ends": ends, "errors": errors}


def _ends(levels: Sequence[str]) -> list[str]:
    return (
        [short(levels[0], 12), short(levels[-1], 12)] if len(levels) > 1 else [*map(short, levels), ""]
    )


def _step_line(heights: Any, width: int) -> str:  # noqa: ANN401 - an array of heights from 0 to 1
    tops = [HEIGHT - round(HEIGHT * float(height)) for height in heights]
    return f"M0 {tops[0]}" + "".join(f"V{top}h{width}" for top in tops)


def _maps(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A map of pair errors for each release, with the worst pairs."""
    if facts["pairs"] is None:
        return []
    made = []
    for about, one in zip(facts["releases"], facts["pairs"]["releases"], strict=True):
        values = np.asarray(one["map"])
        top = max(float(values.max(initial=0.0)), 1e-9)
        pairs = [
            {
                "names": f"{short(pair['first'])}, {short(pair['second'])}",
                "error": f"{pair['error']:.3f}",
            }
            for pair in one["worst_pairs"]
        ]
        made.append(
            {
                "name": about["name"],
                "svg": _map_svg(values / top),
                "darkest": f"{top:.3f}",
                "names": [short(name) for name in one["names"]],
                "pairs": pairs,
            }
        )
    return made


def _map_svg(parts: Any) -> str:  # noqa: ANN401 - a square array of parts from 0 to 1
    """Squares by the size of the error, numbered, in the colour of what is lost; none for one column."""
    count = len(parts)
    alt = f"Map of the errors of pairs of {count} columns; the worst pairs are listed beside it"
    return map_svg(np.where(np.eye(count, dtype=bool), 0.0, -parts), count, alt)


def _attacks(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Scores of the attacks on each release, in words."""
    return [
        {"name": about["name"], "facts": found, "scores": scores(found)}
        for about, found in zip(facts["releases"], facts["attacks"] or [], strict=False)
    ]
