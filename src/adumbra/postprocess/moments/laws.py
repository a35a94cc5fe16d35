"""From noisy histograms to one-way laws, and to the centre and scale of rows that they imply.

Post-processing only: every argument is public or paid for.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.marginals import (
    COMMON_COLUMNS,
    cell_means,
    merge_cells,
    merge_rare,
    project_simplex,
)
from adumbra.postprocess.moments.alike import read_alike, shared_shapes
from adumbra.postprocess.moments.bayes import (
    counts_posterior,
    crowded_counts,
    evidence,
    signal,
    stand_apart,
)
from adumbra.postprocess.moments.classes import ByClass, conditional
from adumbra.postprocess.moments.design import BIN_PARTS, Centre, Design, Feature

_BIN_SIGMAS = 3.0  # a bin holds at least this many standard deviations; rarer levels share a column
_LEVEL_VARIANCE = 0.25  # a number is scaled to the variance of a balanced level ...
_LEAST_VARIANCE = 1e-4  # ... if it varies at all
RADIUS_CELLS = 64  # of the lengths of rows
_UNIT = 1000.0  # the mean variance of columns, as the count that empirical Bayes expects
_MOST_NOISE = 2.0  # standard deviations of a histogram's mean that another release may move it by
_MOST_TILT, _TILT_STEPS = 500.0, 50
_LEAST_COUNT = 1e-6  # rows over all finer cells: a wide cell that shows none has its rows in all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """One-way laws after denoising."""

    rows: float  # the number of rows: public, or from the noisy histograms
    sigma: float  # standard deviation of a histogram's cell
    pooled_sigma: float  # the same of a category over all classes, ...
    own_sigma: float  # ... and in one class
    counts: tuple[Array, ...] = field(repr=False)  # noisy ones: of each column, then of the classes
    class_shares: Array = field(repr=False)
    # Of a number: cells; of a category: classes x cells, rows are laws.
    laws: tuple[Array, ...] = field(repr=False)
    finer: Mapping[int, Array] = field(
        default_factory=dict, repr=False
    )  # laws over finer cells, by place


@dataclass(frozen=True, slots=True)
class Noisy:
    """Histograms as they were released, and the standard deviation of a cell; or none at all."""

    histograms: list[Array] = field(default_factory=list, repr=False)
    sigma: float = math.inf


def read_marginals(design: Design, own: Noisy, pooled: Noisy, rows: int | None) -> Marginals:
    """Noisy histograms to laws: of every column (categories by class), and over all classes, if any."""
    total = float(rows) if rows is not None else max(_total(own, pooled), 1.0)
    noise, histograms = CellNoise.of_both(own.sigma, pooled.sigma, design.classes), own.histograms
    if pooled.histograms:
        histograms = [
            with_pooled(*both, noise) for both in zip(histograms, pooled.histograms, strict=True)
        ]
    sigma = noise.single
    shares = np.ones(1) if design.label is None else class_shares(histograms[-1], sigma, total)
    laws: list[Array] = []
    by_class: dict[int, ByClass] = {}
    lacking: list[Array] = []  # of each number that may be missing: the shares of present and missing
    counted = zip(design.columns, histograms, strict=False)
    measured = [(f, h.reshape(-1, f.counted)) for f, h in counted]
    cleaned = iter(_read_numbers(measured, total, sigma))
    shared = shared_shapes(measured, noise.pooled) | _read_pairs(measured, total, noise.pooled)
    for place, (feature, histogram) in enumerate(measured):
        present = _present(feature, histogram, total)
        if feature.missing is not None:
            absent = _absent(feature, histogram, total)
            lacking.append(np.array([total - absent, absent]) / total)
        widths = None if feature.edges is None else np.diff(feature.edges)
        if not feature.is_levels:
            laws.append(_own_law(next(cleaned), histogram[0, : feature.cells], present, sigma, widths))
            continue
        joint = histogram[:, : feature.cells]
        if place in shared:
            whole = project_simplex(shared[place], present)
        else:
            whole = counts_posterior(joint.sum(axis=0), noise.pooled, present, widths)
        by_class[place] = ByClass(joint, shares * present, whole / present, widths)
        laws.append(whole)  # until all columns are read
    found = conditional([*by_class.values()], own.sigma, noise.own)
    for place, law in zip(by_class, found, strict=True):
        laws[place] = law
    return Marginals(
        rows=total,
        sigma=sigma,
        pooled_sigma=noise.pooled,
        own_sigma=noise.own,
        counts=tuple(histograms),
        class_shares=shares,
        laws=(*laws, *lacking),
    )


def class_shares(counts: Array, sigma: float, total: float) -> Array:
    """The shares of classes; of more than two, alike as far as noise explains how they differ."""
    read = project_simplex(counts, total) if len(counts) <= 2 else counts_posterior(counts, sigma, total)
    return np.asarray(read / total)


def _read_numbers(
    measured: list[tuple[Feature, Array]], total: float, sigma: float
) -> list[Array | None]:
    """Counts of numbers and pairs of levels that have enough columns like them; None of the others."""
    own = [(f, h) for f, h in measured if not f.is_levels]
    return read_alike(
        [h[0, : f.cells] for f, h in own],
        [None if f.edges is None else np.diff(f.edges) for f, _ in own],
        [_present(f, h, total) for f, h in own],
        sigma,
    )


def _read_pairs(measured: list[tuple[Feature, Array]], total: float, sigma: float) -> dict[int, Array]:
    """Counts over all classes of pairs of levels by class that have enough columns like them."""
    places = [p for p, (f, _) in enumerate(measured) if f.is_levels and f.cells == 2]
    counts = [measured[p][1].sum(axis=0)[:2] for p in places]
    totals = [_present(*measured[p], total) for p in places]
    found = read_alike(counts, [None] * len(places), totals, sigma)
    return {p: own for p, own in zip(places, found, strict=True) if own is not None}


def _absent(feature: Feature, histogram: Array, total: float) -> float:
    """Rows in which a number is missing."""
    return min(max(float(histogram[:, feature.cells :].sum()), 0.0), total)


def _present(feature: Feature, histogram: Array, total: float) -> float:
    """Rows in which a column has a value."""
    if feature.missing is None:
        return total
    return max(total - _absent(feature, histogram, total), 1.0)


def _own_law(
    common: Array | None, counts: Array, total: float, sigma: float, widths: Array | None
) -> Array:
    """The law of a number or a pair of levels: by the shape of columns like it, or by its own cells."""
    if common is not None:
        return np.asarray(common / total)
    if len(counts) == 2:
        return np.asarray(project_simplex(counts, total) / total)
    return np.asarray(counts_posterior(counts, sigma, total, widths) / total)


def _total(*released: Noisy) -> float:
    """The number of rows from all histograms: each one's total, weighted by its precision."""
    weights = np.array([1.0 / (len(h) * one.sigma**2) for one in released for h in one.histograms])
    totals = np.array([h.sum() for one in released for h in one.histograms])
    return float(weights @ totals / weights.sum())


@dataclass(frozen=True, slots=True)
class CellNoise:
    """Standard deviations of a cell, once both kinds of histograms are taken together."""

    single: float  # of what is not counted by class, and of a class
    own: float  # of what is, in one class ...
    pooled: float  # ... and over all classes
    weights: tuple[float, float]  # of the second histogram of what is counted by class, and of the rest

    @classmethod
    def of_both(cls, first: float, second: float, classes: int) -> "CellNoise":
        """From those of histograms by class and over all classes (infinite: there are none)."""
        own, precision = first**2, second**-2.0
        single, both = (1.0 / (1.0 / alone + precision) for alone in (own, classes * own))
        inside = own * (1.0 - 1.0 / classes) + both / classes**2
        weights = (both * precision, single * precision)
        return cls(math.sqrt(single), math.sqrt(inside), math.sqrt(both), weights)


def with_pooled(histogram: Array, pooled: Array, noise: CellNoise) -> Array:
    """Counts (least squares) that take in those over all classes.

    The sum over classes becomes the mean of both by their precisions; each class takes an equal part of
    the change.
    """
    joint = histogram.reshape(-1, len(pooled))
    weight = noise.weights[len(joint) == 1]
    return np.asarray((joint + weight * (pooled - joint.sum(axis=0)) / len(joint)).ravel())


def with_finer(design: Design, marginals: Marginals, released: Noisy) -> Marginals:
    """The marginals with laws over finer cells, of whole numbers that pile up on some of their values.

    Where the finer counts are those of a smooth law, they tell nothing that the wide cells do not.
    Elsewhere each class has its own share of a wide cell's rows in each of its finer ones, and its wide
    cells are read alone: around those of all classes, it would get a part of another one's tail.
    """
    found: dict[int, Array] = {}
    laws = list(marginals.laws)
    for (place, edges), noisy in zip(design.finer, released.histograms, strict=True):
        joint, sizes = noisy.reshape(design.classes, -1), marginals.class_shares * marginals.rows
        feature = design.columns[place]
        counts = marginals.counts[place].reshape(design.classes, -1)
        wide, absent = counts[:, : feature.cells], counts[:, feature.cells :].sum(axis=1)
        sizes = np.maximum(sizes - np.maximum(absent, 0.0), 1.0)  # cells count what is not missing
        widths, sigma = np.diff(edges), released.sigma * math.sqrt(design.classes)
        if not stand_apart(joint.sum(axis=0), sigma, float(sizes.sum()), widths):
            continue
        rows = list(zip(joint, wide, sizes.tolist(), strict=True))
        held = np.stack([crowded_counts(row, marginals.own_sigma, size) for _, row, size in rows])
        laws[place] = held / held.sum(axis=1, keepdims=True)
        inside = np.stack([counts_posterior(row, released.sigma, size) for row, _, size in rows])
        inside += _LEAST_COUNT * widths / widths.sum()
        parents = finer_parents(feature, edges)
        whole = np.stack([np.bincount(parents, row) for row in inside])
        found[place] = np.asarray(inside / whole[:, parents] * laws[place][:, parents])
    return replace(marginals, laws=tuple(laws), finer=found)


def finer_parents(feature: Feature, edges: Array) -> Ints:
    """The cell that holds each finer one."""
    inner = np.empty(0) if feature.edges is None else feature.edges[1:-1]
    return np.asarray(np.searchsorted(inner, np.ceil(edges[:-1]), side="right"), np.int64)


def with_means(
    marginals: Marginals, values: Mapping[int, Array], gaps: Array, noise: float
) -> Marginals:
    """Laws of these columns, moved toward means that another release tells.

    `gaps` is what that one has beyond the mean of each law, with noise of this variance. Both releases
    are weighted by their precision; what gaps vary beyond both noises is an error of their own (rows
    were not shortened as those of the model are; values are not even inside their cells). Laws of many
    numbers were denoised together, and nobody knows how far: empirical Bayes may find that less is left.
    No mean moves by more than twice the noise of its histogram.
    """
    laws = list(marginals.laws)
    places = np.array(list(values))
    is_pair = np.array([len(v) == 2 for v in values.values()])
    # Pairs are compared as shares: beside levels an integer of two values is scaled, a boolean is not.
    # Near 2^52 both values may be one float: such a pair has no spread to scale.
    units = np.array([(float(np.ptp(v)) if len(v) == 2 else 0.0) or 1.0 for v in values.values()])
    spreads = np.array([float(((v - v.mean()) ** 2).sum()) for v in values.values()]) / units**2
    first = (marginals.sigma / marginals.rows) ** 2 * spreads
    gaps, own = gaps / units, noise / units**2
    seen, shifts = first + own, np.zeros(len(places))
    for alike in (np.flatnonzero(is_pair), np.flatnonzero(~is_pair)):
        if len(alike) >= COMMON_COLUMNS:
            gaps[alike] -= gaps[alike].mean()
        if len(alike):
            seen[alike] = np.maximum(seen[alike], float((gaps[alike] ** 2).mean()))
    most = np.minimum(np.abs(gaps) * first / seen, _MOST_NOISE * np.sqrt(first))
    shifts[is_pair] = np.copysign(most, gaps)[is_pair]
    numbers = np.flatnonzero(~is_pair)
    if len(numbers) >= COMMON_COLUMNS:
        varies = np.array([variance_of(laws[places[i]], values[places[i]]) for i in numbers])
        scaled, noises = varies * (_UNIT / max(float(varies.mean()), 1e-300)), own[numbers]
        found = signal(gaps[numbers], scaled, noises, evidence(gaps[numbers], scaled, noises))
        shifts[numbers] = np.clip(found, -most[numbers], most[numbers])
    for place, shift in zip(places.tolist(), (shifts * units).tolist(), strict=True):
        if shift:
            laws[place] = tilted(laws[place], values[place], shift)
    return replace(marginals, laws=tuple(laws))


def variance_of(law: Array, values: Array) -> float:
    """The variance of a law."""
    return float(law @ (values - law @ values) ** 2)


def tilted(law: Array, values: Array, shift: float) -> Array:
    """The law times e^(t value), whose mean is so much higher; at most half the way to its last cell.

    Empty cells stay empty: a pixel that is always black must not get a few white ones.
    """
    held = np.flatnonzero(law)
    own, shares = values[held], law[held]
    low, high, mean = float(own.min()), float(own.max()), float(shares @ own)
    wanted = min(max(mean + shift, (mean + low) / 2.0), (mean + high) / 2.0)
    if high - low <= 1e-12:
        return law
    units, least, most = (own - mean) / (high - low), -_MOST_TILT, _MOST_TILT
    made = shares
    for _ in range(_TILT_STEPS):
        middle = (least + most) / 2.0
        powers = middle * units
        made = shares * np.exp(powers - powers.max())
        made /= made.sum()
        least, most = (middle, most) if float(made @ own) < wanted else (least, middle)
    found = np.zeros(len(law))
    found[held] = made
    return found


def read_centre(design: Design, marginals: Marginals) -> Centre:
    """Where rows are centred, and which cells of a binned number are one column."""
    starts, groups, means, scales = [], [], [], []
    width = 0
    is_plain = all(feature.edges is not None for feature in design.features)
    for feature, law in zip(design.features, marginals.laws, strict=True):
        starts.append(width)
        if feature.is_levels:
            pooled = marginals.class_shares @ law
            least = _BIN_SIGMAS * marginals.pooled_sigma
            if feature.edges is not None:
                group = merge_cells(pooled * marginals.rows, BIN_PARTS, least)
            else:
                group = merge_rare(pooled * marginals.rows, least)
            means.append(np.bincount(group, pooled))
        else:
            group = np.empty(0, np.int64)
            means.append(np.array([law @ score_values(feature)]))
        scale = 1.0 if is_plain else number_scale(feature, law, marginals.sigma / marginals.rows)
        scales.append(np.full(len(means[-1]), scale))
        groups.append(group)
        width += len(means[-1])
    return Centre(
        starts=tuple(starts),
        groups=tuple(groups),
        means=np.concatenate(means),
        scales=np.concatenate(scales),
    )


def number_scale(feature: Feature, law: Array, noise: float) -> float:
    """The factor that makes a number vary like a level; `noise` is that of a cell's share.

    A number inside generous bounds hardly varies, and would drown beside levels (numbers alone keep
    their own units). The error of the histogram's variance is added: no factor shall follow noise.
    """
    if feature.is_levels or feature.edges is None:
        return 1.0
    values = score_values(feature)
    squares = (values - law @ values) ** 2
    error = noise * float(np.linalg.norm(squares))
    return math.sqrt(_LEVEL_VARIANCE / max(float(law @ squares) + error, _LEAST_VARIANCE))


def score_values(feature: Feature) -> Array:
    """The scaled value (0 to 1) of each cell of a number or of a pair of levels."""
    if feature.edges is None:
        return np.arange(feature.cells, dtype=np.float64)
    middle = cell_means(feature.edges, feature.is_integer)
    return np.asarray(np.clip((middle - feature.lower) / (feature.upper - feature.lower), 0.0, 1.0))


def radius_edges(decided: Design, centre: Centre) -> Array:
    """Cells of row lengths, from released numbers: geometric, up to the longest possible row."""
    firsts = zip(decided.features, centre.starts, strict=True)
    top = math.sqrt(sum(2.0 if f.is_levels else float(centre.scales[s]) ** 2 for f, s in firsts))
    return np.concatenate(([0.0], np.geomspace(top / 64.0, top, RADIUS_CELLS)))


def choose_radius(lengths: Array, edges: Array, quantile: float) -> float:
    """The upper edge of the cell where the noisy distribution of lengths passes the quantile."""
    shown = np.maximum.accumulate(np.cumsum(lengths))
    place = int(np.searchsorted(shown, quantile * max(float(shown[-1]), 1.0)))
    return float(edges[1 + min(place, len(edges) - 2)])
