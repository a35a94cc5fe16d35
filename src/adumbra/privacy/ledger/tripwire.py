"""The same rows under two names: kept in the private log, shown to the steward, settled by people."""

from itertools import combinations

from sqlalchemy import Connection

from adumbra.privacy.ledger import protocol
from adumbra.privacy.ledger.accounts import lineage
from adumbra.privacy.ledger.chain import Chain, read_events
from adumbra.privacy.ledger.fingerprint import ALERT, Fingerprint, shared
from adumbra.privacy.ledger.values import Overlap


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
    different = {
        (event["population"], event["other"])
        for event in read_events(connection, "public")
        if event["kind"] == "declare-different"
    }
    roots = {name: lineage(connection, name)[-1].population.name for name in seen}
    found = []
    for one, other in combinations(sorted(seen), 2):
        if roots[one] == roots[other] or (one, other) in different:
            continue
        share = max(shared(a, b) for a in seen[one].values() for b in seen[other].values())
        if share >= ALERT:
            same = not seen[one].keys().isdisjoint(seen[other])
            found.append(Overlap(population=one, other=other, share=share, is_same=same))
    return tuple(found)
