"""Worst-case neighbours of the top-k methods; few columns are chosen, so that transcripts have a law.

k = 1 everywhere, where a claim is tightest; k = 2 as well where the noise depends on k.
"""

import math
from typing import Any

from adumbra.audit.pairs import ADD, REPLACE, ROW, Case, item_table
from adumbra.mechanisms.topk import TopKConfig
from adumbra.privacy.conversion import gumbel_epsilon0, mu_of
from adumbra.relations import Neighbours
from adumbra.schema.schema import ItemSpec, Schema

ITEMS = 40
Rows = list[list[int]]
Pair = tuple[Rows, Rows]
# Nothing, and one row of one item: the counts move by all that a row of length 1 may.
GROWN: Pair = ([], [[0]])
MOVED: Pair = ([[1]], [[0]])
# An item that is all but hopeless becomes as good as the best; nothing else rises.
FEW = 8
CHOSEN: Pair = ([[1]], [[1], [0]])
CHOSEN_INSTEAD: Pair = ([[1], list(range(1, FEW))], [[1], [0]])
# Nearly all columns and the threshold rise, the columns after them do not; or one half takes the other's
# place. Refusals of the first and the acceptance of the next then all lean one way.
RAISED: Pair = ([], [list(range(ITEMS - 2))])
ALL_BUT_ONE: Pair = ([], [list(range(1, FEW))])
ONE_FOR_ALL: Pair = ([list(range(1, FEW))], [[0]])
SWAPPED: Pair = ([list(range(ITEMS // 2))], [list(range(ITEMS // 2, ITEMS))])
COMPARED = ("svt", "tps-em", "tps-pfm", "tps-refine")
# The same for two columns: which of the pairs is worst depends on the method.
TWO_GROWN: tuple[Pair, ...] = (
    ([[2, 3]], [[2, 3], [0, 1]]),
    ([], [[0, 1]]),
    ([], [list(range(FEW // 2))]),
    ([], [list(range(2, FEW))]),
)
TWO_MOVED: tuple[Pair, ...] = (
    ([list(range(2, FEW))], [[0, 1]]),
    ([list(range(FEW // 2))], [list(range(FEW // 2, FEW))]),
)
BY_ROUNDS = ("em", "joint", "svt", "tps-em", "tps-pfm")


def topk_cases(epsilon: float, delta: float) -> list[Case]:
    """Every method, relation and currency."""
    cases: list[Case] = []
    for relation in (ADD, REPLACE):
        adds = relation is ADD
        one_item, choice = (GROWN,) if adds else (MOVED,), (CHOSEN,) if adds else (CHOSEN_INSTEAD,)
        long_row = (RAISED,) if adds else (SWAPPED,)
        for tail, amount in (("", 0.0), ("-gaussian", delta)):
            budget: dict[str, Any] = {"epsilon": epsilon, "delta": amount}
            scan: dict[str, Any] = {"max_length": 10}
            cases += [
                _case(f"frefirst{tail}", relation, one_item, algorithm="frefirst", length=1, **budget),
                _case(
                    f"frefirst-length{tail}", relation, long_row, algorithm="frefirst", **scan, **budget
                ),
            ]
        # a Gaussian account is tight where the item's chance goes from p to 1 - p
        rivals = max(2, 1 + round(math.exp(_round_epsilon(epsilon, delta) / 2))) if adds else 2
        even = _case(
            "gumbel-gaussian",
            relation,
            one_item,
            rivals,
            algorithm="gumbel",
            epsilon=epsilon,
            delta=delta,
        )
        cases += [_case("gumbel", relation, choice, FEW, algorithm="gumbel", epsilon=epsilon), even]
        cases.append(_case("em", relation, choice, FEW, algorithm="em", epsilon=epsilon))
        instead = (ALL_BUT_ONE,) if adds else (ONE_FOR_ALL,)
        cases.append(_case("joint", relation, instead, FEW, algorithm="joint", epsilon=epsilon))
        for name in COMPARED:
            cut: dict[str, Any] = {} if name == "svt" else {"max_length": 10}
            cases.append(_case(name, relation, long_row, algorithm=name, epsilon=epsilon, **cut))
        pairs = TWO_GROWN if adds else TWO_MOVED
        for name in BY_ROUNDS:
            few: dict[str, Any] = {"max_length": FEW // 2} if name.startswith("tps") else {}
            two = _case(f"{name}-two", relation, pairs, FEW, algorithm=name, k=2, epsilon=epsilon, **few)
            cases.append(two)
    return cases


def _round_epsilon(epsilon: float, delta: float) -> float:
    """What one Gumbel round may spend."""
    return gumbel_epsilon0(mu_of(epsilon, delta), 1)


def _case(
    name: str,
    relation: Neighbours,
    pairs: tuple[Pair, ...],
    items: int = ITEMS,
    **options: object,
) -> Case:
    merged: dict[str, Any] = {"k": 1, "delta": 0.0, **options}
    return Case(
        name=f"topk/{name}/{relation}",
        config=TopKConfig(**merged),
        schema=Schema(unit=ROW, neighbours=relation, items=ItemSpec(upper=items - 1)),
        tables=tuple((item_table(one), item_table(other)) for one, other in pairs),
    )
