"""The tables that drawn rows are to show: pairs from the Gram, and tables that were chosen and measured.

A measured table is drawn toward what was wanted (a pair) or shown (a triple) before, as far as its known
noise explains the difference (bayes.py). Between batches of measured tables, working rows are moved to
show all that is known, so that the next choice looks for what is still wrong. Released numbers only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.numerics import Array, Ints, table_places
from adumbra.postprocess.latent import Decoded
from adumbra.postprocess.marginals import merge_cells, merge_rare, quota
from adumbra.postprocess.moments.bayes import evidence, signal
from adumbra.postprocess.moments.design import Centre, Design, Fineness
from adumbra.postprocess.moments.laws import Marginals, score_values, variance_of
from adumbra.postprocess.moments.refine import Triple, pair_tables, refine
from adumbra.postprocess.moments.tables import CodeColumn, Codes, class_column, codes_with

Clique = tuple[int, ...]  # columns of one table, ascending
_LEAST_SPREAD = 1e-9  # of a score, as a part of its range


@dataclass(frozen=True, slots=True)
class Goal:
    """Tables that drawn rows are to show, as shares of the rows."""

    coarse: Codes  # as rows of the model are drawn: the Gram's columns
    codes: Codes  # the same, or cut finer
    tables: Array = field(repr=False)  # of every pair of codes; one-way shares on the diagonal
    triples: tuple[Triple, ...] = ()
    plain: Array | None = field(default=None, repr=False)  # tables before any was measured, if so kept
    scores: tuple[Array | None, ...] = field(default=(), repr=False)  # of the codes of numbers, if kept

    def wanted_of(self, rows: Ints) -> Array:
        """The tables as counts that these rows of the model are to show; one-way on the diagonal.

        Where no measured table changed a kept one, that is what the rows show already: other rows of the
        model differ from these by chance alone, and following it would undo what the model knows beyond
        pairs.
        """
        wanted = self.tables * len(rows)
        if self.plain is None:
            return wanted
        is_kept = self.tables == self.plain
        np.fill_diagonal(is_kept, val=False)
        return np.where(is_kept, pair_tables(rows, self.codes.starts), wanted)


def plain_codes(design: Design, centre: Centre, marginals: Marginals, fineness: Fineness) -> Codes:
    """Codes of columns some of which are scores in the Gram: these are cut by their own laws."""
    flags = {f.index: place for place, f in enumerate(design.features) if f.is_flag}
    columns = []
    for place, feature in enumerate(design.features):
        if feature.is_flag:
            continue
        cells = np.arange(feature.cells)
        if feature.is_levels:
            cells = centre.groups[place]
        elif feature.edges is not None:
            weights = marginals.laws[place] * marginals.rows
            cells = merge_cells(weights, fineness.parts, fineness.least)
        flag, levels = flags.get(feature.index, -1), int(cells.max()) + 1
        columns.append(CodeColumn(place=place, flag=flag, levels=levels, cells=cells))
    if design.label is not None:
        columns.append(class_column(design.classes))
    return codes_with(columns)


def code_scores(design: Design, marginals: Marginals, codes: Codes) -> tuple[Array | None, ...]:
    """The mean of each code of a score, in standard deviations around the mean of its column.

    A missing one is 0; other columns have none.
    """
    found: list[Array | None] = []
    for column in codes.columns:
        feature = design.features[column.place]
        if column.place < 0 or feature.is_levels or feature.edges is None:
            found.append(None)
            continue
        law, values = marginals.laws[column.place], score_values(feature)
        values = (values - law @ values) / max(math.sqrt(variance_of(law, values)), _LEAST_SPREAD)
        held = law + _LEAST_SPREAD  # a code that is empty has a mean, too
        own = np.bincount(column.cells, held * values) / np.bincount(column.cells, held)
        found.append(own if column.flag < 0 else np.append(own, 0.0))
    return tuple(found)


def finer_codes(design: Design, marginals: Marginals, coarse: Codes, fineness: Fineness) -> Codes:
    """Codes that cut each of the coarse ones, as far as the noise of a measured table allows."""
    return codes_with(_cut(design, marginals, column, fineness) for column in coarse.columns)


def _cut(design: Design, marginals: Marginals, column: CodeColumn, fineness: Fineness) -> CodeColumn:
    feature = design.features[column.place]
    if column.place < 0 or not feature.is_levels:
        return column
    weights = marginals.class_shares @ marginals.laws[column.place] * marginals.rows
    codes, count = np.zeros(len(column.cells), np.int64), 0
    for group in range(column.levels):
        cells = np.flatnonzero(column.cells == group)
        if feature.edges is None:
            own = merge_rare(weights[cells], fineness.least)
        else:
            part = float(weights[cells].sum()) / max(float(weights.sum()), 1.0)
            own = merge_cells(weights[cells], max(1, round(part * fineness.parts)), fineness.least)
        codes[cells] = own + count
        count += int(own.max()) + 1
    return replace(column, levels=count, cells=codes)


def owners_of(coarse: CodeColumn, fine: CodeColumn) -> Ints:
    """The coarse code of each fine one, the missing one included."""
    owners = np.zeros(fine.levels, np.int64)
    owners[fine.cells] = coarse.cells
    return owners if fine.flag < 0 else np.append(owners, coarse.levels)


def spread_codes(
    coarse: Codes, fine: Codes, decoded: Decoded, laws: tuple[Array, ...], rng: np.random.Generator
) -> Decoded:
    """Rows whose coarse codes are cut: in each class by the law, in random order."""
    parts = list(decoded.parts)
    for before, after in zip(coarse.columns, fine.columns, strict=True):
        if before.levels == after.levels:
            continue
        owners = owners_of(before, after)[: after.levels]
        part = np.zeros(len(decoded.labels), np.int64)
        for label, law in enumerate(laws[after.place]):
            shares = np.bincount(after.cells, law, minlength=after.levels).astype(np.float64)
            for code in range(before.levels):
                is_own = (decoded.labels == label) & (decoded.parts[after.place] == code)
                members, own = np.flatnonzero(is_own), np.flatnonzero(owners == code)
                part[rng.permutation(members)] = np.repeat(own, quota(shares[own], len(members)))
        parts[after.place] = part
    return Decoded(decoded.labels, tuple(parts))


def finer_goal(coarse: Goal, shown: Array, fine: Codes, rows: Ints) -> Goal:
    """The tables of finely coded rows of the model, with what the coarse goal has beyond the shown."""
    tables = pair_tables(rows, fine.starts) / max(len(rows), 1)
    spread = np.zeros((int(fine.starts[-1]), int(coarse.codes.starts[-1])))
    single = np.diagonal(tables)
    for index, (before, after) in enumerate(zip(coarse.codes.columns, fine.columns, strict=True)):
        owners = owners_of(before, after)
        own = single[fine.of(index)]
        totals = np.bincount(owners, own)
        even = 1.0 / np.bincount(owners)
        share = np.where(totals[owners] > 0.0, own / np.maximum(totals[owners], 1e-300), even[owners])
        at = np.arange(len(owners)) + fine.starts[index]
        spread[at, owners + coarse.codes.starts[index]] = share
    beyond = spread @ (coarse.tables - shown) @ spread.T
    goal = np.maximum(tables + beyond, 0.0)
    np.fill_diagonal(goal, single)
    return Goal(coarse.codes, fine, goal)


@dataclass(frozen=True, slots=True)
class Working:
    """A goal, and rows (as codes) that show it so far."""

    goal: Goal
    rows: Ints = field(repr=False)
    count: float  # rows of the table, public or released: tables are counts of so many

    def shown(self, clique: Clique) -> Array:
        """The joint table of the working rows, as counts."""
        cells = int(np.prod([self.goal.codes.sizes[j] for j in clique]))
        places = table_places(self.rows, clique, self.goal.codes.sizes)
        counts = np.bincount(places, minlength=cells).astype(np.float64)
        return counts * (self.count / max(len(self.rows), 1))


def moved(working: Working, rng: np.random.Generator) -> Working:
    """The same with rows moved nearer to the goal."""
    goal, count = working.goal, len(working.rows)
    triples = scaled(goal.triples, count)
    rows = refine(
        working.rows, goal.codes.starts, goal.tables * count, rng, triples=triples, scores=goal.scores
    )
    return replace(working, rows=rows)


def scaled(triples: Sequence[Triple], count: float) -> list[Triple]:
    """Shares as counts of so many rows."""
    return [Triple(t.columns, t.table * count) for t in triples]


def absorbed(working: Working, measured: Sequence[tuple[Clique, Array]], sigma: float) -> Working:
    """The goal with measured tables (flat noisy counts of standard deviation sigma) in it."""
    goal, count = working.goal, working.count
    tables, triples = goal.tables.copy(), list(goal.triples)
    for clique, noisy in measured:
        if len(clique) == 2:
            a, b = (goal.codes.of(j) for j in clique)
            tables[a, b] = _posterior(noisy, tables[a, b].ravel() * count, sigma).reshape(
                tables[a, b].shape
            )
            tables[a, b] /= count
            tables[b, a] = tables[a, b].T
        else:
            first, second, third = clique
            found = _posterior(noisy, working.shown(clique), sigma)
            triples.append(Triple((first, second, third), found / count))
    return replace(working, goal=replace(goal, tables=tables, triples=tuple(triples)))


def _posterior(noisy: Array, expected: Array, sigma: float) -> Array:
    """A measured table, drawn toward what is expected as far as noise explains the difference."""
    difference, noise = noisy - expected, np.full(noisy.shape, sigma**2)
    found = signal(difference, expected, noise, evidence(difference, expected, noise))
    return np.maximum(expected + found, 0.0)


def next_batch(
    working: Working, batch: list[tuple[Clique, Array]], sigma: float, seeds: list[int]
) -> Working:
    """Measured tables taken in, and the working rows moved to show them."""
    return moved(absorbed(working, batch, sigma), np.random.default_rng(seeds))
