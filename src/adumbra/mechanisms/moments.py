"""Synthesize a table from noisy moments: one-way histograms, a clip radius, one augmented Gram.

    1  all one-way histograms (a category's by class)          sensitivity sqrt(2m) / sqrt(m)
    2  a histogram of the lengths of centred rows              sqrt(2) / 1
    3  the Gram of (row / r, a e_class), upper triangle         sqrt(2) (1 + a^2) / (1 + a^2)

each L2 under replace-one / add-remove. Centre and bins follow from 1, the radius r from 2; everything
after 3 is post-processing: shrinkage, a latent normal for each class, decoding that hits the marginals.

Guarantee   mu-GDP (the squares of three shares add to mu^2), or pure epsilon (shares add) with discrete
            Laplace noise; unit row, replace-one or add-remove. Holds for any input.
Reference   Dwork, Talwar, Thakurta, Zhang: Analyze Gauss, STOC 2014; Chanyaswad, Liu, Mittal: RON-Gauss,
            PoPETs 2019; Gavish, Donoho: Optimal shrinkage, IEEE Trans. IT 63(4), 2017.
Proof       moments.proof.md, of `release` and `noisy`.
Limits      Dependence beyond pairs of columns (given the class) is that of a normal law. Beyond 3,000
            encoded columns correlations are kept inside blocks of neighbouring columns only.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from adumbra.data.batch import Batch, SetBatch
from adumbra.data.bounds import BoundedRows
from adumbra.data.kept import KeptSource
from adumbra.data.schema import Schema
from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.errors import InvalidInput, require
from adumbra.mechanisms.base import Calibrated, Draft, Noise, Plan, calibrate_gaussian, calibrate_laplace
from adumbra.mechanisms.moments_forecast import forecast
from adumbra.mechanisms.moments_marginals import read_centre, read_marginals
from adumbra.mechanisms.moments_model import Found, GramNoise, MomentsModel, build_model, synthesize
from adumbra.mechanisms.moments_plan import (
    BLOCK_WIDTH,
    GRAM,
    MARGINALS,
    PURPOSES,
    RADIUS,
    RADIUS_CELLS,
    Design,
    MomentsConfig,
    design,
)
from adumbra.mechanisms.moments_rows import Centre, bounded_block, cell_block, norm_block
from adumbra.numerics import ROW_BITS, Array, Lattice, coarsen, round_up, sqrt_upper
from adumbra.postprocess.spectrum import noise_edge
from adumbra.privacy.calibration import split_epsilon, split_mu
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import gaussian, pure
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.relations import Neighbours
from adumbra.statistics.base import Statistic
from adumbra.statistics.blocks import BlockGram
from adumbra.statistics.histograms import CellRows, Histograms
from adumbra.statistics.moments import require_no_overflow

METHOD = "moments"
RowsT = TypeVar("RowsT")


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


def gram_statistic(plan: Design, width: int) -> BlockGram:
    """The Gram of rows of this many encoded columns, whole or in blocks, with the class as its tail."""
    count = -(-width // BLOCK_WIDTH)
    blocks = tuple(len(part) for part in np.array_split(np.arange(width), count))
    tail = plan.classes if plan.label is not None else 1
    return BlockGram(blocks=blocks, tail=tail, limit=4**ROW_BITS + plan.label_units**2)


def calibrate(config: MomentsConfig, plan: Design, schema: Schema, gram: BlockGram) -> Scales:
    """Each release's share of the budget as a noise scale (Gaussian), or of epsilon (Laplace)."""
    neighbours, largest = schema.neighbours, float(schema.row_limit) * gram.limit / 4**ROW_BITS
    require_no_overflow(gram.limit, schema.row_limit)
    marginals, radius = Histograms(cells=plan.cells), Histograms(cells=(RADIUS_CELLS,))
    first, second = marginals.sensitivity(neighbours), radius.sensitivity(neighbours)
    third = gram.sensitivity(neighbours)
    if config.delta > 0:
        parts = split_mu(mu_of(config.epsilon, config.delta), plan.shares)
        return Scales(
            marginals=calibrate_gaussian(
                first.l2, parts[0], exponent=0, rounding=sqrt_upper(marginals.size)
            ),
            radius=calibrate_gaussian(
                second.l2, parts[1], exponent=0, rounding=sqrt_upper(RADIUS_CELLS)
            ),
            gram=calibrate_gaussian(
                third.l2,
                parts[2],
                exponent=gram.exponent,
                rounding=gram.rounding(),
                largest=largest,
            ),
            distribution="gaussian",
        )
    parts = split_epsilon(config.epsilon, plan.shares)
    return Scales(
        marginals=calibrate_laplace(first.l1, parts[0], exponent=0, rounding=float(marginals.size)),
        radius=calibrate_laplace(second.l1, parts[1], exponent=0, rounding=float(RADIUS_CELLS)),
        gram=calibrate_laplace(
            third.l1,
            parts[2],
            exponent=gram.exponent,
            rounding=float(sum(gram.parts)),
            largest=largest,
        ),
        distribution="laplace",
    )


def plan(config: MomentsConfig, schema: Schema) -> Plan:
    """Cost, noise, the error of each one-way marginal and the rank that will survive; no data."""
    if schema.neighbours is Neighbours.ADD_REMOVE:
        _rows_to_draw(config, None)
    decided = design(config, schema, None)
    gram = gram_statistic(decided, decided.widest())
    scales = calibrate(config, decided, schema, gram)
    sigma = scales.deviation(scales.marginals)
    edge = noise_edge(scales.product_deviation(), max(gram.blocks)) / decided.rows
    told = forecast(config, schema, decided, gram, (sigma, edge))
    unit, neighbours = schema.unit, schema.neighbours
    promised = (
        gaussian(config.epsilon, config.delta, unit, neighbours)
        if config.delta > 0
        else pure(config.epsilon, unit, neighbours)
    )
    return Plan(
        method=METHOD,
        guarantee=promised,
        purposes=PURPOSES,
        noise=scales.entries(),
        expected=told.expected,
        notes=told.notes,
        details={
            "one_way_total_variation": told.one_way,
            "shares": dict(zip(PURPOSES, decided.shares, strict=True)),
            "encoded_columns": decided.widest(),
            "blocks": list(gram.blocks),
            "rows": decided.rows,
        },
    )


def noisy(
    exact: Lattice, noise: Calibrated, grant: Grant, purpose: str, weights: Array | None = None
) -> Array:
    """The value on its calibrated grid with noise: Laplace, or (weighted by coordinate) Gaussian."""
    value, key = coarsen(exact, noise.exponent), grant.key(purpose)
    if grant.guarantee.is_pure:
        return add_laplace(value, noise.scale, key).to_float()
    return add_gaussian(value, noise.scale if weights is None else noise.scale * weights, key).to_float()


def release(source: Source, config: MomentsConfig, *, engine: Engine, grant: Grant) -> Draft:
    """Three paid passes, then arithmetic on public numbers."""
    schema = source.schema
    rows = source.public_rows()
    source = KeptSource(source)  # three passes; small tables are read once
    wanted = _rows_to_draw(config, rows)
    decided = design(config, schema, rows)
    lower = schema.columns[decided.label].limits[0] if decided.label is not None else 0.0
    widest = gram_statistic(decided, decided.widest())
    scales = calibrate(config, decided, schema, widest)

    def count(batch: Batch | SetBatch) -> CellRows:
        return cell_block(batch, decided, lower)

    exact = _fold(engine, source, count, Histograms(cells=decided.cells), MARGINALS)
    counts = noisy(exact, scales.marginals, grant, MARGINALS)
    sigma = scales.deviation(scales.marginals)
    marginals = read_marginals(decided, Histograms(cells=decided.cells).split(counts), sigma, rows)
    centre = read_centre(decided, marginals, sigma)
    edges = radius_edges(decided, centre)

    def measure(batch: Batch | SetBatch) -> CellRows:
        return norm_block(batch, decided, centre, lower, edges)

    exact = _fold(engine, source, measure, Histograms(cells=(RADIUS_CELLS,)), RADIUS)
    lengths = noisy(exact, scales.radius, grant, RADIUS)
    radius = choose_radius(lengths, edges, decided.quantile)
    gram = gram_statistic(decided, len(centre.means))
    scales = calibrate(config, decided, schema, gram)

    def bound(batch: Batch | SetBatch) -> Iterator[BoundedRows]:
        return bounded_block(batch, decided, centre, lower, radius)

    exact = _fold(engine, source, bound, gram, GRAM)
    products = noisy(exact, scales.gram, grant, GRAM, gram.noise_weights())
    arrays = {"marginals": counts, "lengths": lengths, "gram": products, "radius": np.array([radius])}
    model = model_of(config, schema, rows, arrays)
    return Draft(
        tables={"data": synthesize(model, wanted, config.sample_seed)},
        arrays=arrays,
        noise=scales.entries(),
        facts={"clip_radius": radius, "surviving_rank": model.rank, "sample_seed": config.sample_seed},
    )


def _rows_to_draw(config: MomentsConfig, rows: int | None) -> int:
    """As asked, or as many as the public number of rows."""
    wanted = config.sample_rows or rows
    if wanted is None:
        raise InvalidInput("sample_rows=None: the number of rows is private; say how many rows to draw")
    return wanted


def _fold(
    engine: Engine, source: Source, prepare: object, statistic: Statistic[RowsT], stage: str
) -> Lattice:
    """`engine.fold`, for sources of rows and of sets alike."""
    return engine.fold(source, prepare, statistic, stage=stage)  # type: ignore[arg-type]


def radius_edges(plan: Design, centre: Centre) -> Array:
    """Cells of row lengths, from released numbers: geometric, up to the longest possible row."""
    firsts = zip(plan.features, centre.starts, strict=True)
    top = math.sqrt(sum(2.0 if f.is_levels else float(centre.scales[s]) ** 2 for f, s in firsts))
    return np.concatenate(([0.0], np.geomspace(top / 64.0, top, RADIUS_CELLS)))


def choose_radius(lengths: Array, edges: Array, quantile: float) -> float:
    """The upper edge of the cell where the noisy distribution of lengths passes the quantile."""
    shown = np.maximum.accumulate(np.cumsum(lengths))
    place = int(np.searchsorted(shown, quantile * max(float(shown[-1]), 1.0)))
    return float(edges[1 + min(place, len(edges) - 2)])


def model_of(
    config: MomentsConfig, schema: Schema, rows: int | None, arrays: dict[str, Array]
) -> MomentsModel:
    """The model of released arrays: the same for everybody who has them."""
    decided = design(config, schema, rows)
    widest = gram_statistic(decided, decided.widest())
    scales = calibrate(config, decided, schema, widest)
    sigma = scales.deviation(scales.marginals)
    marginals = read_marginals(
        decided, Histograms(cells=decided.cells).split(arrays["marginals"]), sigma, rows
    )
    centre = read_centre(decided, marginals, sigma)
    gram = gram_statistic(decided, len(centre.means))
    scales = calibrate(config, decided, schema, gram)
    off = scales.product_deviation()
    radius = float(arrays["radius"][0])
    require(len(arrays["gram"]) == sum(gram.parts), "gram: does not fit the marginals; use one release")
    blocks, cross, tail = gram.unpack(arrays["gram"])
    noise = GramNoise(
        blocks=tuple(block * radius**2 for block in blocks),
        class_sums=cross.T * (radius / decided.label_weight),
        sigma=off * radius**2,
        class_sigma=off * radius / decided.label_weight,
        class_counts=np.diagonal(tail) / decided.label_weight**2,
        count_sigma=scales.deviation(scales.gram) / decided.label_weight**2,
    )
    return build_model(Found(decided, schema, marginals, centre), noise, config.sample_seed)
