"""What DPPro and JL + Laplace decide before a row is read: matrix, sensitivity, noise, forecast.

    DPPro       row       clip(X R / B, r) + Gaussian noise    L2 2 r
                element   X R + Gaussian noise                 L2 max_j |R_j|, of the drawn matrix
    JL          row       clip(X R / B, r) + Laplace noise     L1 2 r sqrt(k); unclipped 2 max_s |R s|_2
                element   X R + Laplace noise                  L1 max_j |R_j|_1, of the drawn matrix
    both        moves     X R + noise                          statistics/move_sensitivity.py

Proof       dppro.proof.md, of `calibrate_gaussian_rows`; jl_laplace.proof.md, of
            `calibrate_laplace_rows` and `secret_projection`.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from adumbra.matrices import ProjectionMatrix, clip_radius, matrix_from_words, public_matrix
from adumbra.mechanisms.base import (
    Calibrated,
    Plan,
    Settled,
    calibrate_gaussian,
    calibrate_laplace,
    require_magnitudes,
    require_steps,
)
from adumbra.mechanisms.fields import refuse_idle
from adumbra.mechanisms.projection.config import DPPRO, JL_LAPLACE, DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.forecast import (
    forecast,
    laplace_notes,
    moves_notes,
    rescaled,
    unprojected,
)
from adumbra.mechanisms.projection.labels import LabelPart, label_part, row_amount
from adumbra.mechanisms.projection.rows import (
    CLIPPED_BITS,
    PURPOSE,
    ROUNDED_BITS,
    RowSpace,
    clip_exponent,
    default_family,
    distance_model,
    natural_exponent,
    row_space,
    size_of,
    unclipped_sensitivity,
)
from adumbra.mechanisms.sizes import Size
from adumbra.numerics import sqrt_upper
from adumbra.postprocess.distances import DistanceModel, NoiseLaw, gaussian_law, laplace_law
from adumbra.privacy.conversion import gaussian_sigma
from adumbra.privacy.grant import NoiseKey
from adumbra.privacy.guarantee import promise, pure
from adumbra.relations import Unit
from adumbra.schema.schema import Schema
from adumbra.statistics.projection_sensitivity import (
    clipped_sensitivity,
    smallest_l2_ball_l1,
)

MATRIX = "matrix"  # purpose of the key that the secret matrix is drawn from
STEADY = ("sparse", "rademacher", "identity")  # every draw has the same L1 norm in every row


@dataclass(frozen=True, slots=True, kw_only=True)
class DPProParts:
    """What the plan shows and the draw uses."""

    space: RowSpace
    matrix: ProjectionMatrix
    noise: Calibrated
    radius: float | None  # row unit: projected rows are shortened to it
    model: DistanceModel  # how to read distances off the release
    label: LabelPart  # how the label leaves, if it does


@dataclass(frozen=True, slots=True, kw_only=True)
class JLParts:
    """What the plan shows and the draw uses; the matrix is drawn later, from the grant's secret."""

    space: RowSpace
    label: LabelPart


def refuse_idle_options(
    config: DPProConfig | JLLaplaceConfig, space: RowSpace, matrix: ProjectionMatrix
) -> None:
    """Refuse options that unit, family and shape leave without effect."""
    idle: dict[str, str] = {}
    if matrix.family != "sparse":
        idle["nonzeros"] = f"with family={matrix.family}"
    whole = matrix.n_components == matrix.n_features
    if matrix.family == "identity" or (matrix.family == "haar" and whole):
        idle["clip_tail"] = f"with family={matrix.family}, n_components={matrix.n_components}"
    if not space.clips_rows:
        case = f"neighbours={space.neighbours}" if space.spans else "unit=element"
        idle["clip_tail"] = f"with {case}: nothing is clipped"
    if matrix.family == "identity" and isinstance(config, DPProConfig):
        idle["matrix_seed"] = "with family=identity"
    refuse_idle(config, idle)


def public_projection(config: DPProConfig, space: RowSpace) -> ProjectionMatrix:
    """The public matrix of a config: the same for everybody."""
    family = default_family(config.family, space, config.n_components, grouped="sphere")
    return public_matrix(
        family,
        space.width,
        config.n_components,
        matrix_seed=config.matrix_seed,
        nonzeros=config.nonzeros,
    )


def clip_of(config: DPProConfig, space: RowSpace, matrix: ProjectionMatrix) -> float:
    """The public radius to which projected rows are shortened (row unit)."""
    return clip_radius(matrix.family, space.width, config.n_components, config.clip_tail)


def calibrate_gaussian_rows(
    config: DPProConfig, space: RowSpace, matrix: ProjectionMatrix
) -> Calibrated:
    """Sigma and grid, in units of the row norm.

    row       both neighbours' rows end in the ball of radius r as integers: 2 r
    element   |x R - x' R| <= max_j |R_j|, plus g sqrt(k) where the product is rounded to a coarser grid
    """
    mu, rounding = row_amount(config, space.unit), sqrt_upper(config.n_components)
    largest = space.largest(matrix)
    if space.clips_rows:
        radius = clip_of(config, space, matrix)
        l2 = clipped_sensitivity(radius, config.n_components).l2
        grid = clip_exponent(radius)
        return calibrate_gaussian(l2, mu, exponent=grid, rounding=rounding, bits=CLIPPED_BITS)
    l2 = unclipped_sensitivity(space, matrix).l2
    return calibrate_gaussian(
        l2,
        mu,
        exponent=natural_exponent(matrix),
        rounding=rounding,
        bits=ROUNDED_BITS,
        largest=largest,
    )


def settle_dppro(config: DPProConfig, schema: Schema) -> Settled[DPProConfig, DPProParts]:
    """The space of rows, the public matrix and the noise; refuses what has no proof."""
    require_magnitudes(schema, config.row_norm)
    space = row_space(schema, config.row_norm)
    matrix = public_projection(config, space)
    refuse_idle_options(config, space, matrix)
    noise = calibrate_gaussian_rows(config, space, matrix)
    parts = DPProParts(
        space=space,
        matrix=matrix,
        noise=noise,
        radius=clip_of(config, space, matrix) if space.clips_rows else None,
        label=label_part(config, schema, space),
        model=distance_model(
            space, matrix, gaussian_law(noise.scale, 2.0**noise.exponent), config.nonzeros
        ),
    )
    size = size_of(space, schema, config.n_components, released=True)
    plan = _dppro_plan(config, parts, size)
    return Settled(config=config, schema=schema, plan=plan, parts=parts)


def _dppro_plan(config: DPProConfig, parts: DPProParts, size: Size) -> Plan:
    """Cost, noise and expected error, from public numbers only."""
    space, matrix, model = parts.space, parts.matrix, parts.model
    mu = row_amount(config, space.unit)

    def law(k: int) -> NoiseLaw:
        if not space.clips_rows:
            return rescaled(model.noise, matrix, space, k)
        radius = clip_radius(matrix.family, space.width, k, config.clip_tail)
        return gaussian_law(gaussian_sigma(2.0 * radius, mu), 0.0)

    whole = gaussian_law(gaussian_sigma(unprojected(space).l2, mu), 0.0)
    outlook = forecast(
        model, space, epsilon=config.epsilon, guess=config.distance_guess, law=law, whole=whole
    )
    return Plan(
        method=DPPRO,
        guarantee=promise(config.epsilon, config.delta, space.unit, space.neighbours),
        purposes=(PURPOSE, *parts.label.purposes),
        noise=(parts.noise.entry(PURPOSE, is_pure=False), *parts.label.entries),
        expected=outlook.expected,
        notes=(
            *moves_notes(space),
            *parts.label.notes,
            *outlook.notes,
            *laplace_notes(space, model, config.epsilon),
        ),
        details={"family": matrix.family, "standard_error_by_n_components": outlook.table},
        size=size,
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


def secret_projection(config: JLLaplaceConfig, space: RowSpace, key: NoiseKey) -> ProjectionMatrix:
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


def preview_projection(config: JLLaplaceConfig, space: RowSpace) -> ProjectionMatrix:
    """A public matrix of the same law, for plans; never the one that is used."""
    family = default_family(config.family, space, config.n_components, grouped="sparse")
    return public_matrix(
        family, space.width, config.n_components, matrix_seed=0, nonzeros=config.nonzeros
    )


def calibrate_laplace_rows(
    config: JLLaplaceConfig, space: RowSpace, matrix: ProjectionMatrix
) -> LaplaceNoise:
    """Scale and grid, in units of the row norm: the smallest L1 sensitivity that is proven.

    row       min(2 r sqrt(k) with the clip, 2 max_s |R s|_2 without it)
    element   max_j |R_j|_1, plus g k where the product is rounded to a coarser grid
    """
    k, largest = config.n_components, space.largest(matrix)
    epsilon = row_amount(config, space.unit)
    if not space.clips_rows:
        l1 = unclipped_sensitivity(space, matrix).l1
        return LaplaceNoise(calibrated=_unclipped(epsilon, matrix, l1, largest), radius=None)
    radius = clip_radius(matrix.family, space.width, k, config.clip_tail)
    clipped, free = clipped_sensitivity(radius, k).l1, smallest_l2_ball_l1(matrix, 2.0)
    if free < clipped:
        return LaplaceNoise(calibrated=_unclipped(epsilon, matrix, free, largest), radius=None)
    noise = calibrate_laplace(
        clipped, epsilon, exponent=clip_exponent(radius), rounding=float(k), bits=CLIPPED_BITS
    )
    return LaplaceNoise(calibrated=noise, radius=radius)


def _unclipped(epsilon: float, matrix: ProjectionMatrix, l1: float, largest: float) -> Calibrated:
    return calibrate_laplace(
        l1,
        epsilon,
        exponent=natural_exponent(matrix),
        rounding=float(matrix.n_components),
        bits=ROUNDED_BITS,
        largest=largest,
    )


def settle_jl_laplace(config: JLLaplaceConfig, schema: Schema) -> Settled[JLLaplaceConfig, JLParts]:
    """The space of rows and what a matrix of the same law costs; the secret matrix is drawn later."""
    require_magnitudes(schema, config.row_norm)
    space = row_space(schema, config.row_norm)
    parts = JLParts(space=space, label=label_part(config, schema, space))
    size = size_of(space, schema, config.n_components, released=False)
    plan = _jl_laplace_plan(config, parts, size)
    return Settled(config=config, schema=schema, plan=plan, parts=parts)


def _jl_laplace_plan(config: JLLaplaceConfig, parts: JLParts, size: Size) -> Plan:
    """Cost, noise and expected error, from public numbers only."""
    space, epsilon = parts.space, row_amount(config, parts.space.unit)
    matrix = preview_projection(config, space)
    refuse_idle_options(config, space, matrix)
    # The secret matrix decides whether rows are clipped: what either could not draw is refused now.
    require_steps(CLIPPED_BITS, float(config.n_components), epsilon)
    noise = calibrate_laplace_rows(config, space, matrix)
    if noise.radius is None:
        refuse_idle(config, {"clip_tail": "here: unclipped rows need less noise"})
    model = distance_model(space, matrix, noise.law, config.nonzeros)
    here = noise.calibrated.scale

    def law(k: int) -> NoiseLaw:
        if noise.radius is not None:
            radius = clip_radius(matrix.family, space.width, k, config.clip_tail)
            return laplace_law(clipped_sensitivity(radius, k).l1 / epsilon, 2.0**-60)
        if space.spans and space.unit is Unit.ROW:
            return rescaled(model.noise, matrix, space, k, norm=1)
        steady = matrix.family in ("sparse", "identity")
        return laplace_law(here if steady else here * (k / config.n_components) ** 0.5, 2.0**-60)

    whole = laplace_law(unprojected(space).l1 / epsilon, 2.0**-60)
    outlook = forecast(
        model, space, epsilon=config.epsilon, guess=config.distance_guess, law=law, whole=whole
    )
    steady = matrix.family in STEADY and not space.groups and len(set(space.spans)) <= 1
    settled = noise.radius is not None or (steady and not (space.spans and space.unit is Unit.ROW))
    doubt = (
        ()
        if settled
        else ("The noise scale follows the secret matrix; the one shown is of another such matrix.",)
    )
    return Plan(
        method=JL_LAPLACE,
        guarantee=pure(config.epsilon, space.unit, space.neighbours),
        purposes=(MATRIX, PURPOSE, *parts.label.purposes),
        noise=(noise.calibrated.entry(PURPOSE, is_pure=True), *parts.label.entries),
        expected=outlook.expected,
        notes=(*moves_notes(space), *parts.label.notes, *outlook.notes, *doubt),
        details={"family": matrix.family, "standard_error_by_n_components": outlook.table},
        size=size,
    )
