"""Exact selection: the k largest of score + Gumbel noise, in order.

    a_i = score_i / scale - ln(E_i),     E_i exponential,     order by a_i, largest first

The order is that of k peeled rounds of the exponential mechanism, P(next = i) ~ exp(score_i / scale)
among those left. Noise for a selection is never rounded: floats with a proven error bound decide nearly
every order, and contenders closer than their bounds get more random bits and more precision until they
part. Only indices leave.

Guarantee   one round is (range of the scores' change) / scale bounded-range; k rounds compose.
Reference   Durfee, Rogers, Practical Differentially Private Top-k Selection, NeurIPS 2019.
Proof       selection.proof.md
Limits      the time taken depends on how close contenders are.
"""

from dataclasses import dataclass
from functools import cmp_to_key

import mpmath
import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array, Ints, Lattice
from adumbra.privacy._laws import LEADING_BITS, Real, arithmetic
from adumbra.privacy._tables import FINE_BITS, OCTAVES, unit_table
from adumbra.privacy.grant import NoiseCall, NoiseKey, Words

_LN2 = 0.6931471805599453
_SMALL = 2.0**-6  # below it -ln(1 - p) is summed as a series
_NOISE_ERROR = 2.0**-40  # of the float Gumbel noise, apart from its unread bits (Lemma 3)
_SLACK_BITS = 32  # mpmath is taken as right to 2^(32 - precision)


def gumbel_top_k(scores: Lattice, scale: float, k: int, key: NoiseKey) -> Ints:
    """Indices of the k largest score + Gumbel(scale), in descending noisy order."""
    count = scores.units.size
    require(scores.units.ndim == 1, f"scores of shape {scores.units.shape}: must be one row of scores")
    require(1 <= k <= count, f"k={k}: must lie between 1 and the number of scores, {count}")
    ratio = scores.grid / scale if scale > 0 else 0.0
    require(
        2.0**-200 <= ratio <= 2.0**200,
        f"scale={scale} on grid {scores.grid}: must be above 0 and within 2^200 of the grid",
    )
    low, high = int(scores.units.min()), int(scores.units.max())
    require(
        max(-low, high) <= 2**62, f"scores on grid {scores.grid}: units exceed 2^62; coarsen the scores"
    )

    def draw() -> Ints:
        # the order does not change when all scores move alike, and small numbers are exact in floats
        drop = scores.units - np.int64(high)
        return _order(drop, scores.exponent, scale, k, key)

    return key.apply(NoiseCall("gumbel", scores, np.asarray(float(scale)), k), draw)


def exponential_choice(scores: Lattice, scale: float, key: NoiseKey) -> int:
    """One index, drawn with probability proportional to exp(score / scale)."""
    return int(gumbel_top_k(scores, scale, 1, key)[0])


def _order(drop: Ints, exponent: int, scale: float, k: int, key: NoiseKey) -> Ints:
    """The k first of the exact order: intervals where they are disjoint, exact comparisons where not."""
    words = key.words("gumbel", drop.size)
    lower, upper = _intervals(drop, float(np.ldexp(1.0, exponent)) / scale, words)
    floor = np.partition(lower, drop.size - k)[drop.size - k]  # k candidates are certainly not below it
    candidates = np.flatnonzero(upper >= floor)
    candidates = candidates[np.argsort(-upper[candidates], kind="stable")]
    # everything from position i on lies below everything before it if its upper bounds do
    reach = np.minimum.accumulate(lower[candidates])
    cuts = np.flatnonzero(upper[candidates][1:] < reach[:-1]) + 1
    ordered: list[int] = []
    for cluster in np.split(candidates, cuts):
        members = cluster.tolist()
        if len(members) > 1:
            contenders = [
                _Contender(i, int(drop[i]), int(words[i]), exponent, scale, key) for i in members
            ]
            members = [c.index for c in sorted(contenders, key=cmp_to_key(_compare))]
        ordered += members
    return np.array(ordered[:k], np.int64)


def _intervals(drop: Ints, ratio: float, words: Words) -> tuple[Array, Array]:
    """Bounds of a_i for the words read so far, from floats with a proven error."""
    v = (words >> np.uint64(1)).astype(np.float64)
    known = np.maximum(v, 1.0)  # v = 0 gets an infinite error below
    tail = np.ldexp(known, -LEADING_BITS - 1)  # p = V / 2 in (0, 1/2]
    upper_half = (words & np.uint64(1)).astype(np.bool_)  # u = 1 - p, else u = p
    exponential = -_log(np.where(upper_half, 1.0 - tail, tail))
    near_one = upper_half & (tail < _SMALL)
    small = tail[near_one]
    series = np.zeros_like(small)
    for n in range(8, 0, -1):
        series = (series + 1 / n) * small
    exponential[near_one] = series
    gumbel = -_log(exponential)
    score = drop * ratio
    with np.errstate(divide="ignore"):
        error = _NOISE_ERROR + 4.0 / v + 2.0**-50 * np.abs(score)
    return score + gumbel - error, score + gumbel + error


def _log(x: Array) -> Array:
    """The logarithm on [2^-64, 64] to 2^-45, by the proven polynomials and not the platform's log."""
    mantissa, power = np.frexp(
        x
    )  # x = mantissa 2^power, mantissa in [1/2, 1): the top octave of the table
    fine = unit_table("laplace").fine[:, (OCTAVES - 1) << FINE_BITS :]
    cells = 1 << FINE_BITS
    cell = ((2 * mantissa - 1) * cells).astype(np.int64)
    h = np.ldexp(mantissa - (cell + cells + 0.5) / (2 * cells), LEADING_BITS)
    value = np.zeros_like(h)
    for coefficient in fine[::-1]:
        value *= h
        value += coefficient.take(cell)
    return power * _LN2 - value


@dataclass(frozen=True, slots=True, eq=False)
class _Contender:
    """One a_i, to be known as exactly as a comparison needs."""

    index: int
    drop: int
    word: int
    exponent: int
    scale: float
    key: NoiseKey

    def enclose(self, rounds: int) -> tuple[Real, Real]:
        """Bounds of a_i from the first word and `rounds` further ones."""
        numerator, bits = self.word >> 1, LEADING_BITS
        for further in range(rounds):
            extension = int(self.key.words(f"extend-{further}", 1, self.index)[0])
            numerator, bits = numerator << 64 | extension, bits + 64
        with arithmetic(bits + 3 * _SLACK_BITS) as mp:
            if not numerator:
                return -mp.inf, mp.inf
            ends = [self._at(mp.ldexp(end, -bits - 1), mp) for end in (numerator, numerator + 1)]
            slack = mp.ldexp(1 + max(abs(end) for end in ends), _SLACK_BITS - mp.prec)
            # a_i is a sum of two terms; the error of each is relative to its own size
            slack *= 1 + abs(mp.ldexp(self.drop, self.exponent) / mp.mpf(self.scale))
            return min(ends) - slack, max(ends) + slack

    def _at(self, p: Real, mp: mpmath.MPContext) -> Real:
        """a_i if half of V is p."""
        exponential = -mp.log1p(-p) if self.word & 1 else -mp.log(p)
        return mp.ldexp(self.drop, self.exponent) / mp.mpf(self.scale) - mp.log(exponential)


def _compare(one: _Contender, other: _Contender) -> int:
    """Negative if `one` comes first; reads further words until the two part (with probability 1)."""
    rounds = 0
    while True:
        (low, high), (other_low, other_high) = one.enclose(rounds), other.enclose(rounds)
        if low > other_high:
            return -1
        if other_low > high:
            return 1
        rounds += 1
