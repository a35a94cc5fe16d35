"""The receipt for one spend, and the noise keys that derive from its secret.

    secret of the grant --HKDF(purpose, block)--> key --HKDF(stream)--> AES-256-CTR words

The secret is fresh and lives in memory only. It is never printed, copied, pickled or written, and a
forked child of the process that opened the grant cannot use it. A key is one secret stream of random
words for one purpose and one block, bound to one value: the same key gives the same words for ever, so a
retried task repeats its noise; a key that meets a second value, scale or shape raises, because two noisy
values that share noise cancel it.

Workers of a cluster draw with derived keys of their own blocks, never with the grant's secret:

    driver   KeyedRows(function, grant, purposes)       in its own process a plain function of rows
             hand_over(first, last)  -> HandedKeys      derived keys of these blocks and purposes
    worker   function(rows, handed)                     draws, and notes which value each key covered
             handed.claims()         -> digests
    driver   accept(first, last, digests)               into the grant's own book: the first value of a
                                                        key stands, another one raises

A derived key gives the noise of one block and one purpose and says nothing of any other. A task that is
run twice, here or there, finds the same keys and repeats its noise; one that read other rows is refused.

Proof       noise.proof.md (Lemma 1, one key one value); handover.proof.md, of `KeyedRows` and
            `HandedKeys`.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NoReturn, Protocol, SupportsIndex, TypeVar

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from numpy.typing import NDArray

from adumbra.errors import NoiseKeyReused, require
from adumbra.numerics import Array, Lattice

Words = NDArray[np.uint64]
T = TypeVar("T")
RowsT = TypeVar("RowsT")
Claims = Mapping[tuple[str, int], bytes]  # the digest of what each (purpose, block) covered

_LABEL = b"adumbra-noise/1"
_TAG_PIECE = 2**30  # bytes a call of AES-GCM takes at once


class Secret:
    """Key bytes that refuse to be printed, copied or stored."""

    __slots__ = ("_bytes",)

    def __init__(self, content: bytes) -> None:
        self._bytes = content

    def reveal(self) -> bytes:
        """The bytes, for a key derivation."""
        return self._bytes

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        refuse_copy(self)


def refuse_copy(holder: object) -> NoReturn:
    """Raise for an object whose copy or pickle would carry a secret away."""
    raise TypeError(f"{type(holder).__name__}: holds a secret; it cannot be copied or pickled")


@dataclass(frozen=True, slots=True, eq=False)
class NoiseCall:
    """What a key is asked to cover: the kind of noise, its scale and the exact value (never printed)."""

    kind: str  # "laplace", "gaussian" or "gumbel"
    value: Lattice = field(repr=False)
    scale: Array  # in the value's real unit
    detail: int = 0  # k of a selection


class ClaimBook:
    """Which value each (purpose, block) of a grant was used for; thread-safe, dead in a forked child."""

    __slots__ = ("_claims", "_lock", "_pid")

    def __init__(self) -> None:
        self._claims: dict[tuple[str, int], bytes] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def require_same_process(self) -> None:
        """Refuse a forked child: its parent could use the same key for another value unseen."""
        if os.getpid() != self._pid:
            raise NoiseKeyReused(
                f"pid={os.getpid()}: the grant belongs to process {self._pid}; "
                "draw noise in the process that opened it"
            )

    def claim(self, purpose: str, block: int, digest: bytes) -> None:
        """Bind (purpose, block) to a digest, or raise if it is bound to another one."""
        self.require_same_process()
        with self._lock:
            bound = self._claims.setdefault((purpose, block), digest)
        if bound != digest:
            raise NoiseKeyReused(
                f"purpose={purpose!r}, block={block}: this key already covers another value, scale or "
                "shape; use one purpose for each statistic"
            )

    def claimed(self) -> dict[tuple[str, int], bytes]:
        """All that is bound: digests under keys that only their holders know."""
        with self._lock:
            return dict(self._claims)


class WordStream:
    """A keystream read in pieces; `read` returns a view that the next `read` overwrites."""

    __slots__ = ("_buffer", "_encryptor", "_zeros")

    def __init__(self, key: bytes, capacity: int, start: int = 0) -> None:
        counter = (start // 2).to_bytes(16, "big")  # a cipher block is two words
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
        self._zeros = np.zeros(8 * capacity, np.uint8)
        self._buffer = np.empty(8 * capacity + 15, np.uint8)  # 15: update_into wants room for a block
        if start % 2:
            self._encryptor.update(bytes(8))

    def read(self, count: int) -> Words:
        """The next `count` words, at most the capacity."""
        self._encryptor.update_into(self._zeros[: 8 * count].data, self._buffer.data)
        return self._buffer[: 8 * count].view("<u8")


class NoiseKey:
    """One stream of secret words for (purpose, block); made by `Grant.key` only."""

    __slots__ = ("_claims", "_secret", "block", "purpose")

    def __init__(self, purpose: str, block: int, secret: Secret, claims: ClaimBook) -> None:
        self.purpose = purpose
        self.block = block
        self._secret = secret
        self._claims = claims

    def __repr__(self) -> str:
        return f"{type(self).__name__}(purpose={self.purpose!r}, block={self.block})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        refuse_copy(self)

    def words(self, stream: str, count: int, start: int = 0) -> Words:
        """Words [start, start + count) of a named stream of this key."""
        return self.stream(stream, count, start).read(count).copy()

    def stream(self, name: str, capacity: int, start: int = 0) -> WordStream:
        """The named stream from word `start` on, to be read in pieces of at most `capacity` words."""
        self._claims.require_same_process()
        return WordStream(self._subkey("stream", name), capacity, start)

    def claim(self, digest: bytes) -> None:
        """Bind this key to one digest: the same again is a retry, another one raises."""
        self._claims.claim(self.purpose, self.block, digest)

    def apply(self, call: NoiseCall, draw: Callable[[], T]) -> T:
        """Bind this key to the call, then draw: the one way in which noise is made."""
        self.claim(self._digest(call))
        return draw()

    def _digest(self, call: NoiseCall) -> bytes:
        """A digest of everything the noise is added to.

        The value enters by AES-GCM's universal hash under a subkey, which is several times faster than
        SHA-256: two unlike values of n bytes agree with probability at most n 2^-128. It leaves the
        process for the grant's own book only (`KeyedRows`).
        """
        mac = AESGCM(self._subkey("claim", call.kind))
        units, scale = np.ascontiguousarray(call.value.units), np.ascontiguousarray(call.scale)
        header = (call.kind, call.value.exponent, units.shape, scale.shape, call.detail)
        digest = hashlib.sha256(repr(header).encode())
        digest.update(scale.tobytes())
        content = units.reshape(-1).view(np.uint8).data
        for start in range(0, len(content), _TAG_PIECE):
            digest.update(mac.encrypt(bytes(12), b"", content[start : start + _TAG_PIECE]))
        return digest.digest()

    def _subkey(self, role: str, name: str) -> bytes:
        info = _field(role) + _field(name)
        return HKDFExpand(hashes.SHA256(), 32, _LABEL + info).derive(self._secret.reveal())


def derive_key(secret: bytes, purpose: str, block: int, claims: ClaimBook) -> NoiseKey:
    """The key of (purpose, block) under a grant's secret (HKDF-SHA256)."""
    return NoiseKey(purpose, block, derive_secret(secret, purpose, block), claims)


def derive_secret(secret: bytes, purpose: str, block: int) -> Secret:
    """The key bytes of (purpose, block): distinct pairs give independent bytes if HKDF is a PRF."""
    info = _LABEL + _field(purpose) + block.to_bytes(8, "big")
    return Secret(HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(secret))


def _field(text: str) -> bytes:
    """Text with its length in front, so that two fields never run into each other."""
    encoded = text.encode()
    return len(encoded).to_bytes(4, "big") + encoded


class Promised(Protocol):
    """The guarantee that was paid for, as far as a draw asks: noise stands alone and knows no more."""

    @property
    def is_pure(self) -> bool:
        """Whether it is pure epsilon, with no delta at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Grant:
    """What the ledger hands out after a durable spend; a mechanism draws its keys from it.

    Its secret is fresh and cannot be given: a grant with a known secret is of another class, the
    auditor's, and says `not_private`.
    """

    entry_id: str
    guarantee: Promised
    purposes: tuple[str, ...]  # declared by the plan; no other key exists
    ledger_head: str
    secret: Secret = field(default_factory=lambda: Secret(os.urandom(32)), repr=False, init=False)
    claims: ClaimBook = field(default_factory=ClaimBook, repr=False)

    def __post_init__(self) -> None:
        unique = len(set(self.purposes)) == len(self.purposes)
        require(
            bool(self.purposes) and unique and all(self.purposes),
            f"purposes={self.purposes}: must be distinct, non-empty names; declare one for each draw",
        )

    @property
    def not_private(self) -> bool:
        """Whether a test or an audit knows the secret; a release under it is stamped NOT PRIVATE."""
        return False

    def step(self, asked: object, draw: Callable[[], T], *, whole: bool = False) -> T:  # noqa: ARG002
        """Run a step whose outcome alone leaves, not the noisy values inside it: just `draw()`.

        The auditor's grants note what was `asked`. With `whole`, the draws inside choose among sets of
        private size, so that they can be replayed only together.
        """
        return draw()

    def key(self, purpose: str, block: int = 0) -> NoiseKey:
        """The noise key of a declared purpose and a block number."""
        self.require_usable(purpose, block)
        return derive_key(self.secret.reveal(), purpose, block, self.claims)

    def require_usable(self, purpose: str, block: int) -> None:
        """Refuse an undeclared purpose, a bad block number and a forked child."""
        self.claims.require_same_process()
        require(
            purpose in self.purposes,
            f"purpose={purpose!r}: not declared; the plan declares {', '.join(self.purposes)}",
        )
        require(0 <= block < 2**64, f"block={block}: must be a block number from 0 to 2^64 - 1")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        refuse_copy(self)


def open_grant(entry_id: str, guarantee: Promised, purposes: tuple[str, ...], ledger_head: str) -> Grant:
    """A grant with a fresh 256-bit secret of the operating system; the ledger's `draw` calls this."""
    return Grant(entry_id, guarantee, tuple(purposes), ledger_head)


class Keys(Protocol):
    """Where a function of rows takes its noise keys from: a grant, or keys that were handed over."""

    def key(self, purpose: str, block: int = 0) -> NoiseKey:
        """The noise key of a purpose and a block number."""


class HandedKeys:
    """Derived keys of some purposes and blocks, the only secrets that leave the grant's process.

    It may be sent, which a grant and its secret refuse; its book begins empty wherever it arrives.
    """

    __slots__ = ("_book", "_secrets")

    def __init__(self, secrets: Mapping[tuple[str, int], bytes]) -> None:
        self._secrets = {place: Secret(content) for place, content in secrets.items()}
        self._book = ClaimBook()

    def key(self, purpose: str, block: int = 0) -> NoiseKey:
        """A key that was handed over; no other one can be made here."""
        found = self._secrets.get((purpose, block))
        if found is None:
            raise NoiseKeyReused(
                f"purpose={purpose!r}, block={block}: this key was not handed to this process"
            )
        return NoiseKey(purpose, block, found, self._book)

    def claims(self) -> Claims:
        """What each key that was used covers, for the grant's book."""
        return self._book.claimed()

    def __repr__(self) -> str:
        return "HandedKeys(hidden)"

    def __reduce__(self) -> tuple[type["HandedKeys"], tuple[dict[tuple[str, int], bytes]]]:
        return HandedKeys, ({place: one.reveal() for place, one in self._secrets.items()},)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRows(Generic[RowsT, T]):
    """A function of a block of rows and its noise keys, with the grant that pays for them."""

    function: Callable[[RowsT, Keys], T]
    grant: Grant = field(repr=False)
    purposes: tuple[str, ...]  # of the keys that the function asks for

    def __call__(self, rows: RowsT) -> T:
        """The function here, where the grant is."""
        return self.function(rows, self.grant)

    def hand_over(self, first: int, last: int) -> HandedKeys:
        """The keys of noise blocks `first` to `last` (not included), for one worker."""
        plain = type(self.grant).key is Grant.key
        require(plain, "grant: its keys are recorded in this process; draw with an engine that is here")
        secrets: dict[tuple[str, int], bytes] = {}
        for purpose in self.purposes:
            for block in range(first, last):
                self.grant.require_usable(purpose, block)
                derived = derive_secret(self.grant.secret.reveal(), purpose, block)
                secrets[purpose, block] = derived.reveal()
        return HandedKeys(secrets)

    def accept(self, first: int, last: int, claims: Claims) -> None:
        """Note what a worker drew for its blocks; a key that covers another value already raises."""
        for (purpose, block), digest in claims.items():
            own = purpose in self.purposes and first <= block < last
            if not own:
                raise NoiseKeyReused(
                    f"purpose={purpose!r}, block={block}: a worker used a key that it was not handed"
                )
            self.grant.claims.claim(purpose, block, digest)
