"""The covariance of columns of two levels within classes, from noisy rows.

A column of two levels is -1/2 or 1/2, so its class means, which many rows share, give its variance:
1/4 - mean^2. Correlations alone are read off the noisy covariance, and noise takes most of them. They
are led back to what is possible and plausible:

    possible     the nearest matrix with a diagonal of 1 and no eigenvalue below a floor
    plausible    a step from it towards one common correlation, which all pairs together tell well

Floor and step follow from the known noise, and vanish with it. Their constants were chosen on
public tables (docs/explanation/projections.md). Everything here is arithmetic on released numbers.

Reference   Higham, Computing the nearest correlation matrix, 2002 (Dykstra's projections);
            Ledoit, Wolf, Honey, I shrunk the sample covariance matrix, 2004 (common correlation).
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.numerics import Array

LEAST_SHARE = 0.03  # of a level in a class: a mean beyond it is noise
LARGEST_COMMON = 0.95
LARGEST_FLOOR = 0.25
LARGEST_STEP = 0.6
FULL_STEP_EDGE = 4.0  # the edge of noise, in units of a correlation, from which on the step is whole
PROJECTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassMoments:
    """What noisy rows tell of classes, in released units, each unbiased."""

    rows: int
    means: Array  # classes x k
    shares: Array
    within: Array  # the covariance within classes, k x k
    moved: float  # what noise alone adds to the variance of class means, per column

    @property
    def offsets(self) -> Array:
        """Class means about the mean of all."""
        found: Array = self.means - self.shares @ self.means
        return found


def two_level_within(moments: ClassMoments, *, half: float, noise: float) -> Array:
    """The covariance within classes, positive.

    `half` is the value of the upper level, `noise` the variance of the noise of one number.
    """
    bound = half * (1.0 - 2.0 * LEAST_SHARE)
    variances = moments.shares @ (half**2 - np.clip(moments.means, -bound, bound) ** 2)
    scale = np.sqrt(np.outer(variances, variances))
    k, mean = len(variances), float(variances.mean())
    edge = 2.0 * math.sqrt(k / max(moments.rows, 1)) * (noise + mean) / mean
    return _correlations(moments.within / scale, scale**2, edge) * scale


def trusted_share(solved: Array, moments: ClassMoments, within: Array) -> float:
    """The share of the explained variance that is not the noise of class means (James and Stein)."""
    explained = float(moments.shares @ np.einsum("ck,ck->c", solved, moments.offsets))
    by_noise = moments.moved * float(np.trace(np.linalg.inv(within)))
    return max(0.0, 1.0 - by_noise / max(explained, np.finfo(float).tiny))


def _correlations(noisy: Array, precision: Array, edge: float) -> Array:
    """Possible and plausible correlations near to noisy ones; `edge` is what noise alone would show."""
    pairs = ~np.eye(len(noisy), dtype=bool)
    noisy = np.where(pairs, noisy, 1.0)
    possible = nearest_correlations(noisy, min(LARGEST_FLOOR, edge / 2.0))
    if not pairs.any():
        return possible
    common = float(np.sum(noisy[pairs] * precision[pairs]) / np.sum(precision[pairs]))
    common = min(max(common, 0.0), LARGEST_COMMON)
    step = LARGEST_STEP * min(1.0, edge / FULL_STEP_EDGE)
    found: Array = possible + step * (np.where(pairs, common, 1.0) - possible)
    return found


def nearest_correlations(noisy: Array, floor: float) -> Array:
    """About the nearest matrix with a diagonal of 1 and no eigenvalue below `floor`."""
    found, correction = noisy, np.zeros_like(noisy)
    for _ in range(PROJECTIONS):
        wanted = found - correction
        lifted = _lifted(wanted, floor)
        correction = lifted - wanted
        found = lifted.copy()
        np.fill_diagonal(found, 1.0)
    return _lifted(found, floor / 2.0)  # the last step left the floor a little


def _lifted(found: Array, floor: float) -> Array:
    values, vectors = np.linalg.eigh((found + found.T) / 2.0)
    lifted: Array = (vectors * np.maximum(values, floor)) @ vectors.T
    return lifted
