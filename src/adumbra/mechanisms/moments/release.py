"""Synthesize a table from noisy moments: one-way histograms, a clip radius, one augmented Gram.

    1  all one-way histograms (by class, and over all classes)  sensitivity sqrt(2m) / sqrt(m) each
    2  a histogram of the lengths of centred rows              sqrt(2) / 1
    3  the Gram of (row / r, a e_class), upper triangle         sqrt(2) (1 + a^2) / (1 + a^2)

each L2 under replace-one / add-remove. Centre and bins follow from 1, the radius r from 2. Then joint
tables are chosen and measured, where that pays off (chosen.py). The rest is post-processing: shrinkage,
a latent normal for each class, decoding that hits the marginals.

Guarantee   mu-GDP (the squares of all shares add to mu^2), or pure epsilon (shares add) with discrete
            Laplace noise; unit row or person, replace-one or add-remove. Holds for any input.
Reference   Dwork, Talwar, Thakurta, Zhang: Analyze Gauss, STOC 2014; Chanyaswad, Liu, Mittal: RON-Gauss,
            PoPETs 2019; Gavish, Donoho: Optimal shrinkage, IEEE Trans. IT 63(4), 2017.
Proof       release.proof.md, of `draw` and `noisy`.
Limits      Dependence beyond pairs and measured tables is that of a normal law. Beyond 3,000
            encoded columns correlations are kept inside blocks of neighbouring columns only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from adumbra.data.bounds import BoundedRows
from adumbra.data.sources import Batch, KeptSource, SetBatch, Source
from adumbra.engine.local import Engine
from adumbra.errors import require
from adumbra.mechanisms.base import SYNTHETIC, Calibrated, Draft, Published, Settled
from adumbra.mechanisms.moments.chosen import (
    CHOSEN,
    TABLES,
    Turned,
    Turns,
    candidates,
    read_released,
    take_turns,
)
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.plan import (
    GRAM,
    MARGINALS,
    ONE_WAY,
    RADIUS,
    Parts,
    Scales,
    rows_to_draw,
)
from adumbra.mechanisms.moments.rows import (
    bounded_block,
    cell_block,
    code_block,
    norm_block,
    over_classes,
)
from adumbra.mechanisms.sizes import HELD, KEPT
from adumbra.numerics import Array, Lattice, coarsen
from adumbra.postprocess.moments.design import Centre, Design, Fineness
from adumbra.postprocess.moments.laws import (
    Marginals,
    Noisy,
    choose_radius,
    radius_edges,
    read_centre,
    read_marginals,
    with_finer,
)
from adumbra.postprocess.moments.model import (
    Found,
    GramNoise,
    MomentsModel,
    build_model,
    with_measured,
    working_rows,
)
from adumbra.postprocess.moments.pictures import pictures_of
from adumbra.postprocess.moments.sampling import finished_blocks
from adumbra.postprocess.pictures import Pictures
from adumbra.postprocess.rules import Shift
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.schema.schema import Schema
from adumbra.statistics.base import Statistic
from adumbra.statistics.histograms import CellRows, Histograms
from adumbra.statistics.joint_tables import CodeRows, JointTables
from adumbra.statistics.moments import BlockGram

CODE_SIGMAS = 3.0  # standard deviations that a code of a measured table holds at least
WORDS = {
    "data": SYNTHETIC,
    "marginals": "Noisy histograms of all columns (of categories by class, and of columns of two "
    "levels if the card has pairs_by_class), of whole numbers in finer cells by class (if it has "
    "finer_cells), then of the classes.",
    "one_way": "Noisy histograms of all columns over all classes, then of the classes.",
    "lengths": "Noisy counts of rows by their length, once they are centred and scaled.",
    "radius": "The length to which longer rows were shortened; chosen from the counts of lengths.",
    "gram": "Noisy sums of products of encoded columns and classes (upper triangle).",
    "chosen": "One line per measured table: its batch, then its columns by number (-1: only two).",
    "tables": "Noisy counts of the measured tables, one after the other; the last column runs fastest.",
}

RowsT = TypeVar("RowsT")


def noisy(
    exact: Lattice, noise: Calibrated, grant: Grant, purpose: str, weights: Array | None = None
) -> Array:
    """The value on its calibrated grid with noise: Laplace, or (weighted by coordinate) Gaussian."""
    value, key = coarsen(exact, noise.exponent), grant.key(purpose)
    if grant.guarantee.is_pure:
        return add_laplace(value, noise.scale, key).to_float()
    return add_gaussian(value, noise.scale if weights is None else noise.scale * weights, key).to_float()


def draw(settled: Settled[MomentsConfig, Parts], source: Source, engine: Engine, grant: Grant) -> Draft:
    """Three paid passes, then arithmetic on public numbers."""
    config, parts = settled.config, settled.parts
    decided, scales = parts.design, parts.scales
    source = KeptSource(source, HELD if settled.schema.items is None else KEPT)  # three passes
    lower = _label_lower(settled)

    def count(batch: Batch | SetBatch) -> CellRows:
        return cell_block(batch, decided, lower)

    exact = _fold(engine, source, count, parts.histograms, MARGINALS)
    arrays = {"marginals": noisy(exact, scales.marginals, grant, MARGINALS)}
    if scales.one_way is not None:
        arrays[ONE_WAY] = noisy(over_classes(exact, decided), scales.one_way, grant, ONE_WAY)
    marginals, centre = read_first(settled, arrays)
    edges = radius_edges(decided, centre)

    def measure(batch: Batch | SetBatch) -> CellRows:
        return norm_block(batch, decided, centre, lower, edges)

    exact = _fold(engine, source, measure, parts.lengths, RADIUS)
    lengths = noisy(exact, scales.radius, grant, RADIUS)
    radius = choose_radius(lengths, edges, decided.quantile)
    gram, scales = parts.gram_of(len(centre.means))

    def bound(batch: Batch | SetBatch) -> Iterator[BoundedRows]:
        return bounded_block(batch, decided, centre, lower, radius)

    exact = _fold(engine, source, bound, gram, GRAM)
    products = noisy(exact, scales.gram, grant, GRAM, gram.noise_weights())
    arrays |= {"lengths": lengths, "gram": products, "radius": np.array([radius])}
    model = _model(settled, (marginals, centre), arrays, gram, scales)
    model, more = measured(settled, model, source, engine, grant)
    arrays |= more
    facts: dict[str, object] = {"clip_radius": radius, "surviving_rank": model.rank}
    facts |= {"sample_seed": config.sample_seed} | measured_names(decided, settled.schema, arrays)
    draft = Draft(arrays=arrays, noise=scales.entries(), facts=facts | decided.facts())
    return _with_rows(draft, model, rows_to_draw(config, settled.schema.rows), config.sample_seed)


def measured_names(decided: Design, schema: Schema, arrays: Mapping[str, Array]) -> dict[str, object]:
    """The columns of every measured table, for the card."""
    if CHOSEN not in arrays:
        return {}
    names = [feature.name for feature in decided.columns]
    names += [schema.columns[decided.label].name] if decided.label is not None else []
    lines = arrays[CHOSEN][:, 1:].astype(np.int64).tolist()
    return {"measured_tables": [[names[j] for j in line if j >= 0] for line in lines]}


def _with_rows(draft: Draft, model: MomentsModel, rows: int, seed: int) -> Draft:
    """The draft with synthetic rows, and how far the schema's rules moved them."""
    shift = Shift()

    def tables() -> Iterator[pa.Table]:
        nonlocal shift
        for block in finished_blocks(model, rows, seed):
            shift += block.shift
            yield block.table

    return draft.with_rows(tables(), rows, lambda: shift.facts() if model.schema.rules else {})


def _label_lower(settled: Settled[MomentsConfig, Parts]) -> float:
    """The value of the label's first class."""
    label = settled.parts.design.label
    return settled.schema.columns[label].limits[0] if label is not None else 0.0


def _fold(
    engine: Engine, source: Source, prepare: object, statistic: Statistic[RowsT], stage: str
) -> Lattice:
    """`engine.fold`, for sources of rows and of sets alike."""
    return engine.fold(source, prepare, statistic, stage=stage)  # type: ignore[arg-type]


def read_first(
    settled: Settled[MomentsConfig, Parts], arrays: Mapping[str, Array]
) -> tuple[Marginals, Centre]:
    """One-way laws from the noisy histograms, and the centre and scale of rows that they imply."""
    parts, scales, noise = settled.parts, settled.parts.scales, Noisy()
    if scales.one_way is not None and ONE_WAY in arrays:
        pooled = Histograms(cells=parts.design.pooled_cells)
        noise = Noisy(pooled.split(arrays[ONE_WAY]), scales.deviation(scales.one_way))
    released, sigma = parts.histograms.split(arrays["marginals"]), scales.deviation(scales.marginals)
    columns, finer = len(parts.design.columns), len(parts.design.finer)
    more, released[columns : columns + finer] = released[columns : columns + finer], []
    marginals = read_marginals(parts.design, Noisy(released, sigma), noise, settled.schema.rows)
    centre = read_centre(parts.design, marginals)
    return with_finer(parts.design, marginals, Noisy(more, sigma)), centre


def model_of(settled: Settled[MomentsConfig, Parts], arrays: dict[str, Array]) -> MomentsModel:
    """The model of released arrays: the same for everybody who has them."""
    first = read_first(settled, arrays)
    gram, scales = settled.parts.gram_of(len(first[1].means))
    model = _model(settled, first, arrays, gram, scales)
    if model.goal is None or scales.chosen is None or CHOSEN not in arrays:
        return model
    released = read_released(arrays, model.goal.codes.sizes)
    return with_measured(model, released.batches, scales.chosen.sigma, settled.config.sample_seed)


def measured(
    settled: Settled[MomentsConfig, Parts],
    model: MomentsModel,
    source: Source,
    engine: Engine,
    grant: Grant,
) -> tuple[MomentsModel, dict[str, Array]]:
    """Tables chosen and measured in turns, and the model that shows them too; or none, and no pass."""
    decided, noise, goal = settled.parts.design, settled.parts.scales.chosen, model.goal
    if goal is None or noise is None or decided.chosen is None:
        return model, {}
    seed, lower = settled.config.sample_seed, _label_lower(settled)
    most = settled.schema.row_limit
    cliques = candidates(goal.codes.sizes, noise.sigma, min(model.marginals.rows, most), seed)
    if not cliques:
        return model, Turned([]).arrays()
    statistic = JointTables(sizes=goal.codes.sizes, cliques=cliques)

    def code(batch: Batch | SetBatch) -> CodeRows:
        return code_block(batch, decided, goal.codes, lower)

    exact = _fold(engine, source, code, statistic, TABLES).units
    tables = dict(zip(cliques, statistic.split(exact), strict=True))
    turns = Turns(tables, decided.chosen, noise, grant, seed, most, settled.schema.weight_bits)
    working, released = take_turns(turns, working_rows(model, goal, seed))
    return replace(model, goal=working.goal), released.arrays()


def _model(
    settled: Settled[MomentsConfig, Parts],
    first: tuple[Marginals, Centre],
    arrays: dict[str, Array],
    gram: BlockGram,
    scales: Scales,
) -> MomentsModel:
    """The model that the released Gram gives."""
    (marginals, centre), noise = first, read_gram(settled, arrays, gram, scales)
    decided, fineness = settled.parts.design, None
    if decided.chosen is not None and scales.chosen is not None:
        own = min(marginals.pooled_sigma, scales.chosen.sigma)
        fineness = Fineness(decided.chosen.parts, CODE_SIGMAS * own)
    found = Found(decided, settled.schema, marginals, centre, fineness)
    return build_model(found, noise, settled.config.sample_seed)


def read_gram(
    settled: Settled[MomentsConfig, Parts], arrays: dict[str, Array], gram: BlockGram, scales: Scales
) -> GramNoise:
    """The released Gram in encoded units."""
    weight, off = settled.parts.design.label_weight, scales.product_deviation()
    radius = float(arrays["radius"][0])
    require(len(arrays["gram"]) == sum(gram.parts), "gram: does not fit the marginals; use one release")
    blocks, cross, tail = gram.unpack(arrays["gram"])
    return GramNoise(
        blocks=tuple(block * radius**2 for block in blocks),
        class_sums=cross.T * (radius / weight),
        sigma=off * radius**2,
        class_sigma=off * radius / weight,
        class_counts=np.diagonal(tail) / weight**2,
        count_sigma=scales.deviation(scales.gram) / weight**2,
        radius=radius,
    )


def pictures(settled: Settled[MomentsConfig, Parts], published: Published) -> Pictures:
    """One-way histograms, classes, correlations and their spectrum."""
    arrays = {name: np.asarray(value, np.float64) for name, value in published.arrays.items()}
    design, schema = settled.parts.design, settled.schema
    marginals, centre = read_first(settled, arrays)
    gram = read_gram(settled, arrays, *settled.parts.gram_of(len(centre.means)))
    return pictures_of(design, schema, marginals, centre, gram, is_pure=settled.config.delta == 0)


def words(_settled: object, _published: object) -> Mapping[str, str]:
    """What each released part is."""
    return WORDS
