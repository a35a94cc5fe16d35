"""The pair tables that a noisy Gram tells of, as counts of codes: what rows of the model lack of them.

A latent normal cannot show every pair table that the Gram holds. Rows of the model are measured as the
private rows were (same centre, same clipping); what the released Gram has beyond them is shrunk pair by
pair at its known noise (bayes.py) and added to the tables of those rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.latent import Block, Decoded
from adumbra.postprocess.marginals import fill
from adumbra.postprocess.moments.bayes import evidence, shared_signals, signal
from adumbra.postprocess.moments.design import Centre, Design
from adumbra.postprocess.moments.refine import one_hot

_CHUNK = 8192
_COMMON = 10.0  # cells' worth of evidence that a pair borrows from all pairs
_LEAST_NOISE = 1e-3  # of a table's largest noise variance: no cell is taken for exact
_MOST_STRETCH = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeColumn:
    """One column of the table as codes: groups of cells, and one more for a missing number."""

    place: int  # of its feature; -1: the class
    flag: int  # of the feature that says whether it is missing; -1: never
    levels: int  # codes without the one for missing
    cells: Ints = field(repr=False)  # the code of each cell of its histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """All columns as codes, the class last."""

    columns: tuple[CodeColumn, ...]
    starts: Ints = field(repr=False)  # of each column's codes, and the end

    def of(self, index: int) -> slice:
        """The codes of one column."""
        return slice(int(self.starts[index]), int(self.starts[index + 1]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has."""
        return tuple(np.diff(self.starts).tolist())


def codes_with(columns: Iterable[CodeColumn]) -> Codes:
    """The codes of these columns, one behind the other."""
    made = tuple(columns)
    sizes = [column.levels + (column.flag >= 0) for column in made]
    return Codes(columns=made, starts=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))


def class_column(classes: int) -> CodeColumn:
    """The class as codes: each is a code of its own."""
    return CodeColumn(place=-1, flag=-1, levels=classes, cells=np.arange(classes))


@dataclass(frozen=True, slots=True, kw_only=True)
class GramCodes:
    """Codes that are columns of the Gram, and what they are in it."""

    codes: Codes
    encoded: Array = field(repr=False)  # codes x D: what a code adds to a centred row of the Gram
    tables: Array = field(repr=False)  # codes x D: how counts of codes follow from entries of the Gram


def read_codes(design: Design, centre: Centre, blocks: tuple[Block, ...], shares: Array) -> GramCodes:
    """Codes of every column: a category's or number's columns of the Gram, the levels of a pair."""
    flags = {f.index: place for place, f in enumerate(design.features) if f.is_flag}
    columns, encoded, tables = [], [], []
    for place, (feature, block) in enumerate(zip(design.features, blocks, strict=True)):
        if feature.is_flag:
            continue
        flag = flags.get(feature.index, -1)
        levels = block.width if block.is_levels else 2
        cells = centre.groups[place] if block.is_levels else np.arange(2)
        columns.append(CodeColumn(place=place, flag=flag, levels=levels, cells=cells))
        adds, counts = (np.zeros((levels + (flag >= 0), len(centre.means))) for _ in range(2))
        own = slice(block.start, block.start + block.width)
        scale = float(centre.scales[block.start])
        values = np.eye(levels) if block.is_levels else np.array([[0.0], [1.0]])
        adds[:levels, own] = (values - centre.means[own]) * scale
        counts[:levels, own] = (values if block.is_levels else np.array([[-1.0], [1.0]])) / scale
        if flag >= 0:  # a missing number tells nothing more; those present lack what is missing
            at = centre.starts[flag]
            law = shares @ block.shares if block.is_levels else block.shares
            adds[:, at] = -centre.means[at]
            adds[levels, at] += 1.0
            counts[:levels, at] -= law / max(float(law.sum()), 1e-12)
            counts[levels, at] = 1.0
        encoded.append(adds)
        tables.append(counts)
    if design.label is not None:
        columns.append(class_column(design.classes))
        encoded.append(np.zeros((design.classes, len(centre.means))))
        tables.append(encoded[-1])
    return GramCodes(codes=codes_with(columns), encoded=np.vstack(encoded), tables=np.vstack(tables))


def codes_of(codes: Codes, decoded: Decoded, blocks: tuple[Block, ...]) -> Ints:
    """Decoded rows as codes."""

    def part(column: CodeColumn) -> Ints:
        if column.place < 0:
            return decoded.labels
        block, own = blocks[column.place], decoded.parts[column.place]
        return own if block.is_levels else column.cells[ranked_cells(own, block.shares)]

    found = []
    for column in codes.columns:
        own = part(column)
        if column.flag >= 0:
            is_missing = ranked_cells(decoded.parts[column.flag], blocks[column.flag].shares) > 0
            own = np.where(is_missing, column.levels, own)
        found.append(own)
    return np.stack(found, axis=1).astype(np.int64)


def ranked_cells(order: Ints, shares: Array) -> Ints:
    """The cell of each row of a number or a pair, from the ascending order of its latent values."""
    cells = np.arange(len(shares), dtype=np.float64)
    return np.asarray(np.rint(fill(order, shares, (cells, cells))), np.int64)


@dataclass(frozen=True, slots=True)
class Shown:
    """What rows of the model show of the released sums, per row."""

    tables: Array
    gram: Array
    stretch: float  # what clipping takes from the trace


def measure(codes: GramCodes, rows: Ints, radius: float) -> Shown:
    """Tables and clipped Gram of coded rows, as those of private rows were taken."""
    width, columns = codes.encoded.shape
    tables, gram = np.zeros((width, width)), np.zeros((columns, columns))
    whole = 0.0
    for start in range(0, len(rows), _CHUNK):
        hits = one_hot(rows[start : start + _CHUNK], codes.codes.starts)
        tables += hits.T @ hits
        encoded = hits @ codes.encoded
        squares = (encoded**2).sum(axis=1)
        whole += float(squares.sum())
        encoded *= np.minimum(1.0, radius / np.sqrt(np.maximum(squares, 1e-300)))[:, None]
        gram += encoded.T @ encoded
    count = max(len(rows), 1)
    stretch = min(max(whole / max(float(np.trace(gram)), 1e-9), 1.0), _MOST_STRETCH)
    return Shown(tables / count, gram / count, stretch)


@dataclass(frozen=True, slots=True)
class Released:
    """The Gram as it was released, per row, with the standard deviation of an entry off its diagonal."""

    rows: float
    gram: Array
    sigma: float


def wanted_tables(codes: GramCodes, shown: Shown, released: Released, *, is_loud: bool = False) -> Array:
    """The tables of a model's rows with what the Gram has beyond them; one-way tables on the diagonal.

    Tables with the class stay as the model shows them: it knows them from histograms by class, and from
    class sums that were shrunk along the covariance, which pair by pair would be noisier. Where
    pairs are loud, the strength of a signal is learnt from all of them.
    """
    count, stretch = released.rows, shown.stretch
    lacking = codes.tables @ (released.gram - shown.gram) @ codes.tables.T * (stretch * count)
    power = (codes.tables**2).sum(axis=1)
    noise = np.outer(power, power) * (released.sigma * stretch * count) ** 2
    expected = shown.tables * count
    goal = expected.copy()
    sizes, columns = codes.codes.sizes, codes.codes.columns
    used = [i for i, c in enumerate(columns) if c.place >= 0 and sizes[i] > 1]
    parts = [(codes.codes.of(a), codes.codes.of(b)) for a, b in combinations(used, 2)]
    noises = [noise[p] + _LEAST_NOISE * noise[p].max() for p in parts]
    likely = [
        evidence(lacking[p], expected[p], z) * ((z.shape[0] - 1) * (z.shape[1] - 1) / z.size)
        for p, z in zip(parts, noises, strict=True)
    ]
    if is_loud and parts:
        tables = [(lacking[p], expected[p], z) for p, z in zip(parts, noises, strict=True)]
        found = shared_signals(tables, np.stack([own.ravel() for own in likely]))
    else:
        cells = sum((z.shape[0] - 1) * (z.shape[1] - 1) for z in noises)
        common = sum(likely) * (_COMMON / max(cells, 1))
        each = zip(parts, noises, likely, strict=True)
        found = [signal(lacking[p], expected[p], z, own + common) for p, z, own in each]
    for (a, b), beyond in zip(parts, found, strict=True):
        goal[a, b] += beyond
        goal[b, a] = goal[a, b].T
    return np.maximum(goal, 0.0) / count
