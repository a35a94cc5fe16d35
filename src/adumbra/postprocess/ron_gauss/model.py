"""From noisy moments to a model and synthetic rows: arithmetic on released numbers only."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adumbra.numerics import ROW_BITS, Array, Ints
from adumbra.postprocess.decode import block_sizes, decode_rows
from adumbra.postprocess.matrices import (
    conditional_sizes,
    gaussian_factor,
    noise_edge,
    positive_covariance,
    regression_covariance,
    sample_factored,
)
from adumbra.postprocess.ron_gauss.centre import Centre
from adumbra.postprocess.ron_gauss.mixture import Mixture, mixture_of
from adumbra.postprocess.ron_gauss.space import CONSTANT, INTERCEPT, TARGET, Deviations, Space

LONGEST_STRETCH = 1.5  # by which clipped rows are lengthened again, at most
_MOST_SHUFFLED = 10**9  # rows from which numpy deals no hypergeometric numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy numbers, already paid for: everything after this is public arithmetic."""

    centre: Centre
    noisy_gram: Array  # (classes or 1) x width x width; of a sphere: classes x (p+1), sums and counts
    public_rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One Gaussian per class (or one) over the p directions, with a target appended if supervised."""

    centres: Array  # classes x m: what was subtracted before projecting, in units of the row norm
    means: Array  # classes x q: of the projected rows about the centre, q = p (+ 1 with a target)
    covariances: Array  # classes x q x q
    counts: Array  # classes; noisy, or the public n

    @property
    def count(self) -> float:
        """All rows, as far as it is known."""
        return float(np.maximum(self.counts, 0.0).sum())


def fit_model(space: Space, noise: Deviations, released: Released) -> Model:
    """Means and positive covariances from the noisy Grams."""
    if space.classes is None:
        found = _one_gaussian(space, noise, released)
    else:
        found = mixture_of(space, noise, released.noisy_gram, released.centre, released.public_rows)
    unit = (released.centre.clip or space.radius) * _stretch(space, released, found)
    scale = np.full(found.means.shape[1], unit)
    if space.mode == "supervised":
        scale[-1] = 1.0
    return Model(
        centres=_centres(space, released, len(found.counts)),
        means=found.means * scale,
        covariances=found.covariances * np.outer(scale, scale),
        counts=found.counts,
    )


def _centres(space: Space, released: Released, groups: int) -> Array:
    """What was subtracted, in all m columns, one row per class."""
    means = released.centre.means
    if not space.columns:
        means = means @ space.matrix().to_float().T
    return np.broadcast_to(means, (groups, space.width)).copy()


def _stretch(space: Space, released: Released, found: Mixture) -> float:
    """What clipping took from the second moment, given back: the spread was bought unclipped."""
    centre = released.centre
    if centre.clip is None or centre.spread is None:
        return 1.0
    p = space.components
    weights = np.maximum(found.counts, 0.0) / max(float(np.maximum(found.counts, 0.0).sum()), 1e-300)
    seen = float(
        sum(
            weight * (np.trace(covariance[:p, :p]) + mean[:p] @ mean[:p])
            for weight, covariance, mean in zip(weights, found.covariances, found.means, strict=True)
        )
    )
    wanted = (centre.spread / centre.clip) ** 2
    return float(np.clip(np.sqrt(wanted / max(seen, 1e-12)), 1.0, LONGEST_STRETCH))


def _one_gaussian(space: Space, noise: Deviations, released: Released) -> Mixture:
    """One Gaussian, in units of the clip (a target in its own)."""
    gram = released.noisy_gram[0]
    count = _count(gram, space, released)
    rows = max(count, 1.0)
    mean, second = _moments(gram / rows, space)
    edge, noisy = noise_edge(noise.off_diagonal, len(mean)) / rows, second - np.outer(mean, mean)
    if space.mode == "supervised":
        covariance = regression_covariance(noisy, edge=edge)
    else:
        covariance = positive_covariance(noisy, edge=edge, trace_limit=2.0)
    return Mixture(means=mean[None], covariances=covariance[None], counts=np.array([count]))


def _count(gram: Array, space: Space, released: Released) -> float:
    """The rows behind the Gram: public, bought with the mean, or the constant's own entry."""
    if released.public_rows is not None:
        return float(released.public_rows)
    if released.centre.count is not None:
        return released.centre.count
    weight = (INTERCEPT if space.mode == "supervised" else CONSTANT) / 2**ROW_BITS
    corner: float = gram[-1, -1] / weight**2
    return corner


def _moments(average: Array, space: Space) -> tuple[Array, Array]:
    """Mean and second moment of the modelled columns from the average of z z^T."""
    p = space.components
    if space.mode == "supervised":
        back = np.append(np.ones(p), 2**ROW_BITS / TARGET)
        mean = average[: p + 1, -1] * (2**ROW_BITS / INTERCEPT) * back
        mean[-1] = np.clip(mean[-1], -1.0, 1.0)
        return mean, average[: p + 1, : p + 1] * np.outer(back, back)
    if space.private_centring:
        return np.zeros(p), average
    weight = CONSTANT / 2**ROW_BITS
    return average[:p, -1] / weight, average[:p, :p]


def row_blocks(
    space: Space, model: Model, rows: int, *, seed: int, projected: bool
) -> Iterator[pa.Table]:
    """Synthetic rows in the schema's own columns, or in the projected space, block by block.

    Classes have the sizes that their counts ask for, and their rows are shuffled over the whole table:
    how many of a block are of each class follows the law of a shuffle (a hypergeometric law), and the
    rows of a block are shuffled. So no block waits for another.
    """
    directions = space.matrix().to_float()
    left = np.array(conditional_sizes(model.counts, rows))
    shuffle = np.random.default_rng([seed, 0, 1])
    factors = [gaussian_factor(covariance) for covariance in model.covariances]
    for number, size in enumerate(block_sizes(rows, space.width)):
        sizes = _dealt(left, size, shuffle)
        left -= sizes
        rng = np.random.default_rng([seed, number])
        drawn = [
            sample_factored(mean, factor, int(count), rng)
            for mean, factor, count in zip(model.means, factors, sizes, strict=True)
        ]
        order = rng.permutation(size)
        yield _table(space, model, directions, drawn, order, projected=projected)


def _dealt(left: Ints, size: int, rng: np.random.Generator) -> Ints:
    """How many of the next rows are of each class, if what is left of each is shuffled.

    The generator takes fewer than 10^9 rows; of more, a block has its share of each class.
    """
    total = int(left.sum())
    if size == total:
        return left.copy()
    if total >= _MOST_SHUFFLED:
        return np.array(conditional_sizes(left.astype(np.float64), size))
    return np.asarray(rng.multivariate_hypergeometric(left, size, method="marginals"))


def _table(  # noqa: PLR0913 - the public shape, and what was drawn
    space: Space, model: Model, directions: Array, drawn: list[Array], order: Ints, *, projected: bool
) -> pa.Table:
    """The rows of one block."""
    p = space.components
    if projected:
        parts = [centre @ directions + x[:, :p] for centre, x in zip(model.centres, drawn, strict=True)]
    else:
        parts = [
            (centre + x[:, :p] @ directions.T) * space.norm
            for centre, x in zip(model.centres, drawn, strict=True)
        ]
    values = np.concatenate(parts)[order]
    codes = goals = None
    if space.mode == "gmm":
        codes = np.repeat(np.arange(len(drawn)), [len(x) for x in drawn])[order]
    if space.mode == "supervised":
        goals = np.concatenate([np.clip(x[:, -1], -1.0, 1.0) for x in drawn])[order]
    if not projected:
        return decode_rows(space.layout, values, labels=codes, targets=goals)
    table: dict[str, Array | Ints] = {f"y{j + 1}": values[:, j] for j in range(p)}
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
    found: dict[str, object] = {
        "components": space.components,
        "encoded_columns": space.width,
        "projection": "Haar, orthonormal columns; released as `projection` with its seed",
        "classes": space.classes,
        "synthetic": "rows are drawn from the released model; they are not people",
        "modelled_variance": [float(np.trace(one)) for one in model.covariances],
    }
    return found | ({} if space.classes is None else {"covariance": space.covariance})
