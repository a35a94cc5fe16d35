"""Planted bugs of bought bounds and levels."""

import numpy as np

from adumbra.audit import wrong
from adumbra.audit.mutant import attack_mutant, replay_mutant, sensitivity_mutant
from adumbra.data.sources import Batch
from adumbra.mechanisms.bounds import plan, release
from adumbra.mechanisms.bounds.plan import Parts
from adumbra.privacy.conversion import mu_of
from adumbra.statistics import histograms
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.histograms import CellRows, cell_rows

REPLACED, GROWN, PURE = "bounds/replace-one", "bounds/add-remove", "bounds/pure/replace-one"


def of_one_column(_columns: int, _neighbours: object) -> Sensitivity:
    """One row moves one cell, as if there were one column."""
    return Sensitivity(l1=2.0, l2=2.0**0.5)


def own_grid(batch: Batch, parts: Parts) -> CellRows:
    """Cells between the least and the largest value of the block, not of the public grid."""
    codes = np.empty((len(batch), len(parts.columns)), np.int64, order="F")
    for at, place in enumerate(parts.places):
        values = batch.values[:, place]
        low, high = values.min(), values.max()
        codes[:, at] = (values - low) / max(high - low, 1e-9) * (parts.histograms.cells[at] - 1)
    return cell_rows(codes, parts.histograms.cells)


BOUNDS_MUTANTS = (
    replay_mutant(
        name="bounds: found in counts without noise",
        case=REPLACED,
        patches=lambda: [(release, "noisy", wrong.without_noise)],
    ),
    sensitivity_mutant(
        name="bounds: all columns at the price of one",
        case=PURE,
        patches=lambda: [(histograms, "histogram_sensitivity", of_one_column)],
    ),
    attack_mutant(
        name="bounds: twice the budget",
        case=GROWN,
        patches=lambda: [(plan, "mu_of", lambda *budget: 2.0 * mu_of(*budget))],
    ),
    sensitivity_mutant(
        name="bounds: cells between the data's own ends",
        case=REPLACED,
        patches=lambda: [(release, "cell_block", own_grid)],
    ),
)
