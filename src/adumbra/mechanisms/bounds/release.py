"""Buy what a schema does not declare: bounds of numbers and dates, levels of a declared list.

    1  the cell of each row in every private column: a public grid, or the levels that are listed
    2  counts of all cells of all columns, with noise once
    3  bounds at the outermost cells, and levels, above a threshold that noise alone hardly passes

A cell that holds nothing readable counts nowhere. The rest is arithmetic on noisy counts.

Guarantee   pure epsilon (discrete Laplace) or mu-GDP (rounded normal); unit row or person, replace-one
            or add-remove. Holds for any input.
Reference   Dwork, McSherry, Nissim, Smith, TCC 2006 (histograms); the grid and the scan are ours.
Proof       release.proof.md, of `draw` and `cell_block`.
Limits      Level names that nobody declared are not released: docs/decisions/0029-bought-facts.md.
"""

import numpy as np
import pyarrow as pa

from adumbra.data.sources import Batch, Source
from adumbra.engine.local import Engine
from adumbra.mechanisms.base import Draft, Published, Settled
from adumbra.mechanisms.bounds.config import BoundsConfig
from adumbra.mechanisms.bounds.plan import COUNTS, Parts
from adumbra.mechanisms.moments.release import noisy
from adumbra.numerics import Array
from adumbra.postprocess.found import PARTS, bounds_of, found_range, one_further
from adumbra.postprocess.pictures import Bars, Pictures, reach_of
from adumbra.privacy.grant import Grant
from adumbra.schema.schema import Column
from adumbra.statistics.histograms import CellRows, cell_rows, cut

FOUND = "found"  # a fact of the card: by column its bounds or levels, null where nothing was found
SHOWN = 16  # bars of a picture
BAR = (
    "A bar with its ± is an interval: it covers the number of rows in 95 of 100 releases that could "
    "have been made."
)


def cell_block(batch: Batch, parts: Parts) -> CellRows:
    """The cell of each row in every private column; what cannot be read has none."""
    codes = np.empty((len(batch), len(parts.columns)), np.int64, order="F")
    for at, (column, place, edges) in enumerate(
        zip(parts.columns, parts.places, parts.edges, strict=True)
    ):
        values = batch.values[:, place]
        codes[:, at] = values.astype(np.int64) if edges is None else cut(values, edges)
        codes[values == column.fill, at] = -1
    return cell_rows(codes, parts.histograms.cells)


def draw(settled: Settled[BoundsConfig, Parts], source: Source, engine: Engine, grant: Grant) -> Draft:
    """One paid pass; then bounds and levels from the noisy counts."""
    parts = settled.parts

    def count(batch: Batch) -> CellRows:
        return cell_block(batch, parts)

    exact = engine.fold(source, count, parts.histograms, stage=COUNTS)
    counts = noisy(exact, parts.counting, grant, COUNTS)
    found = [
        find(parts, column, edges, cells)
        for column, edges, cells in zip(
            parts.columns, parts.edges, parts.histograms.split(counts), strict=True
        )
    ]
    return Draft(
        tables={"data": summary(parts, found, counts)},
        arrays={COUNTS: counts},
        noise=(parts.noise(),),
        facts={
            FOUND: dict(zip([column.name for column in parts.columns], found, strict=True)),
            "rows_to_be_found": parts.limit(1),
        },
    )


def find(parts: Parts, column: Column, edges: Array | None, counts: Array) -> dict[str, object] | None:
    """The bounds or levels of one column as a schema file writes them; None if all may be noise."""
    if edges is None:
        heard = np.flatnonzero(counts > parts.limit(1)).tolist()
        return {"categories": [column.categories[place] for place in heard]} if heard else None
    cells = found_range(counts, parts.limit)
    if cells is None:
        return None
    if parts.fineness == PARTS[-1]:
        cells = one_further(edges, cells)
    lower, upper = bounds_of(column, edges, cells)
    if column.kind.is_time:
        return {"lower": column.text(lower), "upper": column.text(upper)}
    if column.is_whole:
        return {"lower": int(lower), "upper": int(upper)}
    return {"lower": lower, "upper": upper}


def summary(parts: Parts, found: list[dict[str, object] | None], counts: Array) -> pa.Table:
    """For people: bounds, or levels with their noisy counts, of each column."""
    lines: list[dict[str, object]] = []
    for column, fact, cells in zip(parts.columns, found, parts.histograms.split(counts), strict=True):
        line: dict[str, object] = {"column": column.name}
        if fact is None or column.kind.has_bounds:
            ends = {end: str(value) for end, value in (fact or {}).items()}
            lines.append({**line, "found": fact is not None, **ends})
            continue
        names = set(fact["categories"])  # type: ignore[call-overload]  # a list of texts
        lines += [
            {**line, "found": True, "level": level, "rows": float(rows)}
            for level, rows in zip(column.categories, cells, strict=True)
            if level in names
        ]
    kinds = [("column", pa.string()), ("found", pa.bool_()), ("lower", pa.string())]
    kinds += [("upper", pa.string()), ("level", pa.string()), ("rows", pa.float64())]
    return pa.Table.from_pylist(lines, pa.schema(kinds))


def pictures(settled: Settled[BoundsConfig, Parts], published: Published) -> Pictures:
    """The noisy counts of the levels of each column, largest first."""
    parts, counts = settled.parts, np.asarray(published.arrays[COUNTS], np.float64)
    deviation = parts.counting.scale * (2.0**0.5 if parts.is_pure else 1.0)
    reach, bars = reach_of(deviation, is_pure=parts.is_pure), []
    for column, edges, cells in zip(
        parts.columns, parts.edges, parts.histograms.split(counts), strict=True
    ):
        if edges is not None:
            continue
        order = np.argsort(-cells, kind="stable")[:SHOWN].tolist()
        bars.append(
            Bars(
                title=f"Rows by {column.name}",
                caption=BAR,
                names=tuple(column.categories[place] for place in order),
                values=tuple(float(cells[place]) for place in order),
                reaches=tuple(reach for _ in order),
            )
        )
    return Pictures(bars=tuple(bars))


def words(_: Settled[BoundsConfig, Parts], __: Published) -> dict[str, str]:
    """What each part is."""
    return {
        "data": "One row per column, or per level that was found: its bounds, or its noisy count.",
        COUNTS: "Noisy counts of rows per cell of the public grid, one column after the other.",
    }
