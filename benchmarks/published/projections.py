"""NOT FOR RELEASE: DPPro and JL + Laplace with the noise of the papers, to be compared with ours.

Every function whose name ends in `_not_private` gives a scale without the guarantee that its paper
claims for it; docs/theory.md says why (E1 to E3, E20 to E22). The noise here comes from a seeded
generator, so nothing that this module makes is private, whatever its scale.
"""

import math

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array

FIGURE_SIGMAS_NOT_PRIVATE = (0.1, 0.2)  # DPPro, figures 2 and 4, for every epsilon from 0.05 to 1.6


def theorem_2_sigma(theta: float, epsilon: float, delta: float) -> float:
    """DPPro, Theorem 2: theta sqrt(2 (ln(1/(2 delta)) + epsilon)) / epsilon; more than enough."""
    require(0.0 < delta < 0.5, f"delta={delta}: must lie between 0 and 1/2")
    return theta * math.sqrt(2.0 * (math.log(0.5 / delta) + epsilon)) / epsilon


def lemma_4_sigma_not_private(epsilon: float, delta: float) -> float:
    """DPPro, Lemma 4: (4/epsilon) sqrt(ln(1/delta)) for any R, under a side condition that fails."""
    return 4.0 / epsilon * math.sqrt(math.log(1.0 / delta))


def lemma_4_condition(n_features: int, n_components: int, delta: float) -> bool:
    """Whether k > 2 (ln d + ln(2/delta)), which Lemma 4 needs; false at every setting of the paper."""
    return n_components > 2.0 * (math.log(n_features) + math.log(2.0 / delta))


def elementwise_scale_not_private(n_components: int, epsilon: float) -> float:
    """JL + Laplace, Theorem 3: c/epsilon with c = 2 sqrt(k), epsilon-DP "with probability" only."""
    return 2.0 * math.sqrt(n_components) / epsilon


def rowwise_minimal_scale_not_private(n_components: int, epsilon: float, alpha: float = 1.0) -> float:
    """JL + Laplace, Theorem 5 with t at its minimum: c = k t; the stated probability is then 0."""
    return math.sqrt(2.0 * alpha * n_components * math.log(2.0 * n_components)) / epsilon


def claim_7_variance_as_printed(rho2: float, n_components: int, variance: float) -> float:
    """JL + Laplace, Claim 7 as printed: wrong, and negative for some settings."""
    k = n_components
    return 2.0 / k * rho2**2 + 2.0 * k * (7.0 * variance**2 - variance) + 4.0 * variance * rho2


def dppro_as_published_not_private(x: Array, n_components: int, sigma: float, *, seed: int) -> Array:
    """Algorithm 1 of DPPro in floats: X R + N(0, sigma^2) with R of N(0, 1/k)."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((x.shape[1], n_components)) / math.sqrt(n_components)
    return np.asarray(x @ matrix + sigma * rng.standard_normal((len(x), n_components)))


def jl_laplace_as_published_not_private(
    x: Array, n_components: int, scale: float, *, seed: int
) -> Array:
    """Algorithm 1 of JL + Laplace in floats: X R + Lap(scale) with R of N(0, 1/k)."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((x.shape[1], n_components)) / math.sqrt(n_components)
    return np.asarray(x @ matrix + rng.laplace(scale=scale, size=(len(x), n_components)))


def published_squared_distances(left: Array, right: Array, variance: float) -> Array:
    """Algorithm 2 of both papers: |p - q|^2 - 2 k variance."""
    gap = left - right
    return np.asarray(np.einsum("ij,ij->i", gap, gap) - 2.0 * left.shape[1] * variance)
