"""From one-way laws and a noisy Gram to a model, and from the model to a table.

Post-processing only: every argument is public or paid for. In order: class means and the covariance
within classes (shrunk at the noise edge), the latent model calibrated to both and to the laws, synthetic
rows in the schema's own columns and types.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from adumbra.numerics import Array, Ints
from adumbra.postprocess.decode import BLOCK_ROWS, block_sizes, column_array, keep_orders
from adumbra.postprocess.latent import Block, Decoded, LatentModel, calibrate, latent_model, sample
from adumbra.postprocess.marginals import cell_limits, fill, project_simplex
from adumbra.postprocess.matrices import shrink_means, shrunk_directions
from adumbra.postprocess.moments.covariance import (
    set_levels,
    stretch_of,
    variances_of,
    with_rest,
    within_pairs,
)
from adumbra.postprocess.moments.design import Centre, Design, Feature, Fineness
from adumbra.postprocess.moments.goal import (
    Clique,
    Goal,
    Working,
    finer_codes,
    finer_goal,
    moved,
    next_batch,
    plain_codes,
    scaled,
    spread_codes,
)
from adumbra.postprocess.moments.laws import Marginals, score_values
from adumbra.postprocess.moments.refine import pair_tables, refine
from adumbra.postprocess.moments.tables import (
    Released,
    codes_of,
    measure,
    ranked_cells,
    read_codes,
    wanted_tables,
)
from adumbra.postprocess.rules import Finished, finish
from adumbra.schema.schema import Schema

_CALIBRATION_ROWS = 8192
_GOAL_ROWS = 2**15  # of the model, whose tables are compared with the Gram
_WORK_ROWS = (1024, 4096)  # that show what is known between measured tables: at least, at most
_SWEEPS = 3  # over drawn rows, where tables of three columns were measured
_LEVEL_ROUNDS = 6  # of calibration, where there are categories
_WIDE, _NARROW = 400, 128  # latent columns: more take one round; more numbers take none


@dataclass(frozen=True, slots=True, kw_only=True)
class GramNoise:
    """The released Gram in encoded units, with its noise."""

    blocks: tuple[Array, ...] = field(repr=False)  # sums of centred products
    class_sums: Array = field(repr=False)  # L x D
    sigma: float  # off-diagonal standard deviation of a block's entry
    class_sigma: float  # standard deviation of an entry of class_sums
    class_counts: Array = field(repr=False)  # L, from the tail's diagonal
    count_sigma: float  # standard deviation of a class count
    radius: float  # rows were shortened to it


def grouped(law: Array, groups: Ints) -> Array:
    """The law of each class over groups of cells."""
    return np.stack([np.bincount(groups, row) for row in law])


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsModel:
    """All that synthetic rows are drawn from."""

    design: Design
    schema: Schema = field(repr=False)
    marginals: Marginals
    centre: Centre = field(repr=False)
    latent: LatentModel = field(repr=False)
    rank: int  # directions of the covariance that stood out of the noise
    goal: Goal | None = field(default=None, repr=False)  # tables that rows are moved to show

    def cells_of(self, place: int) -> Ints:
        """The code of each cell of a feature, as rows are drawn."""
        if self.goal is None:
            return self.centre.groups[place]
        return next(column.cells for column in self.goal.codes.columns if column.place == place)


@dataclass(frozen=True, slots=True)
class Found:
    """What is known before the Gram is read."""

    design: Design
    schema: Schema
    marginals: Marginals
    centre: Centre
    fineness: Fineness | None = None  # of codes, where tables are measured


def build_model(found: Found, gram: GramNoise, seed: int) -> MomentsModel:
    """Class means, covariance, blocks; then the calibration with public random numbers."""
    design, centre = found.design, found.centre
    marginals = _with_counts(found.marginals, gram)
    blocks = tuple(
        _block(f, law, start, groups, centre)
        for f, law, start, groups in zip(
            design.features, marginals.laws, centre.starts, centre.groups, strict=True
        )
    )
    sizes = _sizes(marginals)
    is_number = np.concatenate([np.full(b.width, not b.is_levels) for b in blocks])
    is_pair = np.concatenate([np.full(b.width, b.is_pair) for b in blocks])
    variances = np.concatenate([variances_of(b, marginals.class_shares) for b in blocks])
    observed = gram.class_sums / sizes[:, None]
    overall = marginals.class_shares @ observed
    if design.label is None:  # rows are centred already: what noise explains is none
        overall *= _kept(overall, gram.class_sigma / sizes[0])
    means = np.zeros_like(observed)
    for block in blocks:
        if block.is_levels:
            means[:, block.columns] = block.shares - marginals.class_shares @ block.shares
    covariances, rank, start = [], 0, 0
    for product in gram.blocks:
        run = slice(start, start + len(product))
        start = run.stop
        total = product / marginals.rows - np.outer(overall[run], overall[run])
        stretch = stretch_of(total, variances[run])
        total *= stretch
        entry = stretch * gram.sigma / marginals.rows  # standard deviation of a covariance
        set_levels(total, blocks, run, marginals.class_shares)
        numbers = np.flatnonzero(is_number[run])
        if len(numbers):
            places = run.start + numbers
            means[:, places] = shrink_means(
                gram.class_sums[:, places] * math.sqrt(stretch),
                sizes,
                total[np.ix_(numbers, numbers)],
                gram.class_sigma * math.sqrt(stretch),
                entry,
            )
        signal = shrunk_directions(total, entry)
        between = (means[:, run].T * marginals.class_shares) @ means[:, run]
        within = with_rest(signal, between, variances[run], is_number[run])
        covariances.append(within_pairs(within, between, variances[run], is_pair[run]))
        rank += len(signal[0])
    rng = np.random.default_rng([seed, 1])
    model = latent_model(blocks, marginals.class_shares, means, tuple(covariances))
    model = calibrate(model, means, _rounds(blocks, model.width), _CALIBRATION_ROWS, rng)
    return MomentsModel(
        design=design,
        schema=found.schema,
        marginals=marginals,
        centre=centre,
        latent=model,
        rank=rank,
        goal=_goal(found, marginals, model, gram, seed),
    )


def _goal(
    found: Found, marginals: Marginals, model: LatentModel, gram: GramNoise, seed: int
) -> Goal | None:
    """What the released Gram tells of pair tables beyond many rows of the model."""
    if len(gram.blocks) > 1:
        return None
    if not found.design.is_refined:
        return _plain_goal(found, marginals, model, seed)
    codes = read_codes(found.design, found.centre, model.blocks, marginals.class_shares)
    rng = np.random.default_rng([seed, 3])
    drawn = sample(model, _GOAL_ROWS, rng)
    shown = measure(codes, codes_of(codes.codes, drawn, model.blocks), gram.radius)
    count = marginals.rows
    released = Released(count, gram.blocks[0] / count, gram.sigma / count)
    coarse = Goal(codes.codes, codes.codes, wanted_tables(codes, shown, released))
    if found.fineness is None:
        return coarse
    fine = finer_codes(found.design, marginals, codes.codes, found.fineness)
    cut = spread_codes(codes.codes, fine, drawn, marginals.laws, rng)
    return finer_goal(coarse, shown.tables, fine, codes_of(fine, cut, model.blocks))


def _plain_goal(found: Found, marginals: Marginals, model: LatentModel, seed: int) -> Goal | None:
    """The tables of many rows of the model: what is shown where nothing else is measured."""
    if found.fineness is None:
        return None
    rng = np.random.default_rng([seed, 3])
    drawn = sample(model, _GOAL_ROWS, rng)
    coarse = plain_codes(found.design, found.centre, marginals, found.fineness)
    fine = finer_codes(found.design, marginals, coarse, found.fineness)
    cut = spread_codes(coarse, fine, drawn, marginals.laws, rng)
    rows = codes_of(fine, cut, model.blocks)
    return Goal(coarse, fine, pair_tables(rows, fine.starts) / len(rows))


def working_rows(model: MomentsModel, goal: Goal, seed: int) -> Working:
    """Rows that show the goal before any table is measured."""
    rng = np.random.default_rng([seed, 4])
    least, most = _WORK_ROWS
    drawn = sample(model.latent, int(min(max(model.marginals.rows, least), most)), rng)
    cut = spread_codes(goal.coarse, goal.codes, drawn, model.marginals.laws, rng)
    rows = codes_of(goal.codes, cut, model.latent.blocks)
    return moved(Working(goal, rows, model.marginals.rows), rng)


def with_measured(
    model: MomentsModel, batches: list[list[tuple[Clique, Array]]], sigma: float, seed: int
) -> MomentsModel:
    """The model that also shows measured tables, batch by batch as they were released."""
    if model.goal is None or not batches:
        return model
    working = working_rows(model, model.goal, seed)
    for number, batch in enumerate(batches):
        working = next_batch(working, batch, sigma, [seed, 5, number])
    return replace(model, goal=working.goal)


def _rounds(blocks: tuple[Block, ...], width: int) -> int:
    """Rounds of calibration: many for categories, one for pairs of levels, and for few numbers one.

    The rows that calibration draws have an error of their own, sqrt(width / rows); in wide tables of
    numbers, whose ranks bend correlations little, it would do more harm than good.
    """
    if any(block.is_levels for block in blocks):
        return _LEVEL_ROUNDS if width <= _WIDE else 1
    pairs = sum(block.is_pair for block in blocks)
    return int(2 * pairs > len(blocks) or width <= _NARROW)


def _with_counts(marginals: Marginals, gram: GramNoise) -> Marginals:
    """Class shares from both releases that count classes, weighted by their precision."""
    first, second = marginals.sigma**-2.0, gram.count_sigma**-2.0
    both = first * marginals.class_shares * marginals.rows + second * gram.class_counts
    shares = project_simplex(both / (first + second), marginals.rows) / marginals.rows
    return replace(marginals, class_shares=shares)


def _kept(mean: Array, sigma: float) -> float:
    """The part of a mean that noise of sigma per entry does not explain (James and Stein)."""
    square = float(mean @ mean)
    return max(1.0 - len(mean) * sigma**2 / square, 0.0) if square > 0.0 else 0.0


def _sizes(marginals: Marginals) -> Array:
    """Rows of each class, never below one."""
    return np.asarray(np.maximum(marginals.class_shares * marginals.rows, 1.0))


def _block(feature: Feature, law: Array, start: int, groups: Ints, centre: Centre) -> Block:
    if feature.is_levels:
        shares = grouped(law, groups)
        return Block(start=start, width=shares.shape[1], shares=shares, values=np.empty(0))
    return Block(start=start, width=1, shares=law, values=score_values(feature) * centre.scales[start])


def synthesize(model: MomentsModel, rows: int, seed: int) -> pa.Table:
    """Synthetic rows that keep the schema's rules, with its derived columns."""
    return pa.concat_tables(block.table for block in finished_blocks(model, rows, seed))


def finished_blocks(model: MomentsModel, rows: int, seed: int) -> Iterator[Finished]:
    """The same block by block, and how far rules moved what was drawn.

    The rows of a block are balanced: together they show the model's margins, whatever the seed. A few
    rows are picked from as many as can.
    """
    for number, size in enumerate(block_sizes(rows, model.latent.width)):
        rng = np.random.default_rng([seed, 2, number])
        drawn = _table(model, max(size, BLOCK_ROWS), rng).slice(0, size)
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
    for _ in range(_SWEEPS if goal.triples else 1):
        triples = scaled(goal.triples, len(after))
        after = refine(after, codes.starts, goal.tables * len(after), rng, triples=triples)
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
    for code in range(model.design.classes):
        for group in range(int(groups.max()) + 1):
            members = np.flatnonzero((decoded.labels == code) & (part == group))
            cells = np.flatnonzero(groups == group)
            order = rng.permutation(len(members))
            low, high = limits[0][cells], limits[1][cells]
            values[members] = fill(order, law[code, cells], (low, high))
    return _whole(values, feature)


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


def _sets_table(model: MomentsModel, columns: dict[int, Array]) -> pa.Table:
    """Item sets: one list of item numbers a row."""
    spec = model.schema.items
    name, lower = (spec.column, spec.lower) if spec is not None else ("items", 0)
    hits = np.stack([columns[i] > 0.5 for i in range(len(columns))], axis=1)
    lengths = hits.sum(axis=1)
    items = np.nonzero(hits)[1] + lower
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(items.astype(np.int32)))
    return pa.table({name: lists})
