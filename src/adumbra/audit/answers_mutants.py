"""Planted bugs of a release made for answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adumbra.audit import wrong
from adumbra.audit.mutant import attack_mutant, replay_mutant, sensitivity_mutant
from adumbra.audit.pairs import REPLACE, WIDTH, Tables, labelled, table_of
from adumbra.data.encode import CappedEncoder
from adumbra.data.sources import Batch
from adumbra.mechanisms.answers import plan, release
from adumbra.numerics import Array
from adumbra.relations import Neighbours
from adumbra.statistics import box_moments

REPLACED, GROWN = "answers/replace-one", "answers/add-remove"


def without_weights(shape: Any, _weights: Sequence[int], neighbours: Neighbours) -> Any:  # noqa: ANN401
    """The bound of rows whose columns all weigh the same."""
    return box_moments.joint_l2_square(shape, neighbours)


def light_outcome(weights: tuple[int, ...], places: Any) -> Array:  # noqa: ANN401
    """Every column gets the noise of the strongest one."""
    return RIGHT(tuple(max(weights) for _ in weights), places)


RIGHT = box_moments.weighted_factors


def lone_row() -> Tables:
    """One row far from all others, or among them: it alone makes the range."""
    rows = np.repeat(np.append(np.full(WIDTH, 0.02), 0.0)[None], 50, axis=0)
    far = rows.copy()
    far[0, :WIDTH] = 1.0
    return table_of(labelled(REPLACE), rows), table_of(labelled(REPLACE), far)


def own_caps(self: CappedEncoder, batch: Batch) -> Array:
    """Numbers are scaled by the least and largest of the block, not by their caps."""
    encoded = ENCODE(self, batch)
    for place in self.numeric:
        low, high = encoded[:, place].min(), encoded[:, place].max()
        encoded[:, place] = (encoded[:, place] - (low + high) / 2.0) / max(high - low, 1e-9)
    return encoded


ENCODE = CappedEncoder.encode

ANSWERS_MUTANTS = (
    sensitivity_mutant(
        name="answers: the sensitivity of columns without weights",
        case=REPLACED,
        patches=lambda: [(box_moments, "weighted_l2_square", without_weights)],
    ),
    attack_mutant(
        name="answers: every column gets the noise of the strongest",
        case=GROWN,
        patches=lambda: [(box_moments, "weighted_factors", light_outcome)],
    ),
    replay_mutant(
        name="answers: caps and counts without noise",
        case=REPLACED,
        patches=lambda: [(release, "noisy", wrong.without_noise)],
    ),
    sensitivity_mutant(
        name="answers: histograms and sums at the price of one",
        case=GROWN,
        patches=lambda: [(plan, "split_mu", wrong.whole_budget)],
    ),
    sensitivity_mutant(
        name="answers: numbers scaled by the data's own range",
        case=REPLACED,
        patches=lambda: [(CappedEncoder, "encode", own_caps)],
        tables=lone_row,
    ),
)
