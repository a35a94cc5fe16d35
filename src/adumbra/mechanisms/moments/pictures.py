"""The pictures of a moments release, from its arrays."""

import numpy as np

from adumbra.mechanisms.base import Published, Settled
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.plan import Parts
from adumbra.mechanisms.moments.release import read_first, read_gram
from adumbra.postprocess.moments.pictures import (
    class_bars,
    correlations_of,
    histograms_of,
    item_bars,
)
from adumbra.postprocess.pictures import Pictures


def pictures(settled: Settled[MomentsConfig, Parts], published: Published) -> Pictures:
    """One-way histograms, classes, correlations and their spectrum."""
    arrays = {name: np.asarray(value, np.float64) for name, value in published.arrays.items()}
    design, schema = settled.parts.design, settled.schema
    is_pure = settled.config.delta == 0
    marginals, centre = read_first(settled, arrays["marginals"])
    gram = read_gram(settled, arrays, *settled.parts.gram_of(len(centre.means)))
    shown = histograms_of(design, schema, arrays["marginals"], marginals, is_pure=is_pure)
    heat, spectrum = correlations_of(design, schema, marginals, centre, gram, is_pure=is_pure)
    if schema.items is not None:
        return Pictures(bars=item_bars(shown), heat=heat, spectrum=spectrum)
    classes = class_bars(design, schema, arrays["marginals"], marginals, is_pure=is_pure)
    return Pictures(histograms=shown, bars=classes, heat=heat, spectrum=spectrum)
