"""Exact one-way histograms of many columns at once, over categorical codes or binned numbers.

    h_jc = #{i : row i falls into cell c of column j}         one cell per column, so m ones per row

One row moves m cells by one (add-remove) or at most 2m (replace-one), whatever the cells are; a column
whose cell is the pair (class, level) is a joint histogram at no extra price.

Proof       histograms.proof.md, of `cell_rows`, `Histograms` and `histogram_sensitivity`.
"""

from dataclasses import dataclass

import numpy as np

from adumbra.errors import Unsupported, require
from adumbra.numerics import Array, Ints, sqrt_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity

_EVEN_CELLS, _EVEN = 8, 1e-9  # fewer inner cells, or less even ones, are searched


@dataclass(frozen=True, slots=True)
class CellRows:
    """Places of the cells that rows fall into, at most one per column; made by `cell_rows` alone."""

    places: Ints  # flat: every cell hit, once for each row and column that hits it
    columns: int


def cell_rows(codes: Ints, cells: tuple[int, ...]) -> CellRows:
    """Codes (rows x columns) as places in all histograms; a code without a cell counts nowhere."""
    require(
        codes.ndim == 2 and codes.shape[1] == len(cells),
        f"codes of shape {codes.shape}: need one column for each of {len(cells)} histograms",
    )
    sizes = np.asarray(cells, np.int64)
    starts = np.cumsum(sizes) - sizes
    inside = (codes >= 0) & (codes < sizes)
    places = codes + starts
    return CellRows(places.ravel(order="K") if inside.all() else places[inside], len(cells))


def cut(values: Array, edges: Array) -> Ints:
    """The cell of each value: edges[c] <= x < edges[c + 1]; what lies outside goes to the ends."""
    inner = edges[1:-1]
    steps = np.diff(inner[1:-1])
    if len(steps) < _EVEN_CELLS or np.ptp(steps) > _EVEN * steps[0]:
        return np.asarray(np.searchsorted(inner, values, side="right"), np.int64)
    # Even cells: arithmetic finds the place but for one, and comparisons put that right.
    guess = np.floor((values - inner[1]) / steps.mean()) + 2.0
    places = np.fmin(np.fmax(guess, 0.0), float(len(inner))).astype(np.int64)  # NaN: 0
    fence = np.concatenate(([-np.inf], inner, [np.nan]))  # nothing is at or beyond NaN
    places += values >= fence[places + 1]
    places -= values < fence[places]
    return np.asarray(places, np.int64)


def histogram_sensitivity(columns: int, neighbours: Neighbours) -> Sensitivity:
    """A row is m ones in m different cells: L1 m and L2 sqrt(m), twice m under replace-one."""
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1=float(columns), l2=sqrt_upper(columns))
    if neighbours is Neighbours.REPLACE_ONE:
        return Sensitivity(l1=2.0 * columns, l2=sqrt_upper(2 * columns))
    raise Unsupported(f"neighbours={neighbours}: histograms are per row; use add-remove or replace-one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Histograms:
    """The concatenated one-way histograms of columns with these numbers of cells."""

    cells: tuple[int, ...]
    exponent: int = 0

    def __post_init__(self) -> None:
        require(
            bool(self.cells) and min(self.cells) >= 1,
            f"cells={self.cells}: every column needs a cell",
        )

    @property
    def size(self) -> int:
        """Cells of all columns."""
        return sum(self.cells)

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(self.size, np.int64)

    def add(self, total: Ints, rows: CellRows) -> Ints:
        """Count a block in place."""
        require(
            rows.columns == len(self.cells),
            f"columns={rows.columns}: the histograms were declared for {len(self.cells)}",
        )
        total += np.bincount(rows.places, minlength=self.size)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """See `histogram_sensitivity`."""
        return histogram_sensitivity(len(self.cells), neighbours)

    def split(self, flat: Array) -> list[Array]:
        """The (noisy) flat vector as one histogram per column."""
        return np.split(flat, np.cumsum(self.cells)[:-1])
