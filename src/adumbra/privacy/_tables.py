"""Taylor tables of the noise laws' inverse, with error bounds that a proof carries.

    |K| = rint(s F(V) + b)      V = 2^63 u in (0, 2^63), u uniform
    rounded normal      F(V) = z with erfc(z / sqrt 2) = u,   s = sigma / grid,   b = 0
    discrete Laplace    F(V) = -ln u,   s = t = scale / grid,   b = t ln(2 / (1 + exp(-1/t))) - 1/2

Both F decrease, and each derivative has one sign and decreases in size, so the Lagrange remainder of a
cell is bounded at its lower edge. Octaves [2^e, 2^(e+1)), e = 31 ... 62, are cut into equal cells: 8
with polynomials of degree 13 ("fine"), 256 with degree 3 ("coarse": three multiplications and a lookup).

Proof       noise.proof.md (Lemmas 3, 4 and 5).
"""

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final, get_args

import numpy as np

from adumbra.errors import VerificationFailed
from adumbra.numerics import Array
from adumbra.privacy._laws import LEADING_BITS, Kind, Law, arithmetic, laplace_offset

LOWEST: Final = 31  # e of the first octave; a smaller V goes to `_laws.decide` (chance 2^-32)
OCTAVES: Final = LEADING_BITS - LOWEST
FINE_BITS: Final = 3
FINE_DEGREE: Final = 13
COARSE_BITS: Final = 8
COARSE_DEGREE: Final = 3
KEPT: Final = "noise_tables.bin"  # tools/noise_tables.py computed it, and a test does so again
KEPT_DIGEST: Final = "41600662432437a5a474df6e4bfd39fdd0031759120f4c9f337b1156e35c33bf"
_ROUNDING: Final = 2.0**-53
_PRECISION: Final = 200  # bits of the arithmetic that finds the offset
_SAFETY: Final = 1.01  # covers second-order terms and the rounding of the bounds themselves


@dataclass(frozen=True, slots=True)
class UnitTable:
    """Polynomials of F at unit scale; `edges[n, e]` bounds |F^(n)| 2^(en) / n! on octave e."""

    fine: Array  # (FINE_DEGREE + 1, OCTAVES << FINE_BITS), in powers of V - midpoint
    coarse: Array  # (COARSE_DEGREE + 1, OCTAVES << COARSE_BITS), in powers of V
    edges: Array  # (FINE_DEGREE + 2, OCTAVES)


@dataclass(frozen=True, slots=True)
class ScaledTable:
    """Polynomials of s F + b, and how near to an integer a decided value must be."""

    law: Law
    fine: Array
    fine_limits: Array  # (OCTAVES): 1/2 - error bound, by octave
    coarse: Array  # NaN in the cells whose error bound exceeds the common one
    coarse_limit: float  # 1/2 - common error bound
    packed: Array  # `coarse` by cell, for the compiled kernel


def midpoints(bits: int) -> Array:
    """The (exact) midpoints of all cells with `bits` bits of subdivision."""
    inner = 1 + (np.arange(1 << bits) + 0.5) / (1 << bits)
    return np.ldexp(inner, np.arange(LOWEST, LEADING_BITS)[:, None]).reshape(-1)


def unit_table(kind: Kind) -> UnitTable:
    """The table of one law at scale 1; read once in a process."""
    with arithmetic(_PRECISION):  # the second thread waits for the first one's table
        return _unit_table(kind)


@lru_cache(maxsize=2)
def _unit_table(kind: Kind) -> UnitTable:
    """The fine polynomials and bounds that are kept, if they are those of this version."""
    raw = files("adumbra.privacy").joinpath(KEPT).read_bytes()
    if hashlib.sha256(raw).hexdigest() != KEPT_DIGEST:
        raise VerificationFailed(f"{KEPT}: not the tables of this version; install it anew")
    place = get_args(Kind).index(kind)
    numbers = np.frombuffer(raw, "<f8").reshape(2, -1)[place].astype(np.float64)
    fine, edges = np.split(numbers, [(FINE_DEGREE + 1) * (OCTAVES << FINE_BITS)])
    by_power = fine.reshape(FINE_DEGREE + 1, -1)
    return UnitTable(by_power, _coarse_from_fine(by_power), edges.reshape(FINE_DEGREE + 2, -1))


def _coarse_from_fine(fine: Array) -> Array:
    """Cubics of the coarse cells, re-expanded from the fine polynomials (bound: Lemma 5)."""
    x = midpoints(COARSE_BITS)
    cells = np.repeat(np.arange(fine.shape[1]), 1 << (COARSE_BITS - FINE_BITS))
    local = _shifted(fine[:, cells], x - midpoints(FINE_BITS)[cells])[: COARSE_DEGREE + 1]
    return _shifted(local, -x)


def _shifted(coefficients: Array, by: Array) -> Array:
    """The coefficients of p(x + by) from those of p(x), by repeated synthetic division."""
    result = coefficients.copy()
    degree = len(result) - 1
    for order in range(degree):
        for n in range(degree - 1, order - 1, -1):
            result[n] += by * result[n + 1]
    return result


def fine_errors(table: UnitTable, scale: float) -> Array:
    """|computed - true value of s F + b| of the fine polynomials, by octave (Lemma 4)."""
    d, n = table.edges, np.arange(FINE_DEGREE + 1)
    half = 2.0 ** -(FINE_BITS + 1)
    truncation = d[FINE_DEGREE + 1] * half ** (FINE_DEGREE + 1)
    rounding = _dot((2 * n + 6) * half**n, d)
    total: Array = _SAFETY * (scale * (truncation + rounding + _reading(d)) + 8 * _ROUNDING)
    return total


def coarse_errors(table: UnitTable, scale: float) -> Array:
    """|computed - true value of s F + b| of the coarse polynomials, by octave (Lemma 5)."""
    d = table.edges
    wide, half, top = 2.0 ** -(FINE_BITS + 1), 2.0 ** -(COARSE_BITS + 1), FINE_DEGREE + 1
    error = d[COARSE_DEGREE + 1] * half ** (COARSE_DEGREE + 1) + _reading(d)
    for order in range(COARSE_DEGREE + 1):
        # the coefficient of h^order, re-expanded: Taylor's remainder and the rounding of the shift ...
        remainder = math.comb(top, order) * d[top] * wide ** (top - order)
        paths = [math.comb(n, order) * (2 * n + 6) * wide ** max(n - order, 0) for n in range(top)]
        error = error + (remainder + _dot(np.array(paths), d)) * half**order
        # ... then in powers of V, scaled and evaluated
        error = error + 24 * _ROUNDING * 4**order * d[order]
    total: Array = _SAFETY * (scale * error + 8 * _ROUNDING)
    return total


def _dot(weights: Array, d: Array) -> Array:
    """2^-53 sum of weight_n d_n: terms of a sum with their counts of roundings."""
    total: Array = _ROUNDING * weights @ d[:-1]
    return total


def _reading(d: Array) -> Array:
    """How far F moves between the float of V's 63 known bits and V itself."""
    moved: Array = d[1] * (np.ldexp(1.0, -np.arange(LOWEST, LEADING_BITS)) + _ROUNDING)
    return moved


@lru_cache(maxsize=16)
def scaled_table(kind: Kind, scale: float) -> ScaledTable:
    """The table of a law at its own scale, which is exact and in grid steps."""
    law = Law(kind, scale)
    unit = unit_table(law.kind)
    fine, coarse = law.scale * unit.fine, law.scale * unit.coarse
    if law.kind == "laplace":
        with arithmetic(_PRECISION) as mp:
            offset = float(laplace_offset(law.scale, mp) - mp.mpf(0.5))
        fine[0] += offset
        coarse[0] += offset
    errors = coarse_errors(unit, law.scale)
    guard = _common_guard(errors)
    coarse.reshape(len(coarse), OCTAVES, -1)[:, errors > guard] = np.nan
    coarse[:, 0] = np.nan  # the lookup sends every smaller V here
    packed = np.ascontiguousarray(coarse.T)
    return ScaledTable(law, fine, 0.5 - fine_errors(unit, law.scale), coarse, 0.5 - guard, packed)


def _common_guard(errors: Array) -> float:
    """The bound G that sends the fewest samples on: those within G of a half, and octaves above G."""
    mass = np.ldexp(1.0, np.arange(-OCTAVES, 0))
    sent_on = [2 * bound + mass[errors > bound].sum() for bound in errors]
    return float(errors[int(np.argmin(sent_on))])
