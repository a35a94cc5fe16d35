"""Projection matrices on the lattice 2^-20: what is drawn is what is published, hashed and measured.

    E |a R|^2 = |a|^2 for every family (up to the rounding), so squared distances survive on average

    gaussian     entries N(0, 1/k)
    sphere       Gaussian rows scaled to norm 1
    rademacher   entries +-1/sqrt(k)
    sparse       s entries +-1/sqrt(s) in each row; s=1 is the count-sketch
    haar         sqrt(d/k) W, with W uniform among matrices with orthonormal columns
    identity     k = d, no projection

Rounding comes first and every norm is taken of the rounded matrix (`statistics.projections`), so a proof
never needs the law of the draw. The matrix is treated as public everywhere, also when it is kept secret.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import require
from adumbra.numerics import MATRIX_BITS, Array

Words = Callable[[int], NDArray[np.uint64]]  # the next `count` uniform 64-bit words of a stream

FAMILIES = ("gaussian", "sphere", "rademacher", "sparse", "haar", "identity")
CLIP_TAIL = 1e-3  # share of rows that the radius is expected to shorten, over the draw of the matrix
LONGEST_ROW = 2.0**30  # in units: norm 2^10; squares of rows and of their differences then fit int64


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionMatrix:
    """The exact matrix `units * 2**exponent` (d x k), integers held in read-only float64."""

    units: Array
    exponent: int = -MATRIX_BITS
    family: str = "given"
    seed: int | None = None
    # Follows from the units, held once because every block of rows asks:
    longest_column: float = field(init=False, repr=False)  # its L2 norm
    largest_column: float = field(init=False, repr=False)  # its L1 norm

    def __post_init__(self) -> None:
        units = self.units
        shaped = isinstance(units, np.ndarray) and units.dtype == np.float64 and units.ndim == 2
        require(shaped and units.size > 0, "units: a projection matrix is a filled d x k float64 array")
        whole = bool(np.all(np.rint(units) == units))  # NaN is not, infinity is
        require(whole, "units: every entry must be an integer; use `lattice_matrix`")
        longest = math.sqrt(float(np.max(np.sum(units**2, axis=1))))
        require(longest <= LONGEST_ROW, "units: a row is longer than 1024; scale the matrix down")
        units.setflags(write=False)
        sizes = np.abs(units)
        object.__setattr__(self, "longest_column", math.sqrt(float(np.max(np.sum(sizes**2, axis=0)))))
        object.__setattr__(self, "largest_column", float(np.max(np.sum(sizes, axis=0))))

    @property
    def n_features(self) -> int:
        """d, the length of a row that goes in."""
        return int(self.units.shape[0])

    @property
    def n_components(self) -> int:
        """k, the length of a row that comes out."""
        return int(self.units.shape[1])

    def to_float(self) -> Array:
        """Return the matrix as float64, exactly."""
        return np.ldexp(self.units, self.exponent)


def public_matrix(
    family: str, n_features: int, n_components: int, *, matrix_seed: int, nonzeros: int = 1
) -> ProjectionMatrix:
    """Draw a matrix that anybody can draw again from its seed."""
    require(matrix_seed >= 0, f"matrix_seed={matrix_seed}: must be 0 or above")
    words = np.random.default_rng(matrix_seed).bit_generator.random_raw
    values = draw_values(family, n_features, n_components, words, nonzeros=nonzeros)
    return lattice_matrix(values, family=family, seed=matrix_seed)


def matrix_from_words(
    family: str, n_features: int, n_components: int, words: Words, *, nonzeros: int = 1
) -> ProjectionMatrix:
    """Draw a matrix from a stream that is not written down (JL + Laplace: the grant's own)."""
    values = draw_values(family, n_features, n_components, words, nonzeros=nonzeros)
    return lattice_matrix(values, family=family)


def orthonormal_matrix(n_features: int, n_components: int, *, matrix_seed: int) -> ProjectionMatrix:
    """W itself, uniform with orthonormal columns (to 2^-20): `haar` without its factor sqrt(d/k)."""
    require_shape("haar", n_features, n_components)
    words = np.random.default_rng(matrix_seed).bit_generator.random_raw
    return lattice_matrix(_haar(n_features, n_components, words), family="orthonormal", seed=matrix_seed)


def lattice_matrix(values: Array, *, family: str = "given", seed: int | None = None) -> ProjectionMatrix:
    """Round a real matrix to the nearest multiples of 2^-20."""
    return ProjectionMatrix(np.rint(np.ldexp(values, MATRIX_BITS)), -MATRIX_BITS, family, seed)


def require_shape(family: str, n_features: int, n_components: int, *, nonzeros: int = 1) -> None:
    """Refuse a shape that the family does not have."""
    require(family in FAMILIES, f"family={family}: unknown; use one of {', '.join(FAMILIES)}")
    require(n_features >= 1, f"n_features={n_features}: must be at least 1")
    require(n_components >= 1, f"n_components={n_components}: must be at least 1")
    fits = family != "haar" or n_components <= n_features
    require(fits, f"n_components={n_components}: haar needs at most n_features={n_features}")
    square = family != "identity" or n_components == n_features
    require(square, f"n_components={n_components}: identity needs exactly n_features={n_features}")
    filled = family != "sparse" or 1 <= nonzeros <= n_components
    require(filled, f"nonzeros={nonzeros}: must lie between 1 and n_components={n_components}")


def draw_values(
    family: str, n_features: int, n_components: int, words: Words, *, nonzeros: int = 1
) -> Array:
    """Draw the real matrix of a family, before rounding; the words are read in one fixed order."""
    require_shape(family, n_features, n_components, nonzeros=nonzeros)
    shape = (n_features, n_components)
    match family:
        case "gaussian":
            return _normal(shape, words) / math.sqrt(n_components)
        case "sphere":
            normal = _normal(shape, words)
            return np.asarray(normal / np.sqrt(np.sum(normal**2, axis=1, keepdims=True)))
        case "rademacher":
            return _signs(shape, words) / math.sqrt(n_components)
        case "sparse":
            return _sparse(shape, nonzeros, words)
        case "haar":
            return math.sqrt(n_features / n_components) * _haar(n_features, n_components, words)
        case _:
            return np.eye(n_features)


def squared_length_variance(
    family: str, squared_length: float, n_features: int, n_components: int, *, fourth_power: float = 0.0
) -> float:
    """Var |a R|^2 over the draw of R, from |a|^2 and the sum of a_j^4 (0 gives an upper bound).

    gaussian (2/k)|a|^4; sphere, rademacher, sparse (2/k)(|a|^4 - sum a^4); haar (2/k)|a|^4 (d-k)/(d+2).
    """
    base = 2.0 / n_components * squared_length**2
    match family:
        case "identity":
            return 0.0
        case "haar":
            return base * (n_features - n_components) / (n_features + 2.0)
        case "sphere" | "rademacher" | "sparse":
            return base - 2.0 / n_components * fourth_power
        case _:
            return base


def _uniform(shape: tuple[int, int], words: Words) -> Array:
    """Uniforms strictly inside (0, 1): the middles of 2^52 cells, each exact in float64."""
    cells = (words(shape[0] * shape[1]) >> np.uint64(12)).astype(np.float64).reshape(shape)
    return (cells + 0.5) * 2.0**-52


def _normal(shape: tuple[int, int], words: Words) -> Array:
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, and most methods draw no matrix

    return np.asarray(ndtri(_uniform(shape, words)), dtype=np.float64)


def _signs(shape: tuple[int, int], words: Words) -> Array:
    top_bits = (words(shape[0] * shape[1]) >> np.uint64(63)).astype(np.float64)
    return (2.0 * top_bits - 1.0).reshape(shape)


def _sparse(shape: tuple[int, int], nonzeros: int, words: Words) -> Array:
    """Per row a uniform set of `nonzeros` places (those of the smallest words) with random signs."""
    places = np.argsort(_uniform(shape, words), axis=1, kind="stable")[:, :nonzeros]
    signs = _signs((shape[0], nonzeros), words) / math.sqrt(nonzeros)
    values = np.zeros(shape)
    np.put_along_axis(values, places, signs, axis=1)
    return values


def _haar(n_features: int, n_components: int, words: Words) -> Array:
    """QR of a Gaussian matrix without the signs of diag(R), which makes it Haar (Mezzadri 2007)."""
    q, r = np.linalg.qr(_normal((n_features, n_components), words))
    return np.asarray(q * np.where(np.diag(r) < 0.0, -1.0, 1.0), dtype=np.float64)


def clip_radius(family: str, n_features: int, n_components: int, tail: float = CLIP_TAIL) -> float:
    """The radius that a unit row passes with chance `tail` over the draw: exact for gaussian and haar.

    gaussian  |x R|^2 ~ chi2_k / k            haar  |x R|^2 ~ (d/k) Beta(k/2, (d-k)/2)
    The other families have nearly the law of the first. Privacy holds for any radius.
    """
    require(0.0 < tail < 1.0, f"clip_tail={tail}: must lie between 0 and 1")
    if family == "identity" or (family == "haar" and n_components == n_features):
        return 1.0
    from scipy.special import betainccinv, chdtri  # noqa: PLC0415 - as above

    if family == "haar":
        quantile = float(betainccinv(n_components / 2.0, (n_features - n_components) / 2.0, tail))
        return math.sqrt(n_features / n_components * quantile)
    return math.sqrt(float(chdtri(n_components, tail)) / n_components)
