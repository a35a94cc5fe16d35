"""From a release of `lda` or `pca` to its noisy sums of products, with the noise of each entry."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from adumbra.answers.columns import filled, level_names
from adumbra.answers.moments import TRUTH_LEVELS, MomentAnswers, Term
from adumbra.answers.reading import precisions
from adumbra.answers.sums import Sums
from adumbra.errors import require
from adumbra.numerics import Array
from adumbra.release.artifact import Release
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Column, Kind

SUMS = "noisy_sums"
SQUARES, PRODUCTS, TOTALS, COUNTS = (
    f"moments, {kind}" for kind in ("squares of a number", "products of two columns", "sums", "counts")
)
PURE = "moments"


def read_moments(*releases: Release) -> MomentAnswers:
    """The sums of a release by the names of its columns; of several of the same rows, by precision."""
    layouts = [_layout(release) for release in releases]
    noises = [noise_of(release.card) for release in releases]
    sums = [np.asarray(release.arrays[SUMS], np.float64) for release in releases]
    shapes = {(one.names, matrix.shape) for one, matrix in zip(layouts, sums, strict=True)}
    require(len(shapes) == 1, "combine: the releases sum different columns or classes; ask each of them")
    public = releases[0].schema.neighbours.rows_are_public
    rows = [float(np.asarray(release.arrays["rows"]).ravel()[0]) for release in releases]
    require(not public or len(set(rows)) == 1, "combine: the releases are of different numbers of rows")
    kinds, named = (SQUARES, PRODUCTS, TOTALS, COUNTS), [noise[0] for noise in noises]
    weights = precisions([noise[PRODUCTS] for noise in named])
    joined = zip(weights, sums, strict=True)
    matrix = np.asarray(sum((w * one for w, one in joined), np.zeros_like(sums[0])))
    joint = {
        kind: math.sqrt(sum((w * noise[kind]) ** 2 for w, noise in zip(weights, named, strict=True)))
        for kind in kinds
    }
    total = rows[0] if public else sum(w * n for w, n in zip(weights, rows, strict=True))
    laplace = any(noise[1] for noise in noises)
    return assemble_moments(layouts[0], matrix, total, (joint, laplace), rows_are_public=public)


def _layout(release: Release) -> Layout:
    """The encoded columns that the card names."""
    schema, names = release.schema, release.card["facts"].get("encoded_columns")
    layouts = [Layout(schema), Layout(replace(schema, label=None))]  # pca encodes the label, too
    fitting = [layout for layout in layouts if names == list(layout.names)]
    require(bool(fitting), f"{SUMS}: the card names other columns than its schema gives; is it damaged?")
    return fitting[0]


def assemble_moments(
    layout: Layout,
    matrix: Array,
    rows: float,
    noise: tuple[dict[str, float], bool],
    *,
    rows_are_public: bool,
) -> MomentAnswers:
    """Sums by the names of columns; those of classes, where there are any, stand last."""
    classes = len(matrix) - layout.width
    require(classes >= 1, f"{SUMS}: does not fit the card's schema; is it damaged?")
    terms = [_term(column, start) for column, start in zip(layout.features, layout.starts, strict=True)]
    label = layout.label if classes > 1 else None
    if label is not None:
        require(classes == layout.label_levels, f"{SUMS}: does not fit the card's label; is it damaged?")
        terms.append(_label_term(label, layout.width, classes))
    return MomentAnswers(
        terms={term.name: term for term in terms},
        sums=sums_of(matrix, layout, rows, noise[0], rows_are_public=rows_are_public),
        label=None if label is None else label.name,
        is_laplace=noise[1],
    )


def noise_of(card: dict[str, Any]) -> tuple[dict[str, float], bool]:
    """The standard deviation of each kind of entry, and whether the law is Laplace."""
    lines = {line["purpose"]: float(line["scale"]) for line in card["mechanisms"]}
    if PURE in lines:
        return dict.fromkeys((SQUARES, PRODUCTS, TOTALS, COUNTS), lines[PURE] * math.sqrt(2.0)), True
    return {kind: lines.get(kind, 0.0) for kind in (SQUARES, PRODUCTS, TOTALS, COUNTS)}, False


def sums_of(
    matrix: Array, layout: Layout, rows: float, deviations: dict[str, float], *, rows_are_public: bool
) -> Sums:
    """The matrix with the variance of each entry; counts of classes are moved to add up to n."""
    width, size = layout.width, len(matrix)
    classes = size - width
    dummies = np.zeros(size, bool)
    variances = np.full((size, size), deviations[PRODUCTS] ** 2)
    variances[:width, width:] = variances[width:, :width] = deviations[TOTALS] ** 2
    variances[width:, width:] = np.diag(np.full(classes, deviations[COUNTS] ** 2))
    places = np.arange(width)
    variances[places, places] = deviations[SQUARES] ** 2
    for group in layout.groups:
        dummies[group] = True
        variances[group, group] = 0.0
    moved = matrix.copy()
    if rows_are_public:
        counts = np.arange(width, size)
        moved[counts, counts] += (rows - moved[counts, counts].sum()) / classes
    return Sums(
        matrix=moved,
        variances=variances,
        dummies=dummies,
        classes=classes,
        rows=rows,
        rows_are_public=rows_are_public,
    )


def _term(column: Column, start: int) -> Term:
    lower, upper = column.limits
    missing = f"missing {filled(column)}"
    if column.is_numeric:
        return Term(
            name=column.name,
            places=(start,),
            middle=(lower + upper) / 2.0,
            width=upper - lower,
            encoded=f"clipped to {lower:.12g}..{upper:.12g}, {missing}",
        )
    levels = TRUTH_LEVELS if column.kind is Kind.BOOLEAN else level_names(column)
    places = tuple(range(start, start + len(levels)))
    return Term(name=column.name, places=places, levels=levels, encoded=missing)


def _label_term(label: Column, start: int, classes: int) -> Term:
    lower, _ = label.limits
    if label.is_numeric:
        levels = tuple(f"{lower + code:.12g}" for code in range(classes))
    else:
        levels = TRUTH_LEVELS if label.kind is Kind.BOOLEAN else level_names(label)
    places = tuple(range(start, start + classes))
    return Term(name=label.name, places=places, levels=levels, encoded=f"missing {filled(label)}")
