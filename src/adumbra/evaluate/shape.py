"""NOT FOR RELEASE: how far the shapes of columns and pairs of a table are from the real ones.

    one way    total variation of each column; numbers in 16 equal bins between their declared bounds
    pairs      total variation of every pair; numbers in cells of equal real counts, rare levels joined

All pairs are counted at once: with one-hot rows X, the joint counts of all pairs are the blocks of X'X.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from adumbra.evaluate.utility import BINS, column_codes
from adumbra.numerics import Array, Ints
from adumbra.postprocess.decode import column_array
from adumbra.postprocess.rules import broken_rows
from adumbra.schema.schema import Column, Schema

PAIR_CELLS = 5  # of a number, or levels of a category that are kept apart
MOST_PAIR_CELLS = 2_600  # of all columns together; more columns are thinned out evenly
RARE = 0.01  # a level below this share of the real rows is rare
SPIKE = 0.05  # a number that this share of the rows has in common
LISTED = 12


def histogram(column: Column, values: Array) -> Array:
    """Shares of the levels, or of the bins of a number and of what is missing."""
    cells = BINS + 1 if column.is_numeric else column.levels
    counts = np.bincount(column_codes(column, values), minlength=cells)
    return np.asarray(counts / max(len(values), 1), np.float64)


def histograms(schema: Schema, values: Array) -> list[Array]:
    """One histogram per column."""
    return [histogram(column, values[:, at]) for at, column in enumerate(schema.columns)]


def distances(left: list[Array], right: list[Array]) -> Array:
    """The total variation of each column."""
    return np.array([np.abs(p - q).sum() / 2.0 for p, q in zip(left, right, strict=True)])


@dataclass(frozen=True, slots=True)
class PairCells:
    """Coarse codes of the measured columns, made from the real rows."""

    columns: tuple[int, ...]  # places in the schema
    edges: tuple[Array, ...] = field(repr=False)  # of numbers; else the levels that are kept apart
    starts: Ints = field(repr=False)  # the first cell of each column
    cells: int
    schema: Schema = field(repr=False)

    @staticmethod
    def of(schema: Schema, real: Array) -> "PairCells":
        """Cells of equal real counts; the page is private, so real rows may decide."""
        edges = [_edges(column, real[:, at]) for at, column in enumerate(schema.columns)]
        sizes = np.array([len(points) + 2 for points in edges])
        chosen = list(range(len(edges)))
        if sizes.sum() > MOST_PAIR_CELLS:
            step = sizes.sum() / MOST_PAIR_CELLS
            chosen = sorted({int(place) for place in np.arange(0, len(edges), step)})
        ends = np.cumsum([0, *sizes[chosen]])
        return PairCells(
            tuple(chosen),
            tuple(edges[at] for at in chosen),
            ends[:-1].astype(np.int64),
            int(ends[-1]),
            schema,
        )

    def one_hot(self, values: Array) -> Array:
        """Rows as one 1 per column."""
        marked = np.zeros((len(values), self.cells), np.float32)
        every = np.arange(len(values))
        for at, start, edges in zip(self.columns, self.starts, self.edges, strict=True):
            marked[every, start + _pair_codes(self.schema.columns[at], edges, values[:, at])] = 1.0
        return marked  # type: ignore[return-value]

    def joint(self, values: Array) -> Array:
        """Shares of all pairs of cells."""
        marked = self.one_hot(values)
        return np.asarray((marked.T @ marked) / np.float32(len(marked)))  # exact counts: below 2^24

    def distances(self, left: Array, right: Array) -> Array:
        """The total variation of every pair of columns; NaN for a column with itself."""
        gap = np.abs(left - right).astype(np.float64)
        blocks = np.add.reduceat(np.add.reduceat(gap, self.starts, axis=0), self.starts, axis=1) / 2.0
        np.fill_diagonal(blocks, np.nan)
        return np.minimum(blocks, 1.0)  # shares in single precision add to a little more


def _edges(column: Column, real: Array) -> Array:
    """Inner edges of cells of equal counts; for levels, the common ones."""
    if column.is_numeric:
        known = real[real <= column.limits[1]]
        points = np.linspace(0.0, 1.0, PAIR_CELLS + 1)[1:-1]
        return np.unique(np.quantile(known, points)) if len(known) else np.empty(0)
    counts = np.bincount(real.astype(np.int64), minlength=column.levels)
    return np.sort(np.argsort(-counts, kind="stable")[: PAIR_CELLS - 1]).astype(np.float64)


def _pair_codes(column: Column, edges: Array, values: Array) -> Ints:
    """The cell of each value; the last one is what is missing, or a level that is not kept apart."""
    if column.is_numeric:
        cells = np.searchsorted(edges, values, side="right")
        return np.where(values > column.limits[1], len(edges) + 1, cells).astype(np.int64)
    cells = np.searchsorted(edges, values)
    found = np.minimum(cells, len(edges) - 1)
    return np.where(edges[found] == values, found, len(edges) + 1).astype(np.int64)


def independent_joint(joint: Array) -> Array:
    """The same marginals without any dependence."""
    single = np.diagonal(joint)
    return np.asarray(np.outer(single, single))


def worst_pairs(errors: Array, names: list[str], most: int = LISTED) -> list[dict[str, object]]:
    """The pairs with the largest error, by name."""
    rows, columns = np.triu_indices(len(errors), 1)
    order = np.argsort(-errors[rows, columns], kind="stable")[:most]
    return [
        {
            "first": names[int(rows[at])],
            "second": names[int(columns[at])],
            "error": float(errors[rows[at], columns[at]]),
        }
        for at in order
    ]


def rare_levels(
    schema: Schema, real: list[Array], released: list[list[Array]]
) -> list[dict[str, object]]:
    """Levels that few real rows have, with their shares in each release; the rarest first."""
    found: list[dict[str, object]] = []
    for at, column in enumerate(schema.columns):
        if column.is_numeric:  # its bins are no levels
            continue
        for code in np.flatnonzero((real[at] > 0) & (real[at] < RARE)):
            shares = [float(histogram[at][code]) for histogram in released]
            found.append(
                {
                    "column": column.name,
                    "level": level_name(column, int(code)),
                    "real": float(real[at][code]),
                    "released": shares,
                }
            )
    return sorted(found, key=lambda one: float(str(one["real"])))


def level_name(column: Column, code: int) -> str:
    """A level in words."""
    if not column.categories:
        return ("no", "yes")[code]
    return column.categories[code] if code < len(column.categories) else "(missing)"


def spikes(schema: Schema, real: Array, released: list[Array]) -> list[dict[str, object]]:
    """Single values that many real rows share, zeros for example, with their shares in each release."""
    found: list[dict[str, object]] = []
    for at, column in enumerate(schema.columns):
        known = real[:, at][real[:, at] <= column.limits[1]]
        if not column.is_numeric or len(known) == 0:
            continue
        values, counts = np.unique(known, return_counts=True)
        if len(values) <= 2 * BINS:  # few values: its histogram shows them
            continue
        top = int(np.argmax(counts))
        if counts[top] >= SPIKE * len(real):
            shares = [float(np.mean(table[:, at] == values[top])) for table in released]
            found.append(
                {
                    "column": column.name,
                    "value": float(values[top]),
                    "real": float(counts[top] / len(real)),
                    "released": shares,
                }
            )
    return sorted(found, key=lambda one: -float(str(one["real"])))


def impossible_share(schema: Schema, values: Array) -> float | None:
    """The share of rows that break a declared rule or order; None where none is declared."""
    if not schema.rules and not schema.constraints:
        return None
    table = pa.table({c.name: column_array(c, values[:, at]) for at, c in enumerate(schema.columns)})
    return broken_rows(schema, table) / max(len(values), 1)
