"""The internal page: empirical attacks on one release, stamped NOT FOR RELEASE.

It is made from private rows, so it may never lie in a release folder, and it says in its first line
that its scores are evidence about particular attacks and no guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adumbra.report.page import template

STAMP = "NOT FOR RELEASE"


@dataclass(frozen=True, slots=True)
class Score:
    """One attack in words."""

    name: str
    meaning: str
    score: str
    blind: str
    reading: str


def render_internal(facts: Mapping[str, Any]) -> str:
    """The page of `adumbra.audit.internal.facts`."""
    page: str = template("internal.html.j2").render(facts=facts, scores=scores(facts), stamp=STAMP)
    return page


def scores(facts: Mapping[str, Any]) -> list[Score]:
    """Every score beside that of a blind guess."""
    error, shadow = float(facts["standard_error"]), facts["shadow_error"]
    found = [
        _advantage("Membership, density ratio", DENSITY, facts["density_advantage"], error),
        _advantage("Membership, shadow releases", SHADOW, facts["shadow_advantage"], shadow),
        _advantage("Attribute from the others", ATTRIBUTE, facts["attribute_advantage"], error),
    ]
    ratio = float(facts["distance_ratio"])
    far = "members are no nearer to the release than people who were left out"
    near = "members are nearer to the release than people who were left out: look closer"
    found.append(Score("Nearest row", DISTANCE, f"{ratio:.2f}", "1.00", near if ratio < 0.8 else far))
    return found


DENSITY = "Is the release denser about members than about people like them who were left out?"
SHADOW = "Can the member who stands out most be told from releases with and without that row?"
ATTRIBUTE = "Is a hidden column guessed better for members than for people who were left out?"
DISTANCE = "Median distance of members to the nearest released row, over that of people left out."


def _advantage(name: str, meaning: str, value: float | None, error: float | None) -> Score:
    if value is None or error is None:
        return Score(name, meaning, "–", "0", "not run")
    reading = "stands out of chance: look closer" if value > 3 * error else "no better than chance"
    return Score(name, meaning, _signed(value, error), "0", reading)


def _signed(value: float, error: float) -> str:
    return f"{value:+.2f} ± {2 * error:.2f}".replace("-", "−")
