"""One row of PCA publishing: its exact projection on the released basis, bounded, noised, decoded.

    basis   z U - mean U on the grid 2^-35                       L1 exact over the box, L2 bounded
    clip    the same, shortened to radius r, on its own grid     2r in L2, 2r sqrt(k) in L1

Proof       release.proof.md, of `calibrate_rows` and `exact_rows`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adumbra.data.bounds import BoundedElements, clip_projected, project
from adumbra.data.encode import Encoder
from adumbra.data.sources import Batch
from adumbra.matrices import ProjectionMatrix, lattice_matrix
from adumbra.mechanisms.base import (
    Calibrated,
    Noise,
    calibrate_gaussian,
    calibrate_laplace,
    require_steps,
)
from adumbra.mechanisms.pca.config import PCAConfig, budget_parts
from adumbra.mechanisms.projection.rows import CLIPPED_BITS, EXACT_EXPONENT, ROUNDED_BITS, clip_exponent
from adumbra.numerics import Array, Lattice, coarsen, sqrt_upper
from adumbra.postprocess.decode import decode_rows
from adumbra.postprocess.subspace import Subspace, shrinkage
from adumbra.privacy.grant import Grant, KeyedRows, Keys
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.statistics.box_moments import ONE, BoxShape, box_rows
from adumbra.statistics.box_projection_sensitivity import box_projection_sensitivity
from adumbra.statistics.projection_sensitivity import clipped_sensitivity

ROWS = "rows"
LEAST_RADIUS = 2.0**-10  # of a clip, in encoded units


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNoise:
    """How rows are bounded and noised, once the basis is known."""

    basis: ProjectionMatrix
    radius: float | None  # clip radius about the mean; None: the exact sensitivity of the basis
    scale: Calibrated
    is_pure: bool

    def entry(self) -> Noise:
        """The noise as the card prints it."""
        return self.scale.entry(ROWS, is_pure=self.is_pure)

    @property
    def variance(self) -> float:
        """Of the noise of one coordinate."""
        return self.scale.scale**2 * (2.0 if self.is_pure else 1.0)


def calibrate_rows(config: PCAConfig, shape: BoxShape, found: Subspace) -> RowNoise:
    """Noise for one row along the released basis.

    basis   the exact change of z U over the box (L1), or its bound (L2)
    clip    both neighbours' rows end in the ball of radius r about the mean: 2r, sqrt(k) 2r in L1
    """
    basis = lattice_matrix(found.directions, family="directions")
    k, amount = basis.n_components, budget_parts(config)[1]
    calibrate, rounding = rounded_to_noise(k, is_pure=config.is_pure)
    candidates: list[RowNoise] = []
    if config.bound != "clip":
        bound = box_projection_sensitivity(basis, shape)
        change = bound.l1 if config.is_pure else bound.l2
        scale = calibrate(change, amount, exponent=EXACT_EXPONENT, rounding=rounding, bits=ROUNDED_BITS)
        candidates.append(RowNoise(basis=basis, radius=None, scale=scale, is_pure=config.is_pure))
    if config.bound != "basis":
        radius = max(config.clip_deviations * math.sqrt(float(found.variances.sum())), LEAST_RADIUS)
        bound = clipped_sensitivity(radius, k)
        change, grid = (bound.l1 if config.is_pure else bound.l2), clip_exponent(radius)
        scale = calibrate(change, amount, exponent=grid, rounding=rounding, bits=CLIPPED_BITS)
        candidates.append(RowNoise(basis=basis, radius=radius, scale=scale, is_pure=config.is_pure))
    return min(candidates, key=lambda one: one.scale.scale)


def rounded_to_noise(k: int, *, is_pure: bool) -> tuple[Callable[..., Calibrated], float]:
    """How rows of k coordinates are calibrated, and what a step of the grid in each of them adds."""
    return (calibrate_laplace, float(k)) if is_pure else (calibrate_gaussian, sqrt_upper(k))


def require_rows_drawn(config: PCAConfig) -> None:
    """Refuse before the charge what `calibrate_rows` would refuse after it (for any directions)."""
    amount, rounding = (
        budget_parts(config)[1],
        rounded_to_noise(config.n_components, is_pure=config.is_pure)[1],
    )
    require_steps(ROUNDED_BITS if config.bound == "basis" else CLIPPED_BITS, rounding, amount)


def row_function(  # noqa: PLR0913, PLR0917 - everything that is public about a row
    config: PCAConfig,
    encoder: Encoder,
    shape: BoxShape,
    found: Subspace,
    noise: RowNoise,
    grant: Grant,
) -> KeyedRows[Batch, pa.RecordBatch]:
    """One noise block of rows to its decoded release."""
    centre = np.rint(np.ldexp(found.mean @ found.directions, -EXACT_EXPONENT))
    add = add_laplace if noise.is_pure else add_gaussian
    keep = shrinkage(found.variances, noise.variance) if config.shrink else 1.0

    def rows(batch: Batch, keys: Keys) -> pa.RecordBatch:
        exact = exact_rows(batch, encoder, shape, noise, centre)
        noisy = add(exact, noise.scale.scale, keys.key(ROWS, batch.noise_block)).to_float()
        table = decode_rows(encoder, found.mean + (noisy * keep) @ found.directions.T)
        return table.combine_chunks().to_batches()[0]

    return KeyedRows(rows, grant, (ROWS,))


def exact_rows(
    batch: Batch, encoder: Encoder, shape: BoxShape, noise: RowNoise, centre: Array
) -> Lattice:
    """(x - mean) U of one block, on the grid that the noise was calibrated for."""
    units = box_rows(encoder.encode(batch), shape).units[:, : shape.width]
    product = project(BoundedElements(units=units, half_width=ONE), noise.basis) - centre
    if noise.radius is not None:
        return coarsen(clip_projected(product, EXACT_EXPONENT, noise.radius), noise.scale.exponent)
    return coarsen(Lattice(product.astype(np.int64), EXACT_EXPONENT), noise.scale.exponent)
