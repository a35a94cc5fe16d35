"""What a moments release costs: three statistics, their noise, and how wrong the rows will be.

Histograms and row lengths are settled before a row is read. The Gram's columns depend on the noisy
histograms (rare levels share a column): `Parts.gram_of` gives it from released numbers, and the plan
shows it at its widest.

Proof       release.proof.md, of `calibrate_first` and `calibrate_gram`.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from adumbra.errors import InvalidInput
from adumbra.mechanisms.base import (
    Calibrated,
    Noise,
    Plan,
    Settled,
    calibrate_gaussian,
    calibrate_laplace,
    person_notes,
    require_magnitudes,
)
from adumbra.mechanisms.fields import unused_guess
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.design import BLOCK_WIDTH, RADIUS_CELLS, design, size_of
from adumbra.mechanisms.sizes import ROWS_GUESS
from adumbra.numerics import ROW_BITS, figure_upper, round_up, sqrt_upper
from adumbra.postprocess.marginals import COMMON_COLUMNS
from adumbra.postprocess.matrices import noise_edge
from adumbra.postprocess.moments.design import Design
from adumbra.privacy.conversion import mu_of, split_epsilon, split_mu
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Schema
from adumbra.statistics.base import reach_sensitivity
from adumbra.statistics.histograms import Histograms
from adumbra.statistics.moments import BlockGram, require_no_overflow

# What the plan of the moments synthesizer says: how wrong it will be, in numbers and in sentences.
#
# histogram of c cells, noise sigma a cell, n rows: total variation sqrt(2 / pi) sigma c / (2 n)
#
# if nothing is shared. Where m columns with like cells look alike, they are smoothed together, down to
# 1 / sqrt(m) of it; how alike they are only the rows know, so both ends are printed.
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
            *_assumed_rows(config, schema),
            *_notes(config, decided, gram, (least, most), (rank, edge)),
            *_rule_notes(schema),
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
    if decided.is_refined:
        said.append(
            "Single values of drawn rows are moved until the rows show the pair tables that the noisy "
            "correlations tell of, as far as their noise allows; this costs no budget."
        )
    if len(gram.blocks) > 1:
        said.append(
            f"{decided.widest()} encoded columns exceed {BLOCK_WIDTH}: second moments are released for "
            f"{len(gram.blocks)} blocks of neighbouring columns; across blocks only classes tie columns."
        )
    if config.delta == 0:
        said.append("Pure epsilon: Laplace noise grows with the number of columns; a delta pays off.")
    return tuple(said)


METHOD = "moments"
MARGINALS, RADIUS, GRAM = "marginals", "radius", "gram"
PURPOSES = (MARGINALS, RADIUS, GRAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """The calibrated noise of the three releases."""

    marginals: Calibrated
    radius: Calibrated
    gram: Calibrated
    distribution: str  # "gaussian" or "laplace"

    def entries(self) -> tuple[Noise, ...]:
        """As the card prints them."""
        named = zip(PURPOSES, (self.marginals, self.radius, self.gram), strict=True)
        lines = [
            Noise(
                purpose=purpose,
                distribution=self.distribution,
                scale=noise.scale,
                sensitivity=noise.sensitivity,
                grid=2.0**noise.exponent,
            )
            for purpose, noise in named
        ]
        if self.distribution == "gaussian":  # one noise call, two scales
            off = replace(lines[-1], purpose=f"{lines[-1].purpose}, entries off the diagonal")
            lines.append(replace(off, scale=self.gram.scale * round_up(math.sqrt(0.5))))
        return tuple(lines)

    def deviation(self, noise: Calibrated) -> float:
        """The standard deviation of a coordinate."""
        return noise.scale if self.distribution == "gaussian" else noise.scale * math.sqrt(2.0)

    def product_deviation(self) -> float:
        """The standard deviation of an entry of the Gram off its diagonal."""
        deviation = self.deviation(self.gram)
        return deviation * math.sqrt(0.5) if self.distribution == "gaussian" else deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The statistics of a release and the noise of each."""

    schema: Schema
    design: Design
    histograms: Histograms
    lengths: Histograms
    amounts: tuple[float, ...]  # mu (Gaussian) or epsilon (Laplace) of each purpose
    scales: Scales  # the Gram's at its widest

    def gram_of(self, width: int) -> tuple[BlockGram, Scales]:
        """The Gram of so many encoded columns, which the noisy histograms decide, and all scales."""
        gram = gram_statistic(self.design, width)
        is_pure = self.scales.distribution == "laplace"
        noise = calibrate_gram(gram, self.schema, self.amounts[2], is_pure=is_pure)
        return gram, replace(self.scales, gram=noise)


def gram_statistic(decided: Design, width: int) -> BlockGram:
    """The Gram of rows of this many encoded columns, whole or in blocks, with the class as its tail."""
    count = -(-width // BLOCK_WIDTH)
    blocks = tuple(len(part) for part in np.array_split(np.arange(width), count))
    tail = decided.classes if decided.label is not None else 1
    return BlockGram(blocks=blocks, tail=tail, limit=4**ROW_BITS + decided.label_units**2)


def calibrate_first(
    statistic: Histograms, schema: Schema, amount: float, *, is_pure: bool
) -> Calibrated:
    """The noise of histograms: one cell per histogram moves."""
    bound, size = reach_sensitivity(statistic.sensitivity, schema.reach), statistic.size
    if is_pure:
        return calibrate_laplace(bound.l1, amount, exponent=0, rounding=float(size))
    return calibrate_gaussian(bound.l2, amount, exponent=0, rounding=sqrt_upper(size))


def calibrate_gram(gram: BlockGram, schema: Schema, amount: float, *, is_pure: bool) -> Calibrated:
    """The noise of the Gram, on a grid that holds every sum that the schema allows."""
    require_no_overflow(gram.limit, schema.row_limit)
    bound, largest = (
        reach_sensitivity(gram.sensitivity, schema.reach),
        float(schema.row_limit) * gram.limit / 4**ROW_BITS,
    )
    if is_pure:
        return calibrate_laplace(
            bound.l1, amount, exponent=gram.exponent, rounding=float(sum(gram.parts)), largest=largest
        )
    return calibrate_gaussian(
        bound.l2, amount, exponent=gram.exponent, rounding=gram.rounding(), largest=largest
    )


def settle(config: MomentsConfig, schema: Schema) -> Settled[MomentsConfig, Parts]:
    """Every public decision: cells, shares of the budget, noise; refuses what has no proof."""
    require_magnitudes(schema)
    if not schema.neighbours.rows_are_public:
        rows_to_draw(config, None)
    decided, is_pure = design(config, schema), config.delta == 0
    histograms, lengths = Histograms(cells=decided.cells), Histograms(cells=(RADIUS_CELLS,))
    gram = gram_statistic(decided, decided.widest())
    if is_pure:
        amounts = split_epsilon(config.epsilon, decided.shares)
    else:
        amounts = split_mu(mu_of(config.epsilon, config.delta), decided.shares)
    scales = Scales(
        marginals=calibrate_first(histograms, schema, amounts[0], is_pure=is_pure),
        radius=calibrate_first(lengths, schema, amounts[1], is_pure=is_pure),
        gram=calibrate_gram(gram, schema, amounts[2], is_pure=is_pure),
        distribution="laplace" if is_pure else "gaussian",
    )
    parts = Parts(
        schema=schema,
        design=decided,
        histograms=histograms,
        lengths=lengths,
        amounts=tuple(amounts),
        scales=scales,
    )
    return Settled(config=config, schema=schema, plan=_plan(config, parts, gram), parts=parts)


def _plan(config: MomentsConfig, parts: Parts, gram: BlockGram) -> Plan:
    """Cost, noise, the error of each one-way marginal and the rank that will survive."""
    decided, scales, schema = parts.design, parts.scales, parts.schema
    sigma = scales.deviation(scales.marginals)
    edge = noise_edge(scales.product_deviation(), max(gram.blocks)) / decided.rows
    expected = forecast(config, schema, decided, gram, (sigma, edge))
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=PURPOSES,
        noise=scales.entries(),
        expected=expected.expected,
        notes=(*expected.notes, *person_notes(schema)),
        details={
            "one_way_total_variation": expected.one_way,
            "shares": dict(zip(PURPOSES, decided.shares, strict=True)),
            "encoded_columns": decided.widest(),
            "blocks": list(gram.blocks),
            "rows": decided.rows,
            "refined": decided.is_refined,
        },
        size=size_of(config, schema, decided, gram),
    )


def rows_to_draw(config: MomentsConfig, rows: int | None) -> int:
    """As asked, or as many as the public number of rows."""
    wanted = config.synthetic_rows or rows
    if wanted is None:
        raise InvalidInput(
            "synthetic_rows=None: the number of rows is private; say how many rows to draw"
        )
    return wanted
