"""The law of a category, or of a number in cells, in each class: counts by class, made usable.

What each class has beyond the law of all classes is drawn toward nothing as far as noise explains it.
Of many classes, columns differ in common ways (income rises with age, schooling and rent alike): the
directions of all columns together that stand out of the noise say more than any single cell. All
arguments are released numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from adumbra.numerics import Array
from adumbra.postprocess.marginals import project_simplex
from adumbra.postprocess.matrices import shrink_rectangular
from adumbra.postprocess.moments.bayes import ordered_signal, sparse_signal, stands_alone
from adumbra.postprocess.moments.stein import believed

MANY_CLASSES = 6  # from which on their differences may have common directions: fewer have too few
MOST_JOINT = 2**14  # cells in all classes up to which it is tried: it reads them four times or more
FEW_PROBED = 2**10  # cells that are moved to judge fewer classes: each is read nearly by itself
MOST_LEVELS = 2**11  # of one column up to which it is tried: contrasts of cells take their square
MOST_ORDERED = 256  # cells of a number up to which neighbours are compared: it takes the cube of them
_LEAST_PART = 1e-6  # of what is expected: a cell that no class shows, though all together do, has rows
_FITTED, _CLOSE, _TINY = 300, 1e-4, 1e-300  # rounds at most that make classes add up, and how nearly


@dataclass(frozen=True, slots=True)
class ByClass:
    """Noisy counts of one column in each class, and what is known of it over all classes."""

    joint: Array = field(repr=False)  # classes x cells
    sizes: Array = field(repr=False)  # rows of each class
    pooled: Array = field(repr=False)  # the law of all classes
    widths: Array | None = field(repr=False)  # of the cells of a number

    @property
    def expected(self) -> Array:
        """The counts of classes that do not differ."""
        return np.outer(self.sizes, self.pooled)

    def beyond(self, difference: Array, variance: float) -> Array:
        """What is left of noisy differences, cell by cell; neighbours of a number may differ alike."""
        if self.widths is None or len(self.widths) > MOST_ORDERED:
            return sparse_signal(difference, self.expected, variance)[1]
        return ordered_signal(difference, self.expected, variance, stands_alone(self.widths))

    def laws(self, found: Array) -> Array:
        """The law of each class, from the differences that were found."""
        return adding_up(project_simplex(self.expected + found, self.sizes), self.expected)


def conditional(columns: Sequence[ByClass], sigma: float, own: float) -> list[Array]:
    """The law of each column in each class, by empirical Bayes at the known noise of a cell.

    `sigma` is the noise of counts by class as they were released, `own` that of `joint`, which takes in
    the counts over all classes.
    """
    if not columns:
        return []
    classes = len(columns[0].joint)
    if classes == 1:
        return [column.pooled[None] for column in columns]
    cells = classes * sum(len(column.pooled) for column in columns)
    if cells > MOST_JOINT or max(len(column.pooled) for column in columns) > MOST_LEVELS:
        return [c.laws(c.beyond(c.joint - c.expected, own**2)) for c in columns]
    found = _Contrasts.of(columns).read(sigma)
    return [column.laws(one) for column, one in zip(columns, found, strict=True)]


@dataclass(frozen=True, slots=True)
class _Contrasts:
    """Differences of classes as contrasts of classes x contrasts of cells, of all columns side by side.

    Differences add up to nothing over classes (the law of all is known better) and over the cells of a
    class (so is its size). In these coordinates what is left of their noise is independent.
    """

    columns: Sequence[ByClass]
    over_classes: Array
    over_cells: list[Array]

    @classmethod
    def of(cls, columns: Sequence[ByClass]) -> "_Contrasts":
        cells = [contrasts(len(column.pooled)) for column in columns]
        return cls(columns, contrasts(len(columns[0].joint)), cells)

    def read(self, sigma: float) -> list[Array]:
        """The differences of every column: cell by cell, or common directions first, or in between."""
        seen = self._table([column.joint - column.expected for column in self.columns])

        def each(table: Array) -> Array:
            return self._each(table, sigma)

        def common(table: Array) -> Array:
            shown, rank = shrink_rectangular(table, sigma)
            return shown + self._each(table - shown, sigma) if rank else self._each(table, sigma)

        if sigma <= 0.0 or seen.size == 0:
            return self._differences(seen)
        if len(seen) + 1 < MANY_CLASSES:
            return self._differences(believed((each,), seen, sigma, FEW_PROBED))
        return self._differences(believed((each, common), seen, sigma))

    def _each(self, table: Array, sigma: float) -> Array:
        """Each column by itself, cell by cell."""
        inner = 1.0 - 1.0 / len(self.columns[0].joint)  # of the noise is left in a contrast of classes
        found = [
            column.beyond(difference, sigma**2 * inner * (1.0 - 1.0 / difference.shape[1]))
            for column, difference in zip(self.columns, self._differences(table), strict=True)
        ]
        return self._table(found)

    def _table(self, differences: Sequence[Array]) -> Array:
        pairs = zip(differences, self.over_cells, strict=True)
        return np.hstack([self.over_classes @ one @ cells.T for one, cells in pairs])

    def _differences(self, table: Array) -> list[Array]:
        parts = np.split(table, np.cumsum([len(cells) for cells in self.over_cells])[:-1], axis=1)
        pairs = zip(parts, self.over_cells, strict=True)
        return [self.over_classes.T @ part @ cells for part, cells in pairs]


def contrasts(size: int) -> Array:
    """Orthonormal rows that add up to nothing: Helmert's, each against the mean of those before it."""
    places, numbers = np.arange(1, size)[:, None], np.arange(size)[None]
    rows = (numbers < places) * 1.0 - (numbers == places) * places
    return np.asarray(rows / np.sqrt(places * (places + 1.0)))


def adding_up(counts: Array, expected: Array) -> Array:
    """The law of each class, fitted round by round so that all together nearly show the law of all.

    Counts that noise pushed below none were raised to none in every class, so that they do not add up.
    """
    rows, columns = expected.sum(axis=1, keepdims=True), expected.sum(axis=0)
    counts = np.maximum(counts, _LEAST_PART * expected)
    for _ in range(_FITTED):
        shown = counts.sum(axis=0)
        if float(np.abs(shown - columns).sum()) <= _CLOSE * float(columns.sum()):
            break
        counts = counts * (columns / np.maximum(shown, _TINY))
        counts = counts * (rows / np.maximum(counts.sum(axis=1, keepdims=True), _TINY))
    return np.asarray(np.where(rows > 0.0, counts / np.maximum(rows, _TINY), columns / columns.sum()))
