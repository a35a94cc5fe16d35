"""The pictures of a PCA release, from its arrays."""

import numpy as np

from adumbra.mechanisms.base import SYNTHETIC, Published, Settled
from adumbra.mechanisms.box_pictures import SUMS, mean_bars, moment_pictures
from adumbra.mechanisms.box_release import MomentParts
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.postprocess.pictures import SHOWN_DIRECTIONS, Pictures, direction_of


def pictures(settled: Settled[PCAConfig, MomentParts], published: Published) -> Pictures:
    """Leading directions, the spectrum that they come from, correlations."""
    heat, spectrum = moment_pictures(settled.parts, published)
    components = np.asarray(published.arrays["components"], np.float64)
    variances = np.asarray(published.arrays["variances"], np.float64)
    names = settled.parts.encoder.names
    directions = tuple(
        direction_of(f"Direction {place + 1}, variance {variances[place]:.3g}", weights, names)
        for place, weights in enumerate(components[:SHOWN_DIRECTIONS])
    )
    words = "The released directions, by the columns with the largest weights (columns have width 1)."
    return Pictures(
        bars=mean_bars(settled.parts, published),
        heat=heat,
        spectrum=spectrum,
        directions=directions,
        directions_are=words,
    )


def words(settled: Settled[PCAConfig, MomentParts], published: Published) -> dict[str, str]:
    """What each part is; without a direction that stands out, every row is the mean."""
    rows = "One row per private row, in the same order: along the released directions, with noise."
    if len(published.arrays["variances"]) == 0:
        rows = "Every row is the noisy mean; there are as many as private rows."
    return {
        "data": SYNTHETIC if settled.config.output == "sample" else rows,
        "mean": "The noisy mean of each encoded column.",
        "components": "The directions of largest noisy variance, one per line, by encoded column.",
        "variances": "The noisy variance along each direction.",
        **SUMS,
    }
