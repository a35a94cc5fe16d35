"""The last step of decoding: synthetic rows are made to keep the declared rules; derived columns join.

Rules win over marginals, at the least price. Of a row that breaks a rule one value moves, in this order:

    exchange   with a row that the rule does not bind and that stays whole: no marginal changes
    borrow     the values of a row that the rule binds and that keeps it: the law under the condition
    nearest    the closest value that is allowed

What is still broken after some rounds becomes a copy of a whole row that keeps everything, or of the one
that the schema was found to allow. So no row breaks a rule, whatever the model. `Shift` says how far the
columns moved. Public numbers only; a public seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adumbra.numerics import Array, Ints
from adumbra.postprocess.decode import column_array
from adumbra.postprocess.derived import derived_array
from adumbra.schema.conditions import Allowed, Mask, can_be_missing
from adumbra.schema.row_rules import Bound
from adumbra.schema.schema import Column, Kind, Schema

ROUNDS = 8
EXCHANGES = 4  # attempts to find partners for one rule
SHIFT_CELLS = 32  # of a number, where shifts are measured

Values = dict[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How far rules moved the rows that were drawn."""

    of: int = 0  # rows in all
    changed: int = 0  # rows in which a value moved
    cells: Mapping[str, Ints] = field(default_factory=dict)  # how counts changed, of columns that moved

    @property
    def rows(self) -> float:
        """The part of rows in which a value moved."""
        return self.changed / max(self.of, 1)

    @property
    def columns(self) -> dict[str, float]:
        """The total variation of each column that moved."""
        return {name: float(np.abs(one).sum() / (2 * self.of)) for name, one in self.cells.items()}

    def __add__(self, other: "Shift") -> "Shift":
        """Of the rows of both."""
        both = {
            name: np.sum([one.cells[name] for one in (self, other) if name in one.cells], axis=0)
            for name in sorted({*self.cells, *other.cells})
        }
        return Shift(of=self.of + other.of, changed=self.changed + other.changed, cells=both)

    def facts(self) -> dict[str, object]:
        """For the card."""
        return {"rows_changed_by_rules": self.rows, "shift_by_rules": self.columns}


@dataclass(frozen=True, slots=True)
class Finished:
    """A table that keeps the schema's rules, with its derived columns."""

    table: pa.Table
    shift: Shift


def finish(schema: Schema, table: pa.Table, seed: int, block: int = 0) -> Finished:
    """Synthetic rows of the declared columns, as rules and derived columns want them.

    Of many rows, each block is finished by itself.
    """
    shift = Shift(of=table.num_rows)
    if schema.rules:
        table, shift = _ruled(schema, table, np.random.default_rng([seed, 3, block]))
    for one in schema.derived:
        declared = {column.name: column for column in schema.columns}
        sources = [(declared[name], code_values(declared[name], table[name])) for name in one.of]
        table = table.append_column(one.name, derived_array(one, sources))
    return Finished(table, shift)


def code_values(column: Column, released: pa.ChunkedArray) -> Array:
    """A released column as numbers or level codes; what is missing has the column's fill."""
    if column.kind.lists_levels:
        levels = pa.array(column.categories, pa.string())
        released = pc.index_in(released.cast(pa.string()), value_set=levels)
    steps = {Kind.BOOLEAN: "i1", Kind.DATE: "i4", Kind.DATETIME: "i8"}
    plain = released.cast(steps.get(column.kind, "f8"))
    return np.asarray(plain.cast(pa.float64()).fill_null(column.fill).to_numpy(), np.float64)


def broken_rows(schema: Schema, table: pa.Table) -> int:
    """How many rows break a rule; 0 of a table that is finished."""
    state = _State.of(schema, table)
    broken = np.zeros(table.num_rows, bool)
    for rule in state.rules:
        broken |= state.breaks(rule)
    return int(np.count_nonzero(broken | state.disordered()))


def matching(schema: Schema, table: pa.Table, conditions: Sequence[Allowed]) -> Mask:
    """Which rows meet all conditions."""
    declared = {column.name: column for column in schema.columns}
    taken = np.ones(table.num_rows, bool)
    for one in conditions:
        column = declared[one.column]
        fill = column.fill if can_be_missing(column) else None
        taken &= one.holds(code_values(column, table[one.column]), fill)
    return taken


def _ruled(schema: Schema, table: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, Shift]:
    state = _State.of(schema, table)
    before = {name: values.copy() for name, values in state.values.items()}
    for _ in range(ROUNDS):
        for rule in state.rules:
            _repair(state, rule, rng)
        state.order()
        if not state.broken().any():
            break
    _copy_whole(state, schema, rng)
    changed = np.zeros(table.num_rows, bool)
    shifts: dict[str, Ints] = {}
    for name, values in state.values.items():
        moved = values != before[name]
        if moved.any():
            changed |= moved
            column = state.columns[name]
            shifts[name] = _cells(column, values) - _cells(column, before[name])
            place = table.column_names.index(name)
            table = table.set_column(place, name, column_array(column, values))
    return table, Shift(of=table.num_rows, changed=int(np.count_nonzero(changed)), cells=shifts)


@dataclass(frozen=True, slots=True)
class _State:
    """Rows in the columns that rules and constraints name, as numbers and codes; changed in place."""

    columns: dict[str, Column]
    values: Values
    rules: tuple[Bound, ...]
    orders: tuple[tuple[str, str], ...]
    size: int  # rows

    @staticmethod
    def of(schema: Schema, table: pa.Table) -> "_State":
        rules = schema.bound_rules()
        orders = tuple((order.lower, order.upper) for order in schema.constraints)
        names = {name for rule in rules for name in rule.columns} | {n for pair in orders for n in pair}
        columns = {column.name: column for column in schema.columns if column.name in names}
        values = {name: code_values(column, table[name]).copy() for name, column in columns.items()}
        return _State(columns, values, rules, orders, table.num_rows)

    def fill(self, name: str) -> float | None:
        """What stands for missing, if the column can be missing."""
        return self.columns[name].fill if can_be_missing(self.columns[name]) else None

    def holds(self, conditions: Sequence[Allowed], rows: Ints | slice = slice(None)) -> Mask:
        """Which rows meet all conditions."""
        taken = np.ones(len(np.arange(self.size)[rows]), bool)
        for one in conditions:
            taken &= one.holds(self.values[one.column][rows], self.fill(one.column))
        return taken

    def breaks(self, rule: Bound, rows: Ints | slice = slice(None)) -> Mask:
        """Which rows break a rule; a rule without `when` binds every row."""
        return self.holds(rule.when, rows) & ~self.holds(rule.then, rows)

    def disordered(self, rows: Ints | slice = slice(None)) -> Mask:
        """Which rows break a constraint; what is missing breaks none."""
        found = np.zeros(len(np.arange(self.size)[rows]), bool)
        for lower, upper in self.orders:
            low, high = self.values[lower][rows], self.values[upper][rows]
            wrong = low > high
            for name, values in ((lower, low), (upper, high)):
                if self.columns[name].keeps_null:
                    wrong &= values != self.columns[name].fill
            found |= wrong
        return found

    def broken(self, rows: Ints | slice = slice(None)) -> Mask:
        """Which rows break anything."""
        found = self.disordered(rows)
        for rule in self.rules:
            found = found | self.breaks(rule, rows)
        return found

    def order(self) -> None:
        """Where a repair broke a constraint, the lower end comes down as far as its bounds allow."""
        for lower, upper in self.orders:
            low, high = self.values[lower], self.values[upper]
            one = _State(self.columns, self.values, (), ((lower, upper),), self.size)
            wrong = np.flatnonzero(one.disordered())
            column, other = self.columns[lower], self.columns[upper]
            down = np.clip(np.floor(high[wrong]) if column.is_whole else high[wrong], *column.limits)
            low[wrong] = down
            high[wrong] = np.clip(np.maximum(high[wrong], down), *other.limits)


def _repair(state: _State, rule: Bound, rng: np.random.Generator) -> None:
    """Make rows keep one rule: exchange, borrow, or the nearest value."""
    if len(rule.then) == 1 and rule.when:
        for _ in range(EXCHANGES):
            if not _exchange(state, rule, rng):
                break
    bad = np.flatnonzero(state.breaks(rule))
    if not len(bad):
        return
    kept = state.holds(rule.then)
    donors = np.flatnonzero(kept & state.holds(rule.when))
    if not len(donors):
        donors = np.flatnonzero(kept)
    chosen = rng.choice(donors, len(bad)) if len(donors) else None
    for one in rule.then:
        values = state.values[one.column]
        found = values[bad]
        new = values[chosen] if chosen is not None else one.nearest(found, state.fill(one.column))
        wrong = ~one.holds(found, state.fill(one.column))
        values[bad] = np.where(wrong, new, found) if chosen is None or len(rule.then) == 1 else new


def _exchange(state: _State, rule: Bound, rng: np.random.Generator) -> bool:
    """Swap values of broken rows with rows that the rule leaves free; whether any pair was swapped."""
    one = rule.then[0]
    bad = np.flatnonzero(state.breaks(rule))
    free = np.flatnonzero(~state.holds(rule.when) & state.holds(rule.then))
    count = min(len(bad), len(free))
    if not count:
        return False
    givers, takers = rng.permutation(bad)[:count], rng.permutation(free)[:count]
    values = state.values[one.column]
    was = state.broken(takers)
    values[givers], values[takers] = values[takers], values[givers]
    undo = state.broken(takers) & ~was
    givers, takers = givers[undo], takers[undo]
    values[givers], values[takers] = values[takers], values[givers]
    return bool(len(givers) < count)


def _copy_whole(state: _State, schema: Schema, rng: np.random.Generator) -> None:
    """Rows that repairs did not mend become copies of one that keeps everything."""
    broken = state.broken()
    bad = np.flatnonzero(broken)
    if not len(bad):
        return
    whole = np.flatnonzero(~broken)
    if len(whole):
        chosen = rng.choice(whole, len(bad))
        for values in state.values.values():
            values[bad] = values[chosen]
        return
    for name, value in schema.ruled_row().items():
        state.values[name][bad] = state.columns[name].fill if value is None else value


def _cells(column: Column, values: Array) -> Ints:
    """Counts of a column's values in cells of a public width."""
    lower, upper = column.limits
    is_few = column.kind is not Kind.NUMBER and upper - lower < SHIFT_CELLS
    width = 1.0 if is_few or not column.is_numeric else (upper - lower) / SHIFT_CELLS
    count = int((upper - lower) / width) + 3
    places = np.minimum(np.floor((values - lower) / width), count - 2)
    places = np.where(values > upper, count - 1, places)
    return np.bincount(places.astype(np.int64), minlength=count)
