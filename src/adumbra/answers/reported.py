"""Intervals that hold among the answers that are reported, and not only over all releases.

An answer is reported where a noisy size D (rows of a class, what a column has of its own, a variance)
stands `REPORTED` standard deviations out of its noise. Such a D was often pushed up by the noise, and
the answer with it. Two steps mend that.

*Test inversion.* W(t) = error of D (value + t) is noise alone at the true t, with the variance
V0 - 2 t C + t^2 V1: a quadratic set (Fieller), long on the side where D may be too large.

*The law of what is reported.* W / sd is compared with its law given that D was reported, which depends
on the correlation of both and on how likely D was to be reported. That chance has a lower confidence
limit from D itself, for which a part of the chance of a miss is set aside; it is not taken below `RARE`.

Derivation: docs/explanation/answers.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from adumbra.numerics import Array

Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

REPORTED = 4.0  # standard deviations of its noise from which a size is reported
RARE = 0.01  # what is reported more seldom than this may be wrong more often than its level says
USUAL = 0.95
SET_ASIDE = 0.04  # of the chance of a miss, for the chance of being reported
NEAR = -3.5  # from here on the chance of being reported counts: it may be below ndtr(3.5)
MOST = float(-ndtri(RARE))
STEPS = 8  # of the iteration from above: each step's end lies outside the next
TINY = 1e-300
BENT = 0.03  # from here on intervals of a fit are seen to cover more than they say
NEAR_NOTE = (
    "conservative: noise is a large part of this, and the interval holds among answers that are given"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A size that had to be reported: D over its deviation; how W(t) varies with its noise (sd 1)."""

    stands: Array  # standard deviations that it stands out
    at_value: Array  # of W at t = 0
    per_step: Array  # less so much for each unit of t


@dataclass(frozen=True, slots=True)
class Law:
    """W(t), the noise of D (value + t): its variance is at_value - 2 t shared + t^2 size_variance."""

    size: Array  # D
    at_value: Array  # V0
    shared: Array  # C
    size_variance: Array  # V1
    gates: tuple[Gate, ...]
    is_laplace: bool = False
    bent: Array = field(default_factory=lambda: np.zeros(()))  # what noise elsewhere takes of D, of D

    @classmethod
    def of_ratio(
        cls, size: Array, at_value: Array, shared: Array, size_variance: Array, *, is_laplace: bool
    ) -> "Law":
        """Of a value that is reported where its own denominator is."""
        deviation = np.sqrt(np.maximum(size_variance, TINY))
        gate = Gate(stands_out(size, deviation, is_laplace=is_laplace), shared / deviation, deviation)
        return cls(size, at_value, shared, size_variance, (gate,), is_laplace)

    @property
    def is_reported(self) -> Flags:
        """Whether every size stands out of its noise."""
        reported = np.asarray(self.size) > 0
        for gate in self.gates:
            reported = reported & (gate.stands >= REPORTED)
        return np.asarray(reported)

    @property
    def is_near(self) -> Flags:
        """Whether the chance of being reported may be well below 1."""
        near = [reluctance(gate.stands, 1.0 - USUAL) > NEAR for gate in self.gates]
        return np.asarray(np.logical_or.reduce(near))

    @property
    def is_conservative(self) -> Flags:
        """Whether its interval may well cover more often than its level."""
        return np.asarray(self.is_near | (np.abs(self.bent) > BENT))

    @property
    def noise(self) -> Array:
        """The standard deviation of the value, to first order."""
        return np.sqrt(np.maximum(self.at_value, 0.0)) / np.abs(self.size)

    def at(self, place: int) -> "Law":
        """The law of one of several values."""
        gates = tuple(
            Gate(gate.stands[..., place], gate.at_value[..., place], gate.per_step[..., place])
            for gate in self.gates
        )
        bent = np.broadcast_to(self.bent, np.shape(self.size))[..., place]
        size, shared = self.size[..., place], self.shared[..., place]
        spread = self.size_variance[..., place]
        return Law(size, self.at_value[..., place], shared, spread, gates, self.is_laplace, bent)

    def sides(self, level: float) -> tuple[Array, Array]:
        """How far the interval reaches below and above the value; infinite where nothing bounds it."""
        return self._side(level, -1.0), self._side(level, 1.0)

    def _side(self, level: float, sign: float) -> Array:
        ones = [np.ones(np.shape(self.size))] * len(self.gates)
        step = self._solve(self._reach(level, ones), sign)
        if all(is_far(gate.stands, 1.0 - level) for gate in self.gates):
            return step
        for _ in range(STEPS):
            tilts = [self._tilt(gate, sign, step) for gate in self.gates]
            step = np.minimum(step, self._solve(self._reach(level, tilts), sign))
        return step

    def _solve(self, reach: Array, sign: float) -> Array:
        """The largest t with D t <= reach sd(sign t)."""
        square = reach**2
        lead = self.size**2 - square * self.size_variance
        half = -square * sign * self.shared
        root = np.sqrt(np.maximum(half**2 + lead * square * self.at_value, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(lead > 0, (half + root) / lead, np.inf)

    def _tilt(self, gate: Gate, sign: float, step: Array) -> Array:
        """The correlation of -sign W(sign step) with the noise of a size that had to be reported."""
        finite = np.where(np.isfinite(step), step, 0.0) * sign
        square = self.at_value - 2.0 * finite * self.shared + finite**2 * self.size_variance
        along = -sign * (gate.at_value - finite * gate.per_step) / np.sqrt(np.maximum(square, TINY))
        return np.where(np.isfinite(step), np.clip(along, -1.0, 1.0), 1.0)

    def _reach(self, level: float, tilts: Sequence[Array]) -> Array:
        stands = [gate.stands for gate in self.gates]
        return reported_reach(level, stands, tilts, is_laplace=self.is_laplace)


def stands_out(size: Array, deviation: Array, *, is_laplace: bool) -> Array:
    """Standard deviations that a size stands out; of Laplace noise, those of an equally rare normal."""
    found = np.asarray(size) / np.maximum(deviation, TINY)
    if not is_laplace:
        return found
    return np.asarray(-ndtri_exp(math.log(0.5) - math.sqrt(2.0) * np.clip(found, 0.0, 1e300)))


def reported_reach(
    level: float, stands: Sequence[Array], tilts: Sequence[Array], *, is_laplace: bool
) -> Array:
    """Standard deviations of W that its law allows, given that sizes were reported (each: its tilt)."""
    miss = 1.0 - level
    plain = float(-ndtri(miss / 2.0))
    found = np.asarray(plain)
    for out, tilt in zip(stands, tilts, strict=True):
        if is_far(out, miss):
            continue
        away = reluctance(out, miss)
        reported = reported_quantile(miss * (1.0 - SET_ASIDE) / 2.0, tilt, away)
        found = found + np.where(away > NEAR, np.maximum(reported - plain, 0.0), 0.0)
    if not is_laplace:
        return found
    return np.asarray(np.maximum(found, (math.log(0.5) - log_ndtr(-found)) / math.sqrt(2.0)))


def reluctance(stands: Array, miss: float) -> Array:
    """REPORTED less the least true size that fits what stands out, in deviations: the larger, the rarer.

    That least size has a chance of SET_ASIDE miss to stand out so far, given that it is reported.
    """
    grid, beyond = _beyond(miss)
    return np.asarray(np.interp(stands, beyond, grid))


@lru_cache(maxsize=16)
def _beyond(miss: float) -> tuple[Array, Array]:
    """How far sizes that fall short of REPORTED by so much stand out, at most: with growing ends."""
    grid = np.linspace(MOST, NEAR - 1.5, 200)
    return grid, np.asarray(REPORTED - ndtri(SET_ASIDE * miss * ndtr(-grid)) - grid)


def is_far(stands: Array, miss: float) -> bool:
    """Whether all stand out so far that they were sure to be reported."""
    return bool(np.min(stands) > _far(miss))


@lru_cache(maxsize=16)
def _far(miss: float) -> float:
    """How far a size stands out that was sure to be reported."""
    grid, beyond = _beyond(miss)
    return float(np.interp(-NEAR, -grid, beyond))


def reported_quantile(tail: float, tilt: Array, away: Array) -> Array:
    """What U passes with chance `tail`, given Z > away; U and Z are normal with correlation tilt."""
    tilts, aways, values = _table(float(tail))
    x = np.clip((np.asarray(tilt) + 1.0) / (tilts[1] - tilts[0]), 0.0, len(tilts) - 1.000001)
    y = np.clip((np.asarray(away) - aways[0]) / (aways[1] - aways[0]), 0.0, len(aways) - 1.000001)
    i, j = x.astype(int), y.astype(int)
    u, v = x - i, y - j
    low = values[i, j] * (1 - v) + values[i, j + 1] * v
    high = values[i + 1, j] * (1 - v) + values[i + 1, j + 1] * v
    return np.asarray(low * (1 - u) + high * u)


@lru_cache(maxsize=16)
def _table(tail: float) -> tuple[Array, Array, Array]:
    """`reported_quantile` on a grid, by Gauss-Legendre quadrature and bisection."""
    tilts, aways = np.linspace(-1.0, 1.0, 81), np.linspace(NEAR - 1.5, MOST, 41)
    nodes, weights = np.polynomial.legendre.leggauss(48)
    places, weights = (nodes + 1.0) / 2.0, weights / 2.0
    chance = ndtr(-aways)
    z = -ndtri(chance[:, None] * places)  # Z given Z > away, at these shares of its law
    inner, values = np.clip(tilts, -0.995, 0.995), np.zeros((len(tilts), len(aways)))
    across = np.sqrt(1.0 - inner**2)[:, None, None]
    low, high = np.full(values.shape, -8.0), np.full(values.shape, 8.0)
    for _ in range(40):
        values = (low + high) / 2.0
        above = ndtr((inner[:, None, None] * z - values[:, :, None]) / across) @ weights
        low, high = np.where(above > tail, values, low), np.where(above > tail, high, values)
    values[-1] = -ndtri(tail * chance)
    values[0] = ndtri((1.0 - tail) * chance)
    return tilts, aways, values
