"""How far neighbours move the rows that are projected, where no row is clipped; and what to say of it.

    one-element   one cell over the range of its column, or one category for another
    cell-moves    one cell by at most the amount of the relation
    row-moves     one row by at most that amount in L2

Proof       dppro.proof.md and jl_laplace.proof.md, of `unclipped_sensitivity`.
"""

import math
from dataclasses import replace

import numpy as np

from adumbra.matrices import ProjectionMatrix
from adumbra.mechanisms.projection.rows import RowSpace
from adumbra.numerics import ROW_BITS
from adumbra.postprocess.distances import DistanceModel, NoiseLaw
from adumbra.relations import Moved, Moves, Unit
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.move_sensitivity import (
    cell_move_sensitivity,
    cell_widths,
    row_move_sensitivity,
)
from adumbra.statistics.projection_sensitivity import element_sensitivity


def unclipped_sensitivity(space: RowSpace, matrix: ProjectionMatrix) -> Sensitivity:
    """How far neighbours move x R for this matrix, in L1 and L2."""
    relation = space.neighbours
    if not isinstance(relation, Moves):
        return element_sensitivity(matrix, groups=space.groups)
    spans = np.array(space.spans)
    if relation.what is Moved.CELL:
        return cell_move_sensitivity(matrix, spans, relation.amount)
    return row_move_sensitivity(matrix, spans, relation.amount)


def unprojected(space: RowSpace) -> Sensitivity:
    """The same without a projection, for the forecast: what the noise of plain cells would pay for."""
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
