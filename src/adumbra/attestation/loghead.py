"""A ledger's public log as a Merkle tree (RFC 9162, section 2.1), its signed heads, proofs under them.

    leaf         SHA-256(0x00 || entry)
    node         SHA-256(0x01 || left || right), the left half the largest power of two below the size
    proof.json   one event, its place, the hashes beside its way up, and the signed head above it

A root fixes every entry and their order. An inclusion proof shows that an entry is under a root; a
consistency proof shows that a later root was made by appending only. Both have about log2(size) hashes.

A head is signed by the ledger's key, or by an operator whom that key enrolled: then the enrolment stands
in the head, so that a reader needs the ledger's public key alone. Files hold base64 and no time of day.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from adumbra.attestation.events import HEADS, Acting, Enrolment, HeadKey, encode, is_signed
from adumbra.attestation.sshsig import HASHES, Signature
from adumbra.errors import InvalidInput

PROOF = "adumbra-proof/1"
LONGEST_PATH = 64
EMPTY = hashlib.sha256(b"").digest()  # the root of no entries


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbours."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A log's tree: every full subtree is kept, so roots and proofs of any size are quick."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]  # level k: subtrees of 2^k leaves, from the left
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, entry: bytes) -> None:
        """One more entry."""
        level, value = 0, leaf_hash(entry)
        while True:
            row = self._levels[level]
            row.append(value)
            if len(row) % 2:
                return
            value = node_hash(row[-2], row[-1])
            level += 1
            if level == len(self._levels):
                self._levels.append([])

    def root(self, size: int | None = None) -> bytes:
        """The root of the first `size` entries; of all when left out."""
        count = len(self) if size is None else size
        return self._hash(0, count) if count else EMPTY

    def _hash(self, start: int, end: int) -> bytes:
        """The hash of the entries from `start` to `end`; `start` is where a subtree may start."""
        width = end - start
        level = width.bit_length() - 1
        if width == 1 << level:
            return self._levels[level][start >> level]
        half = _left(width)
        return node_hash(self._hash(start, start + half), self._hash(start + half, end))

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """The proof that entry `index` is under the root of the first `size` entries."""
        start, end = 0, len(self) if size is None else size
        path = []
        while end - start > 1:
            middle = start + _left(end - start)
            if index < middle:
                path.append(self._hash(middle, end))
                end = middle
            else:
                path.append(self._hash(start, middle))
                start = middle
        return path[::-1]

    def consistency(self, first: int, second: int | None = None) -> list[bytes]:
        """The proof that the first `second` entries begin with the first `first` ones."""
        start, end = 0, len(self) if second is None else second
        is_whole = True
        path = []
        while first != end:
            middle = start + _left(end - start)
            if first <= middle:
                path.append(self._hash(middle, end))
                end = middle
            else:
                path.append(self._hash(start, middle))
                start = middle
                is_whole = False
        if not is_whole:
            path.append(self._hash(start, end))
        return path[::-1]


def _left(width: int) -> int:
    """The largest power of two below a width."""
    return 1 << (width - 1).bit_length() - 1


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a leaf hash is entry `index` under the root of `size` entries (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    here, last, value = index, size - 1, leaf
    for other in path:
        if last == 0:
            return False
        if here % 2 or here == last:
            value = node_hash(other, value)
            while here and not here % 2:
                here, last = here >> 1, last >> 1
        else:
            value = node_hash(value, other)
        here, last = here >> 1, last >> 1
    return last == 0 and value == root


def is_consistent(
    first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes
) -> bool:
    """Whether the tree of `second` entries grew from that of `first` (RFC 9162, 2.1.4.2)."""
    if first == second:
        return not path and first_root == second_root
    if not 0 < first < second or not path:
        return False
    nodes = [first_root, *path] if first & (first - 1) == 0 else list(path)
    here, last = first - 1, second - 1
    while here % 2:
        here, last = here >> 1, last >> 1
    old = new = nodes[0]
    for other in nodes[1:]:
        if last == 0:
            return False
        if here % 2 or here == last:
            old, new = node_hash(other, old), node_hash(other, new)
            while here and not here % 2:
                here, last = here >> 1, last >> 1
        else:
            new = node_hash(new, other)
        here, last = here >> 1, last >> 1
    return last == 0 and (old, new) == (first_root, second_root)


def decode(text: object, size: int | None = 32) -> bytes:
    """The bytes of base64 in its one form; anything else raises `ValueError`."""
    raw = base64.b64decode(str(text), validate=True)
    if (size is not None and len(raw) != size) or encode(raw) != text:
        raise ValueError("base64")
    return raw


def path_of(texts: object) -> list[bytes]:
    """The hashes of a proof; anything else raises `ValueError`."""
    if not isinstance(texts, list) or len(texts) > LONGEST_PATH:
        raise ValueError("path")
    return [decode(text) for text in texts]


def number_of(value: object) -> int:
    """A whole number that JSON holds exactly; anything else raises `ValueError`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ValueError("number")
    return value


def public_half(key: HeadKey) -> bytes:
    """The public key of the ledger itself."""
    return key.public_key if isinstance(key, Acting) else key.public_key().public_bytes_raw()


def sign_head(key: HeadKey, message: bytes) -> bytes:
    """By the operator who acts, or by the key of a ledger without operators."""
    return key.sign_head(message) if isinstance(key, Acting) else key.sign(message)


def head_is_signed(
    public_key: bytes, ledger: str, enrolment: Enrolment | None, message: bytes, signature: bytes
) -> bool:
    """Whether a head was signed by the ledger's key, or by an operator whom that key enrolled."""
    if enrolment is None:
        return is_signed(public_key, message, signature)
    by = Signature(enrolment.key, HEADS, HASHES[0], signature)
    return enrolment.holds(ledger, public_key) and by.holds(message)


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
            public_key=decode(value["public_key"]),
            size=number_of(value["size"]),
            root=decode(value["root"]),
            signature=decode(value["signature"], None if "enrolment" in value else 64),
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
            "public_key": encode(self.public_key),
            "size": self.size,
            "root": encode(self.root),
            "signature": encode(self.signature),
            **({} if self.enrolment is None else {"enrolment": self.enrolment.to_dict()}),
        }

    @property
    def issuer(self) -> tuple[str, bytes]:
        """Which ledger."""
        return self.ledger, self.public_key


def _head_message(ledger: str, size: int, root: bytes) -> bytes:
    return f"adumbra-log/1\n{ledger}\n{size}\n{root.hex()}\n".encode()


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
                index=number_of(value["index"]),
                path=tuple(path_of(value["path"])),
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
            "path": [encode(one) for one in self.path],
            "head": self.head.to_dict(),
        }
        return to_bytes(value)


def to_bytes(value: object) -> bytes:
    """The one byte form of the files here."""
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True) + "\n").encode()
