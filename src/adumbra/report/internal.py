"""Empirical attacks on one release in words, for the page of an evaluation. NOT FOR RELEASE.

Scores are evidence about particular attacks, and no guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LOUD = 3.0  # standard errors above which an advantage is called more than chance
NEAR = 0.8  # ratio of distances below which members are called nearer


@dataclass(frozen=True, slots=True)
class Score:
    """One attack in words."""

    name: str
    meaning: str
    score: str
    blind: str
    reading: str


def scores(facts: Mapping[str, Any]) -> list[Score]:
    """Every score beside that of a blind guess."""
    error, shadow = float(facts["standard_error"]), facts["shadow_error"]
    found = [
        _advantage("Membership, density ratio", DENSITY, facts["density_advantage"], error),
        _advantage("Membership, shadow releases", SHADOW, facts["shadow_advantage"], shadow),
        _advantage("Attribute from the others", ATTRIBUTE, facts["attribute_advantage"], error),
    ]
    ratio = float(facts["distance_ratio"])
    limit = f"the line is drawn at {NEAR:.2f}, by hand: this score has no error bar"
    far = f"members are not much nearer to the release than people who were left out ({limit})"
    near = f"members are nearer to the release than people who were left out: look closer ({limit})"
    found.append(Score("Nearest row", DISTANCE, f"{ratio:.2f}", "1.00", near if ratio < NEAR else far))
    return found


DENSITY = "Is the release denser about members than about people like them who were left out?"
SHADOW = "Can the member who stands out most be recognised from releases with and without that row?"
ATTRIBUTE = "Is a hidden column guessed better for members than for people who were left out?"
DISTANCE = "Median distance of members to the nearest released row, over that of people left out."


def _advantage(name: str, meaning: str, value: float | None, error: float | None) -> Score:
    if value is None or error is None:
        return Score(name, meaning, "–", "0", "not run")
    limit = LOUD * error
    if limit >= 1.0:  # no advantage can be above 1
        few = "too few trials: even a certain attack could not be distinguished from chance"
        return Score(name, meaning, f"{value:+.2f}".replace("-", "−"), "0", few)
    reading = "stands out of chance: look closer" if value > limit else "no better than chance"
    shown = f"{value:+.2f} ± {2 * error:.2f}".replace("-", "−")
    return Score(name, meaning, shown, "0", f"{reading} (the line is drawn at +{limit:.2f})")
