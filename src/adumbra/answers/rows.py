"""Ratios of sums over one noisy histogram, with the exact law of their noise.

A histogram has m cells with independent noise of standard deviation s, and its rows are N, known exactly
or with an error e_N that meets the cells' noise only through their sum. Moved to its total,

    h' = h + (N - sum h) / m,        R = sum w h' / sum d h'

has, to first order, the error [sum (a_c - mean a) e_c + mean(a) e_N] / D with a = w - R d, D = sum d h'.
The terms are uncorrelated: the first one does not see the sum of the cells. Cells of several classes
that were made to agree with a histogram over all classes share a covariance, cell by cell. Derivation:
docs/explanation/answers.md.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from adumbra.answers.estimate import Asked
from adumbra.answers.reported import Law, reported_reach
from adumbra.numerics import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """The released cells of one column, over all rows or in one class."""

    counts: Array = field(repr=False)
    sigma: float  # standard deviation of a cell, but for what it shares
    size: float  # rows: public, or estimated
    size_variance: float  # 0 where the number of rows is public
    is_laplace: bool
    layers: int = 1  # counts are of so many classes, one behind the other ...
    shared: float = 0.0  # ... whose noise has this covariance in each cell, added to sigma^2

    @property
    def moved(self) -> Array:
        """The cells, moved so that they add up to the rows."""
        rest = (np.asarray(self.size) - self.counts.sum(-1)) / self.counts.shape[-1]
        return np.asarray(self.counts + rest[..., None])

    def total(self, weights: Array) -> tuple[float, float]:
        """A weighted sum of the true cells, and its standard deviation."""
        return float(weights @ self.moved), float(self.deviation(weights))

    def ratio(self, weights: Array, among: Array) -> "Ratio":
        """The mean of weights over the rows that `among` marks."""
        value, slope, law = self.law(weights, among)
        size = float(law.size)
        if not law.is_reported:
            return Ratio(math.nan, math.inf, size, 0.0, law)
        return Ratio(float(value), float(law.noise), size, float(slope), law)

    def law(self, weights: Array, among: Array) -> tuple[Array, Array, Law]:
        """The mean, how it moves with the rows, and its law (of each draw, if counts are of several)."""
        moved = self.moved
        size = moved @ among
        value = np.asarray((moved @ weights) / np.where(size == 0, math.nan, size))
        gradient = weights - value[..., None] * among
        slope, rows = self._centred(gradient), self._centred(among)
        parts = [self._shared(*pair) for pair in ((slope, slope), (slope, rows), (rows, rows))]
        law = Law.of_ratio(size, *parts, is_laplace=self.is_laplace)
        return value, np.asarray(slope.mean / size), law

    def deviation(self, weights: Array) -> Array:
        """The standard deviation of a weighted sum of the moved cells, or of several."""
        centred = self._centred(weights)
        return np.sqrt(np.maximum(self._shared(centred, centred), 0.0))

    def _centred(self, weights: Array) -> "Centred":
        """Weights around their mean, and their sums over classes."""
        mean = weights.mean(-1)
        rest = weights - mean[..., None]
        layers = rest.reshape(*rest.shape[:-1], self.layers, -1).sum(-2) if self.shared else rest
        return Centred(mean, rest, layers)

    def _shared(self, one: "Centred", other: "Centred") -> Array:
        """The covariance of two sums over the moved cells."""
        noise = self.sigma**2 * (one.rest * other.rest).sum(-1)
        if self.shared:
            noise = noise + self.shared * (one.layers * other.layers).sum(-1)
        return np.asarray(noise + one.mean * other.mean * self.size_variance)


@dataclass(frozen=True, slots=True)
class Centred:
    """Weights of cells around their mean, and, where classes share noise, their sums over classes."""

    mean: Array
    rest: Array
    layers: Array


@dataclass(frozen=True, slots=True)
class Ratio:
    """A mean, its noise, its rows, and how it moves with the number of rows of its histogram."""

    value: float
    noise: float
    size: float
    size_slope: float
    law: Law

    def reported_reach(self, asked: Asked) -> float:
        """Standard deviations that a test against it allows, at worst."""
        (gate,) = self.law.gates
        stands, one = [gate.stands], [np.ones(())]
        return float(reported_reach(asked.level, stands, one, is_laplace=self.law.is_laplace))

    @property
    def is_hidden(self) -> bool:
        """Whether its rows do not stand out of the noise."""
        return math.isnan(self.value)


def proportion_variance(share: float, noise: float, size: float) -> float:
    """Sampling variance of a share; never less than that of a share within the noise of 0 or 1."""
    inside = min(max(share, min(noise, 0.5)), 1.0 - min(noise, 0.5))
    return inside * (1.0 - inside) / max(size, 1.0)
