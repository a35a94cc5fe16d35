"""What is wrong with rules and derived columns; and one row that keeps every rule, found by search.

A schema without such a row is refused.
Only values at the ends of ranges that rules, bounds and orders name are tried: rules see no difference
between two values inside one range.
"""

from collections.abc import Sequence

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.schema.column import Declaration, Kind
from adumbra.schema.conditions import Allowed, can_be_missing, inverted, limits_of
from adumbra.schema.orders import Order
from adumbra.schema.row_rules import Bound, Derived, Rule, bind

MOST_STEPS = 100_000

Row = dict[str, float | None]  # by column; None is missing


def find_row(rules: Sequence[Bound], columns: Sequence[Declaration], orders: Sequence[Order]) -> Row:
    """A row that keeps all rules and orders, in the columns that they name; raises InvalidInput."""
    known = {column.name: column for column in columns}
    named = dict.fromkeys(name for rule in rules for name in rule.columns)
    named |= dict.fromkeys(name for order in orders for name in (order.lower, order.upper))
    names = list(named)
    choices = _choices(rules, orders, {name: known[name] for name in names})
    row: Row = {}
    steps = 0
    stack = [iter(choices[names[0]])] if names else []
    while stack and len(row) < len(names):
        name = names[len(stack) - 1]
        row.pop(name, None)
        for value in stack[-1]:
            steps += 1
            if steps > MOST_STEPS:
                raise InvalidInput("rules: no row that keeps them all was found; write fewer or simpler")
            row[name] = value
            if _keeps(row, name, rules, orders):
                break
            del row[name]
        if name not in row:
            stack.pop()
        elif len(row) < len(names):
            stack.append(iter(choices[names[len(row)]]))
    if len(row) < len(names):
        raise InvalidInput("rules: no row keeps them all; correct them")
    return row


def _choices(
    rules: Sequence[Bound], orders: Sequence[Order], columns: dict[str, Declaration]
) -> dict[str, list[float | None]]:
    """Values to try in each column."""
    ends: dict[str, set[float]] = {name: set(limits_of(column)) for name, column in columns.items()}
    for rule in rules:
        for one in (*rule.when, *rule.then):
            other = inverted(one, columns[one.column])
            ends[one.column] |= {end for a in (one, other) for span in a.spans for end in span}
    ordered = {name for order in orders for name in (order.lower, order.upper)}
    shared = {value for name in ordered for value in ends[name]}
    found: dict[str, list[float | None]] = {}
    for name, column in columns.items():
        low, high = limits_of(column)
        values = ends[name] | (shared if name in ordered else set())
        if column.kind is not Kind.NUMBER:
            values = {float(whole(value)) for value in values for whole in (np.floor, np.ceil)}
        kept: list[float | None] = [value for value in sorted(values) if low <= value <= high]
        found[name] = [*kept, None] if can_be_missing(column) else kept
    return found


def _keeps(row: Row, name: str, rules: Sequence[Bound], orders: Sequence[Order]) -> bool:
    """Whether the row, as far as it is known, keeps what speaks of this column."""
    for rule in rules:
        if name not in rule.columns or any(one.column not in row for one in rule.when):
            continue
        if not all(_takes(one, row[one.column]) for one in rule.when):
            continue
        if any(one.column in row and not _takes(one, row[one.column]) for one in rule.then):
            return False
    for order in orders:
        low, high = row.get(order.lower), row.get(order.upper)
        if name in (order.lower, order.upper) and low is not None and high is not None and low > high:
            return False
    return True


def _takes(allowed: Allowed, value: float | None) -> bool:
    if value is None:
        return allowed.missing
    return any(low <= value <= high for low, high in allowed.spans)


def row_faults(
    rules: Sequence[Rule],
    derived: Sequence[Derived],
    columns: Sequence[Declaration],
    orders: Sequence[Order],
    label: str | None,
) -> list[tuple[str, int, str]]:
    """Every fault, as (section, place, message)."""
    found: list[tuple[str, int, str]] = []
    bound: list[Bound] = []
    for place, rule in enumerate(rules):
        try:
            bound.append(bind(rule, columns, label))
        except InvalidInput as problem:
            found.append(("rules", place, f"rule {place + 1}: {problem}"))
    names = [one.name for one in derived]
    for place, one in enumerate(derived):
        try:
            one.check(columns)
            require(one.name not in names[:place], f"name={one.name!r}: is derived twice; remove one")
        except InvalidInput as problem:
            found.append(("derived", place, f"derived {one.name!r}: {problem}"))
    if rules and not found and not _orders_fail(orders, columns):
        try:
            find_row(bound, columns, orders)
        except InvalidInput as problem:
            found.append(("rules", 0, str(problem)))
    return found


def _orders_fail(orders: Sequence[Order], columns: Sequence[Declaration]) -> bool:
    """Whether an order names what is no number; its own fault is said elsewhere."""
    numbers = {column.name for column in columns if column.kind.has_bounds}
    return any({order.lower, order.upper} - numbers for order in orders)
