"""What a steward does with populations: register one, raise its cap, change its delta, link it.

Every function runs inside one write transaction, given by its `Chain`.

Proof       ledger.proof.md, of `register`, `raise_cap`, `change_delta` and `link`.
"""

import json
from dataclasses import replace

from sqlalchemy import Connection, insert, select, update

from adumbra.errors import BudgetRefused, InvalidInput, LedgerError, Unsupported, require
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger.accounts import all_accounts, cap, lineage, pay, prices, unlike
from adumbra.privacy.ledger.chain import Chain, read_events
from adumbra.privacy.ledger.guards import renew_population_guard
from adumbra.privacy.ledger.model import charges, entries, populations
from adumbra.privacy.ledger.values import Currency, Population, State


def register(chain: Chain, population: Population) -> None:
    """Open an account; a child must count the same thing as its parent, and charges it."""
    units = cap(population)
    parent = population.parent
    if parent is not None:
        _require_alike(population, lineage(chain.connection, parent)[0].population)
    taken = select(populations.c.name).where(populations.c.name == population.name)
    if chain.connection.execute(taken).first() is not None:
        raise InvalidInput(f"population={population.name}: registered already; choose another name")
    public = {
        "population": population.name,
        "unit": str(population.unit),
        "neighbours": str(population.neighbours),
        "currency": str(population.currency),
        "epsilon": repr(float(population.epsilon)),
        "delta": repr(float(population.delta)),
        "cap": units,
        "parent": parent or "",
        "purpose": population.purpose,
    }
    chain.act("register", public, {"owner": population.owner})
    row = {key: value for key, value in public.items() if key != "population"}
    chain.connection.execute(
        insert(populations).values(**row, name=population.name, spent=0, owner=population.owner)
    )


def _require_alike(child: Population, parent: Population) -> None:
    """Unlike guarantees do not add, and a Gaussian spend cannot enter a pure account."""
    if (child.unit, child.neighbours) != (parent.unit, parent.neighbours):
        raise Unsupported(
            f"population={child.name}: counts {child.unit}/{child.neighbours}, its parent {parent.name} "
            f"{parent.unit}/{parent.neighbours}; register it with the parent's unit and relation"
            + unlike(child.unit, parent.unit)
        )
    if child.currency is Currency.GAUSSIAN and parent.currency is Currency.PURE:
        raise Unsupported(
            f"population={child.name}: has a delta, its parent {parent.name} is pure; register none"
        )


def raise_cap(chain: Chain, name: str, epsilon: float, reason: str) -> None:
    """Raise a cap: a recorded act with a reason, shown in every later statement."""
    account = lineage(chain.connection, name)[0]
    given_up = max(
        (
            int(event["given_up"])
            for event in read_events(chain.connection, "public")
            if event["kind"] == "raise-cap" and event["population"] == name
        ),
        default=0,
    )
    # A spend of the whole old cap may have cost a fraction of a unit more than it was charged.
    given_up += account.left == 0
    units = cap(replace(account.population, epsilon=epsilon), given_up)
    if units <= account.cap:
        raise InvalidInput(
            f"epsilon={epsilon!r}: must be above the cap of {account.population.epsilon!r}"
        )
    before, after = repr(account.population.epsilon), repr(float(epsilon))
    public = {"population": name, "before": before, "epsilon": after, "cap": units, "given_up": given_up}
    chain.act("raise-cap", {**public, "reason": reason_of(reason)})
    row = update(populations).where(populations.c.name == name).values(cap=units, epsilon=after)
    chain.connection.execute(row)


def change_delta(chain: Chain, name: str, delta: float, epsilon: float | None, reason: str) -> None:
    """Change what an account counts, while nothing was ever charged to it: a recorded act."""
    account = lineage(chain.connection, name)[0]
    before = account.population
    after = replace(before, delta=delta, epsilon=before.epsilon if epsilon is None else epsilon)
    charged = select(charges.c.entry).where(charges.c.population == name)
    if chain.connection.execute(charged).first() is not None:
        raise LedgerError(
            f"population={name}: was charged already, so its delta stays {before.delta!r}; an account "
            "with a delta pays for pure releases too, not the other way round"
        )
    require(after.delta != before.delta, f"delta={delta!r}: is the delta of {name} already")
    require(
        after.epsilon >= before.epsilon,
        f"epsilon={after.epsilon!r}: must not be below the cap of {before.epsilon!r}",
    )
    if before.parent is not None:
        _require_alike(after, lineage(chain.connection, before.parent)[0].population)
    for other in all_accounts(chain.connection):
        if other.population.parent == name:
            _require_alike(other.population, after)
    changed = {
        "epsilon": repr(float(after.epsilon)),
        "delta": repr(float(after.delta)),
        "currency": str(after.currency),
        "cap": cap(after),
    }
    earlier = {"before": repr(before.epsilon), "before_delta": repr(before.delta)}
    chain.act("change-delta", {"population": name, **earlier, **changed, "reason": reason_of(reason)})
    renew_population_guard(chain.connection)
    chain.connection.execute(update(populations).where(populations.c.name == name).values(**changed))


def link(chain: Chain, name: str, parent: str, reason: str) -> None:
    """Make a population the child of another; all it has spent is charged to its new ancestors."""
    account = lineage(chain.connection, name)[0]
    above = lineage(chain.connection, parent)
    if account.population.parent is not None:
        raise LedgerError(f"population={name}: is a child of {account.population.parent} already")
    require(
        name not in [other.population.name for other in above],
        f"population={name}: cannot be its own ancestor",
    )
    _require_alike(account.population, above[0].population)
    added: list[dict[str, object]] = []
    for entry, guarantee in _live_guarantees(chain.connection, name):
        for other, units in zip(above, prices(above, guarantee), strict=True):
            if not pay(chain.connection, other.population.name, units):
                raise BudgetRefused(
                    f"population={name}: what it has spent does not fit into {other.population.name}; "
                    f"raise the cap of {other.population.name} first, with the reason written down"
                )
            added.append({"entry": entry, "population": other.population.name, "units": units})
    chain.act(
        "link", {"population": name, "parent": parent, "charges": added, "reason": reason_of(reason)}
    )
    chain.connection.execute(update(populations).where(populations.c.name == name).values(parent=parent))
    if added:
        chain.connection.execute(insert(charges), added)


def _live_guarantees(connection: Connection, name: str) -> list[tuple[str, PrivacyGuarantee]]:
    """Every charged spend of a population and its descendants."""
    query = (
        select(entries.c.id, entries.c.guarantee)
        .join(charges, charges.c.entry == entries.c.id)
        .where(charges.c.population == name, entries.c.state != str(State.VOID))
        .order_by(entries.c.sequence)
    )
    rows = connection.execute(query).all()
    return [(row.id, PrivacyGuarantee.from_dict(json.loads(row.guarantee))) for row in rows]


def reason_of(reason: str) -> str:
    """A written reason: one printable line."""
    text = reason.strip()
    require(
        0 < len(text) <= 400 and text.isprintable(),
        "reason: write one printable line of 1 to 400 letters; it is public",
    )
    return text
