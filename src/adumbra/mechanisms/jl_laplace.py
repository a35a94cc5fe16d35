"""Release every row through a secret random projection, with Laplace noise: pure epsilon.

    row       Z = clip(X R / B, r) + noise      L1 sensitivity 2 r sqrt(k), or 2 max_s |R s|_2 unclipped
    element   Z = X R + noise                   L1 sensitivity max_j |R_j|_1, of the drawn matrix

R is drawn from the grant's secret stream, used once and forgotten: it has no seed and is never written.
That makes reconstruction harder and is not counted: the proof holds for every fixed R, as if it were
public. (An attacker who knows some rows recovers R from a release; benchmarks/utility/projections.py.)

Guarantee   pure epsilon; unit row with replace-one, or unit element with one-element (the number of rows
            is public in both). Holds for any input.
Reference   Dhaliwal, So, Parker-Wood, Beck: Utility preserving secure private data release, 2019; count-
            sketch rows instead of its Gaussian ones, so that the noise does not grow with k.
Proof       jl_laplace.proof.md, of `calibrate`, `draw_matrix` and `release`.
Limits      As DPPro. The label column is left out.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from adumbra.data.matrices import PublicMatrix, matrix_from_words, public_matrix
from adumbra.data.schema import Schema
from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.errors import require
from adumbra.mechanisms.base import Calibrated, Draft, Plan, calibrate_laplace
from adumbra.mechanisms.fields import settle_fields
from adumbra.mechanisms.forecast import forecast
from adumbra.mechanisms.projected import (
    CLIP_TAIL,
    CLIPPED_BITS,
    PURPOSE,
    ROUNDED_BITS,
    AnyBatch,
    RowSpace,
    clip_exponent,
    clip_radius,
    default_family,
    distance_model,
    exact_rows,
    natural_exponent,
    noise_entry,
    released_rows,
    require_projection,
    row_space,
)
from adumbra.numerics import Lattice
from adumbra.postprocess.distances import NoiseLaw, laplace_law
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import pure, require_budget
from adumbra.privacy.keys import NoiseKey
from adumbra.privacy.noise import add_laplace
from adumbra.relations import Unit
from adumbra.statistics.projections import clipped_sensitivity, element_sensitivity, smallest_l2_ball_l1

METHOD = "jl-laplace"
MATRIX = "matrix"  # purpose of the key that the secret matrix is drawn from
STEADY = ("sparse", "rademacher", "identity")  # every draw has the same L1 norm in every row


@dataclass(frozen=True, slots=True, kw_only=True)
class JLLaplaceConfig:
    """Public parameters, all of them; the matrix is not one."""

    n_components: int  # k, columns released
    epsilon: float
    delta: float = 0.0  # the guarantee is pure
    row_norm: float | None = None  # row unit: longer encoded rows are scaled down to it
    family: str = "auto"  # see `default_family`; "gaussian" is the paper's choice
    nonzeros: int = 1  # entries a row of the sparse family
    clip_tail: float = CLIP_TAIL  # row unit: expected share of rows that the radius shortens
    distance_guess: float | None = None  # a public guess of a squared distance, for the plan alone

    def __post_init__(self) -> None:
        settle_fields(self)
        require_projection(self.n_components, self.family, self.clip_tail)
        require_budget(self.epsilon, self.delta)
        require(
            self.delta == 0, f"delta={self.delta}: the guarantee is pure; leave it out, or use dppro"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise:
    """The noise, and whether rows are clipped before it."""

    calibrated: Calibrated
    radius: float | None  # None: the exact product is released without a clip

    @property
    def law(self) -> NoiseLaw:
        """The noise as distances see it."""
        return laplace_law(self.calibrated.scale, 2.0**self.calibrated.exponent)


def draw_matrix(config: JLLaplaceConfig, space: RowSpace, key: NoiseKey) -> PublicMatrix:
    """Draw the matrix from a secret stream, front to back; a retry under one key repeats it."""
    family = default_family(config.family, space, config.n_components, grouped="sparse")
    shape = f"{family} {space.width} {config.n_components} {config.nonzeros}"
    key.claim(hashlib.sha256(shape.encode()).digest())
    position = 0

    def words(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
        nonlocal position
        position += count
        return key.words("matrix", count, position - count)

    return matrix_from_words(family, space.width, config.n_components, words, nonzeros=config.nonzeros)


def preview_matrix(config: JLLaplaceConfig, space: RowSpace) -> PublicMatrix:
    """A public matrix of the same law, for plans; never the one that is used."""
    family = default_family(config.family, space, config.n_components, grouped="sparse")
    return public_matrix(
        family, space.width, config.n_components, matrix_seed=0, nonzeros=config.nonzeros
    )


def calibrate(config: JLLaplaceConfig, space: RowSpace, matrix: PublicMatrix) -> LaplaceNoise:
    """Scale and grid, in units of the row norm: the smallest L1 sensitivity that is proven.

    row       min(2 r sqrt(k) with the clip, 2 max_s |R s|_2 without it)
    element   max_j |R_j|_1, plus g k where the product is rounded to a coarser grid
    """
    k, largest = config.n_components, space.largest(matrix)
    if space.unit is Unit.ELEMENT:
        l1 = element_sensitivity(matrix, groups=space.groups).l1
        return LaplaceNoise(calibrated=_unclipped(config, matrix, l1, largest), radius=None)
    radius = clip_radius(matrix.family, space.width, k, config.clip_tail)
    clipped, free = clipped_sensitivity(radius, k).l1, smallest_l2_ball_l1(matrix, 2.0)
    if free < clipped:
        return LaplaceNoise(calibrated=_unclipped(config, matrix, free, largest), radius=None)
    noise = calibrate_laplace(
        clipped, config.epsilon, exponent=clip_exponent(radius), rounding=float(k), bits=CLIPPED_BITS
    )
    return LaplaceNoise(calibrated=noise, radius=radius)


def _unclipped(config: JLLaplaceConfig, matrix: PublicMatrix, l1: float, largest: float) -> Calibrated:
    return calibrate_laplace(
        l1,
        config.epsilon,
        exponent=natural_exponent(matrix),
        rounding=float(config.n_components),
        bits=ROUNDED_BITS,
        largest=largest,
    )


def plan(config: JLLaplaceConfig, schema: Schema) -> Plan:
    """Cost, noise and expected error, from public numbers only."""
    space = row_space(schema, config.row_norm)
    matrix = preview_matrix(config, space)
    noise = calibrate(config, space, matrix)
    model = distance_model(space, matrix, noise.law)
    here = noise.calibrated.scale

    def law(k: int) -> NoiseLaw:
        if noise.radius is not None:
            radius = clip_radius(matrix.family, space.width, k, config.clip_tail)
            return laplace_law(clipped_sensitivity(radius, k).l1 / config.epsilon, 2.0**-60)
        steady = matrix.family in ("sparse", "identity")
        return laplace_law(here if steady else here * (k / config.n_components) ** 0.5, 2.0**-60)

    # Without a projection a cell moves 1 in L1, a category 2, a row 2 sqrt(d).
    unprojected = (
        2.0 * math.sqrt(space.width) if space.unit is Unit.ROW else 2.0 if space.groups else 1.0
    )
    whole = laplace_law(unprojected / config.epsilon, 2.0**-60)
    told = forecast(
        model, space, epsilon=config.epsilon, guess=config.distance_guess, law=law, whole=whole
    )
    settled = noise.radius is not None or (matrix.family in STEADY and not space.groups)
    doubt = (
        ()
        if settled
        else ("The secret matrix settles the noise scale; this is that of one of its law.",)
    )
    return Plan(
        method=METHOD,
        guarantee=pure(config.epsilon, space.unit, space.neighbours),
        purposes=(MATRIX, PURPOSE),
        noise=(noise_entry(noise.calibrated, "laplace"),),
        expected=told.expected,
        notes=(*told.notes, *doubt),
        details={"family": matrix.family, "standard_error_by_n_components": told.table},
    )


def release(source: Source, config: JLLaplaceConfig, *, engine: Engine, grant: Grant) -> Draft:
    """Stream the noisy projected rows; the matrix is forgotten when the last row is written."""
    space = row_space(source.schema, config.row_norm)
    matrix = draw_matrix(config, space, grant.key(MATRIX))
    noise = calibrate(config, space, matrix)
    calibrated = noise.calibrated

    def noisy_rows(batch: AnyBatch) -> Lattice:
        exact = exact_rows(batch, space, matrix, radius=noise.radius, exponent=calibrated.exponent)
        return add_laplace(exact, calibrated.scale, grant.key(PURPOSE, batch.noise_block))

    return Draft(
        tables={"data": released_rows(source, noisy_rows, config.n_components, engine=engine)},
        noise=(noise_entry(calibrated, "laplace"),),
        facts={
            "projection": "secret: drawn once, never written; the guarantee holds as if it were public",
            "distances": distance_model(space, matrix, noise.law).to_facts(),
        },
    )
