"""Release every row through a public random projection, with Gaussian noise.

    row       P = clip(X R / B, r) + noise          L2 sensitivity 2 r
    element   P = X R + noise                       L2 sensitivity max_j |R_j|, of the drawn matrix

R is d x k, drawn from a public seed, on the lattice 2^-20, and released.

Guarantee   mu-GDP; unit row with replace-one, or unit element with one-element (the number of rows is
            public in both). Holds for any input: rows and cells are bounded here, never assumed bounded.
Reference   Xu, Ren, Zhang, Qin, Ren: DPPro, IEEE TIFS 12(12), 2017; Kenthapadi, Korolova, Mironov,
            Mishra: Privacy via the Johnson-Lindenstrauss transform, J. Priv. Confidentiality 5(1), 2013.
Proof       dppro.proof.md, of `calibrate` and `release`.
Limits      One row is released with noise for one row: at small epsilon single distances are drowned
            (`plan` says so). The label column is left out.
"""

import math
from dataclasses import dataclass

from adumbra.data.matrices import PublicMatrix, public_matrix
from adumbra.data.schema import Schema
from adumbra.data.sources import Source
from adumbra.engine.base import Engine
from adumbra.errors import require
from adumbra.mechanisms.base import Calibrated, Draft, Plan, calibrate_gaussian
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
from adumbra.numerics import Lattice, sqrt_upper
from adumbra.postprocess.distances import NoiseLaw, gaussian_law
from adumbra.privacy.calibration import gaussian_sigma
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.grant import Grant
from adumbra.privacy.guarantee import gaussian, require_budget
from adumbra.privacy.noise import add_gaussian
from adumbra.relations import Unit
from adumbra.statistics.projections import clipped_sensitivity, element_sensitivity

METHOD = "dppro"


@dataclass(frozen=True, slots=True, kw_only=True)
class DPProConfig:
    """Public parameters, all of them; the release's card prints each."""

    n_components: int  # k, columns released
    epsilon: float
    delta: float
    row_norm: float | None = None  # row unit: longer encoded rows are scaled down to it
    family: str = "auto"  # see `default_family`; "gaussian" is the paper's choice
    nonzeros: int = 1  # entries a row of the sparse family
    clip_tail: float = CLIP_TAIL  # row unit: expected share of rows that the radius shortens
    matrix_seed: int = 0  # public: a reader rebuilds R from it
    distance_guess: float | None = None  # a public guess of a squared distance, for the plan alone

    def __post_init__(self) -> None:
        settle_fields(self)
        require_projection(self.n_components, self.family, self.clip_tail)
        require_budget(self.epsilon, self.delta)
        require(self.delta > 0, "delta=0: DPPro's noise is Gaussian; give a delta, or use jl-laplace")
        require(self.matrix_seed >= 0, f"matrix_seed={self.matrix_seed}: must be 0 or above")


def draw_matrix(config: DPProConfig, space: RowSpace) -> PublicMatrix:
    """The public matrix of a config: the same for everybody."""
    family = default_family(config.family, space, config.n_components, grouped="sphere")
    return public_matrix(
        family,
        space.width,
        config.n_components,
        matrix_seed=config.matrix_seed,
        nonzeros=config.nonzeros,
    )


def clip_of(config: DPProConfig, space: RowSpace, matrix: PublicMatrix) -> float:
    """The public radius to which projected rows are shortened (row unit)."""
    return clip_radius(matrix.family, space.width, config.n_components, config.clip_tail)


def calibrate(config: DPProConfig, space: RowSpace, matrix: PublicMatrix) -> Calibrated:
    """Sigma and grid, in units of the row norm.

    row       both neighbours' rows end in the ball of radius r as integers: 2 r
    element   |x R - x' R| <= max_j |R_j|, plus g sqrt(k) where the product is rounded to a coarser grid
    """
    mu, rounding = mu_of(config.epsilon, config.delta), sqrt_upper(config.n_components)
    largest = space.largest(matrix)
    if space.unit is Unit.ROW:
        radius = clip_of(config, space, matrix)
        l2 = clipped_sensitivity(radius, config.n_components).l2
        grid = clip_exponent(radius)
        return calibrate_gaussian(l2, mu, exponent=grid, rounding=rounding, bits=CLIPPED_BITS)
    l2 = element_sensitivity(matrix, groups=space.groups).l2
    return calibrate_gaussian(
        l2,
        mu,
        exponent=natural_exponent(matrix),
        rounding=rounding,
        bits=ROUNDED_BITS,
        largest=largest,
    )


def plan(config: DPProConfig, schema: Schema) -> Plan:
    """Cost, noise and expected error, from public numbers only."""
    space = row_space(schema, config.row_norm)
    matrix = draw_matrix(config, space)
    noise = calibrate(config, space, matrix)
    model = distance_model(space, matrix, gaussian_law(noise.scale, 2.0**noise.exponent))

    def law(k: int) -> NoiseLaw:
        if space.unit is Unit.ELEMENT:
            return model.noise
        radius = clip_radius(matrix.family, space.width, k, config.clip_tail)
        return gaussian_law(gaussian_sigma(2.0 * radius, mu_of(config.epsilon, config.delta)), 0.0)

    # Without a projection a cell moves 1, a category sqrt(2), a row 2.
    unprojected = 2.0 if space.unit is Unit.ROW else math.sqrt(2.0) if space.groups else 1.0
    whole = gaussian_law(gaussian_sigma(unprojected, mu_of(config.epsilon, config.delta)), 0.0)
    told = forecast(
        model, space, epsilon=config.epsilon, guess=config.distance_guess, law=law, whole=whole
    )
    return Plan(
        method=METHOD,
        guarantee=gaussian(config.epsilon, config.delta, space.unit, space.neighbours),
        purposes=(PURPOSE,),
        noise=(noise_entry(noise, "gaussian"),),
        expected=told.expected,
        notes=told.notes,
        details={"family": matrix.family, "standard_error_by_n_components": told.table},
    )


def release(source: Source, config: DPProConfig, *, engine: Engine, grant: Grant) -> Draft:
    """Stream the noisy projected rows; the grant was paid before this is called."""
    space = row_space(source.schema, config.row_norm)
    matrix = draw_matrix(config, space)
    noise = calibrate(config, space, matrix)

    law, is_row = gaussian_law(noise.scale, 2.0**noise.exponent), space.unit is Unit.ROW
    k, radius = config.n_components, clip_of(config, space, matrix) if is_row else None

    def noisy_rows(batch: AnyBatch) -> Lattice:
        exact = exact_rows(batch, space, matrix, radius=radius, exponent=noise.exponent)
        return add_gaussian(exact, noise.scale, grant.key(PURPOSE, batch.noise_block))

    return Draft(
        tables={"data": released_rows(source, noisy_rows, k, engine=engine)},
        arrays={"projection": matrix.to_float()},
        facts={
            "projection": "released as `projection` (d x k); the rows are encoded rows times it",
            "matrix_seed": config.matrix_seed,
            "distances": distance_model(space, matrix, law).to_facts(),
        },
    )
