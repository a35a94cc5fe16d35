"""Limits of a squared distance from the law of what is released, for every family of matrix.

    Q = |a R + e|^2     a the difference of two encoded rows, rho = |a|; e the difference of their noises

An interval at level 1 - t holds every rho^2 under which Q lies between the t/2 and the 1 - t/2 quantile
of its law. The quantiles come from `DRAWS` draws of a public generator: a R = rho v, so that

    Q = rho^2 |v|^2 + 2 rho (v . e) + |e|^2

and the same draws of (|v|^2, v . e, |e|^2) serve every rho.

gaussian, haar   v has one law whatever a is: coverage is as stated
others           the law of v depends on how many cells differ. No cell differs by more than 1, so
                 that at least rho^2 of them do. The interval is the union over m equal cells, for each m
                 that this allows, and many cells: it covers at least as often as stated, by measurement
                 and not by proof (unequal cells lie between; benchmarks/distance_coverage.py).

Noise is given by its variance and fourth cumulant: a variance-gamma law, which the difference of two
Laplace numbers is, and means of them nearly are. Only released and public numbers come in.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from adumbra.numerics import Array

DRAWS = 16_384
SEED = 20_130_515
MOST_COMPONENTS = 256  # beyond it, sums of so many terms are normal (`distances.interval`)
EQUAL_CELLS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
FINEST, COARSEST, STEPS = 1e-4, 1e5, 181  # of the grid of rho^2, relative to the noise or to one cell
UNIFORM = ("gaussian", "haar")  # one law for all directions


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All that the law of Q depends on, in units in which one cell differs by at most 1."""

    family: str
    n_features: int
    n_components: int
    nonzeros: int
    variance: float  # of the noise on one released number
    fourth: float


def law_limits(shape: Shape, estimates: Array, level: float) -> tuple[Array, Array]:
    """Confidence limits of rho^2 for unbiased estimates D = Q - E|e|^2, at least 0."""
    grid, lower, upper = _quantiles(shape, level)
    low = np.interp(estimates, upper, grid, left=0.0)
    high = np.interp(estimates, lower, grid, left=0.0, right=np.inf)
    return low, np.maximum(high, low)


@lru_cache(maxsize=64)
def _quantiles(shape: Shape, level: float) -> tuple[Array, Array, Array]:
    """For each rho^2 of a grid the quantiles of D, monotone in rho^2, lowest and highest over laws."""
    noise = 2.0 * shape.n_components * shape.variance
    unit = max(min(1.0, float(shape.n_features)), noise)
    grid = np.concatenate([[0.0], np.geomspace(FINEST * min(1.0, unit), COARSEST * unit, STEPS)])
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    lower, upper = np.full(len(grid), np.inf), np.full(len(grid), -np.inf)
    for cells, lengths, products, squares in _draws(shape):
        for place, rho2 in enumerate(grid):
            if cells is not None and cells <= rho2 - 1.0:
                break  # a distance this long takes more cells
            seen = rho2 * lengths + 2.0 * math.sqrt(rho2) * products + squares
            ends = np.quantile(seen, tails) - noise
            lower[place] = min(lower[place], ends[0])
            upper[place] = max(upper[place], ends[1])
    # Any rho^2 between two accepted ones is accepted: the interval is their hull.
    return grid, np.minimum.accumulate(lower[::-1])[::-1], np.maximum.accumulate(upper)


def _draws(shape: Shape) -> Iterator[tuple[int | None, Array, Array, Array]]:
    """How many equal cells (None: many), |v|^2, v . e and |e|^2."""
    rng = np.random.default_rng(SEED)
    k = shape.n_components
    noise = _noise(shape, rng)
    squares = np.einsum("ij,ij->i", noise, noise)
    for cells in (None, *(() if shape.family in UNIFORM else EQUAL_CELLS)):
        if cells is not None and cells > shape.n_features:
            break
        v = _many(shape, rng) if cells is None else _few(shape, cells, rng)
        lengths, products = np.einsum("ij,ij->i", v, v), np.einsum("ij,ij->i", v, noise)
        yield cells, lengths, products, squares
    if shape.family == "identity" and shape.n_features > EQUAL_CELLS[-1]:
        v = np.full((DRAWS, k), 1.0 / math.sqrt(k)) * rng.choice([-1.0, 1.0], (DRAWS, k))
        yield None, np.ones(DRAWS), np.einsum("ij,ij->i", v, noise), squares


def _noise(shape: Shape, rng: np.random.Generator) -> Array:
    """The difference of the noises of two rows: variance 2 s2, fourth cumulant 2 kappa."""
    size = (DRAWS, shape.n_components)
    normal = rng.standard_normal(size) * math.sqrt(2.0 * shape.variance)
    if shape.fourth <= 1e-3 * shape.variance**2:
        return normal
    terms = (
        6.0 * shape.variance**2 / shape.fourth
    )  # as many Laplace numbers have this shape: 2 for one pair
    return normal * np.sqrt(rng.standard_gamma(terms, size) / terms)


def _many(shape: Shape, rng: np.random.Generator) -> Array:
    """Draw v where many cells differ: normal, of length sqrt(d/k Beta) for haar, 1 for identity."""
    k, d = shape.n_components, shape.n_features
    normal = rng.standard_normal((DRAWS, k))
    if shape.family in ("haar", "identity"):
        normal /= np.sqrt(np.einsum("ij,ij->i", normal, normal))[:, None]
        if k < d:
            normal *= np.sqrt(d / k * rng.beta(k / 2.0, (d - k) / 2.0, DRAWS))[:, None]
        return normal
    return normal / math.sqrt(k)


def _few(shape: Shape, cells: int, rng: np.random.Generator) -> Array:
    """Draw v where this many cells differ by equal amounts."""
    k = shape.n_components
    match shape.family:
        case "sphere":
            return _walk(k, cells, rng)
        case "rademacher":
            heads = rng.binomial(cells, 0.5, (DRAWS, k)).astype(np.float64)
            return (2.0 * heads - cells) / math.sqrt(cells * k)
        case "sparse":
            return _buckets(k, cells, min(shape.nonzeros, k), rng)
        case _:  # identity: which cells they are does not matter
            v = np.zeros((DRAWS, k))
            v[:, :cells] = 1.0 / math.sqrt(cells)
            return v


def _walk(k: int, cells: int, rng: np.random.Generator) -> Array:
    """A walk of equal steps, each in a uniform direction: its length step by step, then a direction."""
    square = np.ones(DRAWS)
    for _ in range(cells - 1):
        if k == 1:
            cosine = rng.choice([-1.0, 1.0], DRAWS)
        else:
            cosine = 2.0 * rng.beta((k - 1) / 2.0, (k - 1) / 2.0, DRAWS) - 1.0
        square = np.maximum(square + 1.0 + 2.0 * np.sqrt(square) * cosine, 0.0)
    towards = rng.standard_normal((DRAWS, k))
    length = np.sqrt(np.einsum("ij,ij->i", towards, towards))
    scaled: Array = towards * (np.sqrt(square / cells) / length)[:, None]
    return scaled


def _buckets(k: int, cells: int, nonzeros: int, rng: np.random.Generator) -> Array:
    """Each cell adds a sign to `nonzeros` different places (Floyd's draw without repeats)."""
    rows = DRAWS * cells
    places = np.empty((rows, nonzeros), dtype=np.int64)
    for turn, last in enumerate(range(k - nonzeros, k)):
        drawn = rng.integers(0, last + 1, rows)
        taken = (places[:, :turn] == drawn[:, None]).any(axis=1)
        places[:, turn] = np.where(taken, last, drawn)
    flat = np.repeat(np.arange(DRAWS) * k, cells * nonzeros) + places.ravel()
    signs = rng.choice([-1.0, 1.0], len(flat)) / math.sqrt(cells * nonzeros)
    summed = np.bincount(flat, signs, minlength=DRAWS * k)
    return np.asarray(summed, dtype=np.float64).reshape(DRAWS, k)
