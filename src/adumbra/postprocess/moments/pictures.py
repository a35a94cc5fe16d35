"""What a moments release shows: histograms with their noise, classes, correlations, a spectrum."""

import math
from collections.abc import Sequence

import numpy as np

from adumbra.numerics import Ints
from adumbra.postprocess.matrices import noise_edge
from adumbra.postprocess.moments.design import Centre, Design, Feature
from adumbra.postprocess.moments.laws import Marginals
from adumbra.postprocess.moments.model import GramNoise
from adumbra.postprocess.moments.stein import centred_mean
from adumbra.postprocess.pictures import (
    Bars,
    Heat,
    Histogram,
    Pictures,
    Spectrum,
    class_names,
    heat_of,
    reach_of,
    spectrum_of,
)
from adumbra.schema.schema import Column, Schema

SHOWN_ITEMS = 20


def pictures_of(  # noqa: PLR0913 - each is one released or public value
    design: Design,
    schema: Schema,
    marginals: Marginals,
    centre: Centre,
    gram: GramNoise,
    *,
    is_pure: bool,
) -> Pictures:
    """One-way histograms, classes (or items), correlations and their spectrum."""
    shown = histograms_of(design, schema, marginals, is_pure=is_pure)
    heat, spectrum = correlations_of(design, schema, marginals, centre, gram, is_pure=is_pure)
    if schema.items is not None:
        return Pictures(bars=item_bars(shown), heat=heat, spectrum=spectrum)
    classes = class_bars(design, schema, marginals, is_pure=is_pure)
    return Pictures(histograms=shown, bars=classes, heat=heat, spectrum=spectrum)


def histograms_of(
    design: Design, schema: Schema, marginals: Marginals, *, is_pure: bool
) -> tuple[Histogram, ...]:
    """Every column's noisy counts; those of a category are summed over classes."""
    found = []
    for feature, own in zip(design.columns, marginals.counts, strict=False):
        by_class = own.reshape(-1, feature.counted)
        shares = by_class.sum(axis=0) / marginals.rows
        sigma = marginals.sigma if len(by_class) == 1 else marginals.pooled_sigma
        deviation = sigma / marginals.rows
        found.append(
            Histogram(
                name=feature.name,
                shares=shares[: feature.cells],
                reach=reach_of(deviation, is_pure=is_pure),
                levels=_levels(feature, schema),
                limits=(feature.lower, feature.upper),
                ends=_ends(feature, schema),
                missing=float(shares[-1]) if feature.missing is not None else None,
            )
        )
    return tuple(found)


def class_bars(
    design: Design, schema: Schema, marginals: Marginals, *, is_pure: bool
) -> tuple[Bars, ...]:
    """The noisy class counts as shares."""
    if design.label is None:
        return ()
    column = schema.columns[design.label]
    shares = marginals.counts[-1] / marginals.rows
    reach = reach_of(marginals.sigma / marginals.rows, is_pure=is_pure)
    return (
        Bars(
            title=f"Classes of {column.name}",
            caption="The noisy count of each class, as a share of the rows. With its ± it covers "
            "that of the table in 95 of 100 releases that could have been made.",
            names=class_names(column, len(shares)),
            values=tuple(shares.tolist()),
            reaches=(reach,) * len(shares),
            are_shares=True,
        ),
    )


def item_bars(histograms: Sequence[Histogram]) -> tuple[Bars, ...]:
    """The most frequent items of item sets: the second cell of each item's histogram."""
    order = sorted(range(len(histograms)), key=lambda i: -float(histograms[i].shares[1]))
    shown = [histograms[place] for place in order[:SHOWN_ITEMS]]
    return (
        Bars(
            title="Most frequent items",
            caption=f"Rows with the item; the first {len(shown)} of {len(histograms)} items.",
            names=tuple(f"item {one.name}" for one in shown),
            values=tuple(float(one.shares[1]) for one in shown),
            reaches=tuple(one.reach for one in shown),
            are_shares=True,
        ),
    )


def correlations_of(  # noqa: PLR0913 - public decisions, and what was released
    design: Design,
    schema: Schema,
    marginals: Marginals,
    centre: Centre,
    gram: GramNoise,
    *,
    is_pure: bool,
) -> tuple[Heat | None, Spectrum | None]:
    """Of the released second moments of centred rows; only where one block holds all columns."""
    if len(gram.blocks) != 1:
        return None, None
    names, owners, is_level = _encoded(design, schema, centre)
    mean = gram.class_sums.sum(axis=0) / marginals.rows
    mean = centred_mean(
        mean, gram.sum_sigma / marginals.rows, design.label is None or np.array(is_level)
    )
    covariance = gram.blocks[0] / marginals.rows - np.outer(mean, mean)
    deviation = gram.sigma / marginals.rows
    return (
        heat_of(covariance, names, owners, deviation, is_pure=is_pure),
        spectrum_of(covariance, noise_edge(deviation, len(covariance))),
    )


def _levels(feature: Feature, schema: Schema) -> tuple[str, ...]:
    """Names of the cells of a category; a number has none."""
    if schema.items is not None:
        return ("absent", "present")
    column = schema.columns[feature.index]
    if feature.edges is not None:
        return column.categories
    return tuple(name or "missing" for name in column.level_names)


def _ends(feature: Feature, schema: Schema) -> tuple[str, str] | None:
    """The bounds of dates and times as such."""
    column = None if schema.items is not None else schema.columns[feature.index]
    if column is None or not column.kind.is_time:
        return None
    return column.text(feature.lower), column.text(feature.upper)


def _encoded(design: Design, schema: Schema, centre: Centre) -> tuple[list[str], list[int], list[bool]]:
    """Names of the encoded columns, the schema's column of each, and whether it is a level of that."""
    names: list[str] = []
    owners: list[int] = []
    is_level: list[bool] = []
    for feature, groups in zip(design.features, centre.groups, strict=True):
        own = _group_names(feature, schema, groups) if feature.is_levels else [feature.name]
        names += own
        owners += [feature.index] * len(own)
        is_level += [feature.is_levels] * len(own)
    return names, owners, is_level


def _group_names(feature: Feature, schema: Schema, groups: Ints) -> list[str]:
    """One name per group of cells: its level, how many levels it joins, or its range of a number."""
    found = []
    for group in range(int(groups.max()) + 1):
        cells = np.flatnonzero(groups == group)
        if feature.edges is not None:
            low, high = feature.edges[cells[0]], feature.edges[cells[-1] + 1]
            found.append(f"{feature.name} {_range(schema.columns[feature.index], low, high)}")
        elif len(cells) == 1:
            found.append(f"{feature.name} = {_levels(feature, schema)[cells[0]]}")
        else:
            found.append(f"{feature.name} = one of {len(cells)} rare levels")
    return found


def _range(column: Column, low: float, high: float) -> str:
    """A range of cells in the column's own form; numbers as they are cut."""
    if column.kind.reads_numbers:
        return f"{low:.4g} to {high:.4g}"
    first, last = math.ceil(low), math.ceil(high) - 1
    return column.text(first) if first >= last else f"{column.text(first)} to {column.text(last)}"
