"""Populations and their budgets: register, quote, charge, raise a cap, link.

Every function that changes something runs inside one write transaction, given by its `Chain`.

Proof       ledger.proof.md, of `charge` and `link`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from adumbra.errors import BudgetRefused, InvalidInput, LedgerError, Unsupported, require
from adumbra.numerics import figure_lower, figure_upper
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger.chain import Chain, read_events
from adumbra.privacy.ledger.guards import renew_population_guard
from adumbra.privacy.ledger.model import charges, entries, events, populations
from adumbra.privacy.ledger.values import (
    MAX_UNITS,
    Currency,
    Population,
    State,
    affordable,
    cap,
    cost,
    shown,
    spent_epsilon,
)
from adumbra.relations import Unit, relation_of

# Statements of every release, built once: to put one together takes longer than to run it.
_ENTRY = select(entries).where(entries.c.id == bindparam("entry"))
_POPULATION = select(populations).where(populations.c.name == bindparam("wanted"))
_GUARDED = (
    update(populations)
    .where(populations.c.name == bindparam("of"))
    .where(populations.c.spent + bindparam("units") <= populations.c.cap)
    .values(spent=populations.c.spent + bindparam("units"))
    .returning(populations.c.spent)
)
# Evaluations: the pattern, of the canonical body of an event, narrows the reading; the kind decides.
_NOTED = (
    select(events.c.body)
    .where(events.c.log == "public", events.c.body.like('%"kind":"evaluate"%'))
    .order_by(events.c.sequence)
)
_FAMILY = select(charges.c.entry).where(charges.c.population.in_(bindparam("names", expanding=True)))


@dataclass(frozen=True, slots=True)
class Account:
    """One population's row."""

    population: Population
    cap: int
    spent: int

    @property
    def left(self) -> int:
        """Units that may still be spent."""
        return self.cap - self.spent


def all_accounts(connection: Connection) -> list[Account]:
    """Every population, by name."""
    rows = connection.execute(select(populations).order_by(populations.c.name)).mappings()
    return [_account(row) for row in rows]


def lineage(connection: Connection, name: str) -> list[Account]:
    """A population and its ancestors, itself first: all of them pay."""
    found: list[Account] = []
    wanted: str | None = name
    while wanted is not None:
        row = connection.execute(_POPULATION, {"wanted": wanted}).mappings().first()
        if row is None:
            raise _unknown(connection, wanted)
        found.append(_account(row))
        wanted = found[-1].population.parent
    return found


def _unknown(connection: Connection, name: str) -> InvalidInput:
    """A near name goes first: the same people under two names would have two budgets."""
    command = f"run `adumbra ledger register {name}`"
    known = [str(other) for other in connection.execute(select(populations.c.name)).scalars()]
    near = get_close_matches(name, known, n=1)
    remedy = f"did you mean {near[0]}? For other people {command}" if near else command
    return InvalidInput(f"population={name}: not registered; {remedy}")


def _account(row: RowMapping) -> Account:
    population = Population(
        name=row["name"],
        unit=Unit(row["unit"]),
        neighbours=relation_of(row["neighbours"]),
        epsilon=float(row["epsilon"]),
        delta=float(row["delta"]),
        owner=row["owner"],
        purpose=row["purpose"],
        parent=row["parent"] or None,
    )
    return Account(population, row["cap"], row["spent"])


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
            + _unlike(child.unit, parent.unit)
        )
    if child.currency is Currency.GAUSSIAN and parent.currency is Currency.PURE:
        raise Unsupported(
            f"population={child.name}: has a delta, its parent {parent.name} is pure; register none"
        )


def _unlike(one: Unit, other: Unit) -> str:
    """Why a release of rows cannot be charged to persons, nor the other way round."""
    if Unit.PERSON not in (one, other) or one is other:
        return ""
    return (
        ": a person may have any number of rows, so what hides one row says nothing of a person; "
        "declare unit='person' in the schema, or register the same people apart and quote both"
    )


def prices(accounts: Sequence[Account], guarantee: PrivacyGuarantee) -> list[int]:
    """What each account would pay; a guarantee that does not fit is refused with the reason."""
    people = accounts[0].population
    PrivacyGuarantee.from_dict(guarantee.to_dict())  # a forged object (negative, NaN, ...) stops here
    if (guarantee.unit, guarantee.neighbours) != (people.unit, people.neighbours):
        raise Unsupported(
            f"guarantee={guarantee.unit}/{guarantee.neighbours}: population {people.name} is registered "
            f"for {people.unit}/{people.neighbours}; unlike guarantees do not add"
            + _unlike(guarantee.unit, people.unit)
        )
    return [cost(guarantee, account.population) for account in accounts]


def check(connection: Connection, name: str, guarantee: PrivacyGuarantee) -> None:
    """Refuse what cannot pass, without taking the write lock; `charge` decides again."""
    accounts = lineage(connection, name)
    if any(
        units > account.left
        for account, units in zip(accounts, prices(accounts, guarantee), strict=True)
    ):
        raise refusal(accounts, guarantee)


def charge(chain: Chain, name: str, guarantee: PrivacyGuarantee) -> dict[str, int]:
    """Charge a population and every ancestor, or refuse and change nothing: the gate."""
    accounts = lineage(chain.connection, name)
    paid = {}
    for account, units in zip(accounts, prices(accounts, guarantee), strict=True):
        if not _pay(chain.connection, account.population.name, units):
            raise refusal(accounts, guarantee)
        paid[account.population.name] = units
    return paid


def _pay(connection: Connection, name: str, units: int) -> bool:
    """Add to `spent` if, and only if, the cap allows it: one guarded statement."""
    if units > MAX_UNITS:
        return False
    return connection.execute(_GUARDED, {"of": name, "units": units}).first() is not None


def refusal(accounts: Sequence[Account], guarantee: PrivacyGuarantee) -> BudgetRefused:
    """Asked, left and the largest request that would pass, at the delta that was asked for."""
    asked = guarantee.epsilon_at(guarantee.delta)
    asked = asked if guarantee.is_pure else shown(asked)
    narrowest = min(accounts, key=lambda account: room(account, guarantee.delta))
    largest = room(narrowest, guarantee.delta)
    people = narrowest.population
    at = f" at delta={people.delta!r}" if people.delta else ""
    advice = f"ask for at most {largest!r}" if largest > 0 else "the budget of these people is spent"
    if guarantee.is_pure and people.delta and largest > 0:
        advice += f", or for more with a delta of {people.delta!r} (a pure epsilon costs more here)"
    return BudgetRefused(
        f"epsilon={asked!r} asked, {largest!r} left of {people.epsilon!r}{at} for population "
        f"{people.name}; {advice}; only `adumbra ledger raise`, with a written reason, allows more",
        asked=asked,
        left=largest,
        largest=largest,
    )


def room(account: Account, delta: float) -> float:
    """The largest epsilon at this delta (0: pure) that the account can still pay."""
    return affordable(account.left, account.population, delta)


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
            if not _pay(chain.connection, other.population.name, units):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The price of one guarantee in one account; every epsilon is at the account's delta."""

    population: str
    delta: float  # 0: the account adds epsilons; above 0: squares of mu
    cap: float
    takes: float
    left: float
    left_after: float

    def sentence(self) -> str:
        """For whoever is about to pay."""
        at = f" at delta={figure_upper(self.delta)}" if self.delta else ""
        adds = " (squares add)" if self.delta else ""
        takes, cap = figure_upper(self.takes, 12), figure_upper(self.cap, 12)
        left, after = figure_lower(self.left, 12), figure_lower(self.left_after, 12)
        return (
            f"{self.population}: takes epsilon={takes} of {cap}{at}; "
            f"{left} left before, {after} after{adds}"
        )

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def quote(connection: Connection, name: str, guarantee: PrivacyGuarantee) -> tuple[Quote, ...]:
    """The price in a population's account and in each of its ancestors', itself first."""
    found = []
    above = lineage(connection, name)
    for account, units in zip(above, prices(above, guarantee), strict=True):
        people = account.population
        found.append(
            Quote(
                population=people.name,
                delta=people.delta,
                cap=people.epsilon,
                takes=spent_epsilon([guarantee], people),
                left=affordable(account.left, people, people.delta),
                left_after=affordable(account.left - units, people, people.delta),
            )
        )
    return tuple(found)


def load(connection: Connection, entry: str) -> RowMapping:
    """The row of one entry."""
    row = connection.execute(_ENTRY, {"entry": entry}).mappings().first()
    if row is None:
        raise InvalidInput(f"entry={entry}: not in this ledger; `adumbra ledger show` lists its entries")
    return row


def evaluated(connection: Connection, population: str) -> tuple[str, ...]:
    """Entries of this population, of those above it and of their children that were evaluated."""
    names = [account.population.name for account in lineage(connection, population)]
    family = {row.entry for row in connection.execute(_FAMILY, {"names": names})}
    found = [json.loads(row.body) for row in connection.execute(_NOTED)]
    own = (event["entry"] for event in found if event["kind"] == "evaluate")
    return tuple(dict.fromkeys(entry for entry in own if entry in family))
