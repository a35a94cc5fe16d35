"""Pictures that PCA and LDA share: correlations and spectrum of their noisy second moments."""

import numpy as np

from adumbra.mechanisms.base import Published
from adumbra.mechanisms.box_release import MomentParts
from adumbra.numerics import Array
from adumbra.postprocess.matrices import noise_edge
from adumbra.postprocess.pictures import Heat, Spectrum, heat_of, spectrum_of
from adumbra.statistics.box_moments import Kind

SUMS = {  # what the arrays that both release are
    "noisy_sums": "Noisy sums of products of encoded columns; then sums and counts of rows.",
    "rows": "The number of rows: public, or noisy.",
}


def moment_pictures(parts: MomentParts, published: Published) -> tuple[Heat | None, Spectrum | None]:
    """From the released sums, which hold second moments, sums and counts."""
    sums, rows = _numbers(published, "noisy_sums"), float(_numbers(published, "rows")[0])
    width = parts.noise.statistic.shape.width
    mean = sums[:width, width:].sum(axis=1) / rows
    covariance = sums[:width, :width] / rows - np.outer(mean, mean)
    deviation = parts.noise.deviation(Kind.CROSS) / rows
    owners = list(range(width))
    for group in parts.noise.statistic.shape.groups:
        owners[group] = [group.start] * (group.stop - group.start)
    heat = heat_of(covariance, parts.encoder.names, owners, deviation, is_pure=parts.noise.is_pure)
    return heat, spectrum_of(covariance, noise_edge(deviation, width))


def _numbers(published: Published, name: str) -> Array:
    return np.asarray(published.arrays[name], np.float64)
