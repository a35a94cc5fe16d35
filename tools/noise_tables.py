"""Compute the tables of the noise laws that the package keeps in src/adumbra/privacy/noise_tables.bin.

Check:     python tools/noise_tables.py
Rewrite:   python tools/noise_tables.py --write     (then set `KEPT_DIGEST` in privacy/_tables.py)

privacy/_tables.py says what the tables hold and reads them; noise.proof.md proves them, and is sealed to
the functions below. tests/unit/privacy/test_noise_tables.py computes them again.
"""

import argparse
import hashlib
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Final, get_args

import mpmath
import numpy as np

from adumbra.numerics import Array
from adumbra.privacy._laws import LEADING_BITS, Kind, Real, arithmetic, normal_quantile
from adumbra.privacy._tables import FINE_BITS, FINE_DEGREE, KEPT, KEPT_DIGEST, LOWEST, midpoints

PLACE = Path(__file__).resolve().parent.parent / "src/adumbra/privacy" / KEPT
PRECISION: Final = 200  # bits of the arithmetic that fills the tables
EDGE: Final = 1 - 2.0**-20  # bounds hold a little below each octave too: V lies beside its float


def computed(kind: Kind) -> tuple[Array, Array]:
    """Fine polynomials and bounds of one law from mpmath: half a second of work."""
    coefficients = normal_coefficients if kind == "gaussian" else log_coefficients
    octaves = np.ldexp(1.0, np.arange(LOWEST, LEADING_BITS))
    with arithmetic(PRECISION) as mp:
        fine = [[float(c) for c in coefficients(x, FINE_DEGREE, mp)] for x in midpoints(FINE_BITS)]
        sizes = [coefficients(x * EDGE, FINE_DEGREE + 1, mp) for x in octaves]
        edges = [
            [float(abs(c) * mp.mpf(x) ** n) for n, c in enumerate(row)]
            for x, row in zip(octaves, sizes, strict=True)
        ]
    return np.array(fine).T, np.nextafter(np.array(edges).T, np.inf)


def kept_bytes() -> bytes:
    """The file of tables: of each law the fine polynomials, then the bounds; little-endian doubles."""
    parts = [part for kind in get_args(Kind) for part in computed(kind)]
    return b"".join(np.ascontiguousarray(part, "<f8").tobytes() for part in parts)


def normal_coefficients(x: float, degree: int, mp: mpmath.MPContext) -> list[Real]:
    """F^(n)(x) / n! of the half-normal quantile.

    With p = u / 2 and z = F: d^n z / dp^n = (-1)^n P_n(z) / phi(z)^n, P_1 = 1, P_(n+1) = P_n' + n z P_n.
    """
    u = mp.ldexp(x, -LEADING_BITS)
    z = normal_quantile(u, -NormalDist().inv_cdf(float(u) / 2), 2.0**-80, mp)
    # dV = 2^64 dp: each derivative brings one factor -1 / (2^64 phi)
    factor = -mp.ldexp(mp.sqrt(2 * mp.pi) * mp.exp(z * z / 2), -LEADING_BITS - 1)
    result, polynomial, power = [z], [1], factor
    for n in range(1, degree + 1):
        value = mp.mpf(0)
        for coefficient in reversed(polynomial):  # Horner; mp.polyval's order changed in mpmath 1.4
            value = value * z + coefficient
        result.append(value * power / mp.factorial(n))
        polynomial = next_polynomial(polynomial, n)
        power *= factor
    return result


def next_polynomial(polynomial: list[int], n: int) -> list[int]:
    """P_(n+1) = P_n' + n z P_n, coefficients from the constant up; they stay non-negative."""
    raised = [0] + [n * c for c in polynomial]
    for power, c in enumerate(polynomial[1:]):
        raised[power] += (power + 1) * c
    return raised


def log_coefficients(x: float, degree: int, mp: mpmath.MPContext) -> list[Real]:
    """F^(n)(x) / n! of -ln(x / 2^63)."""
    point = mp.mpf(x)
    return [-mp.log(mp.ldexp(point, -LEADING_BITS))] + [
        mp.mpf((-1) ** n) / (n * point**n) for n in range(1, degree + 1)
    ]


def main() -> int:
    """Compare with the kept file, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="rewrite the kept file")
    raw = kept_bytes()
    if parser.parse_args().write:
        PLACE.write_bytes(raw)
    digest = hashlib.sha256(raw).hexdigest()
    is_kept = digest == KEPT_DIGEST and raw == PLACE.read_bytes()
    print(f"{digest} {'is kept' if is_kept else 'is not what the package keeps'}")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
