"""The pictures of a RON-Gauss release, from its arrays."""

import numpy as np

from adumbra.mechanisms.base import SYNTHETIC, Published, Settled
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig
from adumbra.mechanisms.ron_gauss.plan import Parts
from adumbra.postprocess.pictures import SHOWN_DIRECTIONS, Bars, Pictures, class_names, direction_of


def pictures(settled: Settled[RONGaussConfig, Parts], published: Published) -> Pictures:
    """Classes, and the directions along which the released model varies most."""
    space = settled.parts.space
    arrays = {name: np.asarray(value, np.float64) for name, value in published.arrays.items()}
    counts = np.maximum(arrays["counts"], 0.0)
    weights = counts / max(float(counts.sum()), 1e-300)
    p = arrays["projection"].shape[1]
    covariance = np.tensordot(weights, arrays["covariances"][:, :p, :p], axes=1)
    means = arrays["means"][:, :p] + arrays["centres"] @ arrays["projection"]
    apart = means - weights @ means
    values, vectors = np.linalg.eigh(covariance + (apart.T * weights) @ apart)
    back = arrays["projection"] @ vectors[:, ::-1][:, :SHOWN_DIRECTIONS]
    back *= np.where(back[np.abs(back).argmax(axis=0), np.arange(back.shape[1])] < 0, -1.0, 1.0)
    part = values[::-1] / max(float(values.sum()), 1e-300)
    return Pictures(
        bars=_classes(settled, weights),
        directions=tuple(
            direction_of(
                f"Direction {place + 1}, {part[place]:.0%} of the model's variance",
                back[:, place],
                space.layout.names,
            )
            for place in range(back.shape[1])
        ),
        directions_are=(
            f"Where the released model varies most inside its {p} random directions, by the columns "
            "with the largest weights."
        ),
    )


def _classes(settled: Settled[RONGaussConfig, Parts], shares: np.ndarray) -> tuple[Bars, ...]:
    if settled.parts.space.classes is None:
        return ()
    label = settled.parts.space.layout.required_label()
    named = class_names(label, len(shares))
    return (
        Bars(
            title=f"Classes of {label.name}",
            caption="The share of each class in the released model.",
            names=named,
            values=tuple(shares.tolist()),
            reaches=(None,) * len(shares),
            are_shares=True,
        ),
    )


def words(settled: Settled[RONGaussConfig, Parts], _: Published) -> dict[str, str]:
    """What each part is."""
    is_mixture = settled.parts.space.classes is not None
    of = " of each class" if is_mixture else ""
    target = ", the target's last" if settled.config.mode == "supervised" else ""
    return {
        "data": SYNTHETIC,
        "projection": "The public random directions, one per column, by encoded column.",
        "centres": f"What was subtracted from encoded rows{of} before they were projected.",
        "means": f"The model's mean{of} along each direction, about the centre{target}.",
        "covariances": f"The model's covariance{of} between directions{target}.",
        "counts": f"The number of rows{of}: noisy, or public.",
        "row_norm": "The length of an encoded row that is 1 in the other arrays.",
    }
