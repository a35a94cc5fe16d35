# ruff: noqa: ANN401 - a wrong version stands in for functions of many types
"""Bugs in the bound of persons: not enforced, by file, by place, by others; ids that split; counts."""

from typing import Any

import numpy as np
import pyarrow as pa

from adumbra.audit.mutant import Mutant, replay_mutant, sensitivity_mutant
from adumbra.audit.pairs import ADD, REPLACE, Tables, corners, labelled, numbers
from adumbra.audit.person_cases import IDS, MOST
from adumbra.audit.planted import Patch, altered_draw, with_fact
from adumbra.data import person_ids, persons
from adumbra.data.persons import BoundedPersons, PersonRows, PersonSource
from adumbra.data.spool import Spool
from adumbra.mechanisms import box_release
from adumbra.mechanisms.moments import plan as moments_plan
from adumbra.mechanisms.topk import methods
from adumbra.relations import Reach
from adumbra.statistics.base import Sensitivity, reach_sensitivity

LDA, GROWN = "lda/replace-person", "lda/add-remove-person"


# Neighbours that some bugs need. Rows: the four numbers and the class of `labelled`.


def _table(rows: list[tuple[object, Any, str]], chunks: int = 1) -> pa.Table:
    """Persons, rows and classes, in so many pieces."""
    names = numbers(labelled(REPLACE).unit, REPLACE).names
    columns: dict[str, Any] = {
        name: np.array([row[1][place] for row in rows]) for place, name in enumerate(names)
    }
    columns["y"] = pa.array([row[2] for row in rows], pa.string())
    columns[IDS] = pa.array([None if row[0] is None else str(row[0]) for row in rows], pa.string())
    table = pa.table(columns)
    size = -(-len(table) // chunks)
    return pa.concat_tables([table.slice(start, size) for start in range(0, len(table), max(size, 1))])


def _others() -> list[tuple[object, Any, str]]:
    """Persons above the bound, whose rows differ."""
    rng = np.random.default_rng(3)
    return [(f"r{who}", rng.uniform(-1, 1, 4), "b") for who in range(40) for _ in range(2 * MOST)]


def scattered() -> Tables:
    """A person whose equal rows lie in three pieces; the neighbour lacks the person."""
    others = _others()[: 4 * MOST]
    mine = [("moved", corners()[0], "a")] * MOST
    third = len(others) // 3
    rows = [*mine, *others[:third], *mine, *others[third : 2 * third], *mine, *others[2 * third :]]
    return _table(rows, 3), _table(others, 3)


def in_front() -> Tables:
    """One person more, before persons who have more rows than are used."""
    return _table([("moved", corners()[0], "a"), *_others()]), _table(_others())


def spelled() -> Tables:
    """A person whose id is spelled in many ways; the neighbour lacks the person."""
    spellings = ("7", "07", " 7", "7.0", "7e0", "+7", "0007", "7.00", "７")
    mine = [(one, corners()[0], "a") for one in spellings]
    return _table([*mine, *_others()]), _table(_others())


# Wrong versions


def all_rows(rows: PersonRows, most: int, _secret: Any = None) -> BoundedPersons:
    """Nothing is enforced."""
    return BoundedPersons(rows, most)


def by_piece(self: Any) -> Spool:
    """Every piece is bounded by itself, and none with the others."""
    kept = Spool()
    for piece in self._pieces():
        self._put(kept, _RIGHT_KEEP(piece, self._most_rows))
    return kept


def by_place(words: Any, lengths: Any, values: Any) -> Any:
    """The choice follows the number of the row."""
    del lengths, values
    return persons._mixed(np.arange(len(words), dtype=np.uint64))  # noqa: SLF001


def by_others(words: Any, lengths: Any, values: Any) -> Any:
    """The choice follows how many rows there are in all."""
    salt = np.uint64(len(words))
    return persons._mixed(_RIGHT_MARKS(words, lengths, values) ^ salt)  # noqa: SLF001


def whole_weights(bounded: BoundedPersons, _bits: int) -> Any:
    """Every row is whole."""
    return np.zeros(len(bounded.rows), np.int64)


def one_unit_more(bounded: BoundedPersons, bits: int) -> Any:
    """One row of a person is whole, whatever the others weigh."""
    lighter = _RIGHT_WEIGH(bounded, bits)
    words = bounded.rows.words
    is_last = np.append((words[1:] != words[:-1]).any(axis=1), True)[: len(words)]
    return np.where(is_last, 0, lighter)


def by_all_rows(bounded: BoundedPersons, bits: int) -> Any:
    """Rows of everybody are lighter where all of them together are many."""
    return np.minimum(_RIGHT_WEIGH(bounded, bits) + len(bounded.rows) % 2, bits)


def one_row(of_row: Any, reach: Reach) -> Sensitivity:
    """A person counts like one row."""
    return reach_sensitivity(of_row, Reach(reach.neighbours))


def growing(of_row: Any, reach: Reach) -> Sensitivity:
    """A person replaced counts like one who comes."""
    row = of_row(ADD)
    return Sensitivity(l1=reach.rows * row.l1, l2=reach.rows * row.l2)


def rows_read(_draft: Any, source: Any, _grant: Any) -> int:
    """How many rows are used."""
    return sum(len(batch) for batch in source.batches(4096))


def split_ids() -> list[Patch]:
    """Every spelling of an id is a person of its own."""
    right = person_ids.read_ids

    def wrong(array: Any, reading: Any) -> Any:
        text = array.cast(pa.string())
        named = pa.array([None if one is None else f"id:{one!a}" for one in text.to_pylist()])
        return right(named, reading)

    return [(persons, "read_ids", wrong)]


_RIGHT_KEEP, _RIGHT_MARKS, _RIGHT_WEIGH = persons.keep_rows, persons.marks_of, persons.weigh_rows

PERSON_MUTANTS: tuple[Mutant, ...] = (
    sensitivity_mutant(
        name="rows of a person not bounded",
        case=LDA,
        patches=lambda: [(persons, "keep_rows", all_rows)],
    ),
    sensitivity_mutant(
        name="rows of a person bounded in each piece of the data",
        case=GROWN,
        patches=lambda: [(PersonSource, "_bounded", by_piece)],
        tables=scattered,
    ),
    sensitivity_mutant(
        name="rows of a person chosen by their place in the table",
        case=GROWN,
        patches=lambda: [(persons, "marks_of", by_place)],
        tables=in_front,
    ),
    sensitivity_mutant(
        name="rows of a person chosen by the rows of others",
        case=GROWN,
        patches=lambda: [(persons, "marks_of", by_others)],
        tables=in_front,
    ),
    sensitivity_mutant(
        name="rows of a person at their whole weight",
        case="lda/scale/replace-person",
        patches=lambda: [(persons, "weigh_rows", whole_weights)],
    ),
    sensitivity_mutant(
        name="one row of a person at its whole weight",
        case="lda/scale/add-remove-person",
        patches=lambda: [(persons, "weigh_rows", one_unit_more)],
    ),
    sensitivity_mutant(
        name="weights of rows by the number of all rows",
        case="lda/scale/add-remove-person",
        patches=lambda: [(persons, "weigh_rows", by_all_rows)],
        tables=in_front,
    ),
    sensitivity_mutant(
        name="weights of rows in each piece of the data",
        case="lda/scale/add-remove-person",
        patches=lambda: [(PersonSource, "_bounded", by_piece)],
        tables=scattered,
    ),
    sensitivity_mutant(
        name="one id in two spellings is two persons",
        case=GROWN,
        patches=split_ids,
        tables=spelled,
    ),
    sensitivity_mutant(
        name="a person counted like one row",
        case="moments/replace-person",
        patches=lambda: [(moments_plan, "reach_sensitivity", one_row)],
    ),
    sensitivity_mutant(
        name="a person replaced at the price of one who comes",
        case="pca/sample/replace-person",
        patches=lambda: [(box_release, "reach_sensitivity", growing)],
    ),
    sensitivity_mutant(
        name="selection of columns at the price of one row of a person",
        case="topk/em/replace-person",
        patches=lambda: [(methods, "score_range", lambda _reach: 2)],
    ),
    replay_mutant(
        name="the number of used rows of all persons released exactly",
        case="moments/replace-person",
        patches=lambda: altered_draw("moments", with_fact("used", rows_read)),
        tables=lambda: (_table(_others()[:-1]), _table(_others()[: -2 * MOST])),
    ),
)
