"""The same rows under two names: kept in the private log, shown to the steward, settled by people."""

from itertools import combinations

from sqlalchemy import Connection

from adumbra.privacy.ledger import protocol
from adumbra.privacy.ledger.accounts import lineage
from adumbra.privacy.ledger.chain import Chain, read_events
from adumbra.privacy.ledger.declarations import declared_different
from adumbra.privacy.ledger.fingerprint import ALERT, Fingerprint, shared
from adumbra.privacy.ledger.values import Currency, Overlap, Population


def record(chain: Chain, entry: str, fingerprint: Fingerprint) -> None:
    """Write a fingerprint to the private log, and to nothing else."""
    population = protocol.load(chain.connection, entry)["population"]
    chain.append(
        "private",
        "fingerprint",
        entry=entry,
        population=population,
        digest=fingerprint.digest(),
        sketch=fingerprint.sketch(),
    )


def overlaps(connection: Connection) -> tuple[Overlap, ...]:
    """Pairs of populations with the same rows that neither share a cap nor were declared different."""
    seen: dict[str, dict[str, list[str]]] = {}  # population -> digest -> sketch
    for event in read_events(connection, "private"):
        if event["kind"] == "fingerprint":
            seen.setdefault(event["population"], {})[event["digest"]] = event["sketch"]
    different = declared_different(connection)
    roots = {name: lineage(connection, name)[-1].population for name in seen}
    found = []
    for one, other in combinations(sorted(seen), 2):
        if roots[one].name == roots[other].name or (one, other) in different:
            continue
        share = max(shared(a, b) for a in seen[one].values() for b in seen[other].values())
        if share >= ALERT:
            same = not seen[one].keys().isdisjoint(seen[other])
            remedy = _remedy(roots[one], roots[other]) + f" `adumbra ledger declare {one} {other}`"
            found.append(Overlap(population=one, other=other, share=share, is_same=same, remedy=remedy))
    return tuple(found)


def _remedy(one: Population, other: Population) -> str:
    """What can be done about two accounts of the same people; only acts that the ledger would take."""
    if (one.unit, one.neighbours) != (other.unit, other.neighbours):
        return (
            f"one counts {one.unit}/{one.neighbours}, the other {other.unit}/{other.neighbours}, so "
            "they cannot share a cap: spend from one of them only, and quote what both have spent; "
            "if they are different people, say so with"
        )
    is_turned = one.currency is Currency.GAUSSIAN and other.currency is Currency.PURE
    child, parent = (other, one) if is_turned else (one, other)
    return (
        f"if they are the same people, run `adumbra ledger link {child.name} --to {parent.name}`; "
        "if not, say so with"
    )
