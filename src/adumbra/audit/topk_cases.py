"""Worst-case neighbours of the top-k methods; k = 1, so that every transcript has an exact chance."""

import math
from typing import Any

from adumbra.audit.pairs import ADD, REPLACE, ROW, Case, Tables, item_table
from adumbra.data.schema import ItemSpec, Schema
from adumbra.mechanisms import topk
from adumbra.privacy.calibration import gumbel_epsilon0
from adumbra.privacy.conversion import mu_of
from adumbra.relations import Neighbours

ITEMS = 40
Rows = list[list[int]]
# Nothing, and one row of one item: the counts move by all that a row of length 1 may.
GROWN: tuple[Rows, Rows] = ([], [[0]])
MOVED: tuple[Rows, Rows] = ([[1]], [[0]])
# An item that is all but hopeless becomes as good as the best; nothing else rises.
FEW = 8
CHOSEN: tuple[Rows, Rows] = ([[1]], [[1], [0]])
CHOSEN_INSTEAD: tuple[Rows, Rows] = ([[1], list(range(1, FEW))], [[1], [0]])
# Nearly all columns and the threshold rise, the columns after them do not; or one half takes the other's
# place. Refusals of the first and the acceptance of the next then all lean one way.
RAISED: tuple[Rows, Rows] = ([], [list(range(ITEMS - 2))])
ALL_BUT_ONE: tuple[Rows, Rows] = ([], [list(range(1, FEW))])
ONE_FOR_ALL: tuple[Rows, Rows] = ([list(range(1, FEW))], [[0]])
SWAPPED: tuple[Rows, Rows] = ([list(range(ITEMS // 2))], [list(range(ITEMS // 2, ITEMS))])
COMPARED = ("svt", "tps-em", "tps-pfm", "tps-refine")


def topk_cases(epsilon: float, delta: float) -> list[Case]:
    """Every method, relation and currency."""
    cases: list[Case] = []
    for relation in (ADD, REPLACE):
        adds = relation is ADD
        one_item, choice = GROWN if adds else MOVED, CHOSEN if adds else CHOSEN_INSTEAD
        long_row = RAISED if adds else SWAPPED
        for tail, amount in (("", 0.0), ("-gaussian", delta)):
            budget: dict[str, Any] = {"epsilon": epsilon, "delta": amount}
            scan: dict[str, Any] = {"max_length": 10}
            cases += [
                _case(f"frefirst{tail}", relation, one_item, method="frefirst", length=1, **budget),
                _case(f"frefirst-length{tail}", relation, long_row, method="frefirst", **scan, **budget),
            ]
        # a Gaussian account is tight where the item's chance goes from p to 1 - p
        rivals = max(2, 1 + round(math.exp(_round_epsilon(epsilon, delta) / 2))) if adds else 2
        even = _case(
            "gumbel-gaussian", relation, one_item, rivals, method="gumbel", epsilon=epsilon, delta=delta
        )
        cases += [_case("gumbel", relation, choice, FEW, method="gumbel", epsilon=epsilon), even]
        cases.append(_case("em", relation, choice, FEW, method="em", epsilon=epsilon))
        instead = ALL_BUT_ONE if adds else ONE_FOR_ALL
        cases.append(_case("joint", relation, instead, FEW, method="joint", epsilon=epsilon))
        cases += [
            _case(name, relation, long_row, method=name, max_length=10, epsilon=epsilon)
            for name in COMPARED
        ]
    return cases


def _round_epsilon(epsilon: float, delta: float) -> float:
    """What one Gumbel round may spend."""
    return gumbel_epsilon0(mu_of(epsilon, delta), 1)


def _case(
    name: str,
    relation: Neighbours,
    rows: tuple[Rows, Rows],
    items: int = ITEMS,
    **options: object,
) -> Case:
    merged: dict[str, Any] = {"k": 1, **options}
    tables: Tables = (item_table(rows[0]), item_table(rows[1]))
    return Case(
        name=f"topk/{name}/{relation}",
        module=topk,
        config=topk.TopKConfig(**merged),
        schema=Schema(unit=ROW, neighbours=relation, items=ItemSpec(upper=items - 1)),
        tables=(tables,),
    )
