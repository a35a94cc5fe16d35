"""Small tables with a neighbour for every value that code may treat apart; their releases are replayed.

The worst pairs of a case move the sums as far as can be, and hold few different values. A fact or a note
that asks for one value ("some cell is 0.5") is the same on both of their tables. Here one row (one cell,
one item) takes each of the values that people write into conditions, one neighbour for each.
"""

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa

from adumbra.audit.pairs import Case, item_table
from adumbra.audit.person_cases import row_schema, strange_persons
from adumbra.audit.recorder import plan_of, run_whole
from adumbra.errors import VerificationFailed
from adumbra.privacy.recorded_noise import NoiseRecord, recording_grant, replaying_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema

ROWS = 5
# Values that conditions ask for, as parts of the way from the lower to the upper bound.
PARTS = (0.0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.9, 0.95, 1.0)
VALUES = (
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 0.1, 0.01, 0.001, 2.0, -2.0, 42.0, 99.0, -999.0),
    *(float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324),
)
Row = tuple[Any, ...]


def check_hostile(case: Case) -> list[str]:
    """What differs between a small table and one of its hostile neighbours under the same noise."""
    base, others = hostile_tables(case.schema, _public(case))
    planned, record = plan_of(case), NoiseRecord()
    known = (0, planned.guarantee, planned.purposes)
    _, first = run_whole(case, base, recording_grant(record, *known))
    found: dict[str, None] = {}
    for words, table in others:
        again = record.followed()
        try:
            _, second = run_whole(case, table, replaying_grant(again, *known))
            fault = again.fault()
        except VerificationFailed as error:
            second, fault = first, str(error)
        names = sorted(first.keys() | second.keys())
        differing = [f"{name} differs" for name in names if first.get(name) != second.get(name)]
        found |= {f"{one}, if {words}": None for one in (*differing, *([fault] if fault else []))}
    return list(found)


def _public(case: Case) -> str | None:
    """The column that a release declares public: it is known of every row, and neighbours share it."""
    return case.schema.label if getattr(case.config, "label", None) == "public" else None


def hostile_tables(
    schema: Schema, public: str | None = None
) -> tuple[object, Iterator[tuple[str, object]]]:
    """A table, and its neighbours with what changed in words; a public column stays as it is."""
    if schema.person is not None:
        base, others = hostile_tables(row_schema(schema))
        return strange_persons(schema, cast("pa.Table", base), others)
    if schema.items is not None:
        return _sets(schema, schema.items)
    usual = [tuple(_usual(column, row) for column in schema.columns) for row in range(ROWS)]
    return _table(schema, usual), _others(schema, usual, public)


def _others(schema: Schema, usual: list[Row], public: str | None) -> Iterator[tuple[str, object]]:
    choices = [
        [kept] if column.name == public else _cells(column)
        for column, kept in zip(schema.columns, usual[0], strict=True)
    ]
    for number in range(max(map(len, choices))):
        row = tuple(cells[number % len(cells)] for cells in choices)
        if schema.neighbours is Neighbours.ADD_REMOVE:
            yield f"a row {row} is added", _table(schema, [*usual, row])
        elif schema.unit is Unit.ROW:
            yield f"a row becomes {row}", _table(schema, [row, *usual[1:]])
        else:
            for at in range(len(row)):
                changed = (*usual[0][:at], row[at], *usual[0][at + 1 :])
                yield f"a cell becomes {row[at]}", _table(schema, [changed, *usual[1:]])


def _sets(schema: Schema, items: ItemSpec) -> tuple[object, Iterator[tuple[str, object]]]:
    low, high = items.lower, items.upper
    usual = [[low, low + 1], [low + 1], [low], [low, low + 1], [high]]

    def others() -> Iterator[tuple[str, object]]:
        if schema.neighbours is Neighbours.ONE_ELEMENT:
            for item in (low + 1, high, high - 1, low - 1, high + 1, 2**40):
                yield f"item {item} is added", item_table([[*usual[0], item], *usual[1:]])
            yield "an item goes", item_table([usual[0][1:], *usual[1:]])
            return
        every = list(range(low, high + 1))
        one = ([low], [high], [high - 1], [low, low], [low - 1])
        rows: list[list[int]] = [[], *one, [high + 1, 2**40], every[::2], every]
        for row in rows:
            if schema.neighbours is Neighbours.ADD_REMOVE:
                yield f"a set of {len(row)} items is added", item_table([*usual, row])
            else:
                yield f"a set has {len(row)} items", item_table([row, *usual[1:]])

    return item_table(usual), others()


def _usual(column: Column, row: int) -> object:
    """A value that nobody asks for."""
    if column.kind.lists_levels:
        return column.categories[0]
    if not column.is_numeric:
        return False
    low, high = column.limits
    value = low + (high - low) * (0.4137 + 0.031 * row)
    return _typed(column, float(round(value)) if column.is_whole else value)


def _cells(column: Column) -> list[object]:
    """All values for one column."""
    if column.kind.lists_levels:
        return [*column.categories, "unseen", "", None]
    if not column.is_numeric:
        return [True, False, None]
    low, high = column.limits
    inside = [_typed(column, low + part * (high - low)) for part in PARTS]
    return [*inside, None] if column.kind.is_time else [*inside, *VALUES, None]


def _typed(column: Column, value: float) -> object:
    """A value as Arrow takes it: dates as whole numbers."""
    return int(value) if column.kind.is_time else value


def _table(schema: Schema, rows: list[Row]) -> pa.Table:
    columns = zip(schema.columns, zip(*rows, strict=True), strict=True)
    return pa.table({column.name: pa.array(cells, _type(column)) for column, cells in columns})


def _type(column: Column) -> pa.DataType:
    if column.kind.lists_levels:
        return pa.string()
    if column.kind.is_time:
        return pa.date32() if column.kind is Kind.DATE else pa.timestamp("us")
    return pa.float64() if column.is_numeric else pa.bool_()
