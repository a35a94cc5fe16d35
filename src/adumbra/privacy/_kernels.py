"""The vectorised tiers of the sampler: decide nearly every sample, name the ones left in doubt.

A word holds a sign (its lowest bit) and the 63 leading bits of u. The coarse tier has a numpy and a
numba form; they may leave different samples in doubt, but what either decides is the one true value of
the law, so the noise is the same bit for bit.

Proof       noise.proof.md (Theorem 1).
"""

import importlib.util
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from adumbra.errors import require
from adumbra.numerics import Array, Ints
from adumbra.privacy._tables import COARSE_BITS, FINE_BITS, LOWEST, ScaledTable
from adumbra.privacy.keys import Words

CHUNK: Final = 1 << 14  # samples at a time: all buffers stay in the second-level cache
_SETTLED: Final = 1 << 26  # samples after which compiling the kernel has paid
_MAGIC: Final = 1.5 * 2.0**52  # adding it rounds |y| < 2^51 to an integer, which its low bits then hold
_MAGIC_BITS: Final = np.array([_MAGIC]).view(np.int64)[0]
_COARSE_SHIFT: Final = 52 - COARSE_BITS
_COARSE_BASE: Final = (1023 + LOWEST) << COARSE_BITS
_FINE_SHIFT: Final = 52 - FINE_BITS
_FINE_BASE: Final = (1023 + LOWEST) << FINE_BITS

Kernel = Callable[[Words, Ints, Ints, Array, float, Ints, int, int], int]


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
    import numba  # noqa: PLC0415  (optional, and slow to import)

    try:
        kernel: Kernel = numba.njit(nogil=True, cache=True)(coarse_kernel)
    except RuntimeError:  # numba found no writable place for its cache
        kernel = numba.njit(nogil=True)(coarse_kernel)
    return kernel


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
