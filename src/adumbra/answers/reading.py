"""From a release to what can be asked of it: released arrays, the card's noise, the schema's cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adumbra.answers.columns import ColumnCells, cells_of, class_cells
from adumbra.answers.histograms import HistogramAnswers
from adumbra.answers.rows import CellRow
from adumbra.errors import Unsupported, require
from adumbra.numerics import Array
from adumbra.postprocess.capped import asked_schema
from adumbra.postprocess.moments.design import (
    BINS,
    NUMBER_CELLS,
    NUMBERS,
    Feature,
    features_of,
    label_of,
)
from adumbra.release.artifact import Release
from adumbra.schema.schema import Schema

MARGINALS = "marginals"
DECLARED = "columns"  # a fact of the card


def read_histograms(*releases: Release) -> HistogramAnswers:
    """The histograms of a release, with their noise; of several of the same rows, by precision."""
    parts = [_counts(release) for release in releases]
    schema, columns = counted_schema(releases[0]), parts[0].columns
    label, classes = label_of(schema)
    same = [part.layout for part in parts]
    require(
        all(layout == same[0] for layout in same),
        "combine: the releases count numbers in different cells; ask each of them",
    )
    weights = precisions([part.sigma for part in parts])
    counts = sum((w * part.counts for w, part in zip(weights, parts, strict=True)), np.zeros(()))
    sigma = sum(part.sigma**-2 for part in parts) ** -0.5
    tables = split(np.asarray(counts), columns, label, classes)
    return assemble(schema, columns, tables, (sigma, any(part.is_laplace for part in parts)))


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
    layout: tuple[object, object]
    sigma: float
    is_laplace: bool


def _counts(release: Release) -> Counts:
    """The released counts, and how they are laid out."""
    schema, facts = counted_schema(release), release.card["facts"]
    if NUMBERS not in facts or NUMBER_CELLS not in facts:
        raise Unsupported(
            "card: says nothing of the cells of its histograms (an older version made it); release again"
        )
    label, _ = label_of(schema)
    layout = (facts[NUMBERS], facts[NUMBER_CELLS])
    features = features_of(schema, label, is_binned=layout[0] == BINS, parts=int(layout[1]))
    sigma, is_laplace = noise_of(release.card)
    return Counts(
        counts=np.asarray(release.arrays[MARGINALS], np.float64),
        columns=[feature for feature in features if not feature.is_flag],
        layout=layout,
        sigma=sigma,
        is_laplace=is_laplace,
    )


def split(counts: Array, columns: list[Feature], label: int | None, classes: int) -> list[Array]:
    """Each histogram as classes x cells; the label's own is the last, if there is one."""
    shapes = [(classes if feature.is_levels else 1, feature.counted) for feature in columns]
    shapes += [(classes, 1)] if label is not None else []
    sizes = [rows * cells for rows, cells in shapes]
    require(len(counts) == sum(sizes), f"{MARGINALS}: does not fit the card's schema; is it damaged?")
    pieces = np.split(counts, np.cumsum(sizes)[:-1])
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def noise_of(card: dict[str, Any]) -> tuple[float, bool]:
    """The standard deviation of a cell, rounding included, and whether its law is Laplace."""
    (line,) = [line for line in card["mechanisms"] if line["purpose"] == MARGINALS]
    is_laplace = line["distribution"] == "laplace"
    if is_laplace:
        return float(line["scale"]) * math.sqrt(2.0), True
    return math.hypot(float(line["scale"]), float(line["grid"]) / math.sqrt(12.0)), False


def assemble(
    schema: Schema, columns: list[Feature], tables: list[Array], noise: tuple[float, bool]
) -> HistogramAnswers:
    """Histograms by name, with the rows of the table and of each class from all of them."""
    sigma, is_laplace = noise
    index, _ = label_of(schema)
    declared = schema.columns if schema.items is None else ()
    named: dict[str, ColumnCells] = {}
    for place, feature in enumerate(columns):
        named[feature.name] = cells_of(feature, declared[feature.index] if declared else None, place)
    size, size_variance = float(schema.rows or 0), 0.0
    if schema.rows is None:
        size, size_variance = _total(tables, sigma)
    label = None if index is None else schema.columns[index]
    classes = None
    if label is not None:
        named[label.name] = class_cells(label, len(columns))
        counts, variance = _joined([t for t in tables if len(t) > 1 or t is tables[-1]], sigma)
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
        label=None if label is None else label.name,
        sigma=sigma,
        is_laplace=is_laplace,
        size=size,
        size_variance=size_variance,
        classes=classes,
    )


def _total(tables: list[Array], sigma: float) -> tuple[float, float]:
    """The number of rows: the total of each histogram, by precision."""
    weights = np.array([1.0 / table.size for table in tables])
    totals = np.array([table.sum() for table in tables])
    return max(float(weights @ totals / weights.sum()), 1.0), sigma**2 / float(weights.sum())


def _joined(tables: list[Array], sigma: float) -> tuple[Array, float]:
    """The rows of each class: the row sums of each histogram by class, by precision."""
    weights = np.array([1.0 / table.shape[1] for table in tables])
    sums = np.array([table.sum(axis=1) for table in tables])
    return np.asarray(weights @ sums / weights.sum()), sigma**2 / float(weights.sum())
