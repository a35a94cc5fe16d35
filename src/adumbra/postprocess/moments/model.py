"""From one-way laws and a noisy Gram to a model.

Post-processing only: every argument is public or paid for. In order: class means and the covariance
within classes (shrunk at the noise edge), the latent model calibrated to both and to the laws, and the
tables that drawn rows shall show. `sampling.py` draws them.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.latent import (
    Block,
    Decoded,
    LatentModel,
    calibrate,
    encoded,
    latent_model,
    sample,
)
from adumbra.postprocess.matrices import (
    directions_above,
    shrink_means,
    shrunk_blocks,
    shrunk_covariance,
    standing_out,
)
from adumbra.postprocess.moments.design import Centre, Design, Feature, Fineness
from adumbra.postprocess.moments.goal import (
    Clique,
    Goal,
    Working,
    code_scores,
    finer_codes,
    finer_goal,
    moved,
    next_batch,
    plain_codes,
    spread_codes,
)
from adumbra.postprocess.moments.laws import Marginals, class_shares, score_values, with_means
from adumbra.postprocess.moments.refine import pair_tables
from adumbra.postprocess.moments.stein import centred_mean
from adumbra.postprocess.moments.tables import Released, codes_of, measure, read_codes, wanted_tables
from adumbra.schema.schema import Schema

Directions = tuple[Array, Array]  # eigenvalues, and their vectors as columns
_MANY = 512  # numbers: more vary in a few directions, and alike in all others


def stretch_of(total: Array, variances: Array) -> float:
    """What clipping took from the covariance: the marginals' variance over the Gram's, from 1 to 4."""
    seen = float(np.trace(total))
    return min(max(float(variances.sum()) / seen, 1.0), 4.0) if seen > 0.0 else 1.0


def set_levels(total: Array, blocks: tuple[Block, ...], run: slice, shares: Array) -> None:
    """Inside a category the covariance is known from its histogram: diag(p) - p p^T."""
    for block in blocks:
        if block.is_levels and run.start <= block.start and block.start + block.width <= run.stop:
            own = slice(block.start - run.start, block.start - run.start + block.width)
            pooled = shares @ block.shares
            total[own, own] = np.diag(pooled) - np.outer(pooled, pooled)


def variances_of(block: Block, class_shares: Array) -> Array:
    """Variances by the marginal: of a number, of each level."""
    if block.is_levels:
        pooled = class_shares @ block.shares
        return np.asarray(pooled * (1.0 - pooled))
    mean = block.shares @ block.values
    return np.array([block.shares @ block.values**2 - mean**2])


def with_rest(signal: Directions, between: Array, variances: Array, is_number: Array) -> Array:
    """The covariance inside classes, with what shrinkage took from numbers put back as their own noise.

    Among numbers alone, where it left nothing: directions that drowned vary alike. Beside levels, whose
    columns keep every direction alive, column by column: a number that drowned must not become a
    function of the others.
    """
    values, vectors = signal
    within = np.asarray((vectors * values) @ vectors.T) - between
    numbers = np.flatnonzero(is_number)
    if len(numbers) == 0:
        return within
    if len(numbers) < len(is_number):
        lack = variances[numbers] - between[numbers, numbers] - within[numbers, numbers]
        within[numbers, numbers] += np.maximum(lack, 1e-3 * variances[numbers] + 1e-12)
        return within
    wanted = float(variances.sum() - np.trace(between))
    if len(within) >= _MANY:
        return _with_rest_of_few(_directions(within) if between.any() else signal, wanted)
    values, vectors = np.linalg.eigh(within)
    is_empty = values <= 1e-9 * max(float(values[-1]), 1e-12)
    rest = max(wanted - float(values[~is_empty].sum()), 1e-3 * abs(wanted) + 1e-12)
    values[is_empty] = rest / max(int(is_empty.sum()), 1)
    return np.asarray((vectors * values) @ vectors.T)


def _with_rest_of_few(signal: Directions, wanted: float) -> Array:
    """The same for many columns, from the few directions that shrinkage left alone: the others share."""
    values, vectors = signal
    width = len(vectors)
    rest = max(wanted - float(values.sum()), 1e-3 * abs(wanted) + 1e-12)
    each = rest / max(width - len(values), 1)
    if len(values) == 0:
        return np.diag(np.full(width, each))
    filled = (vectors * (values - each)) @ vectors.T
    filled[np.diag_indices(width)] += each
    return np.asarray(filled)


def _directions(within: Array) -> Directions:
    """What is left of the signal beside the classes."""
    size = float(np.linalg.norm(within)) / math.sqrt(len(within))
    return directions_above(within, 1e-9 * max(size, 1e-12))


def within_pairs(within: Array, between: Array, variances: Array, is_pair: Array) -> Array:
    """The covariance with no pair of levels varying more than its (well known) share allows.

    A pair that follows the class, or a column like it, has hardly any variance of its own.
    """
    left = np.maximum(variances - np.diagonal(between), 1e-3 * variances + 1e-12)
    most = np.where(is_pair, left / np.maximum(np.diagonal(within), 1e-300), 1.0)
    factors = np.sqrt(np.minimum(most, 1.0))
    return np.asarray(within * np.outer(factors, factors))


_CALIBRATION_ROWS = 8192
_LEAST_ROWS, _MOST_VALUES = 1024, 2**22  # of the model, whose means are compared with class sums
_GOAL_ROWS = 2**15  # of the model, whose tables are compared with the Gram
_WORK_ROWS = (1024, 4096)  # that show what is known between measured tables: at least, at most
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

    @property
    def sum_sigma(self) -> float:
        """The standard deviation of an entry of all classes' sums."""
        return self.class_sigma * math.sqrt(len(self.class_sums))


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
    owners = np.repeat(np.arange(len(blocks)), [b.width for b in blocks])
    variances = np.concatenate([variances_of(b, marginals.class_shares) for b in blocks])
    observed = gram.class_sums / sizes[:, None]
    overall = marginals.class_shares @ observed
    overall = centred_mean(overall, gram.sum_sigma / marginals.rows, design.label is None or ~is_number)
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
        if any(b.is_levels for b in blocks):
            signal = shrunk_blocks(total, entry, variances[run], owners[run])
        else:
            signal = shrunk_covariance(total, entry, variances[run])
        between = (means[:, run].T * marginals.class_shares) @ means[:, run]
        within = with_rest(signal, between, variances[run], is_number[run])
        covariances.append(within_pairs(within, between, variances[run], is_pair[run]))
        rank += standing_out(total, entry, signal)
    rng = np.random.default_rng([seed, 1])
    model = latent_model(blocks, marginals.class_shares, means, tuple(covariances))
    model = calibrate(model, means, _rounds(blocks, model.width), _CALIBRATION_ROWS, rng)
    model, marginals = _with_class_sums(found, model, marginals, gram, seed)
    return MomentsModel(
        design=design,
        schema=found.schema,
        marginals=marginals,
        centre=centre,
        latent=model,
        rank=rank,
        goal=_goal(found, marginals, model, gram, seed),
    )


def _with_class_sums(
    found: Found, model: LatentModel, marginals: Marginals, gram: GramNoise, seed: int
) -> tuple[LatentModel, Marginals]:
    """Laws of numbers and pairs of levels whose means follow the sums over classes, too.

    Rows were centred at the histograms' means, so the sums hold what these lack. But rows were
    shortened, and rows of the model say what that alone would show.
    """
    features = zip(found.design.features, model.blocks, strict=True)
    plain = [
        p for p, (f, b) in enumerate(features) if not b.is_levels and (f.is_flag or f.missing is None)
    ]
    classes = len(gram.class_sums)
    if classes < 2 or len(gram.blocks) > 1 or not plain:
        return model, marginals
    rng = np.random.default_rng([seed, 7])
    count = max(_LEAST_ROWS, min(_CALIBRATION_ROWS, _MOST_VALUES // model.width))
    rows = centred_rows(found, model, sample(model, count, rng))
    factors = np.minimum(1.0, gram.radius / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))
    kept = marginals.rows * float(factors.mean())
    gaps = (gram.class_sums.sum(axis=0) - factors @ rows * (marginals.rows / count)) / kept
    blocks = list(model.blocks)
    values = {place: blocks[place].values for place in plain}
    own = gaps[[blocks[place].start for place in plain]]
    marginals = with_means(marginals, values, own, classes * (gram.class_sigma / kept) ** 2)
    for place in plain:
        blocks[place] = replace(blocks[place], shares=marginals.laws[place])
    return replace(model, blocks=tuple(blocks)), marginals


def centred_rows(found: Found, model: LatentModel, decoded: Decoded) -> Array:
    """Drawn rows as private ones entered the Gram: centred, and a missing number is an average one."""
    rows, kept = encoded(model, decoded), {}
    for feature, block in zip(found.design.features, model.blocks, strict=True):
        if feature.is_flag:
            kept[feature.index] = rows[:, block.start] == 0.0
    rows -= found.centre.means * found.centre.scales
    for feature, block in zip(found.design.features, model.blocks, strict=True):
        if feature.index in kept and not feature.is_flag:
            rows[:, block.columns] *= kept[feature.index][:, None]
    return rows


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
    coarse = Goal(
        codes.codes, codes.codes, wanted_tables(codes, shown, released, is_loud=found.design.is_loud)
    )
    if found.fineness is None:
        return coarse
    fine = finer_codes(found.design, marginals, codes.codes, found.fineness)
    cut = spread_codes(codes.codes, fine, drawn, marginals.laws, rng)
    return finer_goal(coarse, shown.tables, fine, codes_of(fine, cut, model.blocks))


def _plain_goal(found: Found, marginals: Marginals, model: LatentModel, seed: int) -> Goal | None:
    """The tables of many rows of the model: what is shown where nothing else is measured.

    Where fewer than two thirds of pairs can be measured, rows keep their second moments.
    """
    if found.fineness is None:
        return None
    rng = np.random.default_rng([seed, 3])
    drawn = sample(model, _GOAL_ROWS, rng)
    coarse = plain_codes(found.design, found.centre, marginals, found.fineness)
    fine = finer_codes(found.design, marginals, coarse, found.fineness)
    cut = spread_codes(coarse, fine, drawn, marginals.laws, rng)
    rows = codes_of(fine, cut, model.blocks)
    tables = pair_tables(rows, fine.starts) / len(rows)
    chosen, columns = found.design.chosen, len(fine.columns)
    is_partly = chosen is not None and 3 * chosen.tables < columns * (columns - 1)  # two thirds
    scores = code_scores(found.design, marginals, fine) if is_partly else ()
    return Goal(coarse, fine, tables, plain=tables, scores=scores)


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
    if len(marginals.class_shares) == 1:
        return marginals
    first, second = marginals.sigma**-2.0, gram.count_sigma**-2.0
    both = (first * marginals.counts[-1] + second * gram.class_counts) / (first + second)
    shares = class_shares(both, (first + second) ** -0.5, marginals.rows)
    return replace(marginals, class_shares=shares)


def _sizes(marginals: Marginals) -> Array:
    """Rows of each class, never below one."""
    return np.asarray(np.maximum(marginals.class_shares * marginals.rows, 1.0))


def _block(feature: Feature, law: Array, start: int, groups: Ints, centre: Centre) -> Block:
    if feature.is_levels:
        shares = grouped(law, groups)
        return Block(start=start, width=shares.shape[1], shares=shares, values=np.empty(0))
    return Block(start=start, width=1, shares=law, values=score_values(feature) * centre.scales[start])
