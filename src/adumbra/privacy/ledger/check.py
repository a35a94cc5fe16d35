"""`ledger verify`: chains, signatures, sums, states and guards; a card's head against this history."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, Table, select
from sqlalchemy import text as sql

from adumbra.attestation.events import (
    FORMAT,
    OWNER_KINDS,
    Enrolment,
    Roll,
    canonical,
    head_holds,
    head_message,
    is_signed_hex,
    link_hash,
    unhex,
)
from adumbra.errors import AdumbraError, VerificationFailed
from adumbra.privacy.ledger.chain import GENESIS, LOGS, ROLL, Log, sees_part_of_keys
from adumbra.privacy.ledger.guards import guard_faults
from adumbra.privacy.ledger.model import charges, entries, events, heads, keys, populations
from adumbra.privacy.ledger.rebuild import Book

PRIVATE_KINDS = ("fingerprint", "retarget")  # of the private log alone
SEEN = ("format", "ledger", "public_key")  # keys that every role of a PostgreSQL ledger may read
KEYS = ("fingerprint_key", "format", "ledger", "public_key", "signing_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found whole."""

    events: int
    private_events: int
    populations: int
    entries: int
    head: str
    card: bool  # whether a card, or a head that was kept elsewhere, was compared, too

    def sentence(self) -> str:
        """For people."""
        card = "; the head compared is part of this history" if self.card else ""
        return (
            f"{self.events} public and {self.private_events} private events, "
            f"{self.populations} populations, {self.entries} entries agree; head {self.head[:16]}{card}"
        )


def check(
    connection: Connection, card: Mapping[str, Any] | None = None, card_digest: str | None = None
) -> Verified:
    """Raise `VerificationFailed` with every fault found, or say what was checked."""
    faults = _page_faults(connection)
    if faults:
        raise VerificationFailed(
            "\n".join(faults)
        )  # nothing that is read from such pages means anything
    try:
        return _check(connection, card, card_digest)
    except AdumbraError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        kind = type(error).__name__
        raise VerificationFailed(f"tables: hold what no ledger wrote ({kind})") from None


def _check(connection: Connection, card: Mapping[str, Any] | None, card_digest: str | None) -> Verified:
    faults = guard_faults(connection)
    known = {row.name: row.value for row in connection.execute(select(keys))}
    roll = Roll(known.get("ledger", ""), _bytes(known.get("public_key", "")))
    logs = {log: _read_chain(connection, log, known, roll, faults) for log in LOGS}
    if not faults:
        _check_keys(known, logs, faults, is_partial=sees_part_of_keys(connection, known))
        book = _replay(logs, faults)
        if not faults:
            _compare_tables(connection, book, faults)
    if card is not None:
        faults += card_faults(connection, known, card, card_digest)
    if faults:
        raise VerificationFailed("\n".join(faults))
    last = connection.execute(select(heads.c.hash).where(heads.c.log == "public")).scalar_one()
    return Verified(
        events=len(logs["public"]),
        private_events=len(logs["private"]),
        populations=len(book.populations),
        entries=len(book.entries),
        head=last,
        card=card is not None,
    )


def _page_faults(connection: Connection) -> list[str]:
    """Whether the pages of the database are whole (SQLite)."""
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite and connection.execute(sql("PRAGMA integrity_check")).scalar() != "ok":
        return ["database: SQLite's integrity check failed; the file is damaged"]
    return []


def _read_chain(
    connection: Connection, log: Log, known: Mapping[str, str], roll: Roll, faults: list[str]
) -> list[dict[str, Any]]:
    """The bodies of one log, after checking every link, who signed it, the head and its signature."""
    bodies: list[dict[str, Any]] = []
    watch = _Private(roll, known) if log == "private" else None
    previous, sequence = GENESIS, 0
    for row in connection.execute(select(events).where(events.c.log == log).order_by(events.c.sequence)):
        sequence += 1
        if row.sequence != sequence or row.hash != link_hash(row.body.encode(), previous):
            faults.append(f"{log} event {row.sequence}: the chain is broken")
            return []
        body = json.loads(row.body)
        if body.get("log") != log or body.get("sequence") != sequence:
            faults.append(f"{log} event {sequence}: belongs elsewhere")
        wrong = roll.fault(row.body, previous) if watch is None else watch.fault(body, previous)
        if wrong is not None:
            faults.append(f"{log} event {sequence}: {wrong}")
            return []
        bodies.append(body)
        previous = row.hash
    head = connection.execute(select(heads).where(heads.c.log == log)).first()
    if head is None or sequence == 0 or (head.sequence, head.hash) != (sequence, previous):
        faults.append(f"{log} head: is not the end of the chain")
    elif not _is_head_signed(known, log, head, bodies[-1]):
        faults.append(f"{log} head: its signature does not hold")
    return bodies


def _is_head_signed(known: Mapping[str, str], log: Log, head: Any, last: Mapping[str, Any]) -> bool:  # noqa: ANN401 - a row
    """By the ledger's key, or by the operator of the last event, whose signature was checked with it."""
    if "operator" in last and last["kind"] not in OWNER_KINDS:
        return bool(head.signature == last["signature"])
    message = head_message(known.get("ledger", ""), log, head.sequence, head.hash)
    return is_signed_hex(known.get("public_key", ""), message, head.signature)


class _Private:
    """Whether events of the private log are signed, from the first enrolment on."""

    def __init__(self, roll: Roll, known: Mapping[str, str]) -> None:
        self._roll, self._begun = roll, False
        kept = [json.loads(known[name]) for name in known if name.startswith(ROLL)]
        made = [Enrolment.read(one) for one in kept if json.loads(one["event"])["kind"] == "enrol"]
        self._keys = {one.operator: one.key for one in made}

    def fault(self, event: Mapping[str, Any], previous: str) -> str | None:
        self._begun |= event["kind"] == "enrol"
        if self._begun and self._roll.private_fault(event, previous, self._keys):
            return "is not signed by an operator"
        return None


def _bytes(text: str) -> bytes:
    try:
        return unhex(text)
    except ValueError:
        return b""


def _entered(public: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The acts of the ledger's own key, by the name of the row that keeps each."""
    return {f"{ROLL}{one['sequence']:012d}": one for one in public if one["kind"] in OWNER_KINDS}


def _check_keys(
    known: Mapping[str, str],
    logs: Mapping[Log, list[dict[str, Any]]],
    faults: list[str],
    *,
    is_partial: bool,
) -> None:
    """The keys are those that the first events speak of, and who is enrolled is what the log says."""
    own = {name: value for name, value in known.items() if not name.startswith(ROLL)}
    if own.keys() != set(KEYS) and not (is_partial and set(SEEN) <= own.keys() <= set(KEYS)):
        faults.append("keys: not the five that belong there")
        return
    first, companion = logs["public"][0], logs["private"][0]
    rows = {name: json.loads(known[name]) for name in known.keys() - own.keys()}
    written = {name: canonical(one).decode() for name, one in _entered(logs["public"]).items()}
    if written.keys() != rows.keys() or any(written[name] != rows[name]["event"] for name in rows):
        faults.append("keys: who is enrolled is not what the log says")
        return
    if is_partial:
        return
    try:
        signing = Ed25519PrivateKey.from_private_bytes(unhex(known["signing_key"]))
        secret_hash = hashlib.sha256(unhex(known["fingerprint_key"])).hexdigest()
        public = signing.public_key().public_bytes_raw().hex()
    except ValueError:
        faults.append("keys: not readable")
        return
    said = (first.get("format"), first.get("ledger"), first.get("public_key"))
    holds = (
        first["kind"] == companion["kind"] == "init"
        and said == (FORMAT, known["ledger"], known["public_key"])
        and known["format"] == FORMAT
        and public == known["public_key"]
        and companion.get("fingerprint_key_hash") == secret_hash
    )
    if not holds:
        faults.append("keys: not those of the first event")


def _replay(logs: Mapping[Log, list[dict[str, Any]]], faults: list[str]) -> Book:
    """Rebuild the tables from the events; an event that could not have happened is a fault."""
    companions: dict[int, dict[str, Any]] = {}
    for event in logs["private"]:
        if event["kind"] not in PRIVATE_KINDS:
            companions[event["about"]] = event
    book = Book()
    for event in logs["public"]:
        try:
            private = companions.pop(event["sequence"])
            if event["kind"] not in OWNER_KINDS and private.get("operator") != event.get("operator"):
                faults.append(f"public event {event['sequence']}: its private part is another's")
            if private["kind"] != event["kind"]:
                faults.append(f"public event {event['sequence']}: its private part is of another kind")
            book.apply(event, private)
        except (AdumbraError, KeyError, TypeError, ValueError) as error:
            faults.append(
                f"public event {event['sequence']}: could not have happened ({type(error).__name__})"
            )
            return book
    faults += [f"private event about {about}: no such public event" for about in companions]
    return book


def _compare_tables(connection: Connection, book: Book, faults: list[str]) -> None:
    """Every row of the three tables against the rebuilt ones."""
    rebuilt = [{"entry": e, "population": p, "units": units} for (e, p), units in book.charges.items()]
    for table, rows in (
        (populations, list(book.populations.values())),
        (entries, list(book.entries.values())),
        (charges, rebuilt),
    ):
        expected = _by_key(table, rows)
        found = _by_key(table, [dict(row) for row in connection.execute(select(table)).mappings()])
        faults += [
            f"{table.name} {'/'.join(key)}: does not agree with the log"
            for key in sorted(expected.keys() | found.keys())
            if expected.get(key) != found.get(key)
        ]


def _by_key(table: Table, rows: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(str(row[column.name]) for column in table.primary_key): row for row in rows}


def card_faults(
    connection: Connection, known: Mapping[str, str], card: Mapping[str, Any], card_digest: str | None
) -> list[str]:
    """Whether the head that a card carries is an earlier (or the present) state of this ledger.

    A head alone, as `LedgerHead.to_dict` has it, is compared in the same way; it names no entry.
    """
    alone = isinstance(card.get("ledger"), str)
    name = "head" if alone else "card"
    try:
        head = card if alone else card["ledger"]["head"]
        entry = "" if alone else str(card["ledger"]["entry"])
        sequence, digest = int(head["sequence"]), str(head["hash"])
        signed = head_holds(head)
        issuer = (head["ledger"], head["public_key"])
    except (KeyError, TypeError, ValueError, AdumbraError):
        return [f"{name}: has no readable ledger head"]
    if issuer != (known.get("ledger"), known.get("public_key")):
        return [f"{name}: was issued by another ledger"]
    faults = [] if signed else [f"{name}: the signature of its ledger head does not hold"]
    place = (events.c.log == "public", events.c.sequence == sequence)
    found = connection.execute(select(events.c.hash).where(*place)).scalar()
    if found is None:
        faults.append(f"{name}: issued at event {sequence}, which this ledger lacks; it was rolled back")
    elif found != digest:
        faults.append(
            f"{name}: event {sequence} is not the one it was issued at; the history was rewritten"
        )
    if alone:
        return faults
    row = connection.execute(
        select(entries.c.state, entries.c.digest).where(entries.c.id == entry)
    ).first()
    if row is None or row.state in ("reserved", "void"):
        faults.append(f"card: entry {entry} was not drawn in this ledger")
    elif card_digest is not None and row.digest != card_digest:
        faults.append(f"card: entry {entry} was sealed with other bytes")
    return faults
