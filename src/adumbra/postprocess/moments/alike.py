"""Histograms of columns with like cells, read together.

Many columns show a shape that none of them shows alone. Of few numbers there are three readings: the
shape with the directions above the noise and with what loud cells have beyond them; the shape with
smooth differences; and each column by itself, around the shape of the others or a plain density. They
are averaged by their squared errors as Stein estimates them. All arguments are released numbers.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from adumbra.numerics import Array
from adumbra.postprocess.marginals import COMMON_COLUMNS, project_simplex
from adumbra.postprocess.matrices import shrink_rectangular
from adumbra.postprocess.moments.bayes import (
    Flags,
    apart_counts,
    counts_posterior,
    densities,
    ordered_signal,
    smooth_each,
    sparse_signal,
    stands_alone,
)
from adumbra.postprocess.moments.design import Feature
from adumbra.postprocess.moments.stein import Reading, averaged

FEW_COLUMNS = 64  # up to which a common shape may hide one that has a shape of its own, ...
VERY_FEW = 32  # ... and so many where a cell has more noise than rows: there more of them know more
MOST_CELLS = 128  # up to which cells are compared with each other: that takes the cube of them


@dataclass(frozen=True, slots=True)
class Alike:
    """Columns with as many cells, all with the same noise."""

    totals: Array  # rows of each column
    sigma: float
    widths: Array | None  # of the cells of numbers; None: pairs of levels
    is_few: bool = True  # whether there are few columns in all


def read_alike(
    counts: Sequence[Array], widths: Sequence[Array | None], totals: Sequence[float], sigma: float
) -> list[Array | None]:
    """The counts of columns with as many cells as others have; None for those with too few alike."""
    found: list[Array | None] = [None] * len(counts)
    groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for place, own in enumerate(counts):
        groups[len(own), widths[place] is None].append(place)
    for (size, _), places in groups.items():
        if len(places) < COMMON_COLUMNS or size < 2:
            continue
        known = [w / float(w.sum()) for w in (widths[place] for place in places) if w is not None]
        rows = np.array([totals[place] for place in places])
        few = FEW_COLUMNS if sigma * size <= float(rows.mean()) else VERY_FEW
        cells = np.mean(known, axis=0) if known and size > 2 else None
        group = Alike(rows, sigma, cells, is_few=len(counts) <= few)
        for place, row in zip(places, _read(group, np.stack([counts[p] for p in places])), strict=True):
            found[place] = row
    return found


def _read(group: Alike, table: Array) -> Array:
    """Every column's counts, without negative ones and with its total, by the mean of the readings."""
    if group.sigma <= 0.0:
        return project_simplex(table, group.totals)
    if group.widths is None or not group.is_few or table.shape[1] > MOST_CELLS:
        return _by_directions(group, table)
    alone = stands_alone(group.widths)
    readings: tuple[Reading, ...] = (
        partial(_by_directions, group),
        partial(_by_smooth_differences, group, alone),
        partial(_each_alone, group, group.widths, alone),
    )
    return averaged(readings, table, group.sigma)


def _shape(group: Alike, table: Array) -> Array:
    """The mean of all columns, which has noise of its own: it drowns where even their sum does."""
    shape = table.mean(axis=0)
    if group.widths is None:
        return np.asarray(shape)
    sigma, total = group.sigma / math.sqrt(len(table)), float(group.totals.mean())
    widths = group.widths if len(shape) <= MOST_CELLS else None
    return counts_posterior(shape, sigma, total, widths)


def _by_directions(group: Alike, table: Array) -> Array:
    """The shape plus singular directions above the noise; of few numbers, plus what loud cells have.

    A column unlike the others (a target, say) is one direction among few, which the noise edge hides;
    its loudest cells still stand out. The strengths of all cells are found together. With many columns
    the shape knows more, and what little is left of their noise would fill empty cells.
    """
    shape = _shape(group, table)
    found = shape + shrink_rectangular(table - shape, group.sigma)[0]
    if group.widths is not None and len(table) <= FEW_COLUMNS:
        found = found + sparse_signal(table - found, found, group.sigma**2)[1]
    return project_simplex(found, group.totals)


def _by_smooth_differences(group: Alike, alone: Flags, table: Array) -> Array:
    """The shape plus what columns have beyond it, if neighbouring cells differ alike."""
    shape = np.broadcast_to(_shape(group, table), table.shape)
    found = shape + ordered_signal(table - shape, shape, group.sigma**2, alone)
    return project_simplex(found, group.totals)


def _each_alone(group: Alike, widths: Array, alone: Flags, table: Array) -> Array:
    """Each column by its likeliest reading: cells apart, or smooth around a density or other columns."""
    columns, cells = table.shape
    totals = np.maximum(group.totals, 1.0)[:, None]
    seen = table - (table.sum(axis=1, keepdims=True) - totals) / cells
    spread, even = group.sigma * math.sqrt(1.0 - 1.0 / cells), totals / cells
    apart = [apart_counts(row, float(e), spread) for row, e in zip(seen, even[:, 0], strict=True)]
    best = np.array([likely for likely, _ in apart])
    found = np.stack([counts for _, counts in apart])
    others = project_simplex((table.sum(axis=0) - table) / (columns - 1), totals[:, 0])
    means = [(law * totals, spread**2) for law in densities(widths)]
    means.append((others, spread**2 + group.sigma**2 / (columns - 1)))
    for law, variance in means:
        shape = np.where(alone, even.mean(), law.mean(axis=0)) ** 2
        likely, beyond = smooth_each(seen - law, shape, variance, alone)
        square = ((seen - law) ** 2).sum(axis=1)
        likely -= 0.5 * (square / variance + cells * math.log(variance / spread**2))
        is_better = likely > best
        best = np.where(is_better, likely, best)
        found[is_better] = (law + beyond)[is_better]
    return project_simplex(found, group.totals)


def shared_shapes(measured: list[tuple[Feature, Array]], sigma: float) -> dict[int, Array]:
    """Counts over all classes of categories that declare the same levels: answers on one scale, say.

    Each level's count is drawn to its mean over these columns, as far as noise explains how they vary.
    """
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, (feature, _) in enumerate(measured):
        if feature.levels:
            alike[feature.levels, feature.cells].append(place)
    found: dict[int, Array] = {}
    for places in alike.values():
        if len(places) >= COMMON_COLUMNS:
            counts = np.stack([measured[place][1].sum(axis=0) for place in places])
            shape, varied = counts.mean(axis=0), counts.var(axis=0, ddof=1)
            kept = 1.0 - np.minimum(sigma**2 / np.maximum(varied, 1e-300), 1.0)
            found |= dict(zip(places, shape + (counts - shape) * kept, strict=True))
    return found
