"""From a release to what can be asked of it: released arrays, the card's noise, the schema's cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adumbra.answers.columns import ColumnCells, cells_of, class_cells
from adumbra.answers.histograms import HistogramAnswers, Joint
from adumbra.answers.rows import CellRow
from adumbra.errors import Unsupported, require
from adumbra.numerics import Array
from adumbra.postprocess.capped import asked_schema
from adumbra.postprocess.moments.design import (
    BINS,
    FINER_CELLS,
    NUMBER_CELLS,
    NUMBERS,
    PAIRS,
    Feature,
    features_of,
    label_of,
)
from adumbra.postprocess.moments.laws import CellNoise, with_pooled
from adumbra.release.artifact import Release
from adumbra.schema.schema import Schema

MARGINALS, ONE_WAY = "marginals", "one_way"
DECLARED = "columns"  # a fact of the card


def read_histograms(*releases: Release) -> HistogramAnswers:
    """The histograms of a release, with their noise; of several of the same rows, by precision."""
    parts = [_counts(release) for release in releases]
    schema, columns = counted_schema(releases[0]), parts[0].columns
    label, classes = label_of(schema)
    same = [part.layout for part in parts]
    require(
        all(layout == same[0] for layout in same),
        "combine: the releases count columns in different cells; ask each of them",
    )
    counts, sigma = _averaged([(part.counts, part.sigma) for part in parts])
    tables = split(counts, columns, label, classes)
    pooled, found = Pooled(), [part.pooled for part in parts if part.pooled is not None]
    if found:
        counts, second = _averaged(found)
        pooled = Pooled(_split(counts, [f.counted for f in columns] + [classes], ONE_WAY), second)
    is_laplace = any(part.is_laplace for part in parts)
    return assemble(schema, columns, tables, (sigma, is_laplace), pooled)


def _averaged(released: Sequence[tuple[Array, float]]) -> tuple[Array, float]:
    """Counts of the same cells by precision, and their standard deviation."""
    weights = precisions([sigma for _, sigma in released])
    parts = [weight * counts for weight, (counts, _) in zip(weights, released, strict=True)]
    return np.asarray(sum(parts, np.zeros(()))), sum(sigma**-2 for _, sigma in released) ** -0.5


def counted_schema(release: Release) -> Schema:
    """The columns that were counted: all, or those that the card of an answers release declares."""
    declared = release.card["facts"].get(DECLARED)
    return release.schema if declared is None else asked_schema(release.schema, declared)


def precisions(sigmas: Sequence[float]) -> list[float]:
    """Weights that add up to 1 and give the least variance."""
    exact = [sigma**-2 for sigma in sigmas]
    return [one / sum(exact) for one in exact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of one release, and what its card says of them."""

    counts: Array
    columns: list[Feature]
    layout: tuple[object, object, object, object]
    sigma: float
    is_laplace: bool
    pooled: tuple[Array, float] | None  # counts over all classes, and their standard deviation


@dataclass(frozen=True, slots=True)
class Pooled:
    """The histograms of all columns over all classes, the label's own last; or none at all."""

    histograms: list[Array] = field(default_factory=list, repr=False)
    sigma: float = math.inf


def _counts(release: Release) -> Counts:
    """The released counts, and how they are laid out."""
    schema, facts = counted_schema(release), release.card["facts"]
    if NUMBERS not in facts or NUMBER_CELLS not in facts:
        raise Unsupported(
            "card: says nothing of the cells of its histograms (an older version made it); release again"
        )
    label, _ = label_of(schema)
    layout = (facts[NUMBERS], facts[NUMBER_CELLS], facts.get(FINER_CELLS, 0), facts.get(PAIRS, False))
    parts, steps = int(layout[1]), int(layout[2])
    features = features_of(
        schema,
        label,
        is_binned=layout[0] == BINS,
        parts=parts,
        steps=steps,
        pairs_by_class=bool(layout[3]),
    )
    sigma, is_laplace = noise_of(release.card)
    pooled = None
    if ONE_WAY in release.arrays:
        second, _ = noise_of(release.card, ONE_WAY)
        pooled = (np.asarray(release.arrays[ONE_WAY], np.float64), second)
    return Counts(
        counts=np.asarray(release.arrays[MARGINALS], np.float64),
        columns=[feature for feature in features if not feature.is_flag],
        layout=layout,
        sigma=sigma,
        is_laplace=is_laplace,
        pooled=pooled,
    )


def split(counts: Array, columns: list[Feature], label: int | None, classes: int) -> list[Array]:
    """Each histogram as classes x cells; the label's own is the last, if there is one.

    Finer ones are left out: answers are sums of many cells, which wide ones give with less noise.
    """
    shapes = [(classes if feature.is_levels else 1, feature.counted) for feature in columns]
    finer = [(classes, len(f.finer) - 1) for f in columns if f.finer is not None]
    own = [(classes, 1)] if label is not None else []
    sizes = [rows * cells for rows, cells in (*shapes, *finer, *own)]
    pieces = _split(counts, sizes, MARGINALS)
    del pieces[len(shapes) : len(shapes) + len(finer)]
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes + own, strict=True)]


def _split(counts: Array, sizes: Sequence[int], name: str) -> list[Array]:
    """One array per histogram."""
    require(len(counts) == sum(sizes), f"{name}: does not fit the card's schema; is it damaged?")
    return np.split(counts, np.cumsum(sizes)[:-1])


def noise_of(card: dict[str, Any], purpose: str = MARGINALS) -> tuple[float, bool]:
    """The standard deviation of a cell, rounding included, and whether its law is Laplace."""
    lines = [line for line in card["mechanisms"] if line["purpose"] == purpose]
    require(len(lines) == 1, f"{purpose}: the card does not say its noise; is it damaged?")
    (line,) = lines
    is_laplace = line["distribution"] == "laplace"
    if is_laplace:
        return float(line["scale"]) * math.sqrt(2.0), True
    return math.hypot(float(line["scale"]), float(line["grid"]) / math.sqrt(12.0)), False


def assemble(
    schema: Schema,
    columns: list[Feature],
    tables: list[Array],
    noise: tuple[float, bool],
    pooled: Pooled | None = None,
) -> HistogramAnswers:
    """Histograms by name, with the rows of the table and of each class from all of them."""
    sigma, is_laplace = noise
    second = pooled or Pooled()
    others = [counts[None] for counts in second.histograms]
    index, _ = label_of(schema)
    declared = schema.columns if schema.items is None else ()
    named: dict[str, ColumnCells] = {}
    for place, feature in enumerate(columns):
        named[feature.name] = cells_of(feature, declared[feature.index] if declared else None, place)
    size, size_variance = float(schema.rows or 0), 0.0
    if schema.rows is None:
        size, size_variance = _total([(tables, sigma), (others, second.sigma)])
    label = None if index is None else schema.columns[index]
    classes = None
    if label is not None:
        named[label.name] = class_cells(label, len(columns))
        counted = [(t, sigma) for t in tables if len(t) > 1 or t is tables[-1]]
        counted += [(counts.T, second.sigma) for counts in others[-1:]]
        counts, variance = _joined(counted)
        classes = CellRow(
            counts=counts,
            sigma=math.sqrt(variance),
            size=size,
            size_variance=size_variance,
            is_laplace=is_laplace,
        )
    return HistogramAnswers(
        columns=named,
        tables={feature.name: table for feature, table in zip(columns, tables, strict=False)},
        joint=_joint(columns, tables, sigma, second),
        label=None if label is None else label.name,
        sigma=sigma,
        is_laplace=is_laplace,
        size=size,
        size_variance=size_variance,
        classes=classes,
    )


def _joint(
    columns: list[Feature], tables: list[Array], sigma: float, pooled: Pooled
) -> dict[str, Joint]:
    """Both counts of each column, taken together by least squares.

    Of K classes with variance s^2, and a sum over them that is known with variance v in the end, each
    keeps s^2 within the classes: two classes share the covariance (v / K - s^2) / K.
    """
    found = {}
    for place, (feature, table) in enumerate(zip(columns, tables, strict=False)):
        classes = len(table)
        noise = CellNoise.of_both(sigma, pooled.sigma, classes)
        both = with_pooled(table, pooled.histograms[place], noise) if pooled.histograms else table
        shared = (noise.pooled**2 / classes - sigma**2) / classes if pooled.histograms else 0.0
        found[feature.name] = Joint(both.reshape(table.shape), sigma, shared)
    return found


def _total(released: Sequence[tuple[list[Array], float]]) -> tuple[float, float]:
    """The number of rows: the total of each histogram, by precision."""
    kept = [(table, sigma) for tables, sigma in released for table in tables]
    weights = np.array([1.0 / (table.size * sigma**2) for table, sigma in kept])
    totals = np.array([table.sum() for table, _ in kept])
    return max(float(weights @ totals / weights.sum()), 1.0), 1.0 / float(weights.sum())


def _joined(released: Sequence[tuple[Array, float]]) -> tuple[Array, float]:
    """The rows of each class: the row sums of each histogram by class, by precision."""
    weights = np.array([1.0 / (table.shape[1] * sigma**2) for table, sigma in released])
    sums = np.array([table.sum(axis=1) for table, _ in released])
    return np.asarray(weights @ sums / weights.sum()), 1.0 / float(weights.sum())
