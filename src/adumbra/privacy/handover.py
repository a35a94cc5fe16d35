"""Noise keys for rows that another process draws: the keys of its own blocks, never the grant's secret.

    driver   KeyedRows(function, grant, purposes)       in its own process a plain function of rows
             hand_over(first, last)  -> HandedKeys      derived keys of these blocks and purposes
    worker   function(rows, handed)                     draws, and notes which value each key covered
             handed.claims()         -> digests
    driver   accept(first, last, digests)               into the grant's own book: the first value of a
                                                        key stands, another one raises

A derived key gives the noise of one block and one purpose and says nothing of any other. A task that is
run twice, here or there, finds the same keys and repeats its noise; one that read other rows is refused.

Proof       handover.proof.md, of `KeyedRows` and `HandedKeys`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from adumbra.errors import NoiseKeyReused, require
from adumbra.privacy.grant import ClaimBook, Grant, NoiseKey, Secret, derive_secret

RowsT = TypeVar("RowsT")
T = TypeVar("T")
Claims = Mapping[tuple[str, int], bytes]  # the digest of what each (purpose, block) covered


class Keys(Protocol):
    """Where a function of rows takes its noise keys from: a grant, or keys that were handed over."""

    def key(self, purpose: str, block: int = 0) -> NoiseKey:
        """The noise key of a purpose and a block number."""
        ...


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
