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

from adumbra.data.batch import Batch, SetBatch
from adumbra.data.bounds import BoundedRows, bound_rows, with_classes, with_constant
from adumbra.data.sources import KeptSource, Source
from adumbra.engine.base import Engine
from adumbra.errors import require
from adumbra.mechanisms.base import Calibrated, Draft, Published, Settled
from adumbra.mechanisms.moments.chosen import (
    CHOSEN,
    TABLES,
    Turned,
    Turns,
    candidates,
    measured_names,
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
from adumbra.mechanisms.sizes import HELD, KEPT
from adumbra.numerics import Array, Ints, Lattice, coarsen, row_squares
from adumbra.postprocess.moments.design import Centre, Design, Feature, Fineness
from adumbra.postprocess.moments.laws import (
    Marginals,
    Noisy,
    choose_radius,
    radius_edges,
    read_centre,
    read_marginals,
)
from adumbra.postprocess.moments.model import (
    Found,
    GramNoise,
    MomentsModel,
    build_model,
    finished_blocks,
    with_measured,
    working_rows,
)
from adumbra.postprocess.moments.pictures import pictures_of
from adumbra.postprocess.moments.tables import Codes
from adumbra.postprocess.pictures import Pictures
from adumbra.postprocess.rules import Shift
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.statistics.base import Statistic
from adumbra.statistics.histograms import CellRows, Histograms, cell_rows, cut
from adumbra.statistics.joint_tables import CodeRows, JointTables, code_rows
from adumbra.statistics.moments import BlockGram

# Down to `bounded_block`: private rows on their way to the statistics. Every function is total, and a
# row's result depends on that row and on public or paid-for numbers alone.

CODE_SIGMAS = 3.0  # standard deviations that a code of a measured table holds at least
_CHUNK_VALUES = 2**23  # dense encoded values held at once by one thread


def values_of(batch: Batch | SetBatch) -> Array:
    """Rows as numbers and codes; item sets as 0 and 1."""
    if isinstance(batch, Batch):
        return batch.values
    dense = np.zeros((len(batch), batch.width))
    rows = np.repeat(np.arange(len(batch)), batch.lengths)
    inside = (batch.indices >= 0) & (batch.indices < batch.width)
    dense[rows[inside], batch.indices[inside]] = 1.0
    return dense


def chunks(batch: Batch | SetBatch, width: int) -> Iterator[Batch | SetBatch]:
    """The batch in pieces whose encoded rows fit a public amount of memory."""
    rows = max(1, _CHUNK_VALUES // max(width, 1))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, min(start + rows, len(batch)))


def labels_of(values: Array, decided: Design, lower: float) -> Ints:
    """Class codes; without a label, class 0."""
    if decided.label is None:
        return np.zeros(len(values), np.int64)
    return (values[:, decided.label] - lower).astype(np.int64)


def codes_of(values: Array, feature: Feature) -> Ints:
    """The cell of each row in one column; one more where a number is missing."""
    column = values[:, feature.index]
    codes: Ints = column.astype(np.int64) if feature.edges is None else cut(column, feature.edges)
    if feature.missing is not None:
        codes = np.where(column == feature.missing, feature.cells, codes)
    return codes


def cell_block(batch: Batch | SetBatch, decided: Design, lower: float) -> CellRows:
    """Cells of all histograms: a category's is a pair (class, level); the last is the class, if any."""
    values = values_of(batch)
    labels = labels_of(values, decided, lower)
    codes = np.empty((len(values), len(decided.cells)), np.int64, order="F")
    for place, feature in enumerate(decided.columns):
        codes[:, place] = codes_of(values, feature)
        if feature.is_levels:
            inside = (codes[:, place] >= 0) & (codes[:, place] < feature.counted)
            joint = codes[:, place] + labels * feature.counted
            codes[:, place] = np.where(inside & (labels >= 0), joint, -1)
    if decided.label is not None:
        codes[:, -1] = labels
    return cell_rows(codes, decided.cells)


def over_classes(exact: Lattice, decided: Design) -> Lattice:
    """The histograms of all columns over all classes: sums of cells of those by class."""
    parts = np.split(exact.units, np.cumsum(decided.cells)[:-1])
    sums = [part.reshape(-1, n).sum(axis=0) for part, n in zip(parts, decided.pooled_cells, strict=True)]
    return Lattice(np.concatenate(sums), exact.exponent)


def code_block(batch: Batch | SetBatch, decided: Design, codes: Codes, lower: float) -> CodeRows:
    """Codes of the columns of joint tables; the class is the last column, if there is one."""
    values = values_of(batch)
    found = np.empty((len(values), len(codes.columns)), np.int64, order="F")
    for index, column in enumerate(codes.columns):
        is_class = column.place < 0
        cells = (
            labels_of(values, decided, lower)
            if is_class
            else codes_of(values, decided.features[column.place])
        )
        known = np.append(column.cells, column.levels) if column.flag >= 0 else column.cells
        inside = (cells >= 0) & (cells < len(known))
        found[:, index] = np.where(inside, known[np.where(inside, cells, 0)], -1)
    return code_rows(found, codes.sizes)


def centred(
    batch: Batch | SetBatch, decided: Design, centre: Centre, lower: float
) -> tuple[Array, Ints]:
    """Encoded rows less their paid-for means, and class codes."""
    values = values_of(batch)
    rows = np.empty((len(values), len(centre.means)), order="F")
    for feature, start, groups in zip(decided.features, centre.starts, centre.groups, strict=True):
        if feature.is_levels:
            width = int(groups.max()) + 1
            code = np.clip(codes_of(values, feature), 0, feature.cells - 1)
            rows[:, start : start + width] = groups[code][:, None] == np.arange(width)
        elif feature.is_flag:
            rows[:, start] = values[:, feature.index] == feature.missing
        else:
            np.subtract(values[:, feature.index], feature.lower, out=rows[:, start])
            rows[:, start] /= feature.upper - feature.lower
        if feature.missing is not None and not feature.is_flag:  # a missing number tells nothing more
            own = slice(start, start + (width if feature.is_levels else 1))
            rows[values[:, feature.index] == feature.missing, own] = centre.means[own]
    rows -= centre.means
    if np.any(centre.scales != 1.0):
        rows *= centre.scales
    return rows, labels_of(values, decided, lower)


def norm_block(
    batch: Batch | SetBatch, decided: Design, centre: Centre, lower: float, edges: Array
) -> CellRows:
    """The cell of each centred row's length."""
    lengths = [
        np.sqrt(row_squares(rows))
        for piece in chunks(batch, len(centre.means))
        for rows, _ in (centred(piece, decided, centre, lower),)
    ]
    return cell_rows(cut(np.concatenate([*lengths, np.empty(0)]), edges)[:, None], (len(edges) - 1,))


def bounded_block(
    batch: Batch | SetBatch, decided: Design, centre: Centre, lower: float, radius: float
) -> Iterator[BoundedRows]:
    """Centred rows inside the radius, with their class (or a constant) appended."""
    for piece in chunks(batch, len(centre.means)):
        rows, labels = centred(piece, decided, centre, lower)
        bounded = bound_rows(rows, radius, labels=labels, owned=True)
        if decided.label is None:
            yield with_constant(bounded, decided.label_units)
        else:
            yield with_classes(bounded, decided.classes, decided.label_units)


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
    if model.goal is not None and scales.chosen is not None:
        model, more = measured(settled, model, source, engine, grant)
        arrays |= more
    facts: dict[str, object] = {"clip_radius": radius, "surviving_rank": model.rank}
    facts |= {"sample_seed": config.sample_seed} | measured_names(decided, settled.schema, arrays)
    draft = Draft(arrays=arrays, noise=scales.entries(), facts=facts | decided.facts())
    return _with_rows(draft, model, rows_to_draw(config, settled.schema.rows), config.sample_seed)


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
    histograms = Noisy(parts.histograms.split(arrays["marginals"]), scales.deviation(scales.marginals))
    marginals = read_marginals(parts.design, histograms, noise, settled.schema.rows)
    return marginals, read_centre(parts.design, marginals)


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
    """Tables chosen and measured in turns, and the model that shows them too."""
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
