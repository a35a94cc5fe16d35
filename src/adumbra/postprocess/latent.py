"""Mixed rows from a latent normal: every column decoded so that it hits its own marginal.

    z = mean_class + A e,  e standard normal
    a number (one latent column)        by its rank among the drawn rows, through the noisy marginal
    a category (one column per level)   the largest of z + offset; offsets hit the shares of the class

Decoding weakens means and correlations; `calibrate` puts back what it takes, by comparing moments of
decoded rows with the released ones. All inputs are released or public numbers.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from adumbra.numerics import Array, Ints
from adumbra.postprocess.marginals import fill
from adumbra.postprocess.matrices import conditional_sizes, is_diagonal, root

# Normal rows whose sample moments are those of the law: sampling error where none is needed.
#
# The generator is public; rows of each class are centred exactly, and where there are enough rows the
# pooled second moment is made the identity.
_WHITEN_ROWS = 2  # rows for each column before the sample covariance is made exact
_WHITEN_WIDTH = 1024  # wider rows are left as drawn: the eigenproblem would cost more than it gives


def class_labels(shares: Array, rows: int) -> Ints:
    """Class codes in order, by the largest remainders of rows x shares."""
    return np.repeat(np.arange(len(shares)), conditional_sizes(shares, rows)).astype(np.int64)


def class_runs(labels: Ints) -> list[tuple[int, slice]]:
    """Codes of neighbouring rows of one class and where they are; labels in order have one run each."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[:1] - 1))
    stops = np.append(starts[1:], len(labels))[: len(starts)]
    return [(int(labels[a]), slice(int(a), int(b))) for a, b in zip(starts, stops, strict=True)]


def normal_rows(
    labels: Ints, width: int, rng: np.random.Generator, factor: Array | None = None
) -> Array:
    """Standard normal rows, centred in every run of a class, white over all where the rows suffice.

    With a factor A (any x width) the rows are multiplied by its transpose: their covariance is A A^T.
    """
    rows = rng.standard_normal((len(labels), width))
    for _, members in class_runs(labels):
        rows[members] -= rows[members].mean(axis=0)
    if width > _WHITEN_WIDTH and factor is not None and is_diagonal(factor):
        return np.asfortranarray(rows * np.diagonal(factor))
    mix = np.eye(width) if factor is None else factor.T
    if len(rows) >= _WHITEN_ROWS * width and width <= _WHITEN_WIDTH:
        from scipy.linalg import solve_triangular  # noqa: PLC0415 - start-up that others need not pay

        with suppress(np.linalg.LinAlgError):  # as many classes as rows: nothing to make white
            lower = np.linalg.cholesky(rows.T @ rows / len(rows))
            mix = solve_triangular(lower, mix, lower=True, trans="T")
    return np.asarray((mix.T @ rows.T).T)  # column by column in memory, as decoding reads it


_STEP = 0.4  # of the offsets, in log shares
_FIRST_STEPS, _NEXT_STEPS = 30, 8
_GAIN = 1.0  # of the covariance correction
_MOST_SHIFT = 0.5  # of a latent mean in one round, in standard deviations
_DEAF = 0.2  # columns whose decoded values move less than this are hardly corrected
_LEAST_SHARE = 1e-6
_SOFT = 0.1  # added to a level's share: rare levels do not get arbitrarily loud


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The latent columns of one column of the table: one for a number, one per level for a category."""

    start: int
    width: int
    shares: Array = field(
        repr=False
    )  # number: one share per cell; category: classes x levels, each row a law
    values: Array = field(repr=False)  # number: the encoded value of each cell; category: empty

    # Follows from the fields above:
    is_levels: bool = field(init=False)  # a category's
    is_pair: bool = field(init=False)  # of two levels, one latent column
    columns: slice = field(init=False, repr=False)  # the latent columns

    def __post_init__(self) -> None:
        is_levels = self.shares.ndim == 2
        object.__setattr__(self, "is_levels", is_levels)
        object.__setattr__(self, "is_pair", not is_levels and len(self.shares) == 2)
        object.__setattr__(self, "columns", slice(self.start, self.start + self.width))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentModel:
    """A normal law for each class, with the blocks that decode it."""

    blocks: tuple[Block, ...]
    class_shares: Array = field(repr=False)  # L
    means: Array = field(repr=False)  # L x D latent
    covariances: tuple[Array, ...] = field(repr=False)  # of consecutive runs of latent columns
    roots: tuple[Array, ...] = field(repr=False)
    offsets: Array = field(repr=False)  # L x D, used by categories

    @property
    def width(self) -> int:
        """Latent columns."""
        return int(self.means.shape[1])


@dataclass(frozen=True, slots=True)
class Decoded:
    """Drawn rows: classes, and for each block an ascending order (number) or level codes (category)."""

    labels: Ints
    parts: tuple[Ints, ...]


def latent_model(
    blocks: tuple[Block, ...], class_shares: Array, means: Array, covariances: tuple[Array, ...]
) -> LatentModel:
    """A model before calibration; means and covariances are in encoded units."""
    width = means.shape[1]
    offsets = np.zeros((len(class_shares), width))
    for block in blocks:
        if block.is_levels:
            offsets[:, block.columns] = 0.7 * np.log(np.maximum(block.shares, 1e-5))
    scales = latent_scales(blocks, class_shares, width)
    latent = tuple(
        part if (scales[run] == 1.0).all() else part / np.outer(scales[run], scales[run])
        for run, part in zip(runs(covariances), covariances, strict=True)
    )  # of numbers the same matrices: wide tables have no room for another copy
    shifts = means.copy()
    shifts[:, level_columns(blocks, width)] = 0.0  # offsets carry the classes of categories
    return _rooted(
        LatentModel(
            blocks=blocks,
            class_shares=class_shares,
            means=shifts,
            covariances=latent,
            roots=(),
            offsets=offsets,
        )
    )


def runs(parts: tuple[Array, ...]) -> list[slice]:
    """The latent columns of each covariance."""
    ends = np.cumsum([len(part) for part in parts])
    return [slice(int(end) - len(part), int(end)) for end, part in zip(ends, parts, strict=True)]


def level_columns(blocks: tuple[Block, ...], width: int) -> Array:
    """Which latent columns belong to categories."""
    mask = np.zeros(width, bool)
    for block in blocks:
        mask[block.columns] = block.is_levels
    return mask


def latent_scales(blocks: tuple[Block, ...], class_shares: Array, width: int) -> Array:
    """Encoded units of one latent unit: 1 for a number, sqrt(share) (softened) for a level."""
    scales = np.ones(width)
    for block in blocks:
        if block.is_levels:
            scales[block.columns] = np.sqrt(class_shares @ block.shares + _SOFT)
    return scales


def _rooted(model: LatentModel) -> LatentModel:
    """The model with the roots of its covariances; a category's columns get the variance 1."""
    mask = level_columns(model.blocks, model.width)
    roots = []
    for run, part in zip(runs(model.covariances), model.covariances, strict=True):
        levels = mask[run]
        if not levels.any():
            roots.append(root(part))
            continue
        filled = part.copy()
        diagonal = np.diagonal(part).copy()
        diagonal[levels] = np.maximum(diagonal[levels], 1.0)
        np.fill_diagonal(filled, diagonal)
        factor = root(filled)
        factor /= np.where(levels, np.linalg.norm(factor, axis=1), 1.0)[:, None]
        roots.append(factor)
    return replace(model, roots=tuple(roots))


def draw_latent(model: LatentModel, labels: Ints, rng: np.random.Generator) -> Array:
    """Latent rows of the given classes."""
    rows = np.empty((len(labels), model.width), order="F")
    for run, factor in zip(runs(model.roots), model.roots, strict=True):
        rows[:, run] = normal_rows(labels, factor.shape[1], rng, factor)
    for code, members in class_runs(labels):
        rows[members] += model.means[code]
    return rows


def sample(model: LatentModel, rows: int, rng: np.random.Generator) -> Decoded:
    """Draw and decode; the rows of one call hit the marginals together."""
    labels = class_labels(model.class_shares, rows)
    latent = draw_latent(model, labels, rng)
    return decode(model, latent, labels, _NEXT_STEPS)[0]


def decode(model: LatentModel, latent: Array, labels: Ints, steps: int) -> tuple[Decoded, Array]:
    """Orders and level codes of latent rows, and the offsets after `steps` more corrections."""
    offsets = model.offsets.copy()
    parts = []
    for block in model.blocks:
        columns = latent[:, block.columns]
        if block.is_levels:
            codes, offsets[:, block.columns] = choose_levels(
                columns, labels, block.shares, offsets[:, block.columns], steps
            )
            parts.append(codes)
        else:
            parts.append(np.argsort(np.ascontiguousarray(columns[:, 0])))
    return Decoded(labels, tuple(parts)), offsets


def choose_levels(
    utilities: Array, labels: Ints, shares: Array, offsets: Array, steps: int
) -> tuple[Ints, Array]:
    """The level of each row, with offsets moved until each class shows its shares."""
    codes = np.zeros(len(labels), np.int64)
    moved = offsets.copy()
    levels = shares.shape[1]
    for code in range(len(shares)):
        members = np.flatnonzero(labels == code)
        if len(members) == 0:
            continue
        wanted = np.maximum(shares[code], _LEAST_SHARE)
        wanted = np.log(wanted / wanted.sum())
        scores = utilities[members]
        offset = moved[code].copy()
        for _ in range(steps):
            seen = np.bincount((scores + offset).argmax(axis=1), minlength=levels) / len(members)
            gap = wanted - np.log(np.maximum(seen, 0.3 / len(members)))
            offset += _STEP * np.clip(gap, -2.0, 2.0)
        codes[members] = (scores + offset).argmax(axis=1)
        moved[code] = offset
    return codes, moved


def encoded(model: LatentModel, decoded: Decoded) -> Array:
    """Decoded rows in the encoding of the released moments: numbers, and one-hot levels."""
    rows = np.zeros((len(decoded.labels), model.width))
    for block, part in zip(model.blocks, decoded.parts, strict=True):
        if block.is_levels:
            rows[np.arange(len(part)), block.start + part] = 1.0
        else:
            rows[:, block.start] = fill(part, block.shares, (block.values, block.values))
    return rows


def calibrate(
    model: LatentModel, means: Array, rounds: int, rows: int, rng: np.random.Generator
) -> LatentModel:
    """Move latent means and covariances until decoded rows show the wanted ones (encoded units).

    The wanted covariances are those that the model came with. With several runs of columns only the
    means are moved.
    """
    if rounds == 0:
        return model
    labels = class_labels(model.class_shares, rows)
    scales = latent_scales(model.blocks, model.class_shares, model.width)
    mask = level_columns(model.blocks, model.width)
    own = _own_blocks(model)
    wanted = model.covariances[0] * np.outer(scales, scales) if len(model.covariances) == 1 else None
    noise = [normal_rows(labels, len(part), rng) for part in model.covariances]
    centre = model.class_shares @ means
    for number in range(rounds):
        latent = model.means[labels] + np.hstack(
            [rows_ @ factor.T for rows_, factor in zip(noise, model.roots, strict=True)]
        )
        steps = _FIRST_STEPS if number == 0 else _NEXT_STEPS
        decoded, offsets = decode(model, latent, labels, steps)
        shown = encoded(model, decoded)
        found = _class_means(shown, labels, len(model.class_shares))
        residual = shown - found[labels]
        slope = _slopes(latent, shown)
        shift = (means - centre) - (found - model.class_shares @ found)
        shift[:, mask] = 0.0
        most = _MOST_SHIFT * latent.std(axis=0)
        damped = shift * slope / (slope**2 + _DEAF**2)
        moved_means = model.means + np.clip(damped, -most, most)
        model = replace(model, offsets=offsets, means=moved_means)
        if wanted is not None:
            gap = wanted - residual.T @ residual / len(labels)
            gap[own] = 0.0
            moved = model.covariances[0] + _GAIN * gap / np.outer(scales, scales)
            model = _rooted(replace(model, covariances=(moved,)))
    return model


def _class_means(rows: Array, labels: Ints, classes: int) -> Array:
    """The mean of each class; of an empty one, the mean of all."""
    total = rows.mean(axis=0)
    return np.stack(
        [rows[labels == c].mean(axis=0) if (labels == c).any() else total for c in range(classes)]
    )


def _slopes(latent: Array, shown: Array) -> Array:
    """How much a decoded column moves with its latent column."""
    centred = latent - latent.mean(axis=0)
    variance = np.maximum((centred**2).mean(axis=0), 1e-18)
    slope = (centred * (shown - shown.mean(axis=0))).mean(axis=0) / variance
    return np.asarray(slope)


def _own_blocks(model: LatentModel) -> Array:
    """Entries that belong to one block: their covariance is the marginal's own."""
    own = np.zeros((model.width, model.width), bool)
    for block in model.blocks:
        own[block.columns, block.columns] = True
    return own
