"""The pictures of an LDA release, from its arrays."""

import numpy as np

from adumbra.mechanisms.base import SYNTHETIC, Published, Settled
from adumbra.mechanisms.box_pictures import BAR, SUMS, mean_bars, moment_pictures
from adumbra.mechanisms.box_release import MomentParts
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.postprocess.pictures import (
    SHOWN_DIRECTIONS,
    Bars,
    Pictures,
    class_names,
    direction_of,
    reach_of,
)
from adumbra.statistics.box_moments import Kind


def pictures(settled: Settled[LDAConfig, MomentParts], published: Published) -> Pictures:
    """Classes, how their means differ, the spectrum, correlations."""
    parts = settled.parts
    heat, spectrum = moment_pictures(parts, published)
    shares = np.asarray(published.arrays["class_shares"], np.float64)
    means = np.asarray(published.arrays["class_means"], np.float64)
    rows = float(np.asarray(published.arrays["rows"])[0])
    label = parts.encoder.required_label()
    named = class_names(label, len(shares))
    reach = reach_of(parts.noise.deviation(Kind.COUNT) / rows, is_pure=parts.noise.is_pure)
    overall = shares @ means
    balance = Bars(
        title=f"Classes of {label.name}",
        caption=f"The released share of each class. {BAR}",
        names=named,
        values=tuple(shares.tolist()),
        reaches=(reach,) * len(shares),
        are_shares=True,
    )
    largest = np.argsort(-shares, kind="stable")[:SHOWN_DIRECTIONS]
    return Pictures(
        bars=(balance, *mean_bars(parts, published)),
        heat=heat,
        spectrum=spectrum,
        directions=tuple(
            direction_of(f"Class {named[place]}", means[place] - overall, parts.encoder.names)
            for place in largest
        ),
        directions_are=(
            "Mean of the class less the mean of all rows, by the columns that differ most (columns have "
            "width 1)."
        ),
    )


def words(_: Settled[LDAConfig, MomentParts], __: Published) -> dict[str, str]:
    """What each part is."""
    return {
        "data": SYNTHETIC,
        "class_shares": "The noisy share of each class.",
        "class_means": "The noisy mean of each encoded column, one line per class.",
        "second_moment": "The mean product of two encoded columns, with its noise reduced.",
        **SUMS,
    }
