"""Every noise scale of a RON-Gauss release, from public numbers only.

Proof       release.proof.md, of `scales` and the statistics it names.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from adumbra.mechanisms.base import Calibrated, Noise, calibrate_gaussian, calibrate_laplace
from adumbra.numerics import ROW_BITS, Array, Ints, round_up, sqrt_upper
from adumbra.postprocess.ron_gauss.space import CONSTANT, INTERCEPT, TARGET, Deviations, Space
from adumbra.privacy.conversion import mu_of, split_epsilon, split_mu
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity, reach_sensitivity
from adumbra.statistics.class_sums import CountedGram, CountedSum, SpreadSum, labelled_gram_l1
from adumbra.statistics.moments import UNIT_LIMIT, Gram, frobenius_weights, require_no_overflow

Second = Gram | CountedGram | CountedSum


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How one budget is split; the share is of mu^2 (delta > 0) or of epsilon."""

    epsilon: float
    delta: float
    mean_share: float  # 0 with public centring: the second statistic has all

    @property
    def is_pure(self) -> bool:
        """Laplace noise and epsilon, or Gaussian noise and mu."""
        return self.delta == 0

    def parts(self) -> dict[str, float]:
        """The mu (or epsilon) of each purpose."""
        shares = {"gram": 1.0}
        if self.mean_share > 0:
            shares = {"mean": self.mean_share, "gram": 1.0 - self.mean_share}
        amounts = list(shares.values())
        if self.is_pure:
            parts = split_epsilon(self.epsilon, amounts)
        else:
            parts = split_mu(mu_of(self.epsilon, self.delta), amounts)
        return dict(zip(shares, parts, strict=True))


def mean_statistic(space: Space) -> SpreadSum | CountedSum:
    """The first release: sums and counts, and the spread of rows unless they all get length 1."""
    if space.normalise:
        return CountedSum(width=space.mean_width, classes=space.mean_classes)
    return SpreadSum(width=space.mean_width, classes=space.mean_classes)


def second_statistic(space: Space) -> Second:
    """The last release: the Gram of projected rows with what stands beside them."""
    p = space.components
    if space.classes is not None:
        if space.covariance == "sphere":
            return CountedSum(width=p, classes=space.classes)
        return CountedGram(width=p, classes=space.classes, apart=space.covariance == "class")
    if space.mode == "supervised":
        return Gram(width=p + 2, limit=UNIT_LIMIT + TARGET**2 + INTERCEPT**2)
    if space.private_centring:
        return Gram(width=p)
    return Gram(width=p + 1, limit=UNIT_LIMIT + CONSTANT**2)


def second_sensitivity(space: Space) -> Sensitivity:
    """The statistic's own, with the tighter L1 of a labelled Gram where there is a target."""
    statistic = second_statistic(space)
    target, constant = TARGET / 2**ROW_BITS, INTERCEPT / 2**ROW_BITS

    def of_row(neighbours: Neighbours) -> Sensitivity:
        bound = statistic.sensitivity(neighbours)
        if space.mode != "supervised":
            return bound
        l1 = labelled_gram_l1(space.components, target, constant, neighbours)
        return Sensitivity(l1=min(bound.l1, l1), l2=bound.l2)

    return reach_sensitivity(of_row, space.reach)


def gram_width(space: Space) -> int:
    """The side of one Gram matrix of the second statistic."""
    extra = 0 if space.private_centring else 1
    if space.classes is not None:
        extra = 1 if space.covariance == "class" else space.classes
    elif space.mode == "supervised":
        extra = 2
    return space.components + extra


def released_entries(space: Space) -> Ints | None:
    """Which entries of an upper triangle leave: all (None), or all but pairs of classes, always 0."""
    if space.classes is None or space.covariance != "tied":
        return None
    rows, columns = np.triu_indices(gram_width(space))
    return np.flatnonzero((rows < space.components) | (rows == columns))


def gram_weights(space: Space) -> Array:
    """Noise multipliers of the released entries: 1 on the diagonal, 1/sqrt2 off it."""
    weights, entries = frobenius_weights(gram_width(space)), released_entries(space)
    return weights if entries is None else weights[entries]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Every noise of a release: calibrated scales by purpose, and as the card prints them."""

    is_pure: bool
    by_purpose: dict[str, Calibrated]
    isometric: bool  # the second statistic is a Gram: Gaussian noise off the diagonal is sigma / sqrt2

    @property
    def purposes(self) -> tuple[str, ...]:
        """One noise call each."""
        return tuple(self.by_purpose)

    @property
    def noise(self) -> tuple[Noise, ...]:
        """For the card and the plan; a Gaussian Gram has two lines, of one noise call."""
        named = self.by_purpose.items()
        lines = [one.entry(purpose, is_pure=self.is_pure) for purpose, one in named]
        if self.isometric and not self.is_pure:
            gram = self.by_purpose["gram"]
            off = gram.entry("gram, entries off the diagonal", is_pure=False)
            lines.append(replace(off, scale=gram.scale * round_up(math.sqrt(0.5))))
        return tuple(lines)

    def deviation(self, purpose: str) -> float:
        """Standard deviation of one coordinate (of a diagonal entry of a Gaussian Gram)."""
        scale = self.by_purpose[purpose].scale
        return scale * math.sqrt(2.0) if self.is_pure else scale

    def deviations(self) -> Deviations:
        """What the model needs to know of the Gram's noise."""
        return Deviations(gram=self.deviation("gram"), off_diagonal=self.off_diagonal)

    @property
    def off_diagonal(self) -> float:
        """Standard deviation of a Gram's entry off the diagonal, or of a class sum's coordinate."""
        deviation = self.deviation("gram")
        return deviation / math.sqrt(2.0) if self.isometric and not self.is_pure else deviation


def scales(space: Space, budget: Budget) -> Scales:
    """Calibrate each purpose of the split budget."""
    rows = space.layout.schema.row_limit
    require_no_overflow(2 * UNIT_LIMIT, rows)
    second = second_statistic(space)
    isometric = not isinstance(second, CountedSum)
    found: dict[str, Calibrated] = {}
    for purpose, amount in budget.parts().items():
        if purpose == "mean":
            statistic = mean_statistic(space)
            bound = reach_sensitivity(statistic.sensitivity, space.reach)
            exponent = statistic.exponent
            coordinates = float(statistic.zero().size)
            square = coordinates
        elif isometric:
            bound, exponent = second_sensitivity(space), second.exponent
            blocks = (space.classes or 1) if space.covariance == "class" else 1
            weights = gram_weights(space)
            coordinates = float(blocks * len(weights))
            square = float(blocks * (2 * len(weights) - np.count_nonzero(weights == 1.0)))
        else:
            bound, exponent = second_sensitivity(space), second.exponent
            coordinates = float((space.classes or 1) * (space.components + 1))
            square = coordinates
        exponent -= space.layout.schema.weight_bits
        if budget.is_pure:
            found[purpose] = calibrate_laplace(
                bound.l1, amount, exponent=exponent, rounding=coordinates, largest=float(rows)
            )
        else:
            found[purpose] = calibrate_gaussian(
                bound.l2, amount, exponent=exponent, rounding=sqrt_upper(square), largest=float(rows)
            )
    return Scales(is_pure=budget.is_pure, by_purpose=found, isometric=isometric)
