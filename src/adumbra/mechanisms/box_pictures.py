"""Pictures that PCA and LDA share: correlations and spectrum of their noisy second moments."""

import numpy as np

from adumbra.mechanisms.base import Published
from adumbra.mechanisms.box_release import MomentParts
from adumbra.numerics import Array
from adumbra.postprocess.matrices import noise_edge
from adumbra.postprocess.pictures import Bars, Heat, Spectrum, heat_of, reach_of, spectrum_of
from adumbra.statistics.box_moments import Kind

SUMS = {  # what the arrays that both release are
    "noisy_sums": "Noisy sums of products of encoded columns; then sums and counts of rows.",
    "rows": "The number of rows: public, or noisy.",
}


SHOWN = 16  # bars of a picture
SHARES, MEANS = "Shares of rows", "Means, in parts of the declared range"
BAR = (
    "A bar with its ± is an interval: it covers the value of the table as encoded in 95 of 100 releases "
    'that could have been made. Ask for more: adumbra ask FOLDER "mean COLUMN".'
)


def mean_bars(parts: MomentParts, published: Published) -> tuple[Bars, ...]:
    """Shares of levels and means of numbers with their noise, the first ones."""
    sums, rows = _numbers(published, "noisy_sums"), float(_numbers(published, "rows")[0])
    shape, noise = parts.noise.statistic.shape, parts.noise
    width, classes = shape.width, len(sums) - shape.width
    mean = sums[:width, width:].sum(axis=1) / rows
    deviation = np.full(width, noise.deviation(Kind.TOTAL) * classes**0.5 / rows)
    if not noise.neighbours.rows_are_public:
        deviation = np.hypot(deviation, mean * noise.deviation(Kind.COUNT) * classes**0.5 / rows)
    return bars_of(parts, mean, deviation)


def bars_of(
    parts: MomentParts, mean: Array, deviation: Array, *, means: str = MEANS, caption: str = BAR
) -> tuple[Bars, ...]:
    """Encoded columns with their noise: shares of levels, and means of numbers (0 in the middle)."""
    shape, is_pure = parts.noise.statistic.shape, parts.noise.is_pure
    levels = [place for group in shape.groups for place in range(group.start, group.stop)]
    return tuple(
        Bars(
            title=title,
            caption=caption,
            names=tuple(parts.encoder.names[place] for place in places[:SHOWN]),
            values=tuple(float(mean[place]) + middle for place in places[:SHOWN]),
            reaches=tuple(reach_of(float(deviation[at]), is_pure=is_pure) for at in places[:SHOWN]),
            are_shares=True,
        )
        for title, places, middle in ((SHARES, levels, 0.0), (means, list(shape.numeric), 0.5))
        if places
    )


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
