"""Class means, counts and covariances from noisy sums, shrunk by the noise that is known to be in them.

    counts       toward their average by t / (t + s^2), t the variance that the noise does not explain
    means        toward the centre by t / (t + s^2), t the larger of its own and the classes' common
    covariance   what is left of the Gram, positive, with the noise-edge floor

All of it is arithmetic on released numbers, in units of the clip. An empty class has a count near the
noise and a mean near the centre; nothing divides by less than one row.
"""

from dataclasses import dataclass

import numpy as np

from adumbra.numerics import Array
from adumbra.postprocess.matrices import noise_edge, positive_covariance
from adumbra.postprocess.ron_gauss.centre import Centre
from adumbra.postprocess.ron_gauss.space import Deviations, Space

LEAST_WITHIN = 0.05  # of the whole variance lies within the classes of a sphere, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """One Gaussian per class, or one in all."""

    means: Array  # classes x q
    covariances: Array  # classes x q x q
    counts: Array


def mixture_of(
    space: Space, noise: Deviations, noisy: Array, centre: Centre, public_rows: int | None
) -> Mixture:
    """The classes of a noisy second statistic."""
    sums, counts = _sums_and_counts(space, noisy)
    counts = _shrunk_counts(counts, noise.gram, public_rows)
    rows = np.maximum(counts, 1.0)
    means = _shrunk_means(sums / rows[:, None], noise.off_diagonal / rows, rows)
    p, total = space.components, float(rows.sum())
    if space.covariance == "class":
        grams = noisy[:, :p, :p] / rows[:, None, None]
        covariances = [
            _positive(gram - np.outer(mean, mean), noise, n)
            for gram, mean, n in zip(grams, means, rows, strict=True)
        ]
        return Mixture(means=means, covariances=np.array(covariances), counts=counts)
    between = (means.T * (rows / total)) @ means
    if space.covariance == "tied":
        common = _positive(noisy[0, :p, :p] / total - between, noise, total)
    else:
        whole = (centre.spread / centre.clip) ** 2 if centre.spread and centre.clip else 1.0
        common = np.eye(p) * (max(whole - float(np.trace(between)), LEAST_WITHIN * whole) / p)
    return Mixture(means=means, covariances=np.tile(common, (len(counts), 1, 1)), counts=counts)


def _sums_and_counts(space: Space, noisy: Array) -> tuple[Array, Array]:
    p = space.components
    if space.covariance == "sphere":
        return noisy[:, :p], noisy[:, p]
    if space.covariance == "class":
        return noisy[:, :p, p], noisy[:, p, p]
    return noisy[0, p:, :p], np.diagonal(noisy[0])[p:]


def _shrunk_counts(noisy: Array, deviation: float, public_rows: int | None) -> Array:
    """Counts toward their average, as far as noise may explain how they differ."""
    average = float(noisy.mean()) if public_rows is None else public_rows / len(noisy)
    real = max(0.0, float(noisy.var()) - deviation**2)
    shrunk: Array = average + (noisy - average) * (real / (real + deviation**2))
    return shrunk


def _shrunk_means(noisy: Array, deviations: Array, rows: Array) -> Array:
    """Means toward the centre, as far as noise may explain how far they are from it."""
    variance = deviations**2
    own = np.maximum((noisy**2).mean(axis=1) - variance, 0.0)
    common = float((own * rows**2).sum() / (rows**2).sum())
    real = np.maximum(own, common)
    shrunk: Array = noisy * (real / (real + variance))[:, None]
    return shrunk


def _positive(noisy: Array, noise: Deviations, rows: float) -> Array:
    edge = noise_edge(noise.off_diagonal, len(noisy)) / rows
    return positive_covariance(noisy, edge=edge, trace_limit=2.0)
