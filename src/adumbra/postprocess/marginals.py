"""Noisy one-way histograms made into distributions, and distributions into values.

project      to the simplex: the nearest distribution in L2
merge        neighbouring cells joined until each holds a share of the rows, rare levels joined to one
fill         ranks to values: exactly the distribution's own share of rows in each cell
"""

import numpy as np

from adumbra.numerics import Array, Ints

_EMPTY = -(2.0**80)  # no count comes near
COMMON_COLUMNS = 8  # columns with like cells before a common shape is looked for


def project_simplex(rows: Array, totals: Array | float = 1.0) -> Array:
    """Each row's nearest vector (L2) without negative entries and with the given total.

    A cell of minus infinity stays empty.
    """
    table = np.maximum(np.atleast_2d(rows), _EMPTY)
    wanted = np.maximum(np.broadcast_to(np.asarray(totals, np.float64), (len(table),)), 0.0)
    ordered = -np.sort(-table, axis=1)
    excess = (np.cumsum(ordered, axis=1) - wanted[:, None]) / np.arange(1, table.shape[1] + 1)
    last = np.maximum((ordered - excess > 0).sum(axis=1) - 1, 0)
    level = excess[np.arange(len(table)), last]
    return np.asarray(np.maximum(table - level[:, None], 0.0)).reshape(np.shape(rows))


def merge_cells(weights: Array, parts: int, least: float) -> Ints:
    """The group of each cell: neighbours joined up to 1/parts of all weights, and `least` anyhow."""
    enough = max(float(weights.sum()) / parts, least)
    groups = np.zeros(len(weights), np.int64)
    group, held = 0, 0.0
    for cell, weight in enumerate(weights):
        if held > 0 and (held >= enough or (weight >= enough and held >= least)):
            group, held = group + 1, 0.0
        groups[cell] = group
        held += float(weight)
    if held < least and group > 0:
        groups[groups == group] = group - 1
    return groups


def merge_rare(weights: Array, least: float) -> Ints:
    """The group of each level: levels below `least` are one group, the last."""
    is_rare = weights < least
    groups = np.where(is_rare, np.sum(~is_rare), np.cumsum(~is_rare) - 1)
    return np.asarray(groups, np.int64)


def cell_means(edges: Array, is_integer: bool) -> Array:
    """The middle of each cell."""
    low, high = cell_limits(edges, is_integer)
    return np.asarray((low + high) / 2.0)


def cell_limits(edges: Array, is_integer: bool) -> tuple[Array, Array]:
    """The smallest and largest value of each cell; of an integer column, whole numbers.

    A cell that holds a single float (a bound of its own) has no width.
    """
    if not is_integer:
        low, high = edges[:-1], edges[1:]
        return low, np.where(np.nextafter(low, np.inf) >= high, low, high)
    low, high = np.ceil(edges[:-1]), np.ceil(edges[1:]) - 1.0
    return low, np.maximum(low, high)


def quota(shares: Array, rows: int) -> Ints:
    """Rows for each cell: the rounded differences of the cumulated shares."""
    total = float(shares.sum())
    share = shares / total if total > 0 else np.full(len(shares), 1.0 / len(shares))
    ends = np.rint(np.cumsum(share) * rows).astype(np.int64)
    ends[-1] = rows
    return np.asarray(np.diff(ends, prepend=0), np.int64)


def fill(order: Ints, shares: Array, limits: tuple[Array, Array]) -> Array:
    """Values for rows in this (ascending) order: each cell gets its quota, spread evenly in the cell."""
    counts = quota(shares, len(order))
    cells = np.repeat(np.arange(len(shares)), counts)
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    low, high = limits
    spread = (within + 0.5) / np.maximum(counts, 1)[cells]
    values = np.empty(len(order))
    values[order] = low[cells] + spread * (high - low)[cells]
    return values
