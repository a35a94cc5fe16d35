"""Noisy column counts of truncated rows, with a privately chosen length (DPsense, mended).

    theta = the first length m with #{i : |t_i| > m} <= T(m), by the sparse vector technique
    c_j   = sum of weights + noise          L1 cut and Laplace (pure), or L2 cut and Gaussian (mu)

T(m) is where another item of length costs as much noise as it saves truncation:
d s / epsilon for Laplace of scale s theta / epsilon; d sqrt(s) / (mu sqrt(2 pi m)) for Gaussian.

Guarantee   the scan: pure epsilon for either relation; the counts: pure epsilon or mu.
Reference   Day and Li, ASIA CCS 2015 (DPsense); the target is ours (counting.proof.md).
Proof       counting.proof.md, of `choose_length`, `noisy_counts` and `lattice_bits`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from adumbra.mechanisms.topk.svt import Compare, sparse
from adumbra.numerics import EXACT, ROW_BITS, Array, Ints, Lattice
from adumbra.privacy import noise
from adumbra.privacy.conversion import gaussian_sigma, laplace_scale
from adumbra.privacy.grant import Grant
from adumbra.relations import Neighbours, Reach
from adumbra.statistics.base import reach_sensitivity
from adumbra.statistics.counts import Norm, TruncatedCounts, count_sensitivity

WIDEST = 32  # bits: noise is at most about 2^32 units wide, so weights get coarser as noise gets wider


@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """Calibrated noise of truncated counts."""

    length: int
    norm: Norm
    scale: float  # Laplace scale or standard deviation
    sensitivity: float
    bits: int

    @property
    def grid(self) -> float:
        """Counts are multiples of this."""
        return math.ldexp(1.0, -self.bits)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise that is drawn."""
        if self.norm is Norm.L2:
            return math.hypot(self.scale, self.grid / math.sqrt(12))
        step = self.grid / self.scale
        return self.grid * math.exp(-step / 2) * math.sqrt(2) / -math.expm1(-step)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    """Released counts: paid for, and public from here on."""

    lattice: Lattice
    noise: CountNoise

    @property
    def values(self) -> Array:
        """The counts as numbers."""
        return self.lattice.to_float()

    @property
    def order(self) -> Ints:
        """Columns from the largest noisy count to the smallest; equal ones by number."""
        return np.argsort(-self.lattice.units, kind="stable")


def lattice_bits(scale: float) -> int:
    """The bits b of the weights' lattice 2^-b: fifteen, or fewer under very wide noise."""
    return min(ROW_BITS, max(0, WIDEST - math.frexp(scale)[1]))


def count_noise(length: int, amount: float, reach: Reach, *, norm: Norm) -> CountNoise:
    """Noise for rows cut to `length`: L1 and Laplace for epsilon, L2 and Gaussian for mu."""
    moved = reach_sensitivity(partial(count_sensitivity, length), reach)
    if norm is Norm.L1:
        sensitivity, scale = moved.l1, laplace_scale(moved.l1, amount)
    else:
        sensitivity, scale = moved.l2, gaussian_sigma(moved.l2, amount)
    return CountNoise(
        length=length, norm=norm, scale=scale, sensitivity=sensitivity, bits=lattice_bits(scale)
    )


def length_targets(width: int, longest: int, amount: float, reach: Reach, norm: Norm) -> Array:
    """T(1), ..., T(longest), from public numbers."""
    rows, width = 1 if reach.steps == (Neighbours.ADD_REMOVE,) else 2, width * reach.rows
    if norm is Norm.L1:
        return np.full(longest, rows * width / amount)
    roots = np.sqrt(2 * math.pi * np.arange(1, longest + 1, dtype=np.float64))
    return np.asarray(width * math.sqrt(rows) / (amount * roots))


def choose_length(tail: Ints, targets: Array, epsilon: float | Fraction, compare: Compare) -> int:
    """The first length whose noisy tail is below its target, else the longest; costs epsilon.

    Half of it goes to the threshold (0, so it is pure noise) and half to the one stop.
    """
    schedule = sparse(Fraction(epsilon), 1, threshold_share=Fraction(1, 2))
    # A target beyond 2^50 stops at once whatever its value; noise takes at most 2^52 halves.
    goal = np.rint(2 * np.minimum(targets, EXACT / 8)).astype(np.int64)
    return len(compare(goal - 2 * tail, 0, schedule))


def noisy_counts(exact: Lattice, calibrated: CountNoise, grant: Grant, purpose: str) -> NoisyCounts:
    """The exact truncated counts with their noise."""
    key = grant.key(purpose)
    if calibrated.norm is Norm.L1:
        lattice = noise.add_laplace(exact, calibrated.scale, key)
    else:
        lattice = noise.add_gaussian(exact, calibrated.scale, key)
    return NoisyCounts(lattice=lattice, noise=calibrated)


def truncated(width: int, calibrated: CountNoise) -> TruncatedCounts:
    """The statistic that this noise is calibrated for."""
    return TruncatedCounts(
        width=width, length=calibrated.length, norm=calibrated.norm, bits=calibrated.bits
    )
