"""Synthetic rows of a moments model, in the schema's own columns and types; also under conditions.

Post-processing only: every argument is public or paid for. No private row is read, so more rows cost
nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adumbra.errors import InvalidInput, require
from adumbra.numerics import Array, Ints
from adumbra.postprocess.decode import block_sizes, column_array, keep_orders
from adumbra.postprocess.latent import Decoded, sample
from adumbra.postprocess.marginals import cell_limits, cell_means, fill
from adumbra.postprocess.moments.design import Feature
from adumbra.postprocess.moments.goal import Goal, scaled, spread_codes
from adumbra.postprocess.moments.laws import finer_parents
from adumbra.postprocess.moments.model import MomentsModel
from adumbra.postprocess.moments.refine import refine
from adumbra.postprocess.moments.tables import codes_of, ranked_cells
from adumbra.postprocess.rules import Finished, finish, matching
from adumbra.schema.conditions import compile_condition, read_conditions

LEAST_DRAWN = 512  # rows; fewer are picked from so many
_SWEEPS = 3  # over drawn rows, where tables of three columns were measured


def synthesize(model: MomentsModel, rows: int, seed: int) -> pa.Table:
    """Synthetic rows that keep the schema's rules, with its derived columns."""
    return pa.concat_tables(block.table for block in finished_blocks(model, rows, seed))


def finished_blocks(model: MomentsModel, rows: int, seed: int) -> Iterator[Finished]:
    """The same block by block, and how far rules moved what was drawn.

    The rows of a block are balanced: together they show the model's margins, whatever the seed. Fewer
    than LEAST_DRAWN are picked from so many: alone they would never show what is rare.
    """
    for number, size in enumerate(block_sizes(rows, model.latent.width)):
        rng = np.random.default_rng([seed, 2, number])
        drawn = _table(model, max(size, LEAST_DRAWN), rng).slice(0, size)
        yield finish(model.schema, drawn, seed, number)


def _table(model: MomentsModel, rows: int, rng: np.random.Generator) -> pa.Table:
    drawn = Rows(sample(model.latent, rows, rng), {})
    shuffle = rng.permutation(rows)
    if model.goal is not None:
        drawn = _refined(model, model.goal, drawn.decoded, rng)
    columns: dict[int, Array] = {}
    flags: dict[int, Array] = {}
    for place, feature in enumerate(model.design.features):
        target = flags if feature.is_flag else columns
        target[feature.index] = _values(model, drawn, place, rng)[shuffle]
    if model.schema.items is not None:
        return _sets_table(model, columns)
    if model.design.label is not None:
        low = model.schema.columns[model.design.label].limits[0]
        columns[model.design.label] = drawn.decoded.labels[shuffle].astype(np.float64) + low
    declared = model.schema.columns
    numbers = {c.name: columns[i] for i, c in enumerate(declared) if c.is_numeric}
    keep_orders(model.schema, numbers)
    columns |= {i: numbers[c.name] for i, c in enumerate(declared) if c.is_numeric}
    columns |= {i: np.where(flag > 0.5, declared[i].fill, columns[i]) for i, flag in flags.items()}
    return pa.table({c.name: column_array(c, columns[i]) for i, c in enumerate(declared)})


@dataclass(frozen=True, slots=True)
class Rows:
    """Decoded rows and, if values moved, the codes of pairs of levels and numbers, by their place."""

    decoded: Decoded
    codes: dict[int, Ints]


def _refined(model: MomentsModel, goal: Goal, decoded: Decoded, rng: np.random.Generator) -> Rows:
    """Rows with single codes moved, so that together they show the goal's tables."""
    codes, blocks = goal.codes, model.latent.blocks
    decoded = spread_codes(goal.coarse, codes, decoded, model.marginals.laws, rng)
    after = codes_of(codes, decoded, blocks)
    wanted = goal.wanted_of(after)
    for _ in range(_SWEEPS if goal.triples else 1):
        triples = scaled(goal.triples, len(after))
        after = refine(after, codes.starts, wanted, rng, triples=triples, scores=goal.scores)
    labels, parts, moved_codes = decoded.labels, list(decoded.parts), {}
    for index, column in enumerate(codes.columns):
        own = after[:, index]
        if column.place < 0:
            labels = own
            continue
        if column.flag >= 0:
            moved_codes[column.flag] = (own == column.levels).astype(np.int64)
        if blocks[column.place].is_levels:  # behind a missing value stays what was drawn
            parts[column.place] = np.where(own < column.levels, own, parts[column.place])
        else:
            moved_codes[column.place] = np.where(own < column.levels, own, 0)
    return Rows(Decoded(labels, tuple(parts)), moved_codes)


def _values(model: MomentsModel, rows: Rows, place: int, rng: np.random.Generator) -> Array:
    """One column of the table: numbers, or codes."""
    decoded = rows.decoded
    feature, part, law = model.design.features[place], decoded.parts[place], model.marginals.laws[place]
    codes = np.arange(feature.cells, dtype=np.float64)
    limits = (codes, codes) if feature.edges is None else cell_limits(feature.edges, feature.is_integer)
    if place in rows.codes and feature.edges is None:
        return _whole(limits[0][rows.codes[place]], feature)
    if not feature.is_levels:
        values = fill(part, law, limits)
        if place in rows.codes:
            cells, after = model.cells_of(place), rows.codes[place]
            is_moved = cells[ranked_cells(part, law)] != after
            _refill(values, np.where(is_moved, after, -1), cells, (law, *limits), rng)
        return _whole(values, feature)
    groups, values = model.cells_of(place), np.empty(len(part))
    if feature.finer is not None and place in model.marginals.finer:  # one value of each: the middle
        law, groups = model.marginals.finer[place], groups[finer_parents(feature, feature.finer)]
        middle = np.rint(cell_means(feature.finer, feature.is_integer))
        limits = (middle, middle)
    for code in range(model.design.classes):
        for group in range(int(groups.max()) + 1):
            members = np.flatnonzero((decoded.labels == code) & (part == group))
            cells = np.flatnonzero(groups == group)
            order = rng.permutation(len(members))
            low, high = limits[0][cells], limits[1][cells]
            values[members] = fill(order, law[code, cells], (low, high))
    return _whole(values, feature)


def _sets_table(model: MomentsModel, columns: dict[int, Array]) -> pa.Table:
    """Item sets: one list of item numbers per row."""
    spec = model.schema.items
    name, lower = (spec.column, spec.lower) if spec is not None else ("items", 0)
    hits = np.stack([columns[i] > 0.5 for i in range(len(columns))], axis=1)
    lengths = hits.sum(axis=1)
    items = np.nonzero(hits)[1] + lower
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(items.astype(np.int32)))
    return pa.table({name: lists})


STEP = 2**15  # rows drawn at once
MOST_DRAWN = 2**22  # rows drawn for one sample


def synthesize_where(
    model: MomentsModel, rows: int, seed: int, where: Mapping[str, object] | None
) -> pa.Table:
    """So many synthetic rows that meet all conditions; raises InvalidInput where hardly any does."""
    if not where:
        return synthesize(model, rows, seed)
    schema = model.schema
    require(schema.items is None, "where: item sets have no columns; leave it out")
    columns = {column.name: column for column in schema.columns}
    conditions = read_conditions(where)
    unknown = [name for name, _ in conditions if name not in columns]
    require(not unknown, f"where: {unknown[:1]} is not a declared column of the release")
    taken = [compile_condition(condition, columns[name]) for name, condition in conditions]
    for one in taken:
        require(not one.is_empty, f"where: no value of {one.column!r} meets the condition")
    kept: list[pa.Table] = []
    found = drawn = 0
    while found < rows and drawn < MOST_DRAWN:
        step = synthesize(model, STEP, int(np.random.SeedSequence([seed, drawn]).generate_state(1)[0]))
        chosen = step.filter(pa.array(matching(schema, step, taken)))
        kept.append(chosen)
        found, drawn = found + chosen.num_rows, drawn + STEP
    if found < rows:
        rule = f"{found} of {drawn:,} rows that were drawn meet the conditions, and {rows} are wanted"
        raise InvalidInput(f"where: {rule}; loosen them or ask for fewer rows")
    return pa.concat_tables(kept).slice(0, rows)


def _refill(
    values: Array, codes: Ints, cells: Ints, law: tuple[Array, Array, Array], rng: np.random.Generator
) -> None:
    """Values of rows whose code moved (others have -1): by the shares and limits of its cells."""
    for code in range(int(cells.max()) + 1):
        members, own = np.flatnonzero(codes == code), np.flatnonzero(cells == code)
        order = rng.permutation(len(members))
        shares, low, high = (part[own] for part in law)
        values[members] = fill(order, shares, (low, high))


def _whole(values: Array, feature: Feature) -> Array:
    """Within the bounds, and whole where the column is."""
    if feature.edges is None:
        return np.rint(values)
    inside = np.clip(values, feature.lower, feature.upper)
    return np.rint(inside) if feature.is_integer else inside
