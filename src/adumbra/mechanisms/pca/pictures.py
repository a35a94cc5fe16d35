"""The pictures of a PCA release, from its arrays."""

import numpy as np

from adumbra.mechanisms.base import Published, Settled
from adumbra.mechanisms.box_pictures import moment_pictures
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
    return Pictures(heat=heat, spectrum=spectrum, directions=directions, directions_are=words)
