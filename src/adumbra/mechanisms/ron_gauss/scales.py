"""The public shape of a RON-Gauss model and every noise scale, from public numbers only.

Proof       mechanism.proof.md, of `scales` and the statistics it names.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from adumbra.data.encode import Encoder
from adumbra.data.matrices import PublicMatrix, orthonormal_matrix
from adumbra.data.schema import Schema
from adumbra.errors import require
from adumbra.mechanisms.base import Calibrated, Noise, calibrate_gaussian, calibrate_laplace
from adumbra.mechanisms.projected import clip_radius
from adumbra.numerics import ROW_BITS, Array, sqrt_upper
from adumbra.privacy.calibration import split_epsilon, split_mu
from adumbra.privacy.conversion import mu_of
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.class_sums import BinCounts, CountedSum, labelled_gram_l1
from adumbra.statistics.moments import UNIT_LIMIT, Gram, require_no_overflow

Mode = Literal["unsupervised", "supervised", "gmm"]

RADIUS_BINS = 96  # counts of |x - mean| by bin: an eighth of an octave each, from 2^-11 to 2
RADIUS_EDGES: Array = 2.0 ** (1.0 - np.arange(RADIUS_BINS - 1, -1, -1) / 8.0)
WEIGHT = 2 ** (ROW_BITS - 1)  # of the label and of the intercept in a supervised Gram: one half
CONSTANT = 2**ROW_BITS  # of the 1 beside publicly centred rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How one budget is split; shares are of mu^2 (delta > 0) or of epsilon."""

    epsilon: float
    delta: float
    private_centring: bool
    needs_radius: bool
    mean_share: float
    radius_share: float

    def parts(self) -> dict[str, float]:
        """The mu (or epsilon) of each purpose."""
        shares = {"gram": 1.0}
        if self.private_centring:
            shares = {"mean": self.mean_share, "gram": 1.0 - self.mean_share}
        if self.needs_radius:
            shares = {**shares, "radius": self.radius_share, "gram": shares["gram"] - self.radius_share}
        amounts = list(shares.values())
        if self.delta > 0:
            parts = split_mu(mu_of(self.epsilon, self.delta), amounts)
        else:
            parts = split_epsilon(self.epsilon, amounts)
        return dict(zip(shares, parts, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is modelled: encoded rows of width m, p random directions, classes or a target."""

    encoder: Encoder
    mode: Mode
    norm: float
    matrix_seed: int
    clip_tail: float
    components: int = 1

    @property
    def width(self) -> int:
        """m, encoded columns."""
        return self.encoder.width

    @property
    def neighbours(self) -> Neighbours:
        """The schema's relation."""
        return self.encoder.schema.neighbours

    @property
    def classes(self) -> int | None:
        """How many classes the mixture has; None without a mixture."""
        return self.encoder.label_levels if self.mode == "gmm" else None

    @property
    def radius(self) -> float:
        """r: the public Beta radius of a projected unit row."""
        return clip_radius("haar", self.width, self.components, self.clip_tail) * math.sqrt(
            self.components / self.width
        )

    def matrix(self) -> PublicMatrix:
        """W (m x p), orthonormal columns of a Haar matrix, from its public seed."""
        return orthonormal_matrix(self.width, self.components, matrix_seed=self.matrix_seed)

    def with_components(self, components: int) -> "Space":
        """The same space with p directions."""
        require(
            1 <= components <= self.width,
            f"n_components={components}: must be at most the {self.width} encoded columns",
        )
        return replace(self, components=components)


def space_of(
    schema: Schema, *, mode: Mode, row_norm: float | None, matrix_seed: int, clip_tail: float
) -> Space:
    """The space of a schema; refuses a mode that its label cannot serve."""
    schema.require_closed()
    encoder = Encoder(schema)
    if mode != "unsupervised":
        require(
            schema.label is not None, f"mode={mode}: needs a label; declare one in the schema's [table]"
        )
    if mode == "gmm":
        require(encoder.label_levels >= 1, "mode=gmm: the label has no classes")
    norm = encoder.norm_upper() if row_norm is None else float(row_norm)
    require(math.isfinite(norm) and norm > 0, f"row_norm={row_norm}: must be finite and above 0")
    return Space(encoder=encoder, mode=mode, norm=norm, matrix_seed=matrix_seed, clip_tail=clip_tail)


def mean_statistic(space: Space) -> CountedSum:
    """The first release: sums beside counts."""
    return CountedSum(width=space.width, classes=space.classes)


def gram_statistic(space: Space, *, private_centring: bool) -> Gram:
    """The last release: the Gram of projected rows with what stands beside them."""
    if space.mode == "supervised":
        return Gram(width=space.components + 2, limit=UNIT_LIMIT + 2 * WEIGHT**2)
    if private_centring:
        return Gram(width=space.components, classes=space.classes)
    return Gram(width=space.components + 1, limit=UNIT_LIMIT + CONSTANT**2, classes=space.classes)


def gram_sensitivity(space: Space, *, private_centring: bool) -> Sensitivity:
    """The statistic's own, with the tighter L1 of a labelled Gram where there is a label."""
    bound = gram_statistic(space, private_centring=private_centring).sensitivity(space.neighbours)
    if space.mode != "supervised":
        return bound
    weight = WEIGHT / 2**ROW_BITS
    l1 = labelled_gram_l1(space.components, weight, weight, space.neighbours)
    return Sensitivity(l1=min(bound.l1, l1), l2=bound.l2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Every noise of a release: calibrated scales by purpose, and as the card prints them."""

    pure: bool
    by_purpose: dict[str, Calibrated]
    private_centring: bool

    @property
    def noise(self) -> tuple[Noise, ...]:
        """For the card and the plan."""
        return tuple(
            Noise(
                purpose=purpose,
                distribution="laplace" if self.pure else "gaussian",
                scale=one.scale,
                sensitivity=one.sensitivity,
                grid=2.0**one.exponent,
            )
            for purpose, one in self.by_purpose.items()
        )

    def deviation(self, purpose: str) -> float:
        """Standard deviation of one coordinate (of a diagonal entry of a Gaussian Gram)."""
        scale = self.by_purpose[purpose].scale
        return scale * math.sqrt(2.0) if self.pure else scale


def scales(space: Space, budget: Budget) -> Scales:
    """Calibrate each purpose of the split budget."""
    pure = budget.delta == 0
    rows = space.encoder.schema.row_limit
    require_no_overflow(gram_statistic(space, private_centring=budget.private_centring).limit, rows)
    found: dict[str, Calibrated] = {}
    for purpose, amount in budget.parts().items():
        if purpose == "mean":
            statistic = mean_statistic(space)
            bound, exponent = statistic.sensitivity(space.neighbours), statistic.exponent
            coordinates = (space.width + 1) * (space.classes or 1)
            rounding, largest = (float(coordinates), sqrt_upper(coordinates)), float(rows)
        elif purpose == "radius":
            counts = BinCounts(bins=RADIUS_BINS)
            bound, exponent = counts.sensitivity(space.neighbours), counts.exponent
            rounding, largest = (float(RADIUS_BINS), sqrt_upper(RADIUS_BINS)), float(rows)
        else:
            gram = gram_statistic(space, private_centring=budget.private_centring)
            bound = gram_sensitivity(space, private_centring=budget.private_centring)
            exponent, blocks = gram.exponent, space.classes or 1
            largest = float(rows) * gram.limit / UNIT_LIMIT
            rounding = (blocks * gram.width * (gram.width + 1) / 2, sqrt_upper(blocks * gram.width**2))
        if pure:
            found[purpose] = calibrate_laplace(
                bound.l1, amount, exponent=exponent, rounding=rounding[0], largest=largest
            )
        else:
            found[purpose] = calibrate_gaussian(
                bound.l2, amount, exponent=exponent, rounding=rounding[1], largest=largest
            )
    return Scales(pure=pure, by_purpose=found, private_centring=budget.private_centring)


def noise_to_signal(space: Space, budget: Budget, rows: int) -> float:
    """|noise|_F / |signal|_F of the covariance of unit rows of evenly spread variance (S = I/m).

    In units of the projected radius the signal is sqrt(p) / (m r^2) times the rows of one class.
    """
    settled = scales(space, budget)
    p, m = space.components, space.width
    diagonal = settled.deviation("gram")
    off = diagonal if settled.pure else diagonal / math.sqrt(2.0)
    noise = math.sqrt(p * diagonal**2 + p * (p - 1) * off**2)
    signal = math.sqrt(p) / (m * space.radius**2) * rows / (space.classes or 1)
    return noise / signal


def best_components(space: Space, budget: Budget, rows: int) -> int:
    """The p that keeps most variance above the noise: the maximum of p / (1 + noise_to_signal^2).

    p directions hold p/m of the variance; a share 1 / (1 + ratio^2) of what is released is signal.
    """
    candidates = [p for p in _ladder() if p < space.width] or [1]

    def kept(p: int) -> float:
        return p / (1.0 + noise_to_signal(space.with_components(p), budget, rows) ** 2)

    return max(candidates, key=kept)


def _ladder() -> list[int]:
    """Candidate dimensions: about five an octave, to 4,096."""
    return sorted({round(2.0 ** (step / 5)) for step in range(61)})
