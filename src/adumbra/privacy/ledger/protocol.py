"""One spend from reserve to commit: reserve -> draw -> seal -> publish -> commit.

Each step is durable before the next begins. The states only go forward, each by one guarded statement,
so of two processes at the same step one wins and the other gets an error. The functions are what a step
writes, within a transaction; `Spending` has the transactions and all else that a release asks for.

Proof       ledger.proof.md, of `reserve`, `draw` and `void`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from adumbra.attestation.events import Acting, HeadKey, NotPermitted, Roll, canonical
from adumbra.attestation.loghead import Proof
from adumbra.attestation.signers import Signer
from adumbra.errors import InvalidInput, LedgerError, require
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.privacy.grant import Grant, open_grant
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import accounts, files
from adumbra.privacy.ledger.accounts import Quote, lineage
from adumbra.privacy.ledger.chain import Chain, prove, read_head, read_roll
from adumbra.privacy.ledger.model import charges, entries, events, populations
from adumbra.privacy.ledger.populations import reason_of
from adumbra.privacy.ledger.store import ReplyLost
from adumbra.privacy.ledger.values import REMEDY, LedgerHead, State

if TYPE_CHECKING:
    from adumbra.privacy.ledger.store import Store


_ENTRY = select(entries).where(entries.c.id == bindparam("entry"))
_ENTER = insert(entries)
_CHARGE = insert(charges)
_RETARGETS = (
    select(events.c.body)
    .where(events.c.log == "private")
    .where(events.c.body.contains('"kind":"retarget"', autoescape=True))  # canonical: one spelling
    .order_by(events.c.sequence)
)
# Evaluations: the pattern, of the canonical body of an event, narrows the reading; the kind decides.
_NOTED = (
    select(events.c.body)
    .where(events.c.log == "public", events.c.body.like('%"kind":"evaluate"%'))
    .order_by(events.c.sequence)
)
_FAMILY = select(charges.c.entry).where(charges.c.population.in_(bindparam("names", expanding=True)))


def reserve(
    chain: Chain,
    population: str,
    guarantee: PrivacyGuarantee,
    request: Mapping[str, object],
    source_pin: str,
) -> str:
    """Charge the population and append the entry; returns its id."""
    paid = accounts.charge(chain, population, guarantee)
    files.checkpoint("reserve: charged, not committed")
    sequence = chain.sequence("public") + 1
    entry = f"{chain.ledger[:8]}-{sequence:06d}"
    terms = guarantee.to_dict()
    public = {
        "entry": entry,
        "population": population,
        "guarantee": terms,
        "charges": paid,
        "request": dict(request),
    }
    chain.act("reserve", public, {"source_pin": source_pin})
    files.checkpoint("reserve: chained, not committed")
    row = {"id": entry, "sequence": sequence, "population": population, "state": str(State.RESERVED)}
    row |= {"guarantee": canonical(terms).decode(), "source_pin": source_pin}
    chain.connection.execute(_ENTER, {**row, "digest": "", "staged": "", "target": ""})
    rows = [{"entry": entry, "population": name, "units": units} for name, units in paid.items()]
    chain.connection.execute(_CHARGE, rows)
    return entry


def draw(chain: Chain, entry: str, purposes: Sequence[str]) -> PrivacyGuarantee:
    """Mark that noise may now exist; a second draw of one id is refused, for ever."""
    require(
        bool(purposes) and all(purposes) and len(set(purposes)) == len(purposes),
        f"purposes={tuple(purposes)}: must be distinct, non-empty names; one for each noise draw",
    )
    row = _advance(chain, entry, State.RESERVED, State.DRAWN)
    chain.act("draw", {"entry": entry, "purposes": list(purposes)})
    return PrivacyGuarantee.from_dict(json.loads(row["guarantee"]))


def seal(chain: Chain, entry: str, staged: Path, digest: str) -> None:
    """Record the digest of the bytes that were flushed to `staged`."""
    require(digest != "", "digest: must not be empty")
    place = str(staged.absolute())
    _advance(chain, entry, State.DRAWN, State.SEALED, digest=digest, staged=place)
    chain.act("seal", {"entry": entry, "digest": digest}, {"staged": place})


def publish(chain: Chain, entry: str, target: Path) -> Path:
    """Record where the bytes are about to go, and return where they are; the rename follows."""
    place = str(target.absolute())
    row = _advance(chain, entry, State.SEALED, State.PUBLISHING, target=place)
    chain.act("publish", {"entry": entry}, {"target": place})
    return Path(row["staged"])


def retarget(chain: Chain, entry: str, target: Path) -> None:
    """Record another place for an entry whose first one was taken before the rename."""
    stands_at(chain.connection, entry, State.PUBLISHING, State.PUBLISHED)
    chain.note("retarget", entry=entry, target=str(target.absolute()))


def moved(connection: Connection) -> dict[str, list[str]]:
    """The further places of every entry that has any, in the order of their recording."""
    found: dict[str, list[str]] = {}
    for row in connection.execute(_RETARGETS):
        event = json.loads(row.body)
        if event["kind"] == "retarget":
            found.setdefault(event["entry"], []).append(event["target"])
    return found


def places(connection: Connection, row: RowMapping) -> list[Path]:
    """Where an entry's release was to go: the last one counts."""
    first = [row["target"]] if row["target"] else []
    return [Path(place) for place in (*first, *moved(connection).get(row["id"], ()))]


def commit(chain: Chain, entry: str) -> Path:
    """Record that the release is out; returns its place."""
    row = _advance(chain, entry, State.PUBLISHING, State.PUBLISHED)
    chain.act("commit", {"entry": entry, "digest": row["digest"]})
    return places(chain.connection, row)[-1]


def void(chain: Chain, entry: str, reason: str) -> None:
    """Give a reservation up before anything was drawn, and return its charge."""
    text = reason_of(reason)
    _advance(chain, entry, State.RESERVED, State.VOID)
    rows = chain.connection.execute(select(charges).where(charges.c.entry == entry)).all()
    for row in rows:
        chain.connection.execute(
            update(populations)
            .where(populations.c.name == row.population)
            .values(spent=populations.c.spent - row.units)
        )
    chain.act("void", {"entry": entry, "reason": text})


def load(connection: Connection, entry: str) -> RowMapping:
    """The row of one entry."""
    row = connection.execute(_ENTRY, {"entry": entry}).mappings().first()
    if row is None:
        raise InvalidInput(f"entry={entry}: not in this ledger; `adumbra ledger show` lists its entries")
    return row


def stands_at(connection: Connection, entry: str, before: State, after: State) -> RowMapping:
    """The row of an entry that can take this step, or a refusal that says where it stands."""
    row = load(connection, entry)
    state = State(row["state"])
    if state is not before:
        raise LedgerError(
            f"entry={entry}: is {state}, must be {before} to become {after}; {REMEDY[state]}"
        )
    return row


def _advance(chain: Chain, entry: str, before: State, after: State, **columns: str) -> RowMapping:
    """Move one entry one state forward, or say where it stands."""
    stands_at(chain.connection, entry, before, after)
    values = {"entry": entry, "before": str(before), "after": str(after)}
    values |= {f"new_{name}": value for name, value in columns.items()}
    return chain.connection.execute(_guarded(tuple(columns)), values).mappings().one()


@cache
def _guarded(columns: tuple[str, ...]) -> ReturningUpdate[Any]:
    """The statement of one step: it finds the entry only where it still stands."""
    changed: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return (
        update(entries)
        .where(entries.c.id == bindparam("entry"), entries.c.state == bindparam("before"))
        .values(state=bindparam("after"), **changed)
        .returning(*entries.c)
    )


class Spending:
    """What a release asks of its ledger: may it spend, and then each durable step of the spend."""

    _store: "Store"
    _id: str
    _public_key: str
    _fingerprint_key: bytes
    _signing_key: Ed25519PrivateKey | None  # None: this database role may not read it
    _operator: Signer | None

    def check(
        self,
        population: str,
        guarantee: PrivacyGuarantee,
        request: Mapping[str, object] | None = None,
    ) -> LedgerHead:
        """Refuse, as `reserve` would now, what the population cannot pay or the log cannot hold.

        Returns the head of the moment, by which a card can be made before anything is paid.
        """
        canonical(request or {})
        with self._store.read() as connection:
            self._require_right(connection, "reserve")
            accounts.check(connection, population, guarantee)
            return read_head(connection)

    def require_writable(self) -> None:
        """Refuse a ledger that cannot take a charge now: read-only, full, locked or out of reach."""
        self._store.require_writable()

    def quote(self, population: str, guarantee: PrivacyGuarantee) -> tuple[Quote, ...]:
        """What it would take of the population's account and of each ancestor's; charges nothing."""
        with self._store.read() as connection:
            return accounts.quote(connection, population, guarantee)

    def evaluated(self, population: str) -> tuple[str, ...]:
        """Releases of the population, and of those that share its people, that were evaluated."""
        with self._store.read() as connection:
            names = [account.population.name for account in lineage(connection, population)]
            family = {row.entry for row in connection.execute(_FAMILY, {"names": names})}
            found = [json.loads(row.body) for row in connection.execute(_NOTED)]
        own = (event["entry"] for event in found if event["kind"] == "evaluate")
        return tuple(dict.fromkeys(entry for entry in own if entry in family))

    def reserve(
        self,
        population: str,
        guarantee: PrivacyGuarantee,
        *,
        request: Mapping[str, object],
        source_pin: str,
    ) -> str:
        """Charge a population, durably, before any row is read; returns the entry's id.

        Raises `BudgetRefused` with asked, left and largest; nothing has changed then.
        """
        self.check(population, guarantee, request)
        files.checkpoint("reserve: before")
        entry = ""
        try:
            with self._acts() as chain:
                entry = reserve(chain, population, guarantee, request, source_pin)
                files.checkpoint("reserve: written, not committed")
        except ReplyLost as lost:
            raise ReplyLost(f"entry={entry}: may be charged\n{lost}") from None
        files.checkpoint("reserve: committed")
        return entry

    def draw(self, entry_id: str, purposes: Sequence[str]) -> Grant:
        """Mark the entry as drawn, durably, then make its grant with a fresh secret; once per id."""
        guarantee = self.mark_drawn(entry_id, purposes)
        return open_grant(entry_id, guarantee, tuple(purposes), self.head().hash)

    def mark_drawn(self, entry_id: str, purposes: Sequence[str]) -> PrivacyGuarantee:
        """Mark the entry as drawn, durably, without a grant: once per id, and it stays charged.

        `draw` calls this. So does the auditor, whose own grants have a known secret.
        """
        files.checkpoint("draw: before")
        with self._acts() as chain:
            guarantee = draw(chain, entry_id, purposes)
            files.checkpoint("draw: written, not committed")
        files.checkpoint("draw: committed, no secret yet")
        return guarantee

    def seal(
        self, entry_id: str, *, staged: Path, digest: str, fingerprint: Fingerprint | None = None
    ) -> None:
        """Keep the fingerprint of the rows that were read, flush the folder, then record its digest."""
        if fingerprint is not None:
            self.record_fingerprint(entry_id, fingerprint)
        files.checkpoint("seal: before the flush")
        files.flush_tree(staged)
        files.checkpoint("seal: flushed")
        with self._acts() as chain:
            seal(chain, entry_id, staged, digest)
            files.checkpoint("seal: written, not committed")
        files.checkpoint("seal: committed")

    def publish(self, entry_id: str, target: Path) -> None:
        """Record the target, then move the sealed folder there by one atomic rename."""
        files.checkpoint("publish: before")
        with self._acts() as chain:
            staged = publish(chain, entry_id, target)
            files.require_target(staged, target)
            files.checkpoint("publish: written, not committed")
        files.checkpoint("publish: committed, not moved")
        files.move(staged, target)

    def commit(self, entry_id: str) -> None:
        """Record that the release is out, and open it to its readers."""
        files.checkpoint("commit: before")
        with self._acts() as chain:
            target = commit(chain, entry_id)
            if not target.is_dir():
                raise LedgerError(f"entry={entry_id}: nothing is at {target}; resume the entry first")
            files.checkpoint("commit: written, not committed")
        files.checkpoint("commit: committed")
        files.open_to_readers(target)

    def void(self, entry_id: str, reason: str) -> None:
        """Give a reservation up before anything was drawn; the only act that lowers `spent`."""
        with self._acts() as chain:
            void(chain, entry_id, reason)

    def require_right(self, kind: str) -> None:
        """Refuse now what `kind` of act would be refused for want of a right."""
        with self._store.read() as connection:
            self._require_right(connection, kind)

    def _require_right(self, connection: Connection, kind: str) -> None:
        roll = read_roll(connection)
        if roll.has_operators:
            acting = None if self._operator is None else roll.acting(self._operator)
            roll.require_right(kind, None if acting is None else acting.enrolment.operator)

    def head(self) -> LedgerHead:
        """The signed end of the public chain, for a card."""
        with self._store.read() as connection:
            return read_head(connection)

    def proof(self, entry_id: str) -> Proof:
        """That an entry was sealed, under the signed head of the log of that moment."""
        with self._heads() as (connection, key):
            return prove(connection, self._id, key, entry_id)

    def fingerprint(self, width: int) -> Fingerprint:
        """An empty fingerprint under this ledger's secret key, for rows of this width."""
        return Fingerprint(self._fingerprint_key, width)

    def record_fingerprint(self, entry_id: str, fingerprint: Fingerprint) -> None:
        """Keep a paid pass's fingerprint in the private log; no output ever depends on it."""
        try:
            with self._acts() as chain:
                chain.append(
                    "private",
                    "fingerprint",
                    entry=entry_id,
                    population=load(chain.connection, entry_id)["population"],
                    **fingerprint.facts(),
                )
        except BaseException as fault:  # noqa: BLE001 - Ctrl-C too: frames below hold the digest, so n
            raise fault.with_traceback(None) from None

    @contextmanager
    def _heads(self) -> Iterator[tuple[Connection, HeadKey]]:
        """A reading, and the key that signs heads now."""
        with self._store.read() as connection:
            yield connection, self._head_key(read_roll(connection))

    def _head_key(self, roll: Roll) -> HeadKey:
        if not roll.has_operators:
            require(self._signing_key is not None, "ledger: this role may not read its key")
            assert self._signing_key is not None  # noqa: S101 - as required above; tells mypy so
            return self._signing_key
        if self._operator is None:
            raise NotPermitted(
                "head: heads of this ledger are signed by operators; give the key of one (--operator)"
            )
        acting: Acting = roll.acting(self._operator)
        return acting

    @contextmanager
    def _acts(self) -> Iterator[Chain]:
        """One write transaction with both chains."""
        with self._store.write() as connection:
            yield Chain(connection, self._id, self._signing_key, self._operator)
