"""What a moments release costs: three statistics, their noise, and how wrong the rows will be.

Histograms and row lengths are settled before a row is read. The Gram's columns depend on the noisy
histograms (rare levels share a column): `Parts.gram_of` gives it from released numbers, and the plan
shows it at its widest.

Proof       release.proof.md, of `calibrate_first` and `calibrate_gram`.
"""

import math
from collections.abc import Mapping
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
from adumbra.mechanisms.moments.chosen import CHOICES, TABLES, Prices, prices
from adumbra.mechanisms.moments.config import METHOD, MomentsConfig
from adumbra.mechanisms.moments.design import BLOCK_WIDTH, design, size_of
from adumbra.mechanisms.moments.forecast import PlanNoise, forecast, pair_sigma
from adumbra.numerics import ROW_BITS, round_up, sqrt_upper
from adumbra.postprocess.matrices import noise_edge
from adumbra.postprocess.moments.design import Design
from adumbra.postprocess.moments.laws import RADIUS_CELLS, CellNoise
from adumbra.privacy.conversion import mu_of, split_epsilon, split_mu
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Schema
from adumbra.statistics.base import reach_sensitivity
from adumbra.statistics.histograms import Histograms
from adumbra.statistics.moments import BlockGram, require_no_overflow

MARGINALS, RADIUS, GRAM = "marginals", "radius", "gram"
PURPOSES = (MARGINALS, RADIUS, GRAM)
ONE_WAY = "one_way"


def purposes_of(decided: Design) -> tuple[str, ...]:
    """Every noise key that a release may ask for."""
    pooled = (ONE_WAY,) if decided.is_pooled else ()
    return (*PURPOSES, *pooled, *((CHOICES, TABLES) if decided.chosen is not None else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """The calibrated noise of the three releases."""

    marginals: Calibrated
    radius: Calibrated
    gram: Calibrated
    distribution: str  # "gaussian" or "laplace"
    one_way: Calibrated | None = None
    chosen: Prices | None = None

    def entries(self) -> tuple[Noise, ...]:
        """As the card prints them."""
        named = zip(PURPOSES, (self.marginals, self.radius, self.gram), strict=True)
        lines = [self._entry(purpose, noise) for purpose, noise in named]
        if self.distribution == "gaussian":  # one noise call, two scales
            off = replace(lines[-1], purpose=f"{lines[-1].purpose}, entries off the diagonal")
            lines.append(replace(off, scale=self.gram.scale * round_up(math.sqrt(0.5))))
        if self.one_way is not None:
            lines.append(self._entry(ONE_WAY, self.one_way))
        return (*lines, *(self.chosen.entries() if self.chosen is not None else ()))

    def _entry(self, purpose: str, noise: Calibrated) -> Noise:
        return noise.entry(purpose, is_pure=self.distribution == "laplace")

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
    amounts: Mapping[str, float]  # mu (Gaussian) or epsilon (Laplace) of each purpose
    scales: Scales  # the Gram's at its widest

    def gram_of(self, width: int) -> tuple[BlockGram, Scales]:
        """The Gram of so many encoded columns, which the noisy histograms decide, and all scales."""
        gram = gram_statistic(self.design, width)
        is_pure = self.scales.distribution == "laplace"
        noise = calibrate_gram(gram, self.schema, self.amounts[GRAM], is_pure=is_pure)
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
    exponent = statistic.exponent - schema.weight_bits
    if is_pure:
        return calibrate_laplace(bound.l1, amount, exponent=exponent, rounding=float(size))
    return calibrate_gaussian(bound.l2, amount, exponent=exponent, rounding=sqrt_upper(size))


def calibrate_gram(gram: BlockGram, schema: Schema, amount: float, *, is_pure: bool) -> Calibrated:
    """The noise of the Gram, on a grid that holds every sum that the schema allows."""
    require_no_overflow(gram.limit, schema.row_limit)
    bound, largest = (
        reach_sensitivity(gram.sensitivity, schema.reach),
        float(schema.row_limit) * gram.limit / 4**ROW_BITS,
    )
    exponent = gram.exponent - schema.weight_bits
    if is_pure:
        return calibrate_laplace(
            bound.l1, amount, exponent=exponent, rounding=float(sum(gram.parts)), largest=largest
        )
    return calibrate_gaussian(
        bound.l2, amount, exponent=exponent, rounding=gram.rounding(), largest=largest
    )


def settle(config: MomentsConfig, schema: Schema) -> Settled[MomentsConfig, Parts]:
    """Every public decision: cells, shares of the budget, noise; refuses what has no proof."""
    require_magnitudes(schema)
    if not schema.neighbours.rows_are_public:
        rows_to_draw(config, None)
    decided, is_pure = design(config, schema), config.delta == 0
    histograms, lengths = Histograms(cells=decided.cells), Histograms(cells=(RADIUS_CELLS,))
    gram = gram_statistic(decided, decided.widest)
    if is_pure:
        split = split_epsilon(config.epsilon, decided.shares)
    else:
        split = split_mu(mu_of(config.epsilon, config.delta), decided.shares)
    amounts = dict(zip(purposes_of(decided), split, strict=True))
    scales = Scales(
        marginals=calibrate_first(histograms, schema, amounts[MARGINALS], is_pure=is_pure),
        radius=calibrate_first(lengths, schema, amounts[RADIUS], is_pure=is_pure),
        gram=calibrate_gram(gram, schema, amounts[GRAM], is_pure=is_pure),
        distribution="laplace" if is_pure else "gaussian",
        one_way=None
        if not decided.is_pooled
        else calibrate_first(
            Histograms(cells=decided.pooled_cells), schema, amounts[ONE_WAY], is_pure=is_pure
        ),
        chosen=None
        if decided.chosen is None
        else prices(
            decided.chosen,
            schema.reach,
            (amounts[CHOICES], amounts[TABLES]),
            is_pure=is_pure,
            bits=schema.weight_bits,
        ),
    )
    parts = Parts(
        schema=schema,
        design=decided,
        histograms=histograms,
        lengths=lengths,
        amounts=amounts,
        scales=scales,
    )
    return Settled(config=config, schema=schema, plan=_plan(config, parts, gram), parts=parts)


def _plan(config: MomentsConfig, parts: Parts, gram: BlockGram) -> Plan:
    """Cost, noise, the error of each one-way marginal and the rank that will survive."""
    decided, scales, schema = parts.design, parts.scales, parts.schema
    off = scales.product_deviation()
    second = math.inf if scales.one_way is None else scales.deviation(scales.one_way)
    cell = CellNoise.of_both(scales.deviation(scales.marginals), second, decided.classes)
    noise = PlanNoise(
        histogram=cell.single,
        pooled=cell.pooled,
        edge=noise_edge(off, max(gram.blocks)) / decided.rows,
        pair=pair_sigma(decided, off),
        chosen=scales.chosen.sigma if scales.chosen is not None else None,
        finer=scales.deviation(scales.marginals) if decided.finer else None,
    )
    expected = forecast(config, schema, decided, gram, noise)
    return Plan(
        method=METHOD,
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=purposes_of(decided),
        noise=scales.entries(),
        expected=expected.expected,
        notes=(*expected.notes, *person_notes(schema)),
        details={
            "one_way_total_variation": expected.one_way,
            "shares": dict(zip(purposes_of(decided), decided.shares, strict=True)),
            "encoded_columns": decided.widest,
            "blocks": list(gram.blocks),
            "rows": decided.rows,
            "refined": decided.is_refined,
            "chosen_tables": decided.chosen.tables if decided.chosen is not None else 0,
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
