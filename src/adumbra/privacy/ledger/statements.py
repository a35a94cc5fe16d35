"""What `ledger show` says: spent, left, how many more like the last, and what a crash left behind."""

import html
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import protocol, tripwire
from adumbra.privacy.ledger.accounts import Account, all_accounts, lineage, room, spent_epsilon
from adumbra.privacy.ledger.chain import read_events
from adumbra.privacy.ledger.model import charges, entries
from adumbra.privacy.ledger.values import (
    CapChange,
    Entry,
    Overlap,
    Population,
    State,
    Statement,
)


def to_html(statements: Iterable[Statement]) -> str:
    """For notebooks: one line per population, escaped."""
    lines = "".join(f"<li>{html.escape(one.sentence())}</li>" for one in statements)
    return f"<div><p><strong>Ledger</strong></p><ul>{lines}</ul></div>"


def read(connection: Connection, name: str | None) -> tuple[Statement, ...]:
    """The statement of one population, or of all."""
    wanted = [lineage(connection, name)[0]] if name is not None else all_accounts(connection)
    raised = _raises(connection)
    overlaps = tripwire.overlaps(connection)
    asked = {
        str(event["entry"]): event
        for event in read_events(connection, "public")
        if event["kind"] == "reserve"
    }
    for entry, places in protocol.moved(connection).items():
        asked[entry]["target"] = places[-1]
    return tuple(
        _statement(connection, account, raised.get(account.population.name, ()), overlaps, asked)
        for account in wanted
    )


def _statement(
    connection: Connection,
    account: Account,
    raised: tuple[CapChange, ...],
    overlaps: tuple[Overlap, ...],
    asked: Mapping[str, Mapping[str, Any]],
) -> Statement:
    people = account.population
    above = lineage(connection, people.name)
    query = (
        select(*entries.c, charges.c.units)
        .join(charges, charges.c.entry == entries.c.id)
        .where(charges.c.population == people.name)
        .order_by(entries.c.sequence)
    )
    rows = connection.execute(query).mappings().all()
    live = [row["id"] for row in rows if row["state"] != State.VOID]
    spends = [_guarantee(row) for row in rows if row["state"] != State.VOID]
    return Statement(
        population=people,
        cap_units=account.cap,
        spent_units=account.spent,
        spent=spent_epsilon(spends, people),
        left=min(room(other, people.delta) for other in above),
        more_like_last=_more(connection, above, live[-1]) if live else None,
        entries=tuple(_entry(row, people, asked[row["id"]]) for row in rows),
        raised=raised,
        overlaps=tuple(
            overlap for overlap in overlaps if people.name in (overlap.population, overlap.other)
        ),
    )


def _entry(row: RowMapping, people: Population, asked: Mapping[str, Any]) -> Entry:
    guarantee = _guarantee(row)
    return Entry(
        id=row["id"],
        population=row["population"],
        state=State(row["state"]),
        epsilon=spent_epsilon([guarantee], people),
        guarantee=guarantee.sentence(),
        digest=row["digest"],
        staged=row["staged"],
        target=asked.get("target", row["target"]),
        day=str(asked["day"]),
        method=str(asked["request"].get("method", "")),
    )


def _guarantee(row: RowMapping) -> PrivacyGuarantee:
    return PrivacyGuarantee.from_dict(json.loads(row["guarantee"]))


def _more(connection: Connection, above: list[Account], entry: str) -> int:
    """How many more spends like this one every account above can pay."""
    query = select(charges.c.population, charges.c.units).where(charges.c.entry == entry)
    units = {row.population: row.units for row in connection.execute(query)}
    return min(account.left // int(units[account.population.name]) for account in above)


def _raises(connection: Connection) -> dict[str, tuple[CapChange, ...]]:
    """Every raise of a cap, by population."""
    found: dict[str, tuple[CapChange, ...]] = {}
    for event in read_events(connection, "public"):
        if event["kind"] in ("raise-cap", "change-delta"):
            change = CapChange(
                sequence=int(str(event["sequence"])),
                day=str(event["day"]),
                before=float(str(event["before"])),
                after=float(str(event["epsilon"])),
                reason=str(event["reason"]),
                delta=float(event["delta"]) if "delta" in event else None,
            )
            name = str(event["population"])
            found[name] = (*found.get(name, ()), change)
    return found
