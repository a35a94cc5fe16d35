"""What the plan of the moments synthesizer says: how wrong it will be, in numbers and in sentences.

    histogram of c cells, noise sigma a cell, n rows: total variation sqrt(2 / pi) sigma c / (2 n)

if nothing is shared. Where m columns with like cells look alike, they are smoothed together, down to
1 / sqrt(m) of it; how alike they are only the rows know, so that both ends are told.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from adumbra.data.schema import Schema
from adumbra.mechanisms.moments_plan import BLOCK_WIDTH, ROWS_GUESS, Design, MomentsConfig
from adumbra.numerics import figure_upper
from adumbra.postprocess.marginals import COMMON_COLUMNS
from adumbra.statistics.blocks import BlockGram

LONGEST_NAME = 60  # letters of a column's name that a sentence shows
HOPELESS = 0.5  # mean one-way error, even if columns are alike, from which on a release is mostly noise


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


def forecast(
    config: MomentsConfig, schema: Schema, decided: Design, gram: BlockGram, noise: tuple[float, float]
) -> Forecast:
    """The error of each one-way marginal and the directions that survive; from public numbers.

    `noise` is the standard deviation of a histogram's cell, and the Gram's edge over its trace.
    """
    sigma, edge = noise
    single = one_way_errors(decided, sigma)
    kinds = Counter(f.cells for f in decided.columns if not f.is_levels)
    alike = [
        error / math.sqrt(kinds[f.cells])
        if not f.is_levels and f.cells >= 2 and kinds[f.cells] >= COMMON_COLUMNS
        else error
        for f, error in zip(decided.columns, single, strict=True)
    ]
    most, least = (_spread(decided, errors) for errors in (single, alike))
    rank = min(gram.columns, int(1.0 / edge))
    name = "one_way_total_variation"
    expected = {f"{name}_mean": most.mean, f"{name}_worst": most.worst}
    if least.mean < most.mean:
        expected[f"{name}_mean_if_columns_are_alike"] = least.mean
        expected[f"{name}_worst_if_columns_are_alike"] = least.worst
    expected |= {"count_sigma": sigma, "gram_noise_edge": edge, "surviving_rank": float(rank)}
    named = zip((f.name for f in decided.columns), single, strict=True)
    return Forecast(
        one_way={name: min(1.0, error) for name, error in named},
        expected=expected,
        notes=(
            *_hopeless(config, decided, least.mean),
            *_reckoned(config, schema),
            *_notes(config, decided, gram, (least, most), (rank, edge)),
        ),
    )


def one_way_errors(decided: Design, sigma: float) -> list[float]:
    """The expected total variation of each histogram by itself; above 1 where it drowns."""
    factor = math.sqrt(2.0 / math.pi) * sigma / (2.0 * decided.rows)
    return [factor * cells for _, cells in zip(decided.columns, decided.cells, strict=False)]


def _spread(decided: Design, errors: list[float]) -> Spread:
    """Mean and worst over columns; an error above 1 is 1, worthless."""
    capped = np.minimum(errors, 1.0)
    place = int(np.argmax(errors))
    name = decided.columns[place].name
    short = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return Spread(mean=float(np.mean(capped)), worst=float(capped[place]), column=short)


def _reckoned(config: MomentsConfig, schema: Schema) -> list[str]:
    """For how many rows a plan was reckoned, where nobody declared it, and how to say it."""
    if schema.rows is not None:
        return []
    if config.rows_guess is not None:
        return [f"Reckoned for {config.rows_guess:,} rows, as rows_guess says."]
    is_public = schema.neighbours.rows_are_public
    public = "declare rows in the schema, plan with --data, or " if is_public else ""
    guess = f"Reckoned for {ROWS_GUESS:,} rows, which is a guess: {public}give -o rows_guess=N "
    return [f"{guess}(rows_guess=N in Python); errors fall as 1 / rows."]


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


def _notes(
    config: MomentsConfig,
    decided: Design,
    gram: BlockGram,
    one_way: tuple[Spread, Spread],
    spectrum: tuple[int, float],
) -> tuple[str, ...]:
    """Plain sentences for the person who decides."""
    (least, most), (rank, edge) = one_way, spectrum
    first, second, third = (f"{share:.0%}" for share in decided.shares)
    smoothed = (
        f" Where columns look alike they are smoothed together: down to {least.mean:.2g} and "
        f"{least.worst:.2g}."
    )
    wrong = (
        f"Expected error of the shares of values in a column: {most.mean:.2g} in the mean over columns, "
        f"{most.worst:.2g} in the worst one, {most.column} (total variation: 0 is exact, 1 is "
        "worthless); the plan's details have every column."
    )
    kept = (
        f"Correlations: at most {rank} directions of {gram.columns} can stand out of the noise; those "
    )
    said = [
        f"{wrong}{smoothed if least.mean < most.mean else ''}",
        f"{kept}below {edge:.2g} of the clipped variance drown.",
        f"Shares of the budget: histograms {first}, clip radius {second}, correlations {third}.",
    ]
    if decided.classes > 1:
        said.append(
            f"One covariance serves all {decided.classes} classes, which differ by their means and the "
            f"histograms of categories: one for each would be {decided.classes} times as noisy."
        )
    if len(gram.blocks) > 1:
        said.append(
            f"{decided.widest()} encoded columns exceed {BLOCK_WIDTH}: second moments are released for "
            f"{len(gram.blocks)} blocks of neighbouring columns; across blocks only classes tie columns."
        )
    if config.delta == 0:
        said.append("Pure epsilon: Laplace noise grows with the number of columns; a delta pays off.")
    return tuple(said)
