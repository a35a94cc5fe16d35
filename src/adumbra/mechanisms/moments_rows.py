"""Private rows on their way to the three statistics: cells, norms, centred bounded rows.

Everything here is total, and a row's result depends on that row and on public or paid-for numbers alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from adumbra.data.batch import Batch, SetBatch
from adumbra.data.bounds import BoundedRows, bound_rows, with_classes, with_constant
from adumbra.mechanisms.moments_plan import Design, Feature
from adumbra.numerics import Array, Ints, row_squares
from adumbra.statistics.histograms import CellRows, cell_rows, cut

_CHUNK_VALUES = 2**22  # dense encoded values held at once by one thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """Paid-for numbers that place rows around 0: means of numbers, shares of one-hot groups."""

    starts: tuple[int, ...]  # first encoded column of each feature
    groups: tuple[Ints, ...] = field(repr=False)  # levels: the group of each cell; numbers: empty
    means: Array = field(repr=False)  # of every encoded column
    scales: Array = field(repr=False)  # factors of encoded columns, so that numbers vary like levels


def values_of(batch: Batch | SetBatch) -> Array:
    """Rows as numbers and codes; item sets as 0 and 1."""
    if isinstance(batch, Batch):
        return batch.values
    dense = np.zeros((len(batch), batch.width))
    rows = np.repeat(np.arange(len(batch)), batch.lengths)
    inside = (batch.indices >= 0) & (batch.indices < batch.width)
    dense[rows[inside], batch.indices[inside]] = 1.0
    return dense


def chunks(batch: Batch | SetBatch, width: int) -> Iterator[Batch | SetBatch]:
    """The batch in pieces whose encoded rows fit a public amount of memory."""
    rows = max(1, _CHUNK_VALUES // max(width, 1))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, min(start + rows, len(batch)))


def labels_of(values: Array, plan: Design, lower: float) -> Ints:
    """Class codes; without a label, class 0."""
    if plan.label is None:
        return np.zeros(len(values), np.int64)
    return (values[:, plan.label] - lower).astype(np.int64)


def codes_of(values: Array, feature: Feature) -> Ints:
    """The cell of each row in one column; one more where a number is missing."""
    column = values[:, feature.index]
    codes: Ints = column.astype(np.int64) if feature.edges is None else cut(column, feature.edges)
    if feature.missing is not None:
        codes = np.where(column == feature.missing, feature.cells, codes)
    return codes


def cell_block(batch: Batch | SetBatch, plan: Design, lower: float) -> CellRows:
    """Cells of all histograms: a category's is a pair (class, level); the last is the class, if any."""
    values = values_of(batch)
    labels = labels_of(values, plan, lower)
    codes = np.empty((len(values), len(plan.cells)), np.int64, order="F")
    for place, feature in enumerate(plan.columns):
        codes[:, place] = codes_of(values, feature)
        if feature.is_levels:
            inside = (codes[:, place] >= 0) & (codes[:, place] < feature.counted)
            joint = codes[:, place] + labels * feature.counted
            codes[:, place] = np.where(inside & (labels >= 0), joint, -1)
    if plan.label is not None:
        codes[:, -1] = labels
    return cell_rows(codes, plan.cells)


def centred(batch: Batch | SetBatch, plan: Design, centre: Centre, lower: float) -> tuple[Array, Ints]:
    """Encoded rows less their paid-for means, and class codes."""
    values = values_of(batch)
    rows = np.empty((len(values), len(centre.means)), order="F")
    for feature, start, groups in zip(plan.features, centre.starts, centre.groups, strict=True):
        if feature.is_levels:
            width = int(groups.max()) + 1
            code = np.clip(codes_of(values, feature), 0, feature.cells - 1)
            rows[:, start : start + width] = groups[code][:, None] == np.arange(width)
        elif feature.is_flag:
            rows[:, start] = values[:, feature.index] == feature.missing
        else:
            np.subtract(values[:, feature.index], feature.lower, out=rows[:, start])
            rows[:, start] /= feature.upper - feature.lower
        if feature.missing is not None and not feature.is_flag:  # a missing number tells nothing more
            own = slice(start, start + (width if feature.is_levels else 1))
            rows[values[:, feature.index] == feature.missing, own] = centre.means[own]
    rows -= centre.means
    if np.any(centre.scales != 1.0):
        rows *= centre.scales
    return rows, labels_of(values, plan, lower)


def norm_block(
    batch: Batch | SetBatch, plan: Design, centre: Centre, lower: float, edges: Array
) -> CellRows:
    """The cell of each centred row's length."""
    lengths = [
        np.sqrt(row_squares(rows))
        for piece in chunks(batch, len(centre.means))
        for rows, _ in (centred(piece, plan, centre, lower),)
    ]
    return cell_rows(cut(np.concatenate([*lengths, np.empty(0)]), edges)[:, None], (len(edges) - 1,))


def bounded_block(
    batch: Batch | SetBatch, plan: Design, centre: Centre, lower: float, radius: float
) -> Iterator[BoundedRows]:
    """Centred rows inside the radius, with their class (or a constant) appended."""
    for piece in chunks(batch, len(centre.means)):
        rows, labels = centred(piece, plan, centre, lower)
        bounded = bound_rows(rows, radius, labels=labels, owned=True)
        if plan.label is None:
            yield with_constant(bounded, plan.label_units)
        else:
            yield with_classes(bounded, plan.classes, plan.label_units)
