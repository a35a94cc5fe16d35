"""From noisy moments to a model and synthetic rows: arithmetic on released numbers only."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adumbra.mechanisms.ron_gauss.draw import Released
from adumbra.mechanisms.ron_gauss.scales import CONSTANT, WEIGHT, Scales, Space
from adumbra.numerics import ROW_BITS, Array, Ints
from adumbra.postprocess.decode import decode_rows
from adumbra.postprocess.spectrum import (
    conditional_sizes,
    noise_edge,
    positive_covariance,
    sample_gaussian,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One Gaussian a class (or one) over the p directions, with a target appended if supervised."""

    centres: Array  # classes x m: what was subtracted before projecting, in units of the row norm
    means: Array  # classes x q: of the projected rows about the centre, q = p (+ 1 with a target)
    covariances: Array  # classes x q x q
    counts: Array  # classes; noisy, or the public n

    @property
    def count(self) -> float:
        """All rows, as far as it is known."""
        return float(np.maximum(self.counts, 0.0).sum())


def fit_model(space: Space, settled: Scales, released: Released) -> Model:
    """Means and positive covariances from the noisy Grams."""
    unit = released.clip * space.radius  # the length of one unit of the Gram's rows
    groups, p = space.classes or 1, space.components
    centres = np.zeros((groups, space.width)) if released.noisy_means is None else released.noisy_means
    means, covariances, counts = [], [], []
    for group in range(groups):
        gram = released.noisy_gram[group]
        count = _count(gram, group, space, released)
        steps = settled.deviation("gram")
        off = steps if settled.pure else steps / math.sqrt(2.0)
        mean, second = _moments(gram / max(count, 1.0), space, settled)
        edge = noise_edge(off, len(mean)) / max(count, 1.0)
        covariance = positive_covariance(second - np.outer(mean, mean), edge=edge, trace_limit=2.0)
        scale = np.full(len(mean), unit)
        if space.mode == "supervised":
            scale[-1] = 1.0
        means.append(mean * scale)
        covariances.append(covariance * np.outer(scale, scale))
        counts.append(count)
    shape = p + (space.mode == "supervised")
    return Model(
        centres=centres,
        means=np.array(means).reshape(groups, shape),
        covariances=np.array(covariances),
        counts=np.array(counts),
    )


def _count(gram: Array, group: int, space: Space, released: Released) -> float:
    """The rows behind one Gram: public, bought with the mean, or the constant's own entry."""
    if space.classes is None and released.public_rows is not None:
        return float(released.public_rows)
    if released.noisy_counts is not None:
        bought: float = released.noisy_counts[group]
        return bought
    weight = (WEIGHT if space.mode == "supervised" else CONSTANT) / 2**ROW_BITS
    corner: float = gram[-1, -1] / weight**2
    return corner


def _moments(average: Array, space: Space, settled: Scales) -> tuple[Array, Array]:
    """Mean and second moment of the modelled columns from the average of z z^T."""
    p = space.components
    if space.mode == "supervised":
        weight = WEIGHT / 2**ROW_BITS
        back = np.append(np.ones(p), 1.0 / weight)
        mean = average[: p + 1, -1] / weight * back
        mean[-1] = np.clip(mean[-1], -1.0, 1.0)
        return mean, average[: p + 1, : p + 1] * np.outer(back, back)
    if settled.private_centring:
        return np.zeros(p), average
    weight = CONSTANT / 2**ROW_BITS
    return average[:p, -1] / weight, average[:p, :p]


def synthesise(space: Space, model: Model, rows: int, *, seed: int, projected: bool) -> pa.Table:
    """Synthetic rows in the schema's own columns, or in the projected space; shuffled over classes."""
    rng = np.random.default_rng(seed)
    directions = space.matrix().to_float()
    parts: list[Array] = []
    labels: list[Ints] = []
    targets: list[Array] = []
    for group, size in enumerate(conditional_sizes(model.counts, rows)):
        drawn = sample_gaussian(model.means[group], model.covariances[group], size, rng)
        if space.mode == "supervised":
            targets.append(np.clip(drawn[:, -1], -1.0, 1.0))
            drawn = drawn[:, :-1]
        if projected:
            parts.append(model.centres[group] @ directions + drawn)
        else:
            parts.append((model.centres[group] + drawn @ directions.T) * space.norm)
        labels.append(np.full(size, group, np.int64))
    order = rng.permutation(rows)
    values = np.concatenate(parts)[order]
    codes = np.concatenate(labels)[order] if space.mode == "gmm" else None
    goals = np.concatenate(targets)[order] if space.mode == "supervised" else None
    if not projected:
        return decode_rows(space.encoder, values, labels=codes, targets=goals)
    table: dict[str, Array | Ints] = {f"y{j + 1}": values[:, j] for j in range(space.components)}
    if codes is not None:
        table["label"] = codes
    if goals is not None:
        table["target"] = goals
    return pa.table(table)


def model_arrays(space: Space, model: Model) -> dict[str, Array]:
    """Everything a recipient needs to map test rows and to sample more."""
    return {
        "projection": space.matrix().to_float(),
        "centres": model.centres,
        "means": model.means,
        "covariances": model.covariances,
        "counts": model.counts,
        "row_norm": np.array([space.norm]),
    }


def facts(space: Space, model: Model) -> dict[str, object]:
    """Public extras of the card."""
    return {
        "components": space.components,
        "encoded_columns": space.width,
        "projection": "Haar, orthonormal columns; released as `projection` with its seed",
        "classes": space.classes,
        "gram_noise": "entries off the diagonal have 1/sqrt(2) of the stated Gaussian deviation",
        "synthetic": "rows are drawn from the released model; they are not people",
        "modelled_variance": [float(np.trace(one)) for one in model.covariances],
    }
