"""What the plan of the moments synthesizer says: how wrong it will be, in numbers and in sentences.

    histogram of c cells, noise sigma per cell, n rows: total variation sqrt(2 / pi) sigma c / (2 n)

if nothing is shared. Where m columns with like cells look alike, they are smoothed together, down to
1 / sqrt(m) of it; how alike they are only the rows know, so both ends are printed. Reading takes out the
noise that it knows, so that an error e of the noise alone leaves about e / (1 + e / 0.6): see `left`.
The error of a measured joint table is that of a histogram with its cells and noise.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from adumbra.mechanisms.fields import unused_guess
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import BLOCK_WIDTH, TYPICAL_CELLS
from adumbra.mechanisms.sizes import ROWS_GUESS
from adumbra.numerics import figure_upper
from adumbra.postprocess.marginals import COMMON_COLUMNS
from adumbra.postprocess.moments.design import Design, Feature
from adumbra.schema.schema import Schema
from adumbra.statistics.moments import BlockGram

LONGEST_NAME = 60  # letters of a column's name that a sentence shows
READ = 0.6  # the error that is left of noise alone, chosen on public tables: see `left`
HOPELESS = 0.27  # mean one-way error, even if columns are alike, from which on a release is mostly noise


@dataclass(frozen=True, slots=True)
class Spread:
    """An error over columns: its mean, its largest value, and the column that has it."""

    mean: float
    worst: float
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Expected errors, by name, and plain sentences."""

    one_way: dict[str, float]  # of each column
    expected: dict[str, float]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNoise:
    """Standard deviations in rows, but for the edge."""

    histogram: float  # of a histogram's cell
    pooled: float  # of a category's cell over all classes
    edge: float  # of the Gram, over its trace
    pair: float  # of a pair table's cell, from the Gram
    chosen: float | None  # of a measured table's cell
    finer: float | None = None  # of a finer cell of a whole number, in one class

    def rank(self, gram: BlockGram) -> int:
        """Directions that can stand out of the noise."""
        return min(gram.columns, int(1.0 / self.edge))

    def table(self, rows: int) -> float:
        """The expected total variation of a measured table of typical size by itself."""
        cells = math.sqrt(2.0 / math.pi) * TYPICAL_CELLS * (self.chosen or 0.0)
        return min(1.0, cells / (2.0 * rows))


def forecast(
    config: MomentsConfig, schema: Schema, decided: Design, gram: BlockGram, noise: PlanNoise
) -> Forecast:
    """The error of each one-way marginal and the directions that survive; from public numbers."""
    sigma, edge = noise.histogram, noise.edge
    single = one_way_errors(decided, noise)
    kinds = Counter(f.cells for f in decided.columns if _is_read_together(f))
    alike = [
        error / math.sqrt(kinds[f.cells])
        if _is_read_together(f) and kinds[f.cells] >= COMMON_COLUMNS
        else error
        for f, error in zip(decided.columns, single, strict=True)
    ]
    single, alike = ([left(error) for error in errors] for errors in (single, alike))
    most, least = (_spread(decided, errors) for errors in (single, alike))
    rank = noise.rank(gram)
    name = "one_way_total_variation"
    expected = {f"{name}_mean": most.mean, f"{name}_worst": most.worst}
    if least.mean < most.mean:
        expected[f"{name}_mean_if_columns_are_alike"] = least.mean
        expected[f"{name}_worst_if_columns_are_alike"] = least.worst
    expected |= {"count_sigma": sigma, "gram_noise_edge": edge, "surviving_rank": float(rank)}
    if decided.is_refined:
        expected["pair_sigma"] = noise.pair
    if noise.chosen is not None:
        expected |= {"chosen_table_sigma": noise.chosen}
        expected |= {"chosen_table_total_variation": noise.table(decided.rows)}
    if noise.finer is not None:
        expected["finer_cell_sigma"] = noise.finer
    named = zip((f.name for f in decided.columns), single, strict=True)
    return Forecast(
        one_way=dict(named),
        expected=expected,
        notes=(
            *_hopeless(config, decided, least.mean),
            *_assumed_rows(config, schema),
            *_notes(config, decided, gram, (least, most), noise),
            *_rule_notes(schema),
        ),
    )


def _is_read_together(feature: Feature) -> bool:
    """Whether a column is read with others of as many cells: numbers, and columns of two levels."""
    return feature.cells >= 2 and (not feature.is_levels or feature.cells == 2)


def left(error: float) -> float:
    """What the reading of noisy counts leaves of an error by the noise alone, about.

    Half of an error of 0.6, nearly all of a small one. On public tables releases had 0.46 to 0.99 times
    this where it is above 0.05 and no columns are read together (benchmarks/utility/forecasts.py).
    """
    return error / (1.0 + error / READ)


def one_way_errors(decided: Design, noise: PlanNoise) -> list[float]:
    """The total variation of each column by the noise alone; above 1 where it drowns."""
    factor = math.sqrt(2.0 / math.pi) / (2.0 * decided.rows)
    sigmas = (noise.pooled if f.is_levels else noise.histogram for f in decided.columns)
    return [factor * sigma * f.counted for sigma, f in zip(sigmas, decided.columns, strict=True)]


def _spread(decided: Design, errors: list[float]) -> Spread:
    """Mean and worst over columns."""
    place = int(np.argmax(errors))
    name = decided.columns[place].name
    short = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return Spread(mean=float(np.mean(errors)), worst=float(errors[place]), column=short)


def _assumed_rows(config: MomentsConfig, schema: Schema) -> list[str]:
    """How many rows a plan assumes where nobody declared them, and how to declare them."""
    if schema.rows is not None:
        return [*unused_guess(config, schema.rows)]
    if config.expected_rows is not None:
        return [f"Assumes {config.expected_rows:,} rows (expected_rows)."]
    is_public = schema.neighbours.rows_are_public
    public = "declare rows in the schema, plan with --data, or " if is_public else ""
    guess = f"Assumes {ROWS_GUESS:,} rows (a guess): {public}give -o expected_rows=N "
    return [f"{guess}(expected_rows=N in Python); errors fall as 1 / rows."]


def _hopeless(config: MomentsConfig, decided: Design, least: float) -> list[str]:
    """One blunt line where the release would be worth nothing."""
    if least < HOPELESS:
        return []
    rows = f"{decided.rows:,} row{'' if decided.rows == 1 else 's'}"
    blunt = f"At epsilon={figure_upper(config.epsilon)} and {rows} the release will be mostly noise: "
    wrong = (
        f"shares of values are expected to be wrong by {least:.2g}, mean over columns (total variation: "
        "0 is exact, 1 is worthless). Do not pay "
    )
    return [
        f"{blunt}{wrong}for it: it takes more rows, a larger epsilon, or fewer columns and categories."
    ]


def _rule_notes(schema: Schema) -> list[str]:
    """What rules and derived columns do, where there are any."""
    said = []
    if schema.rules:
        count = "1 rule" if len(schema.rules) == 1 else f"{len(schema.rules)} rules"
        moved = "rows that would break one are changed, and the card says how far columns shift by it"
        said.append(f"Every synthetic row keeps {count}; {moved}.")
    if schema.derived:
        names = ", ".join(one.name[:LONGEST_NAME] for one in schema.derived[:8])
        more = f" and {len(schema.derived) - 8} more" if len(schema.derived) > 8 else ""
        said.append(f"Computed from other columns, neither measured nor paid for: {names}{more}.")
    return said


def pair_sigma(decided: Design, off: float) -> float:
    """The noise of a pair table's cell that the Gram tells of, in rows; at most, for the longest rows.

    `off` is the standard deviation of an entry off the diagonal, in units of the clip radius squared.
    """
    return off * sum(1.0 if f.is_levels else 0.25 for f in decided.features)


def _pair_notes(decided: Design, noise: PlanNoise) -> list[str]:
    """What is known of pairs of columns, and at which price."""
    if not decided.is_refined and decided.chosen is None:
        return ["Dependence of columns is that of a normal law: pair tables would follow noise here."]
    moved = (
        "Dependence of columns is that of a normal law but for measured tables: single values of drawn "
        "rows are changed until the rows show these."
        if not decided.is_refined
        else "Single values of drawn rows are changed until the rows have the pair tables that the "
        "noisy correlations imply, as far as their noise allows; this costs no budget. Before that, a "
        f"cell of a pair table is known to about {noise.pair:.2g} rows of {decided.rows:,}."
    )
    none = "No joint tables are measured: at this budget, or with so many columns,"
    if decided.chosen is None or noise.chosen is None:
        return [
            moved,
            f"{none} their noise would outweigh what they add (set table_share to measure them anyway).",
        ]
    measured = (
        f"Up to {decided.chosen.tables} joint tables of two or three columns, those that the rows show "
        f"worst, are chosen privately and measured: a cell to {noise.chosen:.2g} rows, so that a table "
        f"of {TYPICAL_CELLS:.0f} cells is wrong by {noise.table(decided.rows):.2g} at most (total "
        "variation). The card lists them."
    )
    return [moved, measured]


def _finer_notes(decided: Design, noise: PlanNoise) -> list[str]:
    """Which whole numbers are counted in finer cells too, and how well."""
    if noise.finer is None:
        return []
    names = [decided.columns[place].name[:LONGEST_NAME] for place, _ in decided.finer]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    counted = f"counted in finer cells, too ({decided.steps} for each doubling of the value)"
    known = f"A cell is known to about {noise.finer:.2g} rows in each class"
    return [f"Whole numbers {counted}: {listed}. {known}, so that values of more rows are found."]


def _notes(
    config: MomentsConfig,
    decided: Design,
    gram: BlockGram,
    one_way: tuple[Spread, Spread],
    noise: PlanNoise,
) -> tuple[str, ...]:
    """Plain sentences for the person who decides."""
    (least, most), rank, edge = one_way, noise.rank(gram), noise.edge
    first, second, third, *paid = (f"{share:.0%}" for share in decided.shares)
    by_class = f" by class, {paid.pop(0)} over all classes" if decided.is_pooled else ""
    extra = f", choices of tables {paid[0]}, chosen tables {paid[1]}" if paid else ""
    smoothed = (
        f" Where columns look alike they are smoothed together: down to {least.mean:.2g} and "
        f"{least.worst:.2g}."
    )
    wrong = (
        f"Expected error of the shares of values in a column: about {most.mean:.2g} in the mean over "
        f"columns, {most.worst:.2g} in the worst one, {most.column} (total variation: 0 is exact, 1 is "
        "worthless); the plan's details have every column."
    )
    kept = f"Correlations: at most {rank} of {gram.columns} directions are detectable; those "
    parts = f"Shares of the budget: histograms {first}{by_class}"
    said = [
        f"{wrong}{smoothed if least.mean < most.mean else ''}",
        f"{kept}below {edge:.2g} of the clipped variance are lost.",
        f"{parts}, clip radius {second}, correlations {third}{extra}.",
    ]
    said += _finer_notes(decided, noise)
    if decided.classes > 1:
        said.append(
            f"One covariance serves all {decided.classes} classes, which differ by their means and the "
            f"histograms of categories: one per class would be {decided.classes} times as noisy."
        )
    said += _pair_notes(decided, noise)
    if len(gram.blocks) > 1:
        said.append(
            f"{decided.widest} encoded columns exceed {BLOCK_WIDTH}: second moments are released for "
            f"{len(gram.blocks)} blocks of neighbouring columns; across blocks only classes tie columns."
        )
    if config.delta == 0:
        said.append("Pure epsilon: Laplace noise grows with the number of columns; a delta pays off.")
    return tuple(said)
