"""What both sides of an answers release share: its columns, their caps, and the weights of its sums.

A cap is a bound that was bought: the end of a cell of the noisy histogram with few rows beyond it. The
released sums are of numbers moved to their caps, so the caps are a part of every answer's truth.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import require
from adumbra.numerics import Array
from adumbra.postprocess.marginals import cell_limits
from adumbra.postprocess.moments.design import Feature, features_of
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Schema

CELLS = 32  # equal cells of a number's histogram; fine ones near the lower bound beside them
CAP_SIGMAS = 2.0  # rows beyond a cap, in standard deviations of their noisy count, at most
NUMBER_SQUARE = 4  # a number in [-1/2, 1/2] of squared weight 4 is as long as a one-hot group of 1

Cap = tuple[float, float]


def asked_schema(schema: Schema, names: Sequence[str]) -> Schema:
    """The schema of the declared columns alone (all, if none are named), without a label."""
    require(schema.items is None, "items: item sets have no columns; use the method top-k or moments")
    unknown = [name for name in names if name not in schema.names]
    require(not unknown, f"columns={unknown[:1]}: not in the schema; use names of its columns")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    require(not twice, f"columns={twice[:1]}: stands there twice; give each name once")
    kept = tuple(column for column in schema.columns if not names or column.name in names)
    return replace(schema, columns=kept, label=None, constraints=(), rules=(), derived=(), patterns=())


def counted_features(asked: Schema) -> tuple[Feature, ...]:
    """The cells in which each column is counted."""
    return features_of(asked, None, is_binned=True, parts=CELLS)


def choose_caps(
    features: Sequence[Feature], histograms: Sequence[Array], sigma: float, share: float
) -> tuple[Cap, ...]:
    """The caps of each number, from noisy counts: about a share of the rows lies beyond each."""
    return tuple(
        _cap(feature, counts, sigma, share)
        for feature, counts in zip(features, histograms, strict=True)
        if feature.edges is not None
    )


def _cap(feature: Feature, counts: Array, sigma: float, share: float) -> Cap:
    """The ends of the cells at which the counted rows pass the share and the noise of so many cells."""
    assert feature.edges is not None  # noqa: S101 - of a number
    low, high = cell_limits(feature.edges, feature.is_integer)
    last = len(counts) - 1
    noise = CAP_SIGMAS * sigma * np.sqrt(np.arange(1, last + 2))
    limit = np.maximum(share * max(float(counts.sum()), 1.0), noise)
    first = _first(np.cumsum(counts) > limit)
    end = last - _first(np.cumsum(counts[::-1]) > limit)
    if first > end:  # noise alone
        first, end = 0, last
    while high[end] <= low[first] and (first > 0 or end < last):  # one value: its neighbours too
        first, end = max(first - 1, 0), min(end + 1, last)
    # the bounds are cells of their own, a hair wide
    return (
        feature.lower if first <= 1 and not feature.is_integer else float(low[first]),
        feature.upper if end >= last - 1 and not feature.is_integer else float(high[end]),
    )


def shares_beyond(
    features: Sequence[Feature], histograms: Sequence[Array], caps: Sequence[Cap]
) -> tuple[float, ...]:
    """The share of rows beyond the caps of each number, by noisy counts: which cells lie outside."""
    found, numbers = [], iter(caps)
    for feature, counts in zip(features, histograms, strict=True):
        if feature.edges is not None:
            low, high = cell_limits(feature.edges, feature.is_integer)
            least, most = next(numbers)
            outside = float(counts[(high < least) | (low > most)].sum())
            found.append(min(max(outside / max(float(counts.sum()), 1.0), 0.0), 1.0))
    return tuple(found)


def _first(marks: NDArray[np.bool_]) -> int:
    """The first place that is marked; one after the last, if none is."""
    return int(np.argmax(marks)) if marks.any() else len(marks)


def column_squares(layout: Layout, outcome: str | None) -> tuple[int, ...]:
    """Squared weights of encoded columns and, last, of the constant.

    The constant and the outcome count as much as the square root of the number of columns: sums and
    products with them are in every answer, and the others get little more noise for it.
    """
    strong = max(1, math.isqrt(len(layout.features)))
    squares: list[int] = []
    for column in layout.features:
        part = strong if column.name == outcome else 1
        squares += [NUMBER_SQUARE * part] if column.is_numeric else [part] * column.levels
    return (*squares, strong)
