"""One spend from reserve to commit: reserve -> draw -> seal -> publish -> commit.

Each step is durable before the next begins. The states only go forward, each by one guarded statement,
so of two processes at the same step one wins and the other gets an error.

Proof       ledger.proof.md, of `reserve`, `draw` and `void`.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from adumbra.errors import InvalidInput, LedgerError, require
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import accounts, crash_points
from adumbra.privacy.ledger.chain import Chain, canonical
from adumbra.privacy.ledger.model import charges, entries, events, populations
from adumbra.privacy.ledger.values import REMEDY, State

_ENTRY = select(entries).where(entries.c.id == bindparam("entry"))  # built once: asked at every step


def reserve(
    chain: Chain,
    population: str,
    guarantee: PrivacyGuarantee,
    request: Mapping[str, object],
    source_pin: str,
) -> str:
    """Charge the population and append the entry; returns its id."""
    paid = accounts.charge(chain, population, guarantee)
    crash_points.checkpoint("reserve: charged, not committed")
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
    crash_points.checkpoint("reserve: chained, not committed")
    chain.connection.execute(
        insert(entries).values(
            id=entry,
            sequence=sequence,
            population=population,
            state=str(State.RESERVED),
            guarantee=canonical(terms).decode(),
            source_pin=source_pin,
            digest="",
            staged="",
            target="",
        )
    )
    rows = [{"entry": entry, "population": name, "units": units} for name, units in paid.items()]
    chain.connection.execute(insert(charges), rows)
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


def publish(chain: Chain, entry: str, target: Path) -> None:
    """Record where the bytes are about to go; the rename follows."""
    place = str(target.absolute())
    _advance(chain, entry, State.SEALED, State.PUBLISHING, target=place)
    chain.act("publish", {"entry": entry}, {"target": place})


def retarget(chain: Chain, entry: str, target: Path) -> None:
    """Record another place for an entry whose first one was taken before the rename."""
    stands_at(chain.connection, entry, State.PUBLISHING, State.PUBLISHED)
    chain.note("retarget", entry=entry, target=str(target.absolute()))


def moved(connection: Connection) -> dict[str, list[str]]:
    """The further places of every entry that has any, in the order of their recording."""
    found: dict[str, list[str]] = {}
    marked = events.c.body.contains('"kind":"retarget"', autoescape=True)  # canonical: one spelling
    query = select(events.c.body).where(events.c.log == "private", marked).order_by(events.c.sequence)
    for row in connection.execute(query):
        event = json.loads(row.body)
        if event["kind"] == "retarget":
            found.setdefault(event["entry"], []).append(event["target"])
    return found


def places(connection: Connection, row: RowMapping) -> list[Path]:
    """Where an entry's release was to go: the last one counts."""
    first = [row["target"]] if row["target"] else []
    return [Path(place) for place in (*first, *moved(connection).get(row["id"], ()))]


def commit(chain: Chain, entry: str) -> None:
    """Record that the release is out."""
    row = _advance(chain, entry, State.PUBLISHING, State.PUBLISHED)
    chain.act("commit", {"entry": entry, "digest": row["digest"]})


def void(chain: Chain, entry: str, reason: str) -> None:
    """Give a reservation up before anything was drawn, and return its charge."""
    text = accounts.reason_of(reason)
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
