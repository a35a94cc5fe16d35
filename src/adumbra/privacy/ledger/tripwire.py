"""A tripwire against registering the same rows twice, by fingerprints of tables (`fingerprint.py`).

They stay in the ledger's private log. It is a tripwire, not an identity: rows encoded under another
schema, or altered, do not match. An overlap is shown to the steward and settled by people.
"""

import math
from collections.abc import Sequence
from itertools import combinations

from sqlalchemy import Connection

from adumbra.privacy.fingerprint import SKETCH
from adumbra.privacy.ledger.accounts import lineage
from adumbra.privacy.ledger.chain import read_events
from adumbra.privacy.ledger.declarations import declared_different
from adumbra.privacy.ledger.values import Currency, Overlap, Population

ALERT = 0.05  # estimated share of the smaller table from which two populations are reported


def shared(one: Sequence[str], other: Sequence[str]) -> float:
    """The estimated share of the smaller table's distinct rows that the other has too."""
    a, b = [int(word, 16) for word in one], [int(word, 16) for word in other]
    union = sorted({*a, *b})[:SKETCH]
    both = {*a} & {*b}
    hits = sum(word in both for word in union)
    if hits == 0:
        return 0.0
    return min(
        1.0, hits / len(union) * _distinct(union) / min(_distinct(sorted(a)), _distinct(sorted(b)))
    )


def _distinct(words: Sequence[int]) -> float:
    """How many distinct rows a sketch stands for: exact below 256, else from its largest hash."""
    return float(len(words)) if len(words) < SKETCH else (SKETCH - 1) / math.ldexp(words[-1], -64)


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
