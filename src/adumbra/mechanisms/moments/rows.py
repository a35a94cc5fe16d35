"""Private rows on their way to the statistics of a moments release.

Every function is total, and a row's result depends on that row and on public or paid-for numbers alone.
Neighbouring columns of numbers are taken together: in a short block of a wide table a call per column
costs more than its cells.

Proof       release.proof.md, of `cell_block`, `finer_codes`, `norm_block`, `bounded_block`, `centred`;
            chosen.proof.md, of `code_block`.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from adumbra.data.bounds import BoundedRows, bound_rows, with_classes, with_constant
from adumbra.data.sources import Batch, SetBatch
from adumbra.numerics import Array, Ints, Lattice, few_columns, row_squares
from adumbra.postprocess.moments.design import Centre, Design, Feature
from adumbra.postprocess.moments.tables import Codes
from adumbra.statistics.histograms import CellRows, cell_rows, cut, cut_columns
from adumbra.statistics.joint_tables import CodeRows, code_rows

_CHUNK_VALUES = 2**23  # dense encoded values held at once by one thread


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


def labels_of(values: Array, decided: Design, lower: float) -> Ints:
    """Class codes; without a label, class 0."""
    if decided.label is None:
        return np.zeros(len(values), np.int64)
    return (values[:, decided.label] - lower).astype(np.int64)


def codes_of(values: Array, feature: Feature) -> Ints:
    """The cell of each row in one column; one more where a number is missing."""
    column = values[:, feature.index]
    codes: Ints = column.astype(np.int64) if feature.edges is None else cut(column, feature.edges)
    if feature.missing is not None:
        codes = np.where(column == feature.missing, feature.cells, codes)
    return codes


def is_cut(feature: Feature) -> bool:
    """Whether a column is a number with cells that is never missing."""
    return feature.edges is not None and feature.missing is None


def is_scaled(feature: Feature) -> bool:
    """Whether a column is one scaled number in the Gram that is never missing."""
    return not feature.is_levels and feature.missing is None


def runs(
    features: Sequence[Feature], holds: Callable[[Feature], bool]
) -> Iterator[tuple[int, int, slice]]:
    """Neighbours for which a property holds and which stand in that order in the table.

    First feature, end, and their columns of the table.
    """
    first = 0
    for place, feature in enumerate(features):
        held = holds(feature)
        if first < place and not (held and feature.index == features[place - 1].index + 1):
            yield first, place, slice(features[first].index, features[first].index + place - first)
            first = place
        if not held:
            first = place + 1
    if first < len(features):
        yield first, len(features), slice(features[first].index, features[-1].index + 1)


def cell_block(batch: Batch | SetBatch, decided: Design, lower: float) -> CellRows:
    """Cells of all histograms: a category's is a pair (class, level); the last is the class, if any."""
    values = values_of(batch)
    labels = labels_of(values, decided, lower)
    codes = np.empty((len(values), len(decided.cells)), np.int64, order="F")
    for first, end, own in runs(decided.columns, is_cut):
        edges = [feature.edges for feature in decided.columns[first:end] if feature.edges is not None]
        cut_columns(values[:, own], edges, codes[:, first:end])
    for place, feature in enumerate(decided.columns):
        if not is_cut(feature):
            codes[:, place] = codes_of(values, feature)
        if feature.is_levels:
            inside = (codes[:, place] >= 0) & (codes[:, place] < feature.counted)
            joint = codes[:, place] + labels * feature.counted
            codes[:, place] = np.where(inside & (labels >= 0), joint, -1)
    for place, (column, cells) in enumerate(decided.finer, start=len(decided.columns)):
        codes[:, place] = finer_codes(values, labels, decided.columns[column], cells)
    if decided.label is not None:
        codes[:, -1] = labels
    return cell_rows(codes, decided.cells)


def finer_codes(values: Array, labels: Ints, feature: Feature, edges: Array) -> Ints:
    """The pair (class, finer cell) of each row in one column; none where the number is missing."""
    column = values[:, feature.index]
    joint = cut(column, edges) + labels * (len(edges) - 1)
    is_counted = labels >= 0
    if feature.missing is not None:
        is_counted &= column != feature.missing
    return np.where(is_counted, joint, -1)


def over_classes(exact: Lattice, decided: Design) -> Lattice:
    """The histograms of all columns over all classes: sums of cells of those by class; no finer ones."""
    parts = np.split(exact.units, np.cumsum(decided.cells)[:-1])
    del parts[len(decided.columns) : len(decided.columns) + len(decided.finer)]
    sums = [part.reshape(-1, n).sum(axis=0) for part, n in zip(parts, decided.pooled_cells, strict=True)]
    return Lattice(np.concatenate(sums), exact.exponent)


def code_block(batch: Batch | SetBatch, decided: Design, codes: Codes, lower: float) -> CodeRows:
    """Codes of the columns of joint tables; the class is the last column, if there is one."""
    values = values_of(batch)
    found = np.empty((len(values), len(codes.columns)), np.int64, order="F")
    for index, column in enumerate(codes.columns):
        is_class = column.place < 0
        cells = (
            labels_of(values, decided, lower)
            if is_class
            else codes_of(values, decided.features[column.place])
        )
        known = np.append(column.cells, column.levels) if column.flag >= 0 else column.cells
        inside = (cells >= 0) & (cells < len(known))
        found[:, index] = np.where(inside, known[np.where(inside, cells, 0)], -1)
    return code_rows(found, codes.sizes)


def centred(
    batch: Batch | SetBatch, decided: Design, centre: Centre, lower: float
) -> tuple[Array, Ints]:
    """Encoded rows less their paid-for means, and class codes."""
    values = values_of(batch)
    rows = np.empty((len(values), len(centre.means)), order="F")
    for first, end, own in runs(decided.features, is_scaled):
        start = centre.starts[first]
        _scale(values[:, own], decided.features[first:end], rows[:, start : start + end - first])
    for feature, start, groups in zip(decided.features, centre.starts, centre.groups, strict=True):
        if feature.is_levels:
            width = int(groups.max()) + 1
            code = np.clip(codes_of(values, feature), 0, feature.cells - 1)
            rows[:, start : start + width] = groups[code][:, None] == np.arange(width)
        elif feature.is_flag:
            rows[:, start] = values[:, feature.index] == feature.missing
        elif not is_scaled(feature):
            np.subtract(values[:, feature.index], feature.lower, out=rows[:, start])
            rows[:, start] /= feature.upper - feature.lower
        if feature.missing is not None and not feature.is_flag:  # a missing number tells nothing more
            own = slice(start, start + (width if feature.is_levels else 1))
            rows[values[:, feature.index] == feature.missing, own] = centre.means[own]
    rows -= centre.means
    if np.any(centre.scales != 1.0):
        rows *= centre.scales
    return rows, labels_of(values, decided, lower)


def _scale(values: Array, features: Sequence[Feature], out: Array) -> None:
    """Numbers by their bounds: (x - lower) / (upper - lower)."""
    lower = np.array([feature.lower for feature in features])
    width = np.array([feature.upper for feature in features]) - lower
    for few in few_columns(len(values), len(features)):
        np.subtract(values[:, few], lower[few], out=out[:, few])
        out[:, few] /= width[few]


def norm_block(
    batch: Batch | SetBatch, decided: Design, centre: Centre, lower: float, edges: Array
) -> CellRows:
    """The cell of each centred row's length."""
    lengths = [
        np.sqrt(row_squares(rows))
        for piece in chunks(batch, len(centre.means))
        for rows, _ in (centred(piece, decided, centre, lower),)
    ]
    return cell_rows(cut(np.concatenate([*lengths, np.empty(0)]), edges)[:, None], (len(edges) - 1,))


def bounded_block(
    batch: Batch | SetBatch, decided: Design, centre: Centre, lower: float, radius: float
) -> Iterator[BoundedRows]:
    """Centred rows inside the radius, with their class (or a constant) appended."""
    for piece in chunks(batch, len(centre.means)):
        rows, labels = centred(piece, decided, centre, lower)
        bounded = bound_rows(rows, radius, labels=labels, owned=True)
        if decided.label is None:
            yield with_constant(bounded, decided.label_units)
        else:
            yield with_classes(bounded, decided.classes, decided.label_units)
