"""Signed heads of a ledger's public log, and proofs under them, as files that are checked offline.

    proof.json   one event, its place, the hashes beside its way up, and the signed head above it
    head file    the signed head of a moment, every withdrawal so far, and proofs that earlier heads
                 are its beginnings

A head is signed by the ledger's key, or by an operator whom that key enrolled: then the enrolment stands
in the head, so that a reader needs the ledger's public key alone. Files hold base64 and no time of day.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from adumbra.attestation.merkle import Tree, is_consistent, is_included, leaf_hash
from adumbra.attestation.operators import (
    Acting,
    Enrolment,
    HeadKey,
    head_is_signed,
    public_half,
    sign_head,
)
from adumbra.errors import InvalidInput

PROOF, HEAD, WITNESS = "adumbra-proof/1", "adumbra-log-head/1", "adumbra-witness/1"
NOTICES = ("withdraw", "supersede")
LONGEST_PATH = 64


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decode(text: object, size: int | None = 32) -> bytes:
    """The bytes of base64 in its one form; anything else raises `ValueError`."""
    raw = base64.b64decode(str(text), validate=True)
    if (size is not None and len(raw) != size) or _encode(raw) != text:
        raise ValueError("base64")
    return raw


def _path(texts: object) -> list[bytes]:
    if not isinstance(texts, list) or len(texts) > LONGEST_PATH:
        raise ValueError("path")
    return [_decode(text) for text in texts]


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ValueError("number")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHead:
    """The root of the first `size` events of a ledger's public log, signed."""

    ledger: str
    public_key: bytes
    size: int
    root: bytes
    signature: bytes
    enrolment: Enrolment | None = None  # of the operator who signed; None: the ledger's own key

    @classmethod
    def sign(cls, key: HeadKey, ledger: str, tree: Tree, size: int) -> Self:
        """The head of a ledger's tree."""
        root = tree.root(size)
        by = key if isinstance(key, Acting) else None
        return cls(
            ledger=ledger,
            public_key=public_half(key),
            size=size,
            root=root,
            signature=sign_head(key, _head_message(ledger, size, root)),
            enrolment=None if by is None else by.enrolment,
        )

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From a file's object; raises KeyError, TypeError or ValueError if it is none."""
        found = cls(
            ledger=str(value["ledger"]),
            public_key=_decode(value["public_key"]),
            size=_number(value["size"]),
            root=_decode(value["root"]),
            signature=_decode(value["signature"], None if "enrolment" in value else 64),
            enrolment=Enrolment.read(value["enrolment"]) if "enrolment" in value else None,
        )
        if not found.vouches(_head_message(found.ledger, found.size, found.root), found.signature):
            raise ValueError("signature")
        return found

    def vouches(self, message: bytes, signature: bytes) -> bool:
        """Whether whoever signed this head signed this message, too."""
        return head_is_signed(self.public_key, self.ledger, self.enrolment, message, signature)

    def to_dict(self) -> dict[str, object]:
        """As in a file."""
        return {
            "ledger": self.ledger,
            "public_key": _encode(self.public_key),
            "size": self.size,
            "root": _encode(self.root),
            "signature": _encode(self.signature),
            **({} if self.enrolment is None else {"enrolment": self.enrolment.to_dict()}),
        }

    @property
    def issuer(self) -> tuple[str, bytes]:
        """Which ledger."""
        return self.ledger, self.public_key


def _head_message(ledger: str, size: int, root: bytes) -> bytes:
    return f"adumbra-log/1\n{ledger}\n{size}\n{root.hex()}\n".encode()


def _notices_message(ledger: str, size: int, bodies: Sequence[str]) -> bytes:
    digest = hashlib.sha256("\n".join(bodies).encode()).hexdigest()
    return f"adumbra-notices/1\n{ledger}\n{size}\n{len(bodies)}\n{digest}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One event of a public log under a signed head; holds once it was read."""

    body: str
    index: int
    path: tuple[bytes, ...]
    head: LogHead

    @classmethod
    def of_last(cls, bodies: Sequence[str], ledger: str, key: HeadKey) -> Self:
        """The proof of the last of these events, under the head of all of them."""
        tree = Tree(body.encode() for body in bodies)
        return cls.make(tree, bodies[-1], len(bodies) - 1, LogHead.sign(key, ledger, tree, len(bodies)))

    @classmethod
    def make(cls, tree: Tree, body: str, index: int, head: LogHead) -> Self:
        """The proof of an event under a head of this tree."""
        return cls(body=body, index=index, path=tuple(tree.inclusion(index, head.size)), head=head)

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From the bytes of proof.json; `InvalidInput` if it is none or does not hold."""
        try:
            value = json.loads(raw)
            found = cls(
                body=str(value["event"]),
                index=_number(value["index"]),
                path=tuple(_path(value["path"])),
                head=LogHead.read(value["head"]),
            )
            known = value["format"] == PROOF and found.to_bytes() == raw
            event = found.event
        except (KeyError, TypeError, ValueError, RecursionError, binascii.Error):
            known, event = False, None
        if not known or not isinstance(event, dict):
            raise InvalidInput("is not a proof in its one form, or its head's signature does not hold")
        leaf = leaf_hash(found.body.encode())
        if not is_included(leaf, found.index, found.head.size, found.path, found.head.root):
            raise InvalidInput("the event is not under the head")
        return found

    @property
    def event(self) -> dict[str, Any]:
        """What is proven to be in the log."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    def to_bytes(self) -> bytes:
        """The bytes of proof.json."""
        value = {
            "format": PROOF,
            "event": self.body,
            "index": self.index,
            "path": [_encode(one) for one in self.path],
            "head": self.head.to_dict(),
        }
        return to_bytes(value)


def to_bytes(value: object) -> bytes:
    """The one byte form of the files here."""
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True) + "\n").encode()


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
                notices_signature=_decode(value["notices_signature"], None),
                earlier={_number(one["size"]): tuple(_path(one["path"])) for one in value["earlier"]},
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
            {"size": size, "path": [_encode(one) for one in path]}
            for size, path in sorted(self.earlier.items())
        ]
        value = {
            "format": HEAD,
            "head": self.head.to_dict(),
            "notices": list(self.notices),
            "notices_signature": _encode(self.notices_signature),
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
