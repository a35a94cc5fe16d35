"""Exact joint tables of chosen sets of columns, over codes.

    t_S[c] = #{i : row i has the codes c in the columns S}        one cell of each table per row

One row moves one cell of a table by one (add-remove), or two cells (replace-one), whatever its columns.

Proof       joint_tables.proof.md, of `code_rows`, `JointTables` and `table_sensitivity`.
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Ints, table_places
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.histograms import histogram_sensitivity

Clique = tuple[int, ...]  # columns of one table, ascending


@dataclass(frozen=True, slots=True)
class CodeRows:
    """Codes of rows, inside the sizes of their columns, or -1; made by `code_rows` alone."""

    codes: Ints  # rows x columns
    sizes: tuple[int, ...]
    is_whole: bool  # no code is -1


def code_rows(codes: Ints, sizes: tuple[int, ...]) -> CodeRows:
    """Codes (rows x columns); one outside its column's size becomes -1, which counts nowhere."""
    require(
        codes.ndim == 2 and codes.shape[1] == len(sizes),
        f"codes of shape {codes.shape}: need one column for each of {len(sizes)} sizes",
    )
    inside = (codes >= 0) & (codes < np.asarray(sizes, np.int64))
    return CodeRows(np.asfortranarray(np.where(inside, codes, -1)), sizes, bool(inside.all()))


def table_sensitivity(neighbours: Neighbours) -> Sensitivity:
    """Of one joint table: a histogram of one column, whose cell is the tuple of codes."""
    return histogram_sensitivity(1, neighbours)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTables:
    """The concatenated joint tables of these sets of columns; a table's last column runs fastest."""

    sizes: tuple[int, ...]  # codes of each column
    cliques: tuple[Clique, ...]
    exponent: int = 0

    def __post_init__(self) -> None:
        require(
            bool(self.cliques) and min(self.sizes) >= 1,
            f"cliques={self.cliques[:3]}: need at least one table, and a code in every column",
        )

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells of each table."""
        return tuple(math.prod(self.sizes[j] for j in clique) for clique in self.cliques)

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(sum(self.cells), np.int64)

    def add(self, total: Ints, rows: CodeRows) -> Ints:
        """Count a block in place, table by table."""
        require(rows.sizes == self.sizes, f"sizes={rows.sizes[:3]}: declared {self.sizes[:3]}")
        start = 0
        for clique, cells in zip(self.cliques, self.cells, strict=True):
            places = table_places(rows.codes, clique, self.sizes)
            if not rows.is_whole:
                places = places[(rows.codes[:, clique] >= 0).all(axis=1)]
            total[start : start + cells] += np.bincount(places, minlength=cells)
            start += cells
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """Of all tables together; of one alone see `table_sensitivity`."""
        return histogram_sensitivity(len(self.cliques), neighbours)

    def split(self, flat: Ints) -> list[Ints]:
        """The flat vector as one flat table per clique."""
        return np.split(flat, np.cumsum(self.cells)[:-1])
