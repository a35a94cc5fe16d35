"""How many rows each person has, on a public grid, for those who buy their `max_rows_per_person`.

The table has one row per person, and that row follows from this person's rows alone. So whatever one
person does changes one row of it, and the account of the same people pays for its release.

Proof       persons.proof.md, of `rows_per_person`.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from adumbra.data.opening import open_source
from adumbra.data.person_ids import Words
from adumbra.data.persons import PersonSource, run_starts
from adumbra.errors import InvalidInput
from adumbra.numerics import Ints
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.schema.table import PersonSpec

STEPS = tuple(2**step for step in range(11))  # the last row numbers of the cells: 1, 2, 4, ..., 1024
ROWS, PERSON = "rows", "person"  # columns of the table


def level_names() -> tuple[str, ...]:
    """The cells of the grid in words."""
    inner = (f"{low + 1} to {high}" if low + 1 < high else f"{high}" for low, high in pairwise(STEPS))
    return (f"{STEPS[0]}", *inner, f"more than {STEPS[-1]}")


_COLUMN = Column(
    name=ROWS,
    kind=Kind.CATEGORY,
    categories=level_names(),
    private=True,
    source="how many rows the person has, on a grid of powers of two",
)


def sizes_schema(schema: Schema) -> Schema:
    """The schema of the table of `rows_per_person`: unit, relation and who declared it are the same."""
    if schema.person is None:
        raise InvalidInput("person is absent: rows per person are counted under unit='person'")
    return Schema(
        columns=(_COLUMN,),
        unit=schema.unit,
        neighbours=schema.neighbours,
        declared_by=schema.declared_by,
        max_rows=schema.max_rows,
        person=PersonSpec(column=PERSON, max_rows=1),
    )


def rows_per_person(data: object, schema: Schema) -> tuple[pa.Table, Schema]:
    """One row per person, with the cell of a public grid in which the number of their rows lies.

    The table is as private as the data. Release it by the method bounds: `persons_within` then says how
    many persons have at most m rows.

    Parameters
    ----------
    data : the rows, as `release` takes them
    schema : the schema of the rows, of unit person; its `max_rows_per_person` is not used here

    Returns
    -------
    The table, and the schema to release it under: same unit and relation, one row per person.

    Raises
    ------
    InvalidInput, if the schema names no person or does not fit the data.
    """
    counting = sizes_schema(schema)
    source = open_source(data, schema)
    assert isinstance(source, PersonSource)  # noqa: S101 - as the schema names a person; tells mypy so
    held, waiting = (np.zeros((0, 2), np.uint64), np.zeros(0, np.int64)), list[tuple[Words, Ints]]()
    for words in source.owners():
        waiting.append(_counted([(words, np.ones(len(words), np.int64))]))
        if sum(len(counts) for _, counts in waiting) > len(held[1]):  # so that each id is moved seldom
            held, waiting = _counted([held, *waiting]), []
    _, counts = _counted([held, *waiting])
    counts = counts[
        : schema.max_rows
    ]  # by the order of ids, which one person more or less does not change
    cells = np.searchsorted(np.array(STEPS), counts).astype(np.int8)
    levels = pa.DictionaryArray.from_arrays(pa.array(cells), pa.array(level_names()))
    return pa.table({PERSON: np.arange(len(cells)), ROWS: levels}), counting


def _counted(parts: list[tuple[Words, Ints]]) -> tuple[Words, Ints]:
    """Each id once, with the sum of its counts."""
    words = np.concatenate([words for words, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    if not len(words):
        return words, counts
    order = np.lexsort((words[:, 0], words[:, 1]))
    words = words[order]
    starts = run_starts(words)
    return words[starts], np.add.reduceat(counts[order], starts)
