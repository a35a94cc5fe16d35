"""What a plan can say of distances before any data is read: error, best k, and when not to bother.

Every number here comes from the schema, the config and the noise: a guess of the distances is public,
and is the mean of independent uniform columns where the user gives none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adumbra.errors import require
from adumbra.matrices import ProjectionMatrix
from adumbra.mechanisms.projection.rows import RowSpace
from adumbra.numerics import ROW_BITS, figure_upper
from adumbra.postprocess.distances import DistanceModel, NoiseLaw
from adumbra.relations import Moved, Moves, Unit
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.move_sensitivity import cell_widths


def unprojected(space: RowSpace) -> Sensitivity:
    """How far neighbours move rows without a projection: what the noise of plain cells would pay for."""
    relation = space.neighbours
    if isinstance(relation, Moves):
        widths = cell_widths(np.array(space.spans), relation.amount)
        most = float(np.max(widths))
        if relation.what is Moved.CELL:
            return Sensitivity(l1=most, l2=most)
        return Sensitivity(l1=float(np.sqrt(np.sum(widths**2))), l2=most)
    if space.clips_rows:
        return Sensitivity(l1=2.0 * math.sqrt(space.width), l2=2.0)
    # a cell moves 1, a category 2 in L1 and sqrt(2) in L2
    return Sensitivity(l1=2.0, l2=math.sqrt(2.0)) if space.groups else Sensitivity(l1=1.0, l2=1.0)


def rescaled(
    law: NoiseLaw, matrix: ProjectionMatrix, space: RowSpace, k: int, *, norm: int = 2
) -> NoiseLaw:
    """About the noise at another k, for the forecast: rows that move do so by the longest direction."""
    if not (isinstance(space.neighbours, Moves) and space.neighbours.what is Moved.ROW):
        return law
    stretch = _longest(matrix.family, space.width, k) / _longest(
        matrix.family, space.width, matrix.n_components
    )
    stretch *= (k / matrix.n_components) ** 0.5 if norm == 1 else 1.0
    return replace(law, variance=law.variance * stretch**2, fourth=law.fourth * stretch**4)


def _longest(family: str, width: int, k: int) -> float:
    """About the spectral norm of a matrix of the family."""
    if family == "identity":
        return 1.0
    ratio = math.sqrt(width / k)
    return max(ratio, 1.0) if family == "haar" else 1.0 + ratio


def laplace_notes(space: RowSpace, model: DistanceModel, epsilon: float) -> tuple[str, ...]:
    """Where one cell moves: that Laplace noise would be the smaller one, if so."""
    if space.unit is not Unit.ELEMENT:
        return ()
    ours = math.sqrt(model.noise.variance) * model.unit
    theirs = math.sqrt(2.0) * unprojected(space).l1 / epsilon * model.unit
    if theirs >= ours:
        return ()
    said = f"a standard deviation of {theirs:.3g} where this has {ours:.3g}, without a delta"
    price = "Of an account that adds up mu it takes more"
    return (f"For one cell Laplace noise is smaller: jl-laplace has {said}. {price}.",)


def moves_notes(space: RowSpace) -> tuple[str, ...]:
    """What a relation with an amount hides, and what it does not, in plain words."""
    relation = space.neighbours
    if not isinstance(relation, Moves):
        return ()
    amount, widest = relation.figure, max(space.spans)
    if relation.what is Moved.CELL:
        said = f"Hides a change of at most {amount} in one cell, not any change"
        far, what = widest / relation.amount, "a cell that changes over the widest column's range"
    else:
        said = f"Hides a change of one row by at most {amount} in L2, not any change"
        far = math.hypot(*space.spans) / relation.amount
        what = "a row that changes from one corner of its bounds to the other"
    steps = max(1, math.ceil(far * (1.0 - 1e-12)))
    notes = [f"{said}: {what} is up to {steps} such changes, and has {steps} times the epsilon or mu."]
    if relation.amount < widest * 2.0**-ROW_BITS:
        notes.append(
            f"The amount is below 1/{2**ROW_BITS} of the widest column's range, to which cells are "
            "rounded: the rounding sets the noise. Declare narrower bounds, or a larger amount."
        )
    return tuple(notes)


ITEM_UNIT = (
    "One element of an item set is one item more or less in one row. An exchange of one item for "
    "another is two elements: the release promises it twice the epsilon (pure) or twice the mu."
)
GUESSED_ITEMS = 10.0  # squared distance of two item sets that a plan assumes where nothing is said


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Expected errors, and the sentences that go with them."""

    expected: dict[str, float]
    notes: tuple[str, ...]
    table: list[dict[str, float]]  # standard error by number of components


def guessed_distance(space: RowSpace) -> float:
    """The mean squared distance of two rows with independent, uniform columns: a public stand-in.

    A number in [-1/2, 1/2] adds 1/6, two levels 1/2; a category of L levels 2 (1 - 1/L).
    """
    if space.encoder is None:
        return min(GUESSED_ITEMS, float(space.width))
    levels: list[int] = [group.stop - group.start for group in space.groups]
    single = len(space.encoder.numeric) / 6.0 + len(space.halves) / 2.0
    return single + sum(2.0 * (1.0 - 1.0 / count) for count in levels)


def forecast(  # noqa: PLR0913 - the model, what is guessed, and the noise of the alternatives
    model: DistanceModel,
    space: RowSpace,
    *,
    epsilon: float,
    guess: float | None,
    law: Callable[[int], NoiseLaw],
    whole: NoiseLaw,
) -> Forecast:
    """The error of one squared distance at a guessed one.

    `law` is the noise at another k, `whole` the noise without a projection.
    """
    require(
        guess is None or (math.isfinite(guess) and guess > 0), f"distance_guess={guess}: must be above 0"
    )
    rho2 = guess if guess is not None else guessed_distance(space)
    here = _error(model, rho2)
    ladder = {
        k: _error(_at(model, k, law(k)), rho2) for k in component_ladder(space.width, model.family)
    }
    best = min(ladder, key=lambda k: ladder[k])
    expected = {
        "noise_standard_deviation": math.sqrt(model.noise.variance) * model.unit,
        "guessed_squared_distance": rho2,
        "standard_error_of_a_squared_distance": here,
        "best_n_components": float(best),
        "standard_error_at_best_n_components": min(ladder[best], here),
    }
    source = "given" if guess is not None else "guessed from the schema, as if columns were independent"
    by_item = space.encoder is None and space.unit is Unit.ELEMENT
    notes = [
        *([ITEM_UNIT] if by_item else []),
        f"A squared distance of {rho2:.4g} ({source}) is read with a standard error of {here:.4g}.",
        f"For that distance n_components={best} is best (standard error {ladder[best]:.4g}).",
    ]
    unprojected = _error(_at(model, space.width, whole, family="identity"), rho2)
    if unprojected < 0.99 * ladder[best]:
        notes.append(
            f"No projection at all is better still: family=identity, n_components={space.width} "
            f"(standard error {unprojected:.4g})."
        )
    if here > rho2:
        notes.append(
            f"At epsilon={figure_upper(epsilon)} a constant answers every distance better: the standard "
            f"error {here:.4g} exceeds the distances themselves. Only aggregates over many rows carry "
            "information (distances between means of groups, denoised rows, clusters)."
        )
    table = [{"n_components": float(k), "standard_error": ladder[k]} for k in sorted(ladder)]
    return Forecast(expected=expected, notes=tuple(notes), table=table)


def component_ladder(most: int, family: str) -> list[int]:
    """1, 2, 3, ... and then steps of about 5 %, up to the width; identity has only the last."""
    if family == "identity":
        return [most]
    rungs, k = [], 1
    while k < most:
        rungs.append(k)
        k = max(k + 1, round(1.05 * k))
    return [*rungs, most]


def _at(model: DistanceModel, k: int, noise: NoiseLaw, family: str | None = None) -> DistanceModel:
    return replace(model, family=family or model.family, n_components=k, noise=noise)


def _error(model: DistanceModel, rho2: float) -> float:
    return float(model.standard_error(np.asarray(rho2)))
