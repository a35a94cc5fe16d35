"""What bounds and levels cost, and how many rows a value needs to be found.

Proof       release.proof.md, of `settle`.
"""

from dataclasses import dataclass

from adumbra.errors import InvalidInput, require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.base import Calibrated, Noise, Plan, Settled, person_notes, require_magnitudes
from adumbra.mechanisms.bounds.config import METHOD, BoundsConfig
from adumbra.mechanisms.box_release import require_rows_unit
from adumbra.mechanisms.fields import unused_guess
from adumbra.mechanisms.moments.plan import calibrate_first
from adumbra.mechanisms.sizes import Size, Work
from adumbra.numerics import Array
from adumbra.postprocess.found import PARTS, CountNoise, grid, tests_of, threshold
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Column, Schema
from adumbra.statistics.histograms import Histograms

COUNTS = "counts"
USUAL = 4  # cells for each doubling where nobody says how many rows there are
CROWD = 32  # a doubling that holds so small a part of the rows, evenly, is still found


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The columns that are bought, their public cells, and the noise of the counts."""

    columns: tuple[Column, ...]
    places: tuple[int, ...]  # where they stand in the table
    edges: tuple[Array | None, ...]  # None: the levels themselves
    fineness: int  # cells for each doubling
    histograms: Histograms
    counting: Calibrated
    is_pure: bool
    chance: float

    def limit(self, width: int) -> float:
        """Noisy rows that a block of so many cells must pass."""
        tests = sum(map(tests_of, self.histograms.cells))
        step = 2.0**self.counting.exponent
        noise = CountNoise(scale=self.counting.scale, step=step, is_pure=self.is_pure)
        return threshold(width, tests, self.chance, noise)

    def noise(self) -> Noise:
        """The noise as the card prints it."""
        return self.counting.entry(COUNTS, is_pure=self.is_pure)


def settle(config: BoundsConfig, schema: Schema) -> Settled[BoundsConfig, Parts]:
    """Every public decision: which columns, their cells, the noise."""
    require_rows_unit(schema, METHOD)
    require(schema.items is None, "items: item sets have no bounds to buy; declare their universe")
    schema.require_closed(bought=False)
    require_magnitudes(schema)
    places = tuple(place for place, column in enumerate(schema.columns) if column.private)
    if not places:
        remedy = "write `private = true` into the columns whose bounds or levels are not publicly known"
        raise InvalidInput(f"private: no column asks for it, and {METHOD} has nothing to buy; {remedy}")
    rows, columns = schema.rows or config.expected_rows, tuple(schema.columns[p] for p in places)
    for fineness in (USUAL,) if rows is None else PARTS:  # the last one in any case
        parts = _parts(config, schema, columns, places, fineness)
        if rows is not None and CROWD * parts.limit(1) * fineness <= rows:
            break
    return Settled(config=config, schema=schema, plan=_plan(config, schema, parts), parts=parts)


def _parts(
    config: BoundsConfig,
    schema: Schema,
    columns: tuple[Column, ...],
    places: tuple[int, ...],
    fineness: int,
) -> Parts:
    """Cells of this fineness, and their noise."""
    edges = tuple(grid(column, fineness) if column.kind.has_bounds else None for column in columns)
    cells = tuple(
        len(column.categories) if ends is None else len(ends) - 1
        for column, ends in zip(columns, edges, strict=True)
    )
    histograms, is_pure = Histograms(cells=cells), config.delta == 0
    amount = config.epsilon if is_pure else mu_of(config.epsilon, config.delta)
    return Parts(
        columns=columns,
        places=places,
        edges=edges,
        fineness=fineness,
        histograms=histograms,
        counting=calibrate_first(histograms, schema, amount, is_pure=is_pure),
        is_pure=is_pure,
        chance=config.chance,
    )


def _plan(config: BoundsConfig, schema: Schema, parts: Parts) -> Plan:
    """Cost, noise, and what it takes to be found; from public numbers only."""
    rows, needed = schema.rows or config.expected_rows, parts.limit(1)
    share = "" if rows is None else f" ({needed / rows:.2g} of {rows:,})"
    notes = [
        *unused_guess(config, schema.rows),
        (
            f"A value is found if about {needed:,.0f} rows{share} lie in its cell, at the latest with "
            "twice as many; values beyond the bounds will be moved to them, other levels will count as "
            "missing."
        ),
    ]
    if rows is not None and needed > rows:
        notes.append("No column can be found: raise epsilon, or declare bounds and levels.")
    shares = {} if rows is None else {"share_to_be_found": needed / rows}
    if any(ends is None for ends in parts.edges):
        notes.append("Levels are found among those that the schema lists, and no others.")
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=(COUNTS,),
        noise=(parts.noise(),),
        expected={"rows_to_be_found": needed, **shares},
        notes=(*notes, *person_notes(schema)),
        details={
            "columns": len(parts.columns),
            "cells": parts.histograms.size,
            "cells_per_doubling": parts.fineness,
        },
        size=_size(config, schema, parts),
    )


def _size(config: BoundsConfig, schema: Schema, parts: Parts) -> Size:
    """Memory and disk: counts and their noise; no rows are released."""
    read, cells = sizes.rows_read(schema, config.expected_rows), parts.histograms.size
    names = [column.name for column in parts.columns]
    levels = [level for column in parts.columns for level in column.categories]
    return Size(
        memory=sizes.PROCESS
        + sizes.reading(schema.width, read, len(names), is_fold=True)
        + sizes.totals(cells)
        + 8 * sizes.FLOAT * cells,
        output=sizes.FLOAT * 2 * cells + sizes.folder_words(schema),
        card=sizes.card_bytes(names, (*names, *levels)) + 200 * len(names),
        rows=None,
        seconds=Work(passes=1, counted=len(names)).seconds(schema, config.expected_rows),
    )
