"""A keyed, order-free fingerprint of a table, taken block by block in any order, in any process.

    lanes  = X K            K: width x 2 secret integers; exact whatever the blocks: a table's cells are
                            at most 2^15, so float64 holds every sum; item sets are summed mod 2^64
    hashes = mix(lanes)     two keyed 64-bit words per row
    digest = sum over rows of the words mod 2^64, and the number of rows
    sketch = the 256 smallest distinct first words (bottom-k MinHash), for the overlap of two tables

It is a function of private rows: it goes to the ledger's private log (`ledger/tripwire.py`) and no
output depends on it. Workers of a cluster take it too, so nothing of the ledger is loaded here.
"""

import hashlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import require
from adumbra.numerics import EXACT, ROW_BITS, Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SKETCH = 256
LANES = 2  # different rows meet in both with a chance near width^2 / 2^76

Words = NDArray[np.uint64]


class Fingerprint:
    """An accumulator: `update` with blocks in any order, then read it."""

    def __init__(self, key: bytes, width: int) -> None:
        require(width >= 1, f"width={width}: must be at least 1")
        bits = (EXACT >> ROW_BITS) // width
        require(bits >= 2**8, f"width={width}: too wide for an exact fingerprint")
        seed = hashlib.sha256(b"adumbra-fingerprint/1" + key + width.to_bytes(8, "big")).digest()
        self._begin(seed, width)

    def _begin(self, seed: bytes, width: int) -> None:
        """Start from the words of a seed, from which the ledger's key cannot be found."""
        self._seed, self._width = seed, width
        bits = (EXACT >> ROW_BITS) // width
        words = _stream(seed, LANES * width + LANES * LANES + LANES)
        power = 1 << (
            bits.bit_length() - 1
        )  # a power of two: the low bits of a word are uniform below it
        self._matrix: Words = (words[: LANES * width] & np.uint64(power - 1)).reshape(width, LANES)
        self._floats = self._matrix.astype(np.float64)
        self._mixer = words[LANES * width : -LANES].reshape(LANES, LANES) | np.uint64(1)
        self._offset = words[-LANES:]
        self._total = np.zeros(LANES, dtype=np.uint64)
        self._rows = 0
        self._sketch: Words = np.empty(0, dtype=np.uint64)
        self._turn = threading.Lock()

    def blank(self) -> "Fingerprint":
        """One of the same words that has seen nothing; it can be sent to another process."""
        return _begun(self._seed, self._width)

    def seen(self) -> list[Words]:
        """What it has seen so far, for `merge`: as many words whatever that is."""
        sketch = np.zeros(SKETCH, np.uint64)
        sketch[: len(self._sketch)] = self._sketch
        return [self._total, np.array([self._rows, len(self._sketch)], np.uint64), sketch]

    def merge(self, seen: Sequence[Words]) -> None:
        """Take in what a blank copy has seen."""
        total, (rows, kept), sketch = seen
        with self._turn:
            self._total += total
            self._rows += int(rows)
            self._keep(sketch[: int(kept)])

    def __reduce__(self) -> tuple[object, ...]:
        require(self._rows == 0, "fingerprint: it has seen rows; send a blank copy")
        return _begun, (self._seed, self._width)

    def update(self, rows: "Array | csr_array") -> None:
        """Take in a block: float64 integers within 2^15 of 0, or sparse uint64 ones of any size."""
        if isinstance(rows, np.ndarray):
            products = (rows @ self._floats).astype(np.int64).view(np.uint64)
        else:
            products = rows @ self._matrix
        lanes = np.ascontiguousarray(products.T)
        hashes = _mix(lanes, self._mixer, self._offset)
        total = hashes.sum(axis=1, dtype=np.uint64)
        with self._turn:  # blocks come from many threads, in any order
            self._total += total
            self._rows += rows.shape[0]
            self._keep(hashes[0])

    def _keep(self, candidates: Words) -> None:
        """Keep the smallest distinct hashes."""
        if len(self._sketch) == SKETCH:
            candidates = candidates[candidates < self._sketch[-1]]
        if len(candidates):
            self._sketch = np.unique(np.concatenate((self._sketch, candidates)))[:SKETCH]

    def facts(self) -> dict[str, object]:
        """As the private log keeps it."""
        return {"digest": self.digest(), "sketch": self.sketch()}

    def digest(self) -> str:
        """The multiset of rows: equal for equal tables in any order."""
        return self._total.astype(">u8").tobytes().hex() + f"{self._rows:016x}"

    def sketch(self) -> list[str]:
        """The smallest hashes, in order, as hex words."""
        return [f"{word:016x}" for word in self._sketch.tolist()]


def _begun(seed: bytes, width: int) -> Fingerprint:
    """A fingerprint that has seen nothing, without the ledger's key."""
    found = Fingerprint.__new__(Fingerprint)
    found._begin(seed, width)  # noqa: SLF001  (its other constructor)
    return found


def _stream(seed: bytes, count: int) -> Words:
    """Secret uniform words."""
    return np.frombuffer(hashlib.shake_256(seed).digest(8 * count), dtype=">u8").astype(np.uint64)


def _mix(lanes: Words, mixer: Words, offset: Words) -> Words:
    """A keyed combination of the lanes for each output word, then a 64-bit finaliser (splitmix64)."""
    words: Words = mixer[0][:, None] * lanes[0] + mixer[1][:, None] * lanes[1]
    words += offset[:, None]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words
