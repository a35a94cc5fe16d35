"""The two noise laws on the integers, defined and decided exactly (the last tier of the sampler).

A magnitude |K| is a function of one uniform u in (0, 1) given by its bits, as many as it takes:

    |K| = max { m >= 0 : u <= T(m) },        T(m) = P(|K| >= m)
    rounded normal      T(m) = erfc((m - 1/2) / (s sqrt 2))         s = sigma / grid
    discrete Laplace    T(m) = 2 q^m / (1 + q),  q = exp(-1/t)      t = scale / grid

Proof       noise.proof.md (Lemmas 2 and 6).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import mpmath

Kind = Literal["gaussian", "laplace"]
Real: TypeAlias = Any  # a number of the context below; mpmath has no types

LEADING_BITS: Final = 63  # bits of u in the first word of a sample
MIN_SCALE: Final = 2.0**-10  # the scales, in grid steps, for which the bounds of `_tables` are stated
MAX_SCALE: Final = 2.0**40
_SLACK_BITS: Final = 32  # mpmath's functions are taken as right to 2^(32 - precision), relatively

_context = mpmath.MPContext()  # not mpmath.mp: nobody else's precision is touched
_lock = threading.RLock()
# mpmath memoises pi and ln 2 in two steps that another thread could interleave; filled beforehand to
# more bits than anyone asks for, the memo is only read.
_context.prec = 8192
_context.mpf(_context.pi), _context.mpf(_context.ln2)


@contextmanager
def arithmetic(precision: int) -> Iterator[mpmath.MPContext]:
    """The private mpmath context at `precision` bits, for one thread at a time."""
    with _lock:
        before, _context.prec = _context.prec, precision
        try:
            yield _context
        finally:
            _context.prec = before


@dataclass(frozen=True, slots=True)
class Law:
    """A noise law on the integers; `scale` is exact, in grid steps."""

    kind: Kind
    scale: float


def threshold(law: Law, m: int, mp: mpmath.MPContext) -> Real:
    """T(m) = P(|K| >= m) for m >= 1, at the context's precision."""
    scale = mp.mpf(law.scale)
    if law.kind == "gaussian":
        return mp.erfc((m - mp.mpf(0.5)) / (scale * mp.sqrt(2)))
    return 2 * mp.exp(-m / scale) / (1 + mp.exp(-1 / scale))


def normal_quantile(tail: Real, start: Real, tolerance: float, mp: mpmath.MPContext) -> Real:
    """Solve erfc(z / sqrt 2) = tail for z, by Newton on the logarithm.

    The logarithm of erfc is concave and decreasing: from a start above z every step stays above it, and
    from a start close by convergence is quadratic, so a last step below `tolerance` leaves far less.
    """
    z, root, target = mp.mpf(start), mp.sqrt(2), mp.log(tail)
    while True:
        value = mp.erfc(z / root)
        step = (mp.log(value) - target) * value / (mp.sqrt(2 / mp.pi) * mp.exp(-z * z / 2))
        z += step
        if abs(step) < tolerance:
            return z


def decide(law: Law, leading: int, extend: Callable[[int], int]) -> int:
    """|K| of the uniform that begins with the 63 bits `leading`; `extend(r)` is its further word r."""
    numerator, bits, rounds = leading, LEADING_BITS, 0
    while True:
        magnitude = _settle(law, numerator, bits) if numerator else None
        if magnitude is not None:
            return magnitude
        numerator, bits, rounds = numerator << 64 | extend(rounds), bits + 64, rounds + 1


def _settle(law: Law, numerator: int, bits: int) -> int | None:
    """|K| if all u in [numerator, numerator + 1] / 2^bits share it beyond doubt, else None."""
    with arithmetic(bits + 2 * _SLACK_BITS) as mp:
        low, high = mp.ldexp(numerator, -bits), mp.ldexp(numerator + 1, -bits)
        m = _estimate(law, mp.ldexp(2 * numerator + 1, -bits - 1), mp)
        while True:
            above, below = _compare(law, m, low, high, mp), _compare(law, m + 1, low, high, mp)
            if above < 0:
                m -= 1
            elif below > 0:
                m += 1
            else:
                return m if above > 0 and below < 0 else None


def _compare(law: Law, m: int, low: Real, high: Real, mp: mpmath.MPContext) -> int:
    """+1 if u <= T(m) on all of [low, high], -1 if u > T(m) on all of it, 0 if in doubt."""
    if m <= 0:
        return 1
    edge, slack = threshold(law, m, mp), mp.ldexp(1, _SLACK_BITS - mp.prec)  # mpmath's error, against us
    if high <= edge * (1 - slack):
        return 1
    return -1 if low > edge * (1 + slack) else 0


def _estimate(law: Law, u: Real, mp: mpmath.MPContext) -> int:
    """About |K|; `_settle` checks it, so its error costs time and nothing else."""
    scale = mp.mpf(law.scale)
    if law.kind == "gaussian":
        start = mp.sqrt(-2 * mp.log(u))  # erfc(z / sqrt 2) <= exp(-z^2 / 2), so this is not below z
        z = normal_quantile(u, start, 2.0**-10 / max(1.0, law.scale), mp)
        return int(mp.nint(scale * z))
    return max(0, int(mp.floor(-scale * mp.log(u) + laplace_offset(law.scale, mp))))


def laplace_offset(scale: float, mp: mpmath.MPContext) -> Real:
    """The c = t ln(2 / (1 + q)) for which |K| = floor(-t ln u + c); it lies in (0, 1/2)."""
    t = mp.mpf(scale)
    return t * mp.log(2 / (1 + mp.exp(-1 / t)))
