"""The hash chain: canonical JSON (RFC 8785), SHA-256, one Ed25519 signature over each head.

    hash_i = SHA-256(body_i || hash_(i-1)),  body_i = canonical JSON with log, sequence, day and kind

There are two chains. `public` holds what a reader of a release may know; its head goes into every card.
`private` holds what may depend on the data or name people (source pins, paths, owners, fingerprints); it
has a head of its own, so nothing of it can reach a card even as a hash.

Where operators are enrolled, an event carries the fingerprint and the signature of the one who acted
(attestation/events.py), and that signature takes the place of the head's.
"""

import json
import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy import text as sql

from adumbra.attestation.events import (
    OWNER_KINDS,
    Approval,
    HeadKey,
    Roll,
    act_message,
    canonical,
    link,
)
from adumbra.attestation.loghead import Proof
from adumbra.attestation.signers import Signer
from adumbra.errors import LedgerError, VerificationFailed
from adumbra.privacy.ledger.model import events, heads, keys
from adumbra.privacy.ledger.values import LedgerHead

Log = Literal["public", "private"]
LOGS: tuple[Log, ...] = ("public", "private")
GENESIS = "0" * 64
# Built once: SQLAlchemy takes longer to put a statement together than SQLite to run it.
_LOCKED_HEADS = select(heads).order_by(heads.c.log).with_for_update()
ROLL = "roll:"  # in front of the names of such rows of `keys`
_PUBLIC_HEAD = select(heads).where(heads.c.log == "public")
_APPEND = insert(events)
_BODIES = select(events.c.body).where(events.c.log == "public").order_by(events.c.sequence)
_ROLL = select(keys).where((keys.c.name.like("roll:%")) | keys.c.name.in_(("ledger", "public_key")))
_ENROLMENTS = select(keys.c.value).where(keys.c.name.like("roll:%"))
_ADVANCE = (
    update(heads)
    .where(heads.c.log == bindparam("of"), heads.c.sequence == bindparam("previous"))
    .values(sequence=bindparam("next"), hash=bindparam("digest"), signature=bindparam("signed"))
)


def read_roll(connection: Connection) -> Roll:
    """Who is enrolled now; the rows are copies of events of the log."""
    known = {row.name: row.value for row in connection.execute(_ROLL)}
    try:
        roll = Roll.begun(known.pop("ledger"), known.pop("public_key"))
        for name in sorted(known):
            kept = json.loads(known[name])
            roll.take(kept["event"], kept["previous"])
    except (KeyError, TypeError, ValueError):
        raise VerificationFailed(
            "keys: who is enrolled was changed or is damaged; run `adumbra ledger verify`"
        ) from None
    return roll


def sees_part_of_keys(connection: Connection, known: Mapping[str, str]) -> bool:
    """Whether this database role may read the public keys alone (PostgreSQL's row security)."""
    if connection.dialect.name != "postgresql" or "signing_key" in known:
        return False
    return bool(connection.execute(sql("SELECT row_security_active('adumbra_keys')")).scalar())


def read_head(connection: Connection) -> LedgerHead:
    """The signed end of the public chain."""
    row = connection.execute(_PUBLIC_HEAD).one()
    roll = read_roll(connection)
    head = LedgerHead(
        ledger=roll.ledger,
        sequence=row.sequence,
        hash=row.hash,
        signature=row.signature,
        public_key=roll.public_key.hex(),
    )
    if not roll.has_operators:
        return head
    last = select(events).where(events.c.log == "public").order_by(events.c.sequence.desc()).limit(2)
    now, before = connection.execute(last).all()
    event = json.loads(now.body)
    if "operator" not in event or event["kind"] in OWNER_KINDS:
        return head
    for text in connection.execute(_ENROLMENTS.order_by(keys.c.name.desc())).scalars():
        kept = json.loads(text)
        enrolled = json.loads(kept["event"])
        if enrolled["kind"] == "enrol" and enrolled["operator"] == event["operator"]:
            act = {"event": now.body, "previous": before.hash}
            return replace(head, signature=enrolled["signature"], act=act, enrolment=kept)
    raise LedgerError("ledger: the operator of its last event is not enrolled; run `ledger verify`")


class Chain:
    """The two chains within one write transaction, whose head rows the transaction has locked."""

    def __init__(
        self,
        connection: Connection,
        ledger: str,
        signing_key: Ed25519PrivateKey | None,
        operator: Signer | None = None,
    ) -> None:
        self.connection = connection
        self.ledger = ledger
        self.approval: Approval | None = None  # a second operator's, for a raise
        self._key = signing_key
        rows = connection.execute(_LOCKED_HEADS)
        self._heads: dict[str, tuple[int, str]] = {row.log: (row.sequence, row.hash) for row in rows}
        self.roll = read_roll(connection)
        self._acting = None if operator is None else self.roll.acting(operator)

    def sequence(self, log: Log) -> int:
        """The sequence number of the last event."""
        return self._heads[log][0]

    def append(self, log: Log, kind: str, **fields: object) -> int:
        """Append one event and sign the new head; returns its sequence number."""
        previous, before = self._heads[log]
        sequence = previous + 1
        event = {"day": today(), "kind": kind, "log": log, "sequence": sequence, **fields}
        if kind in OWNER_KINDS:
            event["signature"] = self._own_key().sign(act_message(self.ledger, before, event)).hex()
        elif self.roll.has_operators:
            self._sign(log, before, event)
        made = link(self.ledger, event, before)
        body, digest = made.body.decode(), made.hash
        if "operator" in event and kind not in OWNER_KINDS:
            signature = str(event["signature"])
        else:
            signature = self._own_key().sign(made.message).hex()
        stored = {"log": log, "sequence": sequence, "body": body, "hash": digest}
        self.connection.execute(_APPEND, stored)
        moved = {"next": sequence, "digest": digest, "signed": signature}
        self.connection.execute(_ADVANCE, {"of": log, "previous": previous, **moved})
        self._heads[log] = (sequence, digest)
        if kind in OWNER_KINDS and log == "public":
            self._enter(sequence, body, before)
        return sequence

    def _sign(self, log: Log, before: str, event: dict[str, object]) -> None:
        """Add the operator who acts and the signature, if there is the right to it."""
        by = None if self._acting is None else self._acting.enrolment.operator
        self.roll.require_right(str(event["kind"]), by)
        assert self._acting is not None and by is not None  # noqa: S101, PT018 - as just required
        event["operator"] = by
        if self.approval is not None and event["kind"] == "raise-cap" and log == "public":
            given = self.approval
            event["approval"] = {"operator": given.operator, "signature": given.signature}
        if log == "public":
            self.roll.require_two(event, by)
        event["signature"] = self._acting.sign_event(self.ledger, before, event)

    def _own_key(self) -> Ed25519PrivateKey:
        if self._key is None:
            raise LedgerError(
                "ledger: this database role may not read the ledger's key; its owner must do this"
            )
        return self._key

    def _enter(self, sequence: int, body: str, previous: str) -> None:
        """Keep who is enrolled beside the log, where every act looks it up."""
        kept = canonical({"event": body, "previous": previous}).decode()
        self.connection.execute(insert(keys).values(name=f"{ROLL}{sequence:012d}", value=kept))
        self.roll.take(body, previous)

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
    """Who acts, by the process's user id and no variable of the environment: a label, not a proof."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without a name, as in many containers
        return f"uid {os.getuid()}"


def today() -> str:
    """The day (UTC): no finer time is ever written, and order comes from the sequence."""
    return datetime.now(UTC).date().isoformat()


def read_events(connection: Connection, log: Log) -> Iterator[dict[str, Any]]:
    """The bodies of one log, in order."""
    query = select(events.c.body).where(events.c.log == log).order_by(events.c.sequence)
    for row in connection.execute(query):
        yield json.loads(row.body)


def bodies(connection: Connection) -> list[str]:
    """The bodies of the public events, as they were hashed."""
    return [row.body for row in connection.execute(_BODIES)]


def prove(connection: Connection, ledger: str, key: HeadKey, entry: str) -> Proof:
    """That this entry was sealed, under the head of the log as it stood then."""
    texts = bodies(connection)
    for index, text in enumerate(texts):
        event = json.loads(text)
        if event["kind"] == "seal" and event["entry"] == entry:
            return Proof.of_last(texts[: index + 1], ledger, key)
    raise LedgerError(f"entry={entry}: is not sealed; there is nothing to prove yet")
