"""The hash chain: canonical JSON (RFC 8785), SHA-256, one Ed25519 signature over each head.

    hash_i = SHA-256(body_i || hash_(i-1)),  body_i = canonical JSON with log, sequence, day and kind

There are two chains. `public` holds what a reader of a release may know; its head goes into every card.
`private` holds what may depend on the data or name people (source pins, paths, owners, fingerprints); it
has a head of its own, so nothing of it can reach a card even as a hash.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from getpass import getuser
from typing import Any, Literal

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from sqlalchemy import Connection, bindparam, insert, select, update

from adumbra.errors import InvalidInput
from adumbra.privacy.ledger.model import FORMAT, events, heads

Log = Literal["public", "private"]
LOGS: tuple[Log, ...] = ("public", "private")
GENESIS = "0" * 64
# Built once: SQLAlchemy takes longer to put a statement together than SQLite to run it.
_LOCKED_HEADS = select(heads).order_by(heads.c.log).with_for_update()
_APPEND = insert(events)
_ADVANCE = (
    update(heads)
    .where(heads.c.log == bindparam("of"), heads.c.sequence == bindparam("previous"))
    .values(sequence=bindparam("next"), hash=bindparam("digest"), signature=bindparam("signed"))
)


def canonical(value: object) -> bytes:
    """RFC 8785 bytes of a JSON value; anything that is not JSON is the caller's mistake."""
    try:
        return bytes(rfc8785.dumps(value))  # type: ignore[arg-type]
    except (rfc8785.CanonicalizationError, RecursionError):
        raise InvalidInput("request: must be JSON with finite numbers; integers below 2^53") from None


def link_hash(body: bytes, previous: str) -> str:
    """The hash of one event on top of the hash before it."""
    return hashlib.sha256(body + bytes.fromhex(previous)).hexdigest()


def head_message(ledger: str, log: str, sequence: int, digest: str) -> bytes:
    """What the head's signature signs."""
    return canonical(
        {"format": FORMAT, "hash": digest, "ledger": ledger, "log": log, "sequence": sequence}
    )


def unhex(text: str) -> bytes:
    """The bytes of lower-case hex; any other spelling is a change and a `ValueError`."""
    value = bytes.fromhex(text)
    if value.hex() != text:
        raise ValueError("hex: must be lower-case")
    return value


def is_signed(public_key: str, message: bytes, signature: str) -> bool:
    """Whether an Ed25519 signature holds; malformed keys and signatures do not."""
    try:
        Ed25519PublicKey.from_public_bytes(unhex(public_key)).verify(unhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


class Chain:
    """The two chains within one write transaction, whose head rows the transaction has locked."""

    def __init__(self, connection: Connection, ledger: str, signing_key: Ed25519PrivateKey) -> None:
        self.connection = connection
        self.ledger = ledger
        self._key = signing_key
        rows = connection.execute(_LOCKED_HEADS)
        self._heads: dict[str, tuple[int, str]] = {row.log: (row.sequence, row.hash) for row in rows}

    def sequence(self, log: Log) -> int:
        """The sequence number of the last event."""
        return self._heads[log][0]

    def append(self, log: Log, kind: str, **fields: object) -> int:
        """Append one event and sign the new head; returns its sequence number."""
        previous, digest = self._heads[log]
        sequence = previous + 1
        body = canonical({"day": today(), "kind": kind, "log": log, "sequence": sequence, **fields})
        digest = link_hash(body, digest)
        signature = self._key.sign(head_message(self.ledger, log, sequence, digest)).hex()
        event = {"log": log, "sequence": sequence, "body": body.decode(), "hash": digest}
        self.connection.execute(_APPEND, event)
        moved = {"next": sequence, "digest": digest, "signed": signature}
        self.connection.execute(_ADVANCE, {"of": log, "previous": previous, **moved})
        self._heads[log] = (sequence, digest)
        return sequence

    def note(self, kind: str, **fields: object) -> None:
        """What only the steward may know, and who did it; nobody else hears of it."""
        self.append("private", kind, by=_user(), **fields)

    def act(
        self, kind: str, public: Mapping[str, object], private: Mapping[str, object] | None = None
    ) -> None:
        """One act: what everybody may know; beside it what only the steward may, and who did it."""
        about = self.append("public", kind, **public)
        self.append("private", kind, about=about, by=_user(), **(private or {}))


@cache
def _user() -> str:
    """Who acts, as the system names them: a label for the steward, not a proof."""
    try:
        return getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return f"uid {os.getuid()}"


def today() -> str:
    """The day (UTC): no finer time is ever written, and order comes from the sequence."""
    return datetime.now(UTC).date().isoformat()


def read_events(connection: Connection, log: Log) -> Iterator[dict[str, Any]]:
    """The bodies of one log, in order."""
    query = select(events.c.body).where(events.c.log == log).order_by(events.c.sequence)
    for row in connection.execute(query):
        yield json.loads(row.body)
