"""Persons of several rows as neighbours: made of the pairs of rows, which are worst for one row.

The row that a pair moves becomes a person of more rows than are used, all equal: m of them count, which
is the worst that a person can do (src/adumbra/statistics/persons.proof.md). All others have one row.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from adumbra.audit.pairs import Case, Tables
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from adumbra.schema.table import NoPerson, PersonBound, PersonSpec

MOST = 3  # rows of a person that are used
MORE = MOST + 2  # that the moved person has
IDS = "who"
# Ids that code may treat apart: nobody's, somebody else's, numbers in many spellings, long ones.
STRANGE_IDS = (
    "new",
    None,
    "",
    " ",
    "r1",
    " R1",
    "7",
    "007",
    "nan",
    "inf",
    "-0.0",
    "1e999",
    "x" * 10_000,
    "\u202e",
)
PERSONS = {
    Neighbours.REPLACE_ONE: Neighbours.REPLACE_PERSON,
    Neighbours.ADD_REMOVE: Neighbours.ADD_REMOVE_PERSON,
}
# One of each statistic and step: the others differ in what is summed, which cases of rows attack.
CHOSEN = (
    "moments/{}", "moments/pure/{}", "moments/items/{}", "moments/tables/{}",
    "ron-gauss/private/{}", "ron-gauss/public/{}", "ron-gauss/pure/mixture/{}", "ron-gauss/target/{}",
    "pca/sample/{}", "pca/pure/sample/{}", "lda/{}", "lda/pure/{}",
    "answers/{}", "answers/pure/{}", "bounds/{}", "bounds/pure/{}",
    "topk/frefirst/{}", "topk/frefirst-length-gaussian/{}", "topk/gumbel-gaussian/{}", "topk/em/{}",
    "topk/joint/{}", "topk/svt/{}", "topk/tps-em/{}", "topk/tps-pfm/{}", "topk/tps-refine/{}",
)  # fmt: skip


# One of each statistic that rows at a part of their weight are summed by.
SCALED = (
    "moments/{}", "moments/pure/{}", "moments/items/{}", "moments/tables/{}",
    "ron-gauss/private/{}", "ron-gauss/pure/mixture/{}", "pca/sample/{}", "lda/{}", "lda/pure/{}",
    "answers/{}", "answers/pure/{}", "bounds/{}", "bounds/pure/{}",
)  # fmt: skip


def person_cases(cases: list[Case]) -> list[Case]:
    """The chosen cases of rows, by person."""
    known = {case.name: case for case in cases}
    names = [name.format(relation) for name in CHOSEN for relation in PERSONS]
    scaled = [name.format(relation) for name in SCALED for relation in PERSONS]
    kept = [by_person(known[name]) for name in names if name in known]
    return [*kept, *(by_weight(by_person(known[name])) for name in scaled if name in known)]


def by_weight(case: Case) -> Case:
    """The same claim where all rows of a person count, at a part of their weight."""
    relation = str(case.schema.neighbours)
    name = case.name.replace(relation, f"scale/{relation}")
    return replace(case, name=name, schema=scaled_schema(case.schema))


def scaled_schema(schema: Schema) -> Schema:
    """The same persons, all of whose rows count; rows without an id are those of one more person."""
    assert schema.person is not None  # noqa: S101 - for mypy
    bound, nobody = PersonBound.SCALE.value, NoPerson.ONE_PERSON.value
    return replace(schema, person=replace(schema.person, bound=bound, no_person=nobody))


def by_person(case: Case) -> Case:
    """The same claim for a person of MOST rows."""
    relation = PERSONS[case.schema.reach.neighbours]
    name = case.name.replace(str(case.schema.neighbours), str(relation))
    pairs = tuple(person_pair(case.schema, pair) for pair in case.tables)
    return replace(case, name=name, schema=person_schema(case.schema), tables=pairs)


def person_schema(schema: Schema, most: int = MOST) -> Schema:
    """The same columns for persons."""
    person = PersonSpec(column=IDS, max_rows=most)
    relation = PERSONS[schema.reach.neighbours]
    return replace(schema, unit=Unit.PERSON, neighbours=relation, rows=None, person=person)


def row_schema(schema: Schema) -> Schema:
    """The same columns, without persons."""
    relation = next(row for row, person in PERSONS.items() if person is schema.neighbours)
    return replace(schema, unit=Unit.ROW, neighbours=relation, person=None)


def strange_persons(
    schema: Schema, base: pa.Table, others: Iterable[tuple[str, object]]
) -> tuple[pa.Table, Iterator[tuple[str, pa.Table]]]:
    """A small table by person, and neighbours whose changed row is that of a strange person.

    The person has one row, as many as are used, or more; the id is one that code may treat apart, also
    that of somebody else.
    """
    own = ["r0", "r1", "r1", "r2", "r1"]
    grows = schema.neighbours is Neighbours.ADD_REMOVE_PERSON

    def named() -> Iterator[tuple[str, pa.Table]]:
        for number, (words, table) in enumerate(others):
            assert isinstance(table, pa.Table)  # noqa: S101 - small tables are no arrays
            rows, who = 1 + number % MORE, STRANGE_IDS[number % len(STRANGE_IDS)]
            place, rest = (len(table) - 1, own) if grows else (0, own[1:])
            ids = [*rest, *[who] * rows] if grows else [*[who] * rows, *rest]
            yield f"{words}, {rows} times, of {who!r}", _repeated(table, place, rows, ids)

    return base.append_column(IDS, pa.array(own)), named()


def _repeated(table: pa.Table, place: int, rows: int, ids: list[str | None]) -> pa.Table:
    """The table with one row so many times over, and these ids."""
    places = [*range(place), *[place] * rows, *range(place + 1, len(table))]
    return table.take(pa.array(places, pa.int64())).append_column(IDS, pa.array(ids, pa.string()))


def person_pair(schema: Schema, pair: Tables, rows: int = MORE) -> Tables:
    """Two tables that differ in one row, as tables that differ in all rows of one person."""
    one, other = (_named(schema, table) for table in pair)
    start, stop = _differing(one, other)
    before, after = (_owned(table, start, len(table) - stop, rows) for table in (one, other))
    return before, after


def _named(schema: Schema, table: object) -> pa.Table:
    """A table with column names."""
    if isinstance(table, pa.Table):
        return table
    return pa.table(dict(zip(schema.names, np.asarray(table).T, strict=True)))


def _differing(one: pa.Table, other: pa.Table) -> tuple[int, int]:
    """How many rows are the same from the start, and how many of the others from the end."""
    shortest = min(len(one), len(other))

    def differ_before(count: int) -> bool:
        return not one.slice(0, count).equals(other.slice(0, count))

    start = bisect_left(range(1, shortest + 1), True, key=differ_before)

    def differ_after(count: int) -> bool:
        return not one.slice(len(one) - count).equals(other.slice(len(other) - count))

    return start, bisect_left(range(1, shortest - start + 1), True, key=differ_after)


def _owned(table: pa.Table, start: int, stop: int, rows: int) -> pa.Table:
    """Rows `start` to `stop` so many times over as one person's, all others as persons of their own."""
    places = np.concatenate(
        [np.arange(start), np.arange(start, stop).repeat(rows), np.arange(stop, len(table))]
    )
    names = _row_names(len(table))
    moved = pa.repeat("moved", (stop - start) * rows)
    owners = pa.concat_arrays([names.slice(0, start), moved, names.slice(stop)])
    return table.take(pa.array(places)).append_column(IDS, owners)


@cache
def _row_names(count: int) -> pa.Array:
    """One id per row: a person of its own."""
    return pa.array([f"r{place}" for place in range(count)], pa.string())
