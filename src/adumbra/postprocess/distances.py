"""Squared distances between rows of a projected release: unbiased, with their error bars.

    D(p, q) = |p - q|^2 - 2 k s2                    s2, kappa: variance and 4th cumulant of the noise
    Var D   = Var|a R|^2 + 8 s2 |a|^2 + k (8 s2^2 + 2 kappa)

a is the difference of the two encoded rows. Gaussian noise has kappa = 0, Laplace noise kappa = 3 s2^2
(so that the last term is 14 k s2^2). The expectation is over the matrix and the noise: errors of
different pairs share the matrix and are not independent; an interval holds for one pair at a time.

Reference   Kenthapadi et al. 2013; Xu et al. 2017 (Algorithm 2, Theorem 3); Dhaliwal et al. 2019, whose
            Claim 7 is corrected here (docs/theory.md T15, E22).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.matrices import squared_length_variance
from adumbra.numerics import Array, Ints
from adumbra.postprocess.distance_laws import MOST_COMPONENTS, Shape, law_limits

BLOCK = 1024  # rows of one side of a block of pairs: 8 MiB of distances
INTERVALS = ("auto", "chi-square", "law", "normal", "chebyshev")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """What is on every released number: centred, independent, of known variance."""

    name: str  # "gaussian" or "laplace"
    variance: float  # s2, the rounding to the grid included
    fourth: float  # the fourth cumulant


def gaussian_law(sigma: float, grid: float) -> NoiseLaw:
    """The normal of standard deviation sigma, rounded to the grid (to exp(-2 pi^2 sigma^2/g^2))."""
    return NoiseLaw(name="gaussian", variance=sigma**2 + grid**2 / 12.0, fourth=-(grid**4) / 120.0)


def laplace_law(scale: float, grid: float) -> NoiseLaw:
    """The discrete Laplace P(m) ~ q^|m| on the grid, q = exp(-g/b): close to 2 b^2 and 12 b^4."""
    q, gap = math.exp(-grid / scale), -math.expm1(-grid / scale)
    variance = 2.0 * q * (grid / gap) ** 2
    fourth_moment = 2.0 * q * (1.0 + 10.0 * q + q * q) * (grid / gap) ** 4
    return NoiseLaw(name="laplace", variance=variance, fourth=fourth_moment - 3.0 * variance**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceModel:
    """All that is needed to read distances off a release; every field is public and on its card."""

    family: str  # of the projection
    n_features: int  # d
    n_components: int  # k
    noise: NoiseLaw
    unit: float = 1.0  # length of one released unit: squared distances are times unit^2
    nonzeros: int = 1  # of each row of the sparse family

    def variance(self, squared_distance: Array, fourth_power: float = 0.0) -> Array:
        """Var D where the true squared distance is this; `fourth_power` is the sum of a_j^4 if known."""
        square, s2, k = self.unit**2, self.noise.variance, self.n_components
        rho2 = np.asarray(squared_distance, dtype=np.float64) / square
        relative = squared_length_variance(self.family, 1.0, self.n_features, k)
        own = squared_length_variance(self.family, 0.0, self.n_features, k, fourth_power=fourth_power)
        drawn = relative * rho2**2 + own / square**2
        noise = 8.0 * s2 * rho2 + k * (8.0 * s2**2 + 2.0 * self.noise.fourth)
        return np.asarray(square**2 * (drawn + noise), dtype=np.float64)

    def standard_error(self, estimates: Array) -> Array:
        """The square root of the variance at the estimate itself, or at 0 where that is negative."""
        return np.asarray(np.sqrt(self.variance(np.maximum(estimates, 0.0))), dtype=np.float64)

    @property
    def offset(self) -> float:
        """2 k s2, what the noise adds to a squared distance on average, in the encoded unit."""
        return 2.0 * self.n_components * self.noise.variance * self.unit**2

    def in_encoded_units(self) -> "DistanceModel":
        """The model of the same rows after they were multiplied by `unit`."""
        variance, fourth = self.noise.variance * self.unit**2, self.noise.fourth * self.unit**4
        return replace(self, noise=replace(self.noise, variance=variance, fourth=fourth), unit=1.0)

    def averaged(self, left: int, right: int) -> "DistanceModel":
        """The model of the distance between the means of `left` and of `right` disjoint rows."""
        variance = self.noise.variance * (1.0 / left + 1.0 / right) / 2.0
        fourth = self.noise.fourth * (1.0 / left**3 + 1.0 / right**3) / 2.0
        return replace(self, noise=replace(self.noise, variance=variance, fourth=fourth))

    def to_facts(self) -> dict[str, object]:
        """Plain values for the card."""
        return {
            "family": self.family,
            "n_features": self.n_features,
            "n_components": self.n_components,
            "noise": self.noise.name,
            "noise_variance": self.noise.variance,
            "noise_fourth_cumulant": self.noise.fourth,
            "unit": self.unit,
            "nonzeros": self.nonzeros,
        }

    @staticmethod
    def from_facts(facts: Mapping[str, object]) -> "DistanceModel":
        """Read back what `to_facts` wrote: the card has it at `facts`, `distances`."""
        numbers = {}
        for name in ("n_features", "n_components", "noise_variance", "noise_fourth_cumulant", "unit"):
            value = facts.get(name)
            if not isinstance(value, int | float):
                raise InvalidInput(f"{name}: absent from these facts; give those of a projected release")
            numbers[name] = value
        law = NoiseLaw(
            name=str(facts["noise"]),
            variance=float(numbers["noise_variance"]),
            fourth=float(numbers["noise_fourth_cumulant"]),
        )
        return DistanceModel(
            family=str(facts["family"]),
            n_features=int(numbers["n_features"]),
            n_components=int(numbers["n_components"]),
            noise=law,
            unit=float(numbers["unit"]),
            nonzeros=nonzeros if isinstance(nonzeros := facts.get("nonzeros", 1), int) else 1,
        )


def interval(
    model: DistanceModel, estimates: Array, *, level: float = 0.95, method: str = "auto"
) -> tuple[Array, Array]:
    """Confidence limits for each squared distance, one pair at a time, clipped at 0.

    chi-square   exact for a Gaussian matrix with Gaussian noise: |p-q|^2 = (rho^2/k + 2 s2) chi2_k
    law          the law of |p-q|^2 itself (`distance_laws`): exact for `gaussian` and `haar`; with the
                 other families it covers at least as often as stated, as far as measured
    normal       estimate +- z standard errors at the estimate; too short where few coordinates add up
    chebyshev    the same with 1/sqrt(1 - level) for z; holds for any shape, if the standard error does

    `auto` takes the first where it can, else the second: for more than 256 components, normal limits
    at the standard error of the distance itself.
    """
    require(0.0 < level < 1.0, f"level={level}: must lie between 0 and 1")
    require(method in INTERVALS, f"method={method}: unknown; use one of {', '.join(INTERVALS)}")
    exact = model.family == "gaussian" and model.noise.name == "gaussian"
    if method == "auto":
        method = "chi-square" if exact else "law"
    from scipy.special import chdtri, ndtri  # noqa: PLC0415 - slow to import, and no release needs it

    tail, k = (1.0 - level) / 2.0, model.n_components
    if method == "chi-square":
        require(exact, f"method={method}: needs a gaussian matrix and gaussian noise; use 'normal'")
        ratio = (np.asarray(estimates) + model.offset) * k
        low = ratio / chdtri(k, tail) - model.offset
        high = ratio / chdtri(k, 1.0 - tail) - model.offset
    elif method == "law":
        return _law_interval(model, np.asarray(estimates, dtype=np.float64), level)
    else:
        width = float(ndtri(1.0 - tail)) if method == "normal" else 1.0 / math.sqrt(1.0 - level)
        error = width * model.standard_error(estimates)
        low, high = estimates - error, estimates + error
    return np.maximum(low, 0.0), np.maximum(high, 0.0)


def _law_interval(model: DistanceModel, estimates: Array, level: float) -> tuple[Array, Array]:
    """Limits from the law of the released distance, or its normal limit where many numbers add up."""
    encoded = model.in_encoded_units()
    if model.n_components > MOST_COMPONENTS:
        # |D - rho^2| = z sd(rho^2), whose square is a polynomial c0 + c1 rho^2 + c2 rho^4
        from scipy.special import ndtri  # noqa: PLC0415 - as above

        z2 = float(ndtri((1.0 + level) / 2.0)) ** 2
        c0 = float(encoded.variance(np.array(0.0)))
        c2 = float(squared_length_variance(model.family, 1.0, model.n_features, model.n_components))
        c1 = float(encoded.variance(np.array(1.0))) - c0 - c2
        half, lead = estimates + z2 * c1 / 2.0, 1.0 - z2 * c2
        root = np.sqrt(np.maximum(half**2 - lead * (estimates**2 - z2 * c0), 0.0))
        return np.maximum((half - root) / lead, 0.0), np.maximum((half + root) / lead, 0.0)
    shape = Shape(
        family=encoded.family,
        n_features=encoded.n_features,
        n_components=encoded.n_components,
        nonzeros=encoded.nonzeros,
        variance=encoded.noise.variance,
        fourth=encoded.noise.fourth,
    )
    return law_limits(shape, estimates, level)


def pair_distances(model: DistanceModel, left: Array, right: Array) -> Array:
    """D of row i of `left` with row i of `right`; may be negative, which is the price of no bias."""
    _require_rows(model, left, right)
    require(left.shape == right.shape, f"{len(left)} and {len(right)} rows: pairs need as many of both")
    gap = left - right
    return np.asarray(np.einsum("ij,ij->i", gap, gap) * model.unit**2 - model.offset)


def block_distances(model: DistanceModel, left: Array, right: Array) -> Array:
    """D of every row of `left` with every row of `right`."""
    _require_rows(model, left, right)
    middle = left.mean(axis=0)  # a common shift: the formula below then loses no digits
    left, right = left - middle, right - middle
    squares = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right)
    return np.asarray((squares - 2.0 * (left @ right.T)) * model.unit**2 - model.offset)


@dataclass(frozen=True, slots=True)
class PairBlock:
    """D of rows `row`, `row + 1`, ... with rows `column`, `column + 1`, ..."""

    row: int
    column: int
    distances: Array


def all_pairs(model: DistanceModel, rows: Array, *, block: int = BLOCK) -> Iterator[PairBlock]:
    """Every pair once, in blocks on and above the diagonal; memory is one block, never n^2.

    A block on the diagonal holds its pairs twice and each row with itself; take its upper triangle.
    """
    require(block >= 1, f"block={block}: must be at least 1")
    _require_rows(model, rows, rows)
    for i in range(0, len(rows), block):
        for j in range(i, len(rows), block):
            yield PairBlock(i, j, block_distances(model, rows[i : i + block], rows[j : j + block]))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest rows of each query, nearest first; all arrays are queries x count."""

    rows: Ints
    distances: Array  # unbiased for a pair fixed beforehand; a minimum over many pairs reads too low
    standard_errors: Array


def nearest(  # noqa: PLR0913 - two tables, what to find in them, and how much memory to use
    model: DistanceModel,
    queries: Array,
    rows: Array,
    count: int,
    *,
    own: Ints | None = None,
    block: int = BLOCK,
) -> Nearest:
    """The `count` rows with the smallest D for each query, found block by block.

    `own` holds the row that each query itself is, to be left out.
    """
    others = len(rows) - (own is not None)
    require(1 <= count <= others, f"count={count}: must lie between 1 and the {others} rows")
    found = np.empty((len(queries), 0), dtype=np.int64)
    values = np.empty((len(queries), 0))
    for j in range(0, len(rows), block):
        part = block_distances(model, queries, rows[j : j + block])
        places = np.broadcast_to(np.arange(j, j + part.shape[1]), part.shape)
        if own is not None:
            part = np.where(places == own[:, None], np.inf, part)
        found, values = np.concatenate([found, places], axis=1), np.concatenate([values, part], axis=1)
        order = np.argsort(values, axis=1, kind="stable")[:, :count]
        found, values = np.take_along_axis(found, order, 1), np.take_along_axis(values, order, 1)
    return Nearest(found, values, model.standard_error(values))


def centroid_distance(model: DistanceModel, left: Array, right: Array) -> tuple[float, DistanceModel]:
    """D between the means of two disjoint groups, and the model that holds its error bars.

    Means carry 1/n of the noise variance, so groups answer well where single rows are drowned.
    """
    _require_rows(model, left, right)
    require(len(left) > 0 and len(right) > 0, "0 rows: a mean needs at least one")
    mean_model = model.averaged(len(left), len(right))
    pair = pair_distances(mean_model, left.mean(axis=0)[None], right.mean(axis=0)[None])
    return float(pair[0]), mean_model


def _require_rows(model: DistanceModel, left: Array, right: Array) -> None:
    fits = all(side.ndim == 2 and side.shape[1] == model.n_components for side in (left, right))
    require(fits, f"rows: must have the {model.n_components} columns of the release")
