"""From a release of `answers`, `lda` or `pca` to its noisy sums of products, with each entry's noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adumbra.answers.capped import CappedAnswers
from adumbra.answers.columns import clipped, filled, level_names
from adumbra.answers.histograms import HistogramAnswers
from adumbra.answers.moments import TRUTH_LEVELS, MomentAnswers, Term
from adumbra.answers.reading import counted_schema, precisions, read_histograms
from adumbra.answers.sums import Sums
from adumbra.errors import require
from adumbra.numerics import Array
from adumbra.postprocess.capped import column_squares
from adumbra.release.artifact import Release
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Column, Kind

SUMS = "noisy_sums"
SQUARES, PRODUCTS, TOTALS, COUNTS = (
    f"moments, {kind}" for kind in ("squares of a number", "products of two columns", "sums", "counts")
)
PURE = "moments"
WEIGHTED = "moments, of a column of weight 1"
CAPS, OUTCOME = "caps", "outcome"  # facts of the card


def read_capped(*releases: Release) -> CappedAnswers:
    """An answers release: its sums within caps and its histograms."""
    first = releases[0].card["facts"]
    alike = all(
        release.card["facts"].get(name) == first.get(name)
        for release in releases
        for name in ("columns", CAPS, OUTCOME)
    )
    require(alike, "combine: the releases have other columns, caps or outcomes; ask each of them")
    layout = Layout(counted_schema(releases[0]))
    require(
        first.get("encoded_columns") == list(layout.names)
        and set(first[CAPS]) == {column.name for column in layout.features if column.is_numeric},
        f"{SUMS}: the card names other columns than its schema gives; is it damaged?",
    )
    public = releases[0].schema.neighbours.rows_are_public
    noises = [weighted_noise(layout, release.card, public=public) for release in releases]
    weights = precisions([float(np.sqrt(noise[-1, 0])) for noise, _ in noises])
    matrix, variances = np.zeros_like(noises[0][0]), np.zeros_like(noises[0][0])
    rows = 0.0
    for weight, release, (noise, _) in zip(weights, releases, noises, strict=True):
        sums = np.asarray(release.arrays[SUMS], np.float64)
        require(sums.shape == matrix.shape, f"{SUMS}: does not fit the card's columns; is it damaged?")
        matrix += weight * sums
        variances += weight**2 * noise
        rows += weight * float(np.asarray(release.arrays["rows"]).ravel()[0])
    return capped_answers(
        layout, first[CAPS], (matrix, variances, rows), read_histograms(*releases),
        is_laplace=any(laplace for _, laplace in noises), rows_are_public=public,
    )  # fmt: skip


def capped_answers(  # noqa: PLR0913 - released numbers and what is public of them
    layout: Layout,
    caps: Mapping[str, Sequence[float]],
    released: tuple[Array, Array, float],
    counts: HistogramAnswers,
    *,
    is_laplace: bool,
    rows_are_public: bool,
) -> CappedAnswers:
    """Released sums (matrix, variances, rows) and counts, by the names of columns."""
    matrix, variances, rows = released
    terms = [
        _capped(_term(column, start), caps.get(column.name))
        for column, start in zip(layout.features, layout.starts, strict=True)
    ]
    dummies = np.zeros(len(matrix), bool)
    for group in layout.groups:
        dummies[group] = True
    moved = matrix.copy()
    if rows_are_public:
        moved[-1, -1] = rows
    sums = Sums(
        matrix=moved, variances=variances, dummies=dummies, classes=1, rows=rows,
        rows_are_public=rows_are_public,
    )  # fmt: skip
    named = {term.name: term for term in terms}
    return CappedAnswers(terms=named, sums=sums, label=None, is_laplace=is_laplace, counts=counts)


def _capped(term: Term, cap: Sequence[float] | None) -> Term:
    """A number within its caps."""
    if cap is None:
        return term
    low, high = float(cap[0]), float(cap[1])
    require(low < high, f"{CAPS}: a lower cap is not below its upper one; is the card damaged?")
    words = f"capped at {low:.12g}..{high:.12g}, {term.encoded.partition(', ')[2]}"
    return replace(term, middle=(low + high) / 2.0, width=high - low, encoded=words)


def weighted_noise(layout: Layout, card: dict[str, Any], *, public: bool) -> tuple[Array, bool]:
    """The variance of each entry of weighted sums, and whether the law is Laplace."""
    lines = {line["purpose"]: float(line["scale"]) for line in card["mechanisms"]}
    size, is_laplace = layout.width + 1, PURE in lines
    if is_laplace:
        variances = np.full((size, size), 2.0 * lines[PURE] ** 2)
    else:
        squares = np.array(column_squares(layout, card["facts"].get(OUTCOME)), np.float64)
        variances = lines[WEIGHTED] ** 2 / (2.0 * np.outer(squares, squares))
        np.fill_diagonal(variances, 2.0 * np.diagonal(variances))
    for group in layout.groups:
        variances[group, group] = 0.0
    if public:
        variances[-1, -1] = 0.0
    return variances, is_laplace


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
            encoded=f"{clipped(column, lower, upper)}, {missing}",
        )
    levels = TRUTH_LEVELS if column.kind is Kind.BOOLEAN else level_names(column)
    places = tuple(range(start, start + len(levels)))
    return Term(name=column.name, places=places, levels=levels, encoded=missing)


def _label_term(label: Column, start: int, classes: int) -> Term:
    lower, _ = label.limits
    if label.is_numeric:
        levels = tuple(label.text(lower + code) for code in range(classes))
    else:
        levels = TRUTH_LEVELS if label.kind is Kind.BOOLEAN else level_names(label)
    places = tuple(range(start, start + classes))
    return Term(name=label.name, places=places, levels=levels, encoded=f"missing {filled(label)}")
