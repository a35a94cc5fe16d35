"""What PCA and LDA publishing share: the joint moments of box-bounded rows, noised once.

    pure            discrete Laplace of scale joint L1 / epsilon on every released coordinate
    (eps, delta)    rounded normal, isometric: sigma on x_i^2, sigma/sqrt2 on products, ...

Proof       box_release.proof.md, of `calibrate_moments` and `draw_moments`.
"""

from dataclasses import dataclass, replace

import numpy as np

from adumbra.data.encode import Encoder
from adumbra.data.sources import Batch, Source
from adumbra.engine.local import Engine
from adumbra.errors import Unsupported, require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.base import Calibrated, Noise, calibrate_gaussian, calibrate_laplace
from adumbra.numerics import ROW_BITS, Array, Lattice, coarsen, product_upper, sum_upper
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.relations import Neighbours, Unit
from adumbra.release.storage import in_words
from adumbra.schema.schema import Schema
from adumbra.statistics.base import reach_sensitivity
from adumbra.statistics.box_moments import (
    ONE,
    BoxMoments,
    BoxRows,
    BoxShape,
    Kind,
    box_rows,
    complete,
    shape_of,
    sigma_factors,
)
from adumbra.statistics.moments import require_no_overflow

PURPOSE = "moments"
WEIGHTED = f"{PURPOSE}, of a column of weight 1"
OTHER_KINDS = {Kind.CROSS: "products of two columns", Kind.TOTAL: "sums", Kind.COUNT: "counts"}
LARGEST_BITS = 51  # a noised coordinate has at most 2^51 grid steps before the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentNoise:
    """The statistic with its calibrated noise."""

    statistic: BoxMoments
    neighbours: Neighbours
    is_pure: bool
    scale: Calibrated

    def entry(self) -> Noise:
        """The noise as the card prints it; if Gaussian, of a square of a number (of weight 1)."""
        gaussian = WEIGHTED if self.statistic.weights else f"{PURPOSE}, squares of a number"
        return self.scale.entry(PURPOSE if self.is_pure else gaussian, is_pure=self.is_pure)

    def other_entries(self) -> tuple[Noise, ...]:
        """Gaussian noise of the coordinates that get another scale in the same noise call."""
        if self.is_pure or self.statistic.weights:
            return ()
        first, factors = self.entry(), sigma_factors(self.statistic.shape)
        counts = self.statistic.kind_counts(self.neighbours)
        return tuple(
            replace(first, purpose=f"{PURPOSE}, {name}", scale=float(first.scale * factors[kind]))
            for kind, name in OTHER_KINDS.items()
            if counts[kind]
        )

    def deviation(self, kind: Kind) -> float:
        """The standard deviation of the noise of one kind of coordinate."""
        if self.is_pure:
            return float(self.scale.scale * np.sqrt(2.0))
        if self.statistic.weights:  # at most: no column weighs less than 1
            return self.scale.scale * (1.0 if kind in (Kind.SQUARE, Kind.COUNT) else float(np.sqrt(0.5)))
        return float(self.scale.scale * sigma_factors(self.statistic.shape)[kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Released numbers: everything after this is public arithmetic."""

    matrix: Array  # size x size, symmetric: sums of z z^T with class sums and class counts beside them
    rows: float  # the public number of rows, or the noisy one


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentParts:
    """The encoding of rows, and the statistic with its noise."""

    encoder: Encoder
    noise: MomentNoise


MOST_MEMORY = 128 * 10**9  # of moments that are planned for
BOX_MATRICES = 12  # copies of the matrix of moments: places, noise, whole matrix, eigenvectors


def box_memory(schema: Schema, encoder: Encoder, classes: int, rows: int) -> int:
    """Bytes at the peak of the noisy moments, with the process: public numbers only."""
    size = encoder.width + max(classes, 1)
    folded = sizes.totals(size * size) + sizes.reading(schema.width, rows, size, is_fold=True)
    return sizes.PROCESS + max(folded, sizes.FLOAT * BOX_MATRICES * size * size)


def require_square(size: int) -> None:
    """Refuse, before anything of that size is computed, moments that no machine of ours would hold."""
    memory = sizes.FLOAT * BOX_MATRICES * size * size
    require(
        memory <= MOST_MEMORY,
        f"columns: the products of {size:,} encoded columns take {in_words(memory)} of memory, more "
        f"than {in_words(MOST_MEMORY)}; leave columns out, or use moments, which keeps blocks of them",
    )


def require_rows_unit(schema: Schema, method: str) -> None:
    """Refuse the element unit: one cell moves many moments, and nobody has proved how many."""
    if schema.unit is Unit.ELEMENT:
        raise Unsupported(f"unit={schema.unit}: {method} sums whole rows; declare unit='row'")


def calibrate_moments(  # noqa: PLR0913 - each keyword is one public number
    schema: Schema,
    encoder: Encoder,
    amount: float,
    *,
    is_pure: bool,
    classes: int,
    weights: tuple[int, ...] = (),
) -> MomentNoise:
    """Noise for epsilon = amount (pure) or mu = amount; weights say which columns get less of it.

    The value may be rounded to 2**floor first, so that no coordinate exceeds 2^51 steps however many
    rows the schema allows; that rounding is in the sensitivity.
    """
    require_no_overflow(ONE**2, schema.row_limit)
    require_square(encoder.width + max(classes, 1))
    statistic = BoxMoments(shape_of(encoder, classes=classes), weights=() if is_pure else weights)
    bound = reach_sensitivity(statistic.sensitivity, schema.reach)
    relation = schema.reach.neighbours
    rounding = statistic.roundings(relation)
    finest = statistic.exponent - schema.weight_bits
    floor = max(finest, schema.row_limit.bit_length() - LARGEST_BITS)
    change, unit = (bound.l1, rounding[0]) if is_pure else (bound.l2, rounding[1])
    if floor > finest:
        change = sum_upper(change, product_upper(2.0**floor, unit))
    calibrate = calibrate_laplace if is_pure else calibrate_gaussian
    scale = calibrate(change, amount, exponent=floor, rounding=unit)
    return MomentNoise(statistic=statistic, neighbours=relation, is_pure=is_pure, scale=scale)


def draw_moments(
    source: Source, encoder: Encoder, noise: MomentNoise, *, engine: Engine, grant: Grant
) -> NoisyMoments:
    """Fold the exact moments, pick what is released, add the noise once."""
    statistic, shape = noise.statistic, noise.statistic.shape

    def prepare(batch: Batch) -> BoxRows:
        labels = encoder.labels(batch) if shape.classes else None
        return box_rows(encoder.encode(batch), shape, labels)

    exact = engine.fold(source, prepare, statistic, stage="private moments")
    places = statistic.coordinates(noise.neighbours)
    chosen = Lattice(np.ascontiguousarray(exact.units[places[0], places[1]]), exact.exponent)
    ready, key = coarsen(chosen, noise.scale.exponent), grant.key(PURPOSE)
    if noise.is_pure:
        noisy = add_laplace(ready, noise.scale.scale, key)
    else:
        noisy = add_gaussian(ready, noise.scale.scale * statistic.factors(places), key)
    matrix = complete(noisy.to_float(), places, shape)
    counts = np.arange(shape.width, shape.size)
    if noise.neighbours.rows_are_public:  # every row has one class column, so their sum is n itself
        rows = float(exact.units[counts, counts].sum() >> 2 * ROW_BITS)
    else:
        rows = max(float(matrix[counts, counts].sum()), 1.0)
    return NoisyMoments(matrix=matrix, rows=max(rows, 1.0))


def box_limits(shape: BoxShape) -> tuple[Array, Array]:
    """The public range of each encoded column."""
    low, high = np.full(shape.width, -0.5), np.full(shape.width, 0.5)
    for group in shape.groups:
        low[group], high[group] = 0.0, 1.0
    return low, high
