"""What a witness keeps of a ledger's public log: published heads, and the whole log behind them.

head file    the signed head of a moment, every withdrawal so far, and proofs that earlier heads
             are its beginnings
"""

import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from adumbra.attestation.events import HeadKey, encode
from adumbra.attestation.loghead import (
    LogHead,
    Tree,
    decode,
    is_consistent,
    number_of,
    path_of,
    sign_head,
    to_bytes,
)
from adumbra.errors import InvalidInput

HEAD, WITNESS = "adumbra-log-head/1", "adumbra-witness/1"
NOTICES = ("withdraw", "supersede")


def _notices_message(ledger: str, size: int, bodies: Sequence[str]) -> bytes:
    digest = hashlib.sha256("\n".join(bodies).encode()).hexdigest()
    return f"adumbra-notices/1\n{ledger}\n{size}\n{len(bodies)}\n{digest}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedHead:
    """A head with what its readers need: all withdrawals so far, and proofs from earlier sizes."""

    head: LogHead
    notices: tuple[str, ...]  # bodies of events
    notices_signature: bytes
    earlier: Mapping[int, tuple[bytes, ...]]  # size of an earlier head -> consistency proof

    @classmethod
    def make(
        cls,
        key: HeadKey,
        head: LogHead,
        tree: Tree,
        notices: Sequence[str],
        sizes: Sequence[int],
    ) -> Self:
        """The head of a tree, with proofs from the sizes asked for."""
        message = _notices_message(head.ledger, head.size, notices)
        earlier = {
            size: tuple(tree.consistency(size, head.size)) for size in sizes if 0 < size < head.size
        }
        return cls(
            head=head, notices=tuple(notices), notices_signature=sign_head(key, message), earlier=earlier
        )

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From a head file; `InvalidInput` if it is none or was not signed so."""
        try:
            value = json.loads(raw)
            known = value["format"] == HEAD
            found = cls(
                head=LogHead.read(value["head"]),
                notices=tuple(str(body) for body in value["notices"]),
                notices_signature=decode(value["notices_signature"], None),
                earlier={
                    number_of(one["size"]): tuple(path_of(one["path"])) for one in value["earlier"]
                },
            )
            message = _notices_message(found.head.ledger, found.head.size, found.notices)
            known &= found.head.vouches(message, found.notices_signature)
        except (KeyError, TypeError, ValueError, RecursionError, binascii.Error):
            known = False
        if not known:
            raise InvalidInput(
                "is not a head that `ledger publish-head` wrote, or its signature does not hold"
            )
        return found

    def to_bytes(self) -> bytes:
        """The bytes of the head file."""
        earlier = [
            {"size": size, "path": [encode(one) for one in path]}
            for size, path in sorted(self.earlier.items())
        ]
        value = {
            "format": HEAD,
            "head": self.head.to_dict(),
            "notices": list(self.notices),
            "notices_signature": encode(self.notices_signature),
            "earlier": earlier,
        }
        return to_bytes(value)

    def continues(self, older: LogHead) -> bool | None:
        """Whether an older head is a beginning of this one; None where no proof is at hand."""
        if older.size == self.head.size:
            return older.root == self.head.root
        if older.size > self.head.size:
            return False
        path = self.earlier.get(older.size)
        if path is None:
            return None
        return is_consistent(older.size, self.head.size, path, older.root, self.head.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLog:
    """All events of a public log with its signed head: an export, or the ledger itself."""

    head: LogHead
    tree: Tree
    notices: tuple[str, ...]

    def continues(self, older: LogHead) -> bool:
        """Whether an older head is a beginning of this log."""
        return older.size <= len(self.tree) and self.tree.root(older.size) == older.root
