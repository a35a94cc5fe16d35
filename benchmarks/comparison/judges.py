"""The judges of `peers.py`: the same for every method, on held-out real rows."""

import warnings
from itertools import combinations

import numpy as np

from adumbra.evaluate import tstr, utility

RARE = 0.01  # a level held by fewer real rows than this share is rare
MOST_CELLS = 2**18  # more cells are renumbered by those that occur
TREES, PAIRS = 101, 500  # boosted trees up to this width; at most so many pairs and triples


def total_variation(left, right, chosen):
    """Mean total variation over sets of columns."""
    sizes = 1 + np.maximum(left.max(axis=0, initial=0), right.max(axis=0, initial=0))
    found = []
    for places in chosen:
        cells, width = np.zeros(len(left) + len(right), np.int64), 1
        for place in places:
            cells *= sizes[place]
            cells[: len(left)] += left[:, place]
            cells[len(left) :] += right[:, place]
            width *= int(sizes[place])
        if width > MOST_CELLS:
            _, cells = np.unique(cells, return_inverse=True)
            width = int(cells.max(initial=0)) + 1
        p, q = (
            np.bincount(part, minlength=width) / max(len(part), 1)
            for part in (cells[: len(left)], cells[len(left) :])
        )
        found.append(np.abs(p - q).sum() / 2)
    return float(np.mean(found))


def sets_of(width, order, seed=0):
    """All pairs (or triples) of columns, or PAIRS of them drawn with a fixed public seed."""
    if width <= 14 or (order == 2 and width * (width - 1) / 2 <= PAIRS):
        every = list(combinations(range(width), order))
        if len(every) <= PAIRS:
            return every
    rng = np.random.default_rng(seed)
    return [tuple(sorted(rng.choice(width, order, replace=False))) for _ in range(PAIRS)]


def rare_levels(left, right):
    """Sum of |share - true share| over rare levels, as a part of their true share; None without any."""
    wrong, whole = 0.0, 0.0
    for place in range(right.shape[1]):
        size = int(max(left[:, place].max(initial=0), right[:, place].max(initial=0))) + 1
        p, q = (
            np.bincount(side[:, place], minlength=size) / max(len(side), 1) for side in (left, right)
        )
        rare = (q > 0) & (q < RARE)
        wrong, whole = wrong + np.abs(p - q)[rare].sum(), whole + q[rare].sum()
    return float(wrong / whole) if whole else None


def scores(synthetic, test, schema):
    """Every score of one synthetic (or real) table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # slow convergence of the judge's own models
        found = {"lr_auc": tstr.logistic(synthetic, test, schema).auc}
        if schema.width <= TREES:
            found["trees_auc"] = tstr.boosted(synthetic, test, schema).auc
    left, right = (utility.table_codes(table, schema) for table in (synthetic, test))
    for order, name in ((1, "one_way_tv"), (2, "two_way_tv"), (3, "three_way_tv")):
        chosen = [(i,) for i in range(schema.width)] if order == 1 else sets_of(schema.width, order)
        found[name] = total_variation(left, right, chosen)
    rare = rare_levels(left, right)
    return {**found, **({} if rare is None else {"rare_levels": rare})}
