"""The one primitive for noise: exact discrete Laplace and rounded Gaussian on the lattice of a value.

    add_laplace     value + g K,  P(K = k) = (1 - q) / (1 + q) q^|k|,  q = exp(-g / scale)
    add_gaussian    value + g K,  P(K = k) = Phi((k + 1/2) g / sigma) - Phi((k - 1/2) g / sigma)

with g the value's grid. Both laws are exact, without residual: the noise is a function of an endless
stream of secret bits per sample, evaluated with a proven error bound and more bits wherever the bound
does not decide. What remains is the assumption that AES-256 is a pseudo-random function.

Guarantee   Laplace: pure epsilon = L1 sensitivity / scale. Gaussian: a post-processing of the continuous
            Gaussian mechanism, so mu = L2 sensitivity / sigma exactly; sigma may differ by coordinate.
Proof       noise.proof.md
Limits      |units| <= 2^52 before noise, and the result is clamped to |units| < 2^53; the time taken
            depends on the noise (not on the value).
"""

from collections.abc import Callable

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.numerics import EXACT, Array, Ints, Lattice
from adumbra.privacy._kernels import CHUNK, Sampler, fine, noise_engine, require_kernel
from adumbra.privacy._laws import MAX_SCALE, MIN_SCALE, Kind, Law, decide
from adumbra.privacy._tables import scaled_table
from adumbra.privacy.keys import NoiseCall, NoiseKey, Words

__all__ = ["add_gaussian", "add_laplace", "noise_engine", "require_kernel"]

_LARGEST_VALUE = EXACT // 2  # leaves room for noise below the integers that float64 holds
_DISTINCT_SIGMAS = 16
_FIRST_LOOK = 1 << 12


def add_laplace(value: Lattice, scale: float, key: NoiseKey) -> Lattice:
    """The value plus discrete Laplace noise of the given scale (in the value's real unit)."""
    return _add("laplace", value, np.asarray(float(scale)), key)


def add_gaussian(value: Lattice, sigma: float | Array, key: NoiseKey) -> Lattice:
    """The value plus normal noise rounded to its grid; sigma broadcasts, at most 16 distinct numbers."""
    return _add("gaussian", value, np.asarray(sigma, np.float64), key)


def _add(kind: Kind, value: Lattice, scales: Array, key: NoiseKey) -> Lattice:
    """Check the public arguments, bind the key to the call, draw."""
    require(
        isinstance(value, Lattice),
        f"value of type {type(value).__name__}: noise is added to a Lattice; quantise first",
    )
    laws, members = _laws(kind, scales, value)
    largest = max(int(value.units.max(initial=0)), -int(value.units.min(initial=0)))
    require(
        largest <= _LARGEST_VALUE,  # the caller's public bound excludes this; it guards against a defect
        f"value on grid {value.grid}: its units exceed 2^52; coarsen the value before adding noise",
    )

    def draw() -> Lattice:
        units = np.ascontiguousarray(value.units).reshape(-1)
        return Lattice(_draw(units, laws, members, key).reshape(value.units.shape), value.exponent)

    return key.apply(NoiseCall(kind, value, scales), draw)


def _laws(kind: Kind, scales: Array, value: Lattice) -> tuple[list[Law], Ints]:
    """The distinct laws in grid steps, and for each coordinate which one is its own."""
    name = "scale" if kind == "laplace" else "sigma"
    distinct, members = _distinct(scales)
    require(
        1 <= distinct.size <= _DISTINCT_SIGMAS,
        f"{name} with {distinct.size} distinct numbers: 1 to {_DISTINCT_SIGMAS}; group the coordinates",
    )
    laws = []
    for number in distinct:
        steps = float(np.ldexp(number, -value.exponent))  # exact wherever the range check passes
        require(
            MIN_SCALE <= steps <= MAX_SCALE,
            f"{name}={number} on grid {value.grid}: must be 2^-10 to 2^40 grid steps; "
            "coarsen the value to grid_exponent of the scale first",
        )
        laws.append(Law(kind, steps))
    try:
        return laws, np.broadcast_to(members.reshape(scales.shape), value.units.shape)
    except ValueError:
        raise InvalidInput(
            f"{name} of shape {scales.shape}: must broadcast to the value's shape {value.units.shape}"
        ) from None


def _distinct(scales: Array) -> tuple[Array, Ints]:
    """`np.unique` with the place of each number; sorted in full only where a first look misses one."""
    guess = np.unique(scales.reshape(-1)[:_FIRST_LOOK])
    places = np.searchsorted(guess, scales)
    if guess.size and bool((guess[np.minimum(places, guess.size - 1)] == scales).all()):
        return guess, np.asarray(places)
    distinct, members = np.unique(scales, return_inverse=True)
    return distinct, members


def _draw(units: Ints, laws: list[Law], members: Ints, key: NoiseKey) -> Ints:
    """Units + noise, sample i from word i of the key's stream whatever the laws of the others."""
    out = np.empty_like(units)
    sampler, stream = Sampler(units.size), key.stream("samples", min(units.size, CHUNK))
    doubts = [_Doubts(law, units, out, key) for law in laws]
    groups = members.reshape(-1) if len(laws) > 1 else members
    for start in range(0, units.size, CHUNK):
        piece, result = units[start : start + CHUNK], out[start : start + CHUNK]
        words = stream.read(piece.size)
        if len(laws) == 1:
            doubtful = sampler.coarse(words, piece, result, doubts[0].table)
            doubts[0].add(start + doubtful, words[doubtful])
            continue
        for number, doubt in enumerate(doubts):
            own = np.flatnonzero(groups[start : start + CHUNK] == number)
            part, own_words = np.empty(own.size, np.int64), words[own]
            doubtful = sampler.coarse(own_words, piece[own], part, doubt.table)
            result[own] = part
            doubt.add(start + own[doubtful], own_words[doubtful])
    for doubt in doubts:
        doubt.settle()
    return out


class _Doubts:
    """The samples of one law that the coarse tier left open, settled together (fewer array calls)."""

    __slots__ = ("_key", "_law", "_out", "_positions", "_size", "_units", "_words", "table")

    def __init__(self, law: Law, units: Ints, out: Ints, key: NoiseKey) -> None:
        self._law, self._units, self._out, self._key = law, units, out, key
        self.table = scaled_table(law)
        self._positions: list[Ints] = []
        self._words: list[Words] = []
        self._size = 0

    def add(self, positions: Ints, words: Words) -> None:
        """Note open samples; settle once there is a chunk of them."""
        self._positions.append(positions)
        self._words.append(words)
        self._size += positions.size
        if self._size >= CHUNK:
            self.settle()

    def settle(self) -> None:
        """Decide all noted samples: finely, and the last ones exactly."""
        positions = np.concatenate([np.empty(0, np.int64), *self._positions])
        words = np.concatenate([np.empty(0, np.uint64), *self._words])
        self._positions, self._words, self._size = [], [], 0
        noise, still = fine(words, self.table)
        self._out[positions] = self._units[positions] + noise
        for position, word in zip(positions[still].tolist(), words[still].tolist(), strict=True):
            magnitude = decide(self._law, word >> 1, _extension(self._key, position))
            exact = int(self._units[position]) + (-magnitude if word & 1 else magnitude)
            # a clamp of the noisy value is post-processing
            self._out[position] = max(1 - EXACT, min(EXACT - 1, exact))


def _extension(key: NoiseKey, position: int) -> Callable[[int], int]:
    """The further words of one sample: word `position` of a stream for each round, so none is shared."""
    return lambda further: int(key.words(f"extend-{further}", 1, position)[0])
