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

A word holds a sign (its lowest bit) and the 63 leading bits of u. The coarse tier, which decides nearly
every sample, has a numpy and a numba form; they may leave different samples in doubt, but what either
decides is the one true value of the law, so the noise is the same bit for bit.
"""

import importlib.util
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from adumbra.compiled import machine_code
from adumbra.errors import InvalidInput, require
from adumbra.numerics import EXACT, Array, Ints, Lattice
from adumbra.privacy._laws import MAX_SCALE, MIN_SCALE, Kind, decide
from adumbra.privacy._tables import COARSE_BITS, FINE_BITS, LOWEST, ScaledTable, scaled_table
from adumbra.privacy.grant import NoiseCall, NoiseKey, Words

_LARGEST_VALUE = EXACT // 2  # leaves room for noise below the integers that float64 holds
_DISTINCT_SIGMAS = 16
_FIRST_LOOK = 1 << 12
CHUNK: Final = 1 << 14  # samples at a time: all buffers stay in the second-level cache
_SETTLED: Final = 1 << 26  # samples after which compiling the kernel has paid
_MAGIC: Final = 1.5 * 2.0**52  # adding it rounds |y| < 2^51 to an integer, which its low bits then hold
_MAGIC_BITS: Final = np.array([_MAGIC]).view(np.int64)[0]
_COARSE_SHIFT: Final = 52 - COARSE_BITS
_COARSE_BASE: Final = (1023 + LOWEST) << COARSE_BITS
_FINE_SHIFT: Final = 52 - FINE_BITS
_FINE_BASE: Final = (1023 + LOWEST) << FINE_BITS

Kernel = Callable[[Words, Ints, Ints, Array, float, Ints, int, int], int]


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
    tables, members = _tables_of(kind, scales, value)
    largest = max(int(value.units.max(initial=0)), -int(value.units.min(initial=0)))
    require(
        largest <= _LARGEST_VALUE,  # the caller's public bound excludes this; it guards against a defect
        f"value on grid {value.grid}: its units exceed 2^52; coarsen the value before adding noise",
    )

    def draw() -> Lattice:
        units = np.ascontiguousarray(value.units).reshape(-1)
        return Lattice(_draw(units, tables, members, key).reshape(value.units.shape), value.exponent)

    return key.apply(NoiseCall(kind, value, scales), draw)


def _tables_of(kind: Kind, scales: Array, value: Lattice) -> tuple[list[ScaledTable], Ints]:
    """The tables of the distinct laws in grid steps, and for each coordinate which one is its own."""
    name = "scale" if kind == "laplace" else "sigma"
    distinct, members = _distinct(scales)
    require(
        1 <= distinct.size <= _DISTINCT_SIGMAS,
        f"{name} with {distinct.size} distinct numbers: 1 to {_DISTINCT_SIGMAS}; group the coordinates",
    )
    tables = []
    for number in distinct:
        steps = float(np.ldexp(number, -value.exponent))  # exact wherever the range check passes
        require(
            MIN_SCALE <= steps <= MAX_SCALE,
            f"{name}={number} on grid {value.grid}: must be 2^-10 to 2^40 grid steps; "
            "coarsen the value to grid_exponent of the scale first",
        )
        tables.append(scaled_table(kind, steps))
    try:
        return tables, np.broadcast_to(members.reshape(scales.shape), value.units.shape)
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


def _draw(units: Ints, tables: list[ScaledTable], members: Ints, key: NoiseKey) -> Ints:
    """Units + noise, sample i from word i of the key's stream whatever the laws of the others."""
    out = np.empty_like(units)
    sampler, stream = Sampler(units.size), key.stream("samples", min(units.size, CHUNK))
    doubts = [_Doubts(table, units, out, key) for table in tables]
    groups = members.reshape(-1) if len(tables) > 1 else members
    for start in range(0, units.size, CHUNK):
        piece, result = units[start : start + CHUNK], out[start : start + CHUNK]
        words = stream.read(piece.size)
        if len(tables) == 1:
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

    __slots__ = ("_key", "_out", "_positions", "_size", "_units", "_words", "table")

    def __init__(self, table: ScaledTable, units: Ints, out: Ints, key: NoiseKey) -> None:
        self.table, self._units, self._out, self._key = table, units, out, key
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
            magnitude = decide(self.table.law, word >> 1, _extension(self._key, position))
            exact = int(self._units[position]) + (-magnitude if word & 1 else magnitude)
            # a clamp of the noisy value is post-processing
            self._out[position] = max(1 - EXACT, min(EXACT - 1, exact))


def _extension(key: NoiseKey, position: int) -> Callable[[int], int]:
    """The further words of one sample: word `position` of a stream for each round, so none is shared."""
    return lambda further: int(key.words(f"extend-{further}", 1, position)[0])


def noise_engine() -> str:
    """Which form of the coarse tier large draws use: "numba" if it is installed, else "numpy".

    The environment variable ADUMBRA_NOISE=numpy or =numba forces one; the noise is the same bit for bit.
    """
    forced = os.environ.get("ADUMBRA_NOISE", "")
    require(forced in {"", "numpy", "numba"}, f"ADUMBRA_NOISE={forced}: must be numpy, numba or unset")
    return forced or ("numba" if _has_numba() else "numpy")


@lru_cache(maxsize=1)
def _has_numba() -> bool:
    """Whether numba is installed; a search of all folders, once."""
    return importlib.util.find_spec("numba") is not None


class Sampler:
    """Buffers of one draw; `coarse` decides a chunk and returns the positions it leaves in doubt."""

    drawn = 0  # samples of this process so far; a lost update between threads only delays the kernel

    def __init__(self, samples: int) -> None:
        Sampler.drawn += samples
        size = min(samples, CHUNK)
        self._kernel: Kernel | None = None
        forced = bool(os.environ.get("ADUMBRA_NOISE"))
        if noise_engine() == "numba" and (forced or Sampler.drawn >= _SETTLED):
            self._kernel = loaded_kernel()
        self._floats = np.empty((4, size))
        self._ints = np.empty(size, np.int64)
        self._sure = np.empty(size, np.bool_)
        self._doubtful = np.empty(size + 1, np.int64)

    def coarse(self, words: Words, units: Ints, out: Ints, table: ScaledTable) -> Ints:
        """Write units + noise to `out`; the positions returned hold rubbish for the next tier."""
        if self._kernel is None:
            return self._coarse_numpy(words, units, out, table)
        limit, doubtful = table.coarse_limit, self._doubtful
        # shift and base are arguments because numba's disk cache would keep old values of constants
        lookup = _COARSE_SHIFT, _COARSE_BASE
        count = self._kernel(words, units, out, table.packed, limit, doubtful, *lookup)
        return self._doubtful[:count]

    def _coarse_numpy(self, words: Words, units: Ints, out: Ints, table: ScaledTable) -> Ints:
        n = words.size
        v, value, factor, rounded = self._floats[:, :n]
        cell, sure = self._ints[:n], self._sure[:n]
        np.right_shift(words, 1, out=cell.view(np.uint64))
        np.copyto(v, cell)
        np.right_shift(v.view(np.int64), _COARSE_SHIFT, out=cell)
        np.subtract(cell, _COARSE_BASE, out=cell)
        table.coarse[-1].take(cell, out=value, mode="clip")
        for coefficient in table.coarse[-2::-1]:
            np.multiply(value, v, out=value)
            coefficient.take(cell, out=factor, mode="clip")
            np.add(value, factor, out=value)
        np.left_shift(words, 63, out=cell.view(np.uint64))  # the sign, moved to a float's sign bit
        np.bitwise_xor(value.view(np.int64), cell, out=value.view(np.int64))
        np.add(value, _MAGIC, out=rounded)
        np.subtract(rounded, _MAGIC, out=factor)
        np.subtract(value, factor, out=factor)
        np.abs(factor, out=factor)
        np.less(factor, table.coarse_limit, out=sure)  # false for NaN
        np.subtract(rounded.view(np.int64), _MAGIC_BITS, out=cell)
        np.add(units, cell, out=out)
        np.logical_not(sure, out=sure)
        return np.flatnonzero(sure)


def coarse_kernel(  # noqa: PLR0913, PLR0917  (numba takes plain arguments only)
    words: Words,
    units: Ints,
    out: Ints,
    packed: Array,
    limit: float,
    doubtful: Ints,
    shift: int,
    base: int,
) -> int:
    """The coarse tier as one loop, for numba; returns how many positions it wrote to `doubtful`."""
    count = 0
    last = np.uint64(packed.shape[0] - 1)  # unsigned: spares numba the wrap-around of negative indices
    magic = np.float64(1.5 * 2.0**52)
    for i in range(words.size):
        word = words[i]
        v = np.float64(np.int64(word >> np.uint64(1)))
        offset = np.int64(v.view(np.int64) >> shift) - base
        cell = min(np.uint64(offset) if offset > 0 else np.uint64(0), last)
        value = ((packed[cell, 3] * v + packed[cell, 2]) * v + packed[cell, 1]) * v + packed[cell, 0]
        rounded = np.float64(value + magic)
        noise = rounded.view(np.int64) - magic.view(np.int64)
        sign = -np.int64(word & np.uint64(1))
        out[i] = units[i] + ((noise ^ sign) - sign)
        if not abs(value - (rounded - magic)) < limit:  # true for NaN
            doubtful[count] = i
            count += 1
    return count


@lru_cache(maxsize=1)
def compiled_kernel() -> Kernel:
    """`coarse_kernel` as machine code, cached on disk where there is a writable place."""
    return machine_code(coarse_kernel)


@lru_cache(maxsize=1)
def loaded_kernel() -> Kernel | None:
    """The compiled kernel; None where numba cannot be loaded: numpy's noise is the same, bit for bit."""
    try:
        return compiled_kernel()
    except Exception:  # noqa: BLE001  (a broken installation raises what it likes)
        return None


def require_kernel() -> None:
    """Refuse, before a charge, a form of the noise that was asked for and cannot be loaded."""
    if noise_engine() == "numba" and os.environ.get("ADUMBRA_NOISE"):
        remedy = "install it again, or leave the variable out"
        require(loaded_kernel() is not None, f"ADUMBRA_NOISE=numba: cannot be loaded; {remedy}")


def fine(words: Words, table: ScaledTable) -> tuple[Ints, Ints]:
    """Signed noise by the fine polynomials, and the positions that even they leave in doubt."""
    v = (words >> np.uint64(1)).astype(np.float64)
    bits = v.view(np.int64)
    cell = (bits >> _FINE_SHIFT) - _FINE_BASE
    inside = (cell >= 0) & (cell < table.fine.shape[1])
    cell = np.where(inside, cell, 0)
    midpoint = (((bits >> _FINE_SHIFT) << _FINE_SHIFT) | (1 << (_FINE_SHIFT - 1))).view(np.float64)
    h = np.where(inside, v - midpoint, 0.0)
    value = np.zeros_like(v)
    for coefficient in table.fine[::-1]:
        value = value * h + coefficient[cell]
    nearest = np.rint(value)
    sure = inside & (np.abs(value - nearest) < table.fine_limits[cell >> FINE_BITS])
    noise = nearest.astype(np.int64)
    return np.where(words & np.uint64(1), -noise, noise), np.flatnonzero(~sure)
