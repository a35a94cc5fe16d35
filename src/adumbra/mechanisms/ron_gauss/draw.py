"""The passes over private rows: sums, radii, Gram; each exact, each noised once.

Proof       mechanism.proof.md, of `draw_moments`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adumbra.data.batch import Batch
from adumbra.data.bounds import (
    BoundedRows,
    augment,
    bound_rows,
    project,
    with_constant,
)
from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.mechanisms.projected import EXACT_EXPONENT
from adumbra.mechanisms.ron_gauss.scales import (
    CONSTANT,
    RADIUS_BINS,
    RADIUS_EDGES,
    WEIGHT,
    Scales,
    Space,
    gram_statistic,
    mean_statistic,
)
from adumbra.numerics import Array, Ints, Lattice, coarsen, row_squares
from adumbra.postprocess.spectrum import into_unit_ball
from adumbra.privacy.grant import Grant
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.statistics.class_sums import BinCounts
from adumbra.statistics.moments import frobenius_weights, symmetric, upper_triangle

RADIUS_QUANTILE = 0.95  # rows beyond this noisy quantile of |x - mean| are clipped to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy numbers, already paid for: everything after this is public arithmetic."""

    noisy_means: Array | None  # one row a class (or one row): in units of the row norm
    noisy_counts: Array | None  # beside them
    clip: float  # c: where |x - mean| was clipped, in units of the row norm
    noisy_gram: Array  # (classes or 1) x width x width, of rows in units of c r
    public_rows: int | None


def draw_moments(  # noqa: PLR0913 - the passes share their public decisions
    source: Source,
    space: Space,
    settled: Scales,
    *,
    engine: Engine,
    grant: Grant,
    unit_rows: bool,
    normalise: bool,
) -> Released:
    """Run the passes that the plan bought; each noisy result may steer the next (it is released)."""
    groups = space.classes or 1

    def bounded(batch: Batch) -> BoundedRows:
        encoded = space.encoder.encode(batch)
        labels = space.encoder.labels(batch) if space.mode == "gmm" else None
        if unit_rows:  # the space's norm is 1 then
            encoded = _unit(encoded)
        return bound_rows(encoded, space.norm, labels=labels)

    means = counts = None
    if settled.private_centring:
        total = engine.fold(source, bounded, mean_statistic(space), stage="private mean")
        noisy = _noisy(total, "mean", settled, grant).reshape(groups, space.width + 1)
        counts = noisy[:, -1]
        if space.neighbours.rows_are_public and space.classes is None:
            counts = np.array([float(source.public_rows() or 1)])
        means = np.stack(
            [into_unit_ball(row[:-1] / max(n, 1.0)) for row, n in zip(noisy, counts, strict=True)]
        )

    def centred(batch: Batch) -> tuple[Array, Ints | None]:
        rows = bounded(batch)
        real = rows.units * 2.0**-15
        if means is None:
            return real, rows.labels
        return real - (means[0] if rows.labels is None else means[rows.labels]), rows.labels

    clip = 1.0
    if settled.private_centring and not normalise:

        def radii(batch: Batch) -> Ints:
            offsets, _ = centred(batch)
            lengths = np.sqrt(row_squares(offsets))
            codes: Ints = np.minimum(np.searchsorted(RADIUS_EDGES, lengths), RADIUS_BINS - 1)
            return codes

        bins = engine.fold(source, radii, BinCounts(bins=RADIUS_BINS), stage="private radius")
        clip = _quantile(_noisy(bins, "radius", settled, grant))
    prepare = _gram_rows(space, settled, centred, clip, normalise=normalise and settled.private_centring)
    statistic = gram_statistic(space, private_centring=settled.private_centring)
    exact = engine.fold(source, prepare, statistic, stage="second moments")
    upper = Lattice(upper_triangle(exact.units.reshape(groups, statistic.width, -1)), exact.exponent)
    gram = symmetric(
        _noisy(upper, "gram", settled, grant, frobenius_weights(statistic.width)), statistic.width
    )
    return Released(
        noisy_means=means,
        noisy_counts=counts,
        clip=clip,
        noisy_gram=gram,
        public_rows=source.public_rows() if space.neighbours.rows_are_public else None,
    )


def _gram_rows(
    space: Space,
    settled: Scales,
    centred: Callable[[Batch], tuple[Array, Ints | None]],
    clip: float,
    *,
    normalise: bool,
) -> Callable[[Batch], BoundedRows]:
    """Clip or normalise, project exactly, clip at the public radius, add what the mode needs."""
    matrix, radius = space.matrix(), space.radius

    def rows(batch: Batch) -> BoundedRows:
        offsets, labels = centred(batch)
        if normalise:
            offsets = _unit(offsets)
        inside = bound_rows(offsets, clip)  # in units of the clip
        projected = project(inside, matrix) * 2.0**EXACT_EXPONENT
        small = bound_rows(projected, radius, labels=labels)
        if space.mode == "supervised":
            target = np.rint(space.encoder.targets(batch) * WEIGHT)
            return with_constant(augment(small, target[:, None], WEIGHT**2), WEIGHT)
        return small if settled.private_centring else with_constant(small, CONSTANT)

    return rows


def _unit(x: Array) -> Array:
    """Rows of length 1; the zero row stays zero."""
    length = np.sqrt(row_squares(x))
    return x / np.where(length > 0.0, length, 1.0)[:, None]


def _noisy(
    value: Lattice, purpose: str, settled: Scales, grant: Grant, weights: Array | None = None
) -> Array:
    """The one noise call of a purpose."""
    one = settled.by_purpose[purpose]
    ready, key = coarsen(value, one.exponent), grant.key(purpose)
    if settled.pure:
        return add_laplace(ready, one.scale, key).to_float()
    sigma = one.scale if weights is None else one.scale * weights
    return add_gaussian(ready, sigma, key).to_float()


def _quantile(noisy_bins: Array) -> float:
    """The upper edge of the bin where the noisy counts pass the quantile."""
    total = np.cumsum(np.maximum(noisy_bins, 0.0))
    index = int(np.searchsorted(total, RADIUS_QUANTILE * total[-1]))
    return float(RADIUS_EDGES[min(index, RADIUS_BINS - 1)])
