# ruff: noqa: ANN401 - a wrong version stands in for functions of many types
"""Planted bugs that an earlier auditor called sound; each has a check that was made for it."""

from dataclasses import replace
from typing import Any

from adumbra.audit import planted
from adumbra.audit.mutant import SMALL_EPSILON, Mutant, replay_mutant, sensitivity_mutant
from adumbra.audit.planted import Patch, altered_draw, with_fact
from adumbra.mechanisms import box_release
from adumbra.mechanisms.moments import release as synthesizer
from adumbra.mechanisms.moments.plan import GRAM
from adumbra.mechanisms.topk import methods
from adumbra.mechanisms.topk.svt import Asked, drawing, label_columns, marker
from adumbra.numerics import Array
from adumbra.postprocess.moments.laws import choose_radius

GENEROUS = 50  # times the budget that a comparison may spend
WIDE_RADIUS = 0.05  # of the edges of `moments` on its case: above what likely noise chooses


def _compare_at_leisure(grant: Any, step: str, halves: Any, threshold: int, schedule: Any) -> Any:
    """Comparisons with noise for fifty times the budget."""
    generous = replace(
        schedule, threshold=GENEROUS * schedule.threshold, column=GENEROUS * schedule.column
    )
    noise = {"thresholds": drawing(grant, marker(step)), "columns": drawing(grant, step)}
    return label_columns(halves, threshold, generous, **noise)


def unseen_comparisons(grant: Any, step: str) -> Any:
    """`label_columns` called directly: the grant sees no step."""
    return lambda *asked: _compare_at_leisure(grant, step, *asked)


def described_otherwise(grant: Any, step: str) -> Any:
    """The right schedule is described to the grant, and another one runs."""

    def compare(*asked: Any) -> Any:
        return grant.step(Asked(*asked), lambda: _compare_at_leisure(grant, step, *asked))

    return compare


def narrow_where_wide() -> list[Patch]:
    """The Gram of `moments` gets a third of its noise in one branch of the noisy radius."""
    right_noisy, right_radius = synthesizer.noisy, choose_radius
    chosen: list[float] = []

    def choose(lengths: Array, edges: Array, quantile: float) -> float:
        chosen.append(right_radius(lengths, edges, quantile))
        return chosen[-1]

    def noisy(exact: Any, noise: Any, grant: Any, name: str, weights: Any = None) -> Array:
        if name == GRAM and chosen[-1] > WIDE_RADIUS:
            noise = replace(noise, scale=noise.scale / 3)
        return right_noisy(exact, noise, grant, name, weights)

    return [(synthesizer, "choose_radius", choose), (synthesizer, "noisy", noisy)]


def some_half(_draft: Any, source: Any, _grant: Any) -> bool:
    """Whether some cell is one half."""
    return bool((planted.rows_of(source) == 0.5).any())


def half_declared() -> list[Patch]:
    """The card of PCA and LDA declares half of the sensitivity that the noise is made for."""
    right = box_release.MomentNoise.entry

    def wrong_entry(self: Any) -> Any:
        entry = right(self)
        return replace(entry, sensitivity=entry.sensitivity / 2)

    return [(box_release.MomentNoise, "entry", wrong_entry)]


REASSURING: tuple[Mutant, ...] = (
    Mutant(
        name="comparisons of fifty times the budget, outside every step",
        check="steps",
        case="topk/svt/replace-one",
        patches=lambda: [(methods, "comparing", unseen_comparisons)],
        config=SMALL_EPSILON,
    ),
    Mutant(
        name="comparisons of fifty times the budget that is described",
        check="steps",
        case="topk/svt/add-remove",
        patches=lambda: [(methods, "comparing", described_otherwise)],
        config=SMALL_EPSILON,
    ),
    sensitivity_mutant(
        name="moments: a third of the noise in one branch of the noisy radius",
        case="moments/replace-one",
        patches=narrow_where_wide,
    ),
    replay_mutant(
        name="a fact that says whether some cell is one half",
        case="ron-gauss/private/replace-one",
        patches=lambda: altered_draw("ron-gauss", with_fact("half", some_half)),
    ),
    sensitivity_mutant(
        name="half of the sensitivity on the card of LDA",
        case="lda/replace-one",
        patches=half_declared,
    ),
)
