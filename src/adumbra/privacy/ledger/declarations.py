"""What stewards have said of two populations: that they hold different people, and that they do not.

A declaration and a link contradict each other, so the second of the two is refused. A declaration that
was wrong can be taken back, for a written reason; a link, which only charges more, stays.
"""

from sqlalchemy import Connection

from adumbra.errors import InvalidInput, require
from adumbra.privacy.ledger.accounts import all_accounts, lineage
from adumbra.privacy.ledger.chain import Chain, read_events
from adumbra.privacy.ledger.populations import reason_of

Pair = tuple[str, str]


def declared_different(connection: Connection) -> set[Pair]:
    """Pairs of names, each in order, that are declared different as the log stands."""
    found: set[Pair] = set()
    for event in read_events(connection, "public"):
        if event["kind"] == "declare-different":
            found.add((event["population"], event["other"]))
        elif event["kind"] == "withdraw-different":
            found.discard((event["population"], event["other"]))
    return found


def declare_different(chain: Chain, name: str, other: str, reason: str) -> None:
    """A steward states that two populations hold different people, and why."""
    pair = _pair(chain.connection, name, other)
    for child, parent in (pair, pair[::-1]):
        require(
            parent not in _names(chain.connection, child),
            f"population={child}: is a child of {parent}, so they share people; "
            "a link stays, and nothing needs to be declared",
        )
    _act(chain, "declare-different", pair, reason)


def withdraw_different(chain: Chain, name: str, other: str, reason: str) -> None:
    """A steward takes such a statement back, and says why."""
    pair = _pair(chain.connection, name, other)
    require(
        pair in declared_different(chain.connection),
        f"population={name}: is not declared different from {other}; there is nothing to take back",
    )
    _act(chain, "withdraw-different", pair, reason)


def require_undeclared(connection: Connection, name: str, parent: str) -> None:
    """A population that was declared different from an ancestor-to-be cannot be linked to it."""
    above = _names(connection, parent)
    below = [
        account.population.name
        for account in all_accounts(connection)
        if name in _names(connection, account.population.name)
    ]
    different = declared_different(connection)
    for child in below:
        for ancestor in above:
            if tuple(sorted((child, ancestor))) in different:
                raise InvalidInput(
                    f"population={child}: was declared to hold other people than {ancestor}; if that "
                    f"was wrong, run `adumbra ledger declare {child} {ancestor} --withdraw` first"
                )


def _pair(connection: Connection, name: str, other: str) -> Pair:
    """Two registered names in order."""
    require(name != other, f"population={name}: name two different populations")
    for each in (name, other):
        lineage(connection, each)
    first, second = sorted((name, other))
    return first, second


def _names(connection: Connection, name: str) -> list[str]:
    """A population and its ancestors, by name."""
    return [account.population.name for account in lineage(connection, name)]


def _act(chain: Chain, kind: str, pair: Pair, reason: str) -> None:
    chain.act(kind, {"population": pair[0], "other": pair[1], "reason": reason_of(reason)})
