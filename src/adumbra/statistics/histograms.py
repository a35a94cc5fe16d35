"""Exact one-way histograms of many columns at once, over categorical codes or binned numbers.

    h_jc = #{i : row i falls into cell c of column j}         one cell per column, so m ones per row

One row moves m cells by one (add-remove) or at most 2m (replace-one), whatever the cells are; a column
whose cell is the pair (class, level) is a joint histogram at no extra price.

Proof       histograms.proof.md, of `cell_rows`, `Histograms` and `histogram_sensitivity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from adumbra.errors import Unsupported, require
from adumbra.numerics import Array, Ints, few_columns, sqrt_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity

_EVEN_EDGES, _EVEN = 9, 1e-9  # fewer edges, or less even ones (in steps), are searched


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
    inside = codes.view(np.uint64) < sizes.view(np.uint64)  # a negative one is huge
    places = codes + starts
    return CellRows(places.ravel(order="K") if inside.all() else places[inside], len(cells))


def cut(values: Array, edges: Array) -> Ints:
    """The cell of each value: edges[c] <= x < edges[c + 1]; what lies outside goes to the ends."""
    ruler, inner = _ruler(edges.tobytes()), edges[1:-1]
    if ruler is None:
        return np.asarray(np.searchsorted(inner, values, side="right"), np.int64)
    steps = values - ruler.low
    steps *= ruler.per_step
    np.clip(steps, -0.5, ruler.count - 0.5, out=steps)
    distance = np.rint(steps)
    distance -= steps
    np.abs(distance, out=distance)
    steps += 1.0 + ruler.first
    near = None
    if not distance.min(initial=1.0) > ruler.doubt:  # true for NaN, too, which no cast may see
        near = np.flatnonzero(~(distance > ruler.doubt))
        steps[near] = 0.0
    places: Ints = steps.astype(np.int64)
    if ruler.first:
        places += values >= inner[-1]
        places -= values < inner[0]
    if near is not None:
        places[near] = np.searchsorted(inner, values[near], side="right")
    return places


def cut_columns(values: Array, edges: Sequence[Array], out: Ints) -> None:
    """`cut` of every column by its own edges; neighbours whose edges are alike are cut together."""
    rulers = [_ruler(one.tobytes()) for one in edges]
    for few in few_columns(len(values), len(edges)):
        shared = {None if ruler is None else (ruler.count, ruler.first) for ruler in rulers[few]}
        known = [ruler for ruler in rulers[few] if ruler is not None]
        if len(shared) == 1 and len(known) > 1:
            _cut_alike(values[:, few], known, edges[few], out[:, few])
            continue
        for column in range(few.start, few.stop):
            out[:, column] = cut(values[:, column], edges[column])


def _cut_alike(values: Array, rulers: "list[_Ruler]", edges: Sequence[Array], out: Ints) -> None:
    """`cut` of columns whose rulers have as many steps; each step is the one that `cut` takes."""
    count, first, doubt = rulers[0].count, rulers[0].first, max(ruler.doubt for ruler in rulers)
    steps = values - _row([ruler.low for ruler in rulers])
    steps *= _row([ruler.per_step for ruler in rulers])
    np.clip(steps, -0.5, count - 0.5, out=steps)
    distance = np.rint(steps)
    distance -= steps
    np.abs(distance, out=distance)
    steps += 1.0 + first
    near: list[tuple[int, Ints]] = []
    if not distance.min(initial=1.0) > doubt:
        for column in np.flatnonzero(~(distance.min(axis=0, initial=1.0) > doubt)).tolist():
            near.append((column, np.flatnonzero(~(distance[:, column] > doubt))))
            steps[near[-1][1], column] = 0.0
    out[...] = steps  # towards 0, as a cast does
    if first:
        out += values >= _row([float(one[-2]) for one in edges])
        out -= values < _row([float(one[1]) for one in edges])
    for column, rows in near:
        out[rows, column] = np.searchsorted(edges[column][1:-1], values[rows, column], side="right")


def _row(numbers: list[float]) -> Array | float:
    """One number per column; a single one where all are equal, which is faster."""
    return numbers[0] if numbers.count(numbers[0]) == len(numbers) else np.array(numbers)


@dataclass(frozen=True, slots=True)
class _Ruler:
    """Even edges: which step a value has reached follows from arithmetic, unless it is next to an edge.

    f(x) = (x - low) * per_step never falls as x grows, whatever the roundings, and f(edge k) is within
    `doubt` of k. So f(x) above k + doubt says that x is not below edge k, and f(x) below k - doubt that
    it is.
    """

    low: float
    per_step: float
    count: int  # of even edges
    first: int  # the inner edge that is the first of them: 0, or 1 where both ends stand apart
    doubt: float


@lru_cache(maxsize=4096)
def _ruler(edges: bytes) -> _Ruler | None:
    """How to place values by arithmetic; None: they are searched."""
    inner = np.frombuffer(edges)[1:-1]
    for first in (0, 1):
        even = inner[first : len(inner) - first]
        if len(even) < _EVEN_EDGES or not even[-1] > even[0]:
            break
        low, per_step = float(even[0]), (len(even) - 1) / float(even[-1] - even[0])
        off = float(np.max(np.abs((even - low) * per_step - np.arange(len(even)))))
        if off < _EVEN:
            return _Ruler(low, per_step, len(even), first, max(off, _EVEN))
    return None


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
    size: int = field(init=False, compare=False)  # cells of all columns

    def __post_init__(self) -> None:
        require(
            bool(self.cells) and min(self.cells) >= 1,
            f"cells={self.cells}: every column needs a cell",
        )
        object.__setattr__(self, "size", sum(self.cells))

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
