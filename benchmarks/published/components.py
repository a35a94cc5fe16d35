"""NOT FOR RELEASE: PCA and LDA publishing with the noise of the paper, and its baselines.

Every function whose name ends in `_not_private` gives a scale or rows without the guarantee that the
paper claims: its sensitivity for categories is exceeded by explicit pairs of rows (docs/theory.md E25),
and LDA divides by exact class sizes (docs/theory.md E27). All noise here comes from a seeded generator
in floats, so nothing that this module makes is private, whatever its scale. DiffGen, the paper's rival,
is not rebuilt: it needs taxonomy trees that the paper does not print, and a stand-in under its name
would say nothing about it.
"""

import math

import numpy as np

from adumbra.numerics import Array


def pca_sensitivity_not_private(numbers: int, categories: int) -> float:
    """PCA as printed: (p1 + 2 p2) + [(p1+p2)(p1+p2+1) + p2(p2+1)] / 2; right only without categories."""
    p = numbers + categories
    return (numbers + 2 * categories) + (p * (p + 1) + categories * (categories + 1)) / 2


def lda_sensitivity_not_private(numbers: int, categories: int) -> float:
    """LDA as printed: 2 (p1 + p2) + [(p1+p2)(p1+p2+1) + p2(p2+1)] / 2."""
    p = numbers + categories
    return 2 * p + (p * (p + 1) + categories * (categories + 1)) / 2


def uncentred_sensitivity(numbers: int, categories: int, *, classes: bool) -> float:
    """What the printed statistic really moves by (columns in [0, 1], replace-one), exactly.

    (p1+2p2) + p1(p1+1)/2 + p1 p2 + p2(p2+1) + p1 c b - p1(p1+1) b^2/2,
    c = p2 - 1 (PCA) or p2 + 1 (LDA), b = c/(p1+1) clipped to [0, 1].
    """
    p1, p2 = numbers, categories
    c = p2 + 1 if classes else p2 - 1
    b = min(1.0, max(0.0, c / (p1 + 1)))
    base = (p1 + 2 * p2) + p1 * (p1 + 1) / 2 + p1 * p2 + p2 * (p2 + 1)
    return base + p1 * c * b - p1 * (p1 + 1) * b**2 / 2


def violating_pair(numbers: int, categories: int, *, classes: bool) -> tuple[Array, Array]:
    """Two rows (columns in [0, 1], two levels a category) that move the statistic by the above.

    All categories change; the numbers go from 1 to b, where the paper's proof thinks only of 0.
    """
    c = categories + 1 if classes else categories - 1
    b = min(1.0, max(0.0, c / (numbers + 1)))
    first = np.concatenate([np.ones(numbers), np.tile([1.0, 0.0], categories)])
    second = np.concatenate([np.full(numbers, b), np.tile([0.0, 1.0], categories)])
    return first, second


def printed_statistic_change(first: Array, second: Array, *, classes: bool) -> float:
    """L1 change of (sums, upper triangle) as the paper defines them; with classes the class changes."""
    sums = first.sum() + second.sum() if classes else np.abs(first - second).sum()
    upper = np.triu(np.abs(np.outer(first, first) - np.outer(second, second)))
    return float(sums + upper.sum())


def pca_rows_not_private(
    x: Array, components: int, epsilon: float, sensitivity: float, *, seed: int
) -> Array:
    """The PCA mechanism as printed, on columns of [0, 1]: half of epsilon each for moments and rows."""
    rng = np.random.default_rng(seed)
    n, p = x.shape
    total = x.sum(axis=0) + rng.laplace(scale=2 * sensitivity / epsilon, size=p)
    upper = np.triu(x.T @ x + rng.laplace(scale=2 * sensitivity / epsilon, size=(p, p)))
    gram = upper + np.triu(upper, 1).T
    mean = total / n
    _, vectors = np.linalg.eigh(gram / n - np.outer(mean, mean))
    basis = vectors[:, ::-1][:, :components]
    scale = 2 * math.sqrt(components * p) / epsilon
    noisy = (x - mean) @ basis + rng.laplace(scale=scale, size=(n, components))
    rows: Array = noisy @ basis.T + mean
    return rows


def identity_laplace(x: Array, sensitivity: float, epsilon: float, *, seed: int) -> Array:
    """The identity query with Laplace noise: each cell + Lap(L1 change of a row / epsilon)."""
    rng = np.random.default_rng(seed)
    return x + rng.laplace(scale=sensitivity / epsilon, size=x.shape)


def identity_exponential(
    x: Array, numeric: tuple[int, ...], groups: tuple[slice, ...], epsilon: float, *, seed: int
) -> Array:
    """The identity query by the exponential mechanism: epsilon is split evenly over the features.

    Numbers of [-1/2, 1/2] have quality -|z - x| (a truncated Laplace of scale 2/epsilon'), categories
    have quality 1 for the true level and 0 for any other.
    """
    rng = np.random.default_rng(seed)
    share = epsilon / (len(numeric) + len(groups))
    out = np.zeros_like(x)
    for j in numeric:
        out[:, j] = _truncated_laplace(x[:, j], 2.0 / share, rng)
    for group in groups:
        levels = group.stop - group.start
        kept = 1.0 / (1.0 + (levels - 1) * math.exp(-share / 2.0))
        truth = np.argmax(x[:, group], axis=1)
        other = (truth + rng.integers(1, max(levels, 2), len(x))) % levels
        chosen = np.where(rng.random(len(x)) < kept, truth, other)
        out[np.arange(len(x)), group.start + chosen] = 1.0
    return out


def _truncated_laplace(centre: Array, scale: float, rng: np.random.Generator) -> Array:
    """Draws from the density exp(-|z - centre| / scale) on [-1/2, 1/2], by inversion on each side."""
    left = -np.expm1(-(centre + 0.5) / scale)  # mass below the centre over the scale
    right = -np.expm1(-(0.5 - centre) / scale)
    below = rng.random(len(centre)) * (left + right) < left
    reach = np.where(below, left, right)
    distance = -scale * np.log1p(-rng.random(len(centre)) * reach)
    drawn: Array = np.clip(np.where(below, centre - distance, centre + distance), -0.5, 0.5)
    return drawn
