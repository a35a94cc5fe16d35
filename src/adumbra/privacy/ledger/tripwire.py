"""A tripwire against registering the same rows twice: a keyed, order-free fingerprint of a table.

    lanes  = X K            K: width x 2 secret integers; exact whatever the blocks: a table's cells are
                            at most 2^15, so float64 holds every sum; item sets are summed mod 2^64
    hashes = mix(lanes)     two keyed 64-bit words per row
    digest = sum over rows of the words mod 2^64, and the number of rows
    sketch = the 256 smallest distinct first words (bottom-k MinHash), for the overlap of two tables

It is a function of private rows: it stays in the ledger's private log and no output depends on it. It is
a tripwire, not an identity: rows encoded under another schema, or altered, do not match. An overlap is
shown to the steward and settled by people.
"""

import hashlib
import math
import threading
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sqlalchemy import Connection

from adumbra.errors import require
from adumbra.numerics import EXACT, ROW_BITS, Array
from adumbra.privacy.ledger import accounts
from adumbra.privacy.ledger.accounts import lineage
from adumbra.privacy.ledger.chain import Chain, read_events
from adumbra.privacy.ledger.declarations import declared_different
from adumbra.privacy.ledger.values import Currency, Overlap, Population

SKETCH = 256
LANES = 2  # different rows meet in both with a chance near width^2 / 2^76
ALERT = 0.05  # estimated share of the smaller table from which two populations are reported

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

    def update(self, rows: Array | csr_array) -> None:
        """Take in a block: float64 integers within 2^15 of 0, or sparse uint64 ones of any size."""
        if isinstance(rows, csr_array):
            products = rows @ self._matrix
        else:
            products = (rows @ self._floats).astype(np.int64).view(np.uint64)
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


def shared(one: Sequence[str], other: Sequence[str]) -> float:
    """The estimated share of the smaller table's distinct rows that the other has too."""
    a, b = [int(word, 16) for word in one], [int(word, 16) for word in other]
    union = sorted({*a, *b})[:SKETCH]
    both = {*a} & {*b}
    hits = sum(word in both for word in union)
    if hits == 0:
        return 0.0
    return min(
        1.0, hits / len(union) * _distinct(union) / min(_distinct(sorted(a)), _distinct(sorted(b)))
    )


def _distinct(words: Sequence[int]) -> float:
    """How many distinct rows a sketch stands for: exact below 256, else from its largest hash."""
    return float(len(words)) if len(words) < SKETCH else (SKETCH - 1) / math.ldexp(words[-1], -64)


def record(chain: Chain, entry: str, fingerprint: Fingerprint) -> None:
    """Write a fingerprint to the private log, and to nothing else."""
    population = accounts.load(chain.connection, entry)["population"]
    chain.append(
        "private",
        "fingerprint",
        entry=entry,
        population=population,
        digest=fingerprint.digest(),
        sketch=fingerprint.sketch(),
    )


def overlaps(connection: Connection) -> tuple[Overlap, ...]:
    """Pairs of populations with the same rows that neither share a cap nor were declared different."""
    seen: dict[str, dict[str, list[str]]] = {}  # population -> digest -> sketch
    for event in read_events(connection, "private"):
        if event["kind"] == "fingerprint":
            seen.setdefault(event["population"], {})[event["digest"]] = event["sketch"]
    different = declared_different(connection)
    roots = {name: lineage(connection, name)[-1].population for name in seen}
    found = []
    for one, other in combinations(sorted(seen), 2):
        if roots[one].name == roots[other].name or (one, other) in different:
            continue
        share = max(shared(a, b) for a in seen[one].values() for b in seen[other].values())
        if share >= ALERT:
            same = not seen[one].keys().isdisjoint(seen[other])
            remedy = _remedy(roots[one], roots[other]) + f" `adumbra ledger declare {one} {other}`"
            found.append(Overlap(population=one, other=other, share=share, is_same=same, remedy=remedy))
    return tuple(found)


def _remedy(one: Population, other: Population) -> str:
    """What can be done about two accounts of the same people; only acts that the ledger would take."""
    if (one.unit, one.neighbours) != (other.unit, other.neighbours):
        return (
            f"one counts {one.unit}/{one.neighbours}, the other {other.unit}/{other.neighbours}, so "
            "they cannot share a cap: spend from one of them only, and quote what both have spent; "
            "if they are different people, say so with"
        )
    is_turned = one.currency is Currency.GAUSSIAN and other.currency is Currency.PURE
    child, parent = (other, one) if is_turned else (one, other)
    return (
        f"if they are the same people, run `adumbra ledger link {child.name} --to {parent.name}`; "
        "if not, say so with"
    )
