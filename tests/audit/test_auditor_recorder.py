"""The sensitivity recorder on pairs that hypothesis draws: no noise call moves more than declared.

Every kind of release, on tables of any content: the change at each noise call is at most the sensitivity
on the card, all calls together reveal at most the claim, and with the noise replayed everything that the
mechanism hands over is the same.
"""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adumbra.audit.pairs import Case, item_table
from adumbra.audit.person_cases import IDS
from adumbra.audit.planted import sensitivity
from adumbra.audit.recorder import exceedances, record_pair
from adumbra.audit.replay_kinds import ITEMS, kinds
from adumbra.relations import Neighbours, Unit
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.box_moments import BoxMoments
from support.planting import plant
from support.topk import full

KINDS = {kind.name: kind for kind in kinds()}
EXTREME = [-1.0, 1.0, 0.0, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324]
NUMBERS = st.one_of(st.sampled_from(EXTREME), st.floats(-1.5, 1.5))
WHOLE = st.one_of(st.sampled_from([0.0, 9.0, float("nan"), 1e308]), st.integers(-3, 12).map(float))
ROWS = st.tuples(
    NUMBERS,
    WHOLE,
    st.sampled_from(["p", "q", "r", "unseen", "x" * 5000, "", None]),
    st.sampled_from(["no", "yes", "?", None]),
)
SETS = st.lists(st.integers(-2, ITEMS + 2), max_size=15)


def table(rows):
    types = (pa.float64(), pa.float64(), pa.string(), pa.string())
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    return pa.table(
        {name: pa.array(cells, kind) for name, cells, kind in zip("abcy", columns, types, strict=True)}
    )


@st.composite
def pair(draw, kind):
    """A table and its neighbour under the kind's own relation."""
    one = SETS if kind.schema.items is not None else ROWS
    make = item_table if kind.schema.items is not None else table
    if kind.schema.person is not None:
        return draw(persons(kind, one, make))
    rows = draw(st.lists(one, min_size=1, max_size=8))
    place, other = draw(st.integers(0, len(rows) - 1)), draw(one)
    if kind.schema.neighbours is Neighbours.ADD_REMOVE:
        return make(rows[1:]), make([*rows[1 : place + 1], rows[0], *rows[place + 1 :]])
    if kind.schema.neighbours is Neighbours.ONE_ELEMENT and one is SETS:
        item, held = draw(st.integers(-2, ITEMS + 2)), rows[place]
        other = [each for each in held if each != item] if item in held else [*held, item]
    elif kind.schema.unit is Unit.ELEMENT:
        cell = draw(st.integers(0, 3))
        other = (*rows[place][:cell], other[cell], *rows[place][cell + 1 :])
    return make(rows), make([*rows[:place], other, *rows[place + 1 :]])


@st.composite
def persons(draw, kind, one, make):
    """All rows of one person come, go or change, among those of others; also more than are used."""
    theirs = draw(st.lists(st.tuples(st.sampled_from(["p", "q", None]), one), max_size=6))
    some = st.lists(one, min_size=1, max_size=kind.schema.person.max_rows + 2)
    gone = kind.schema.neighbours is Neighbours.ADD_REMOVE_PERSON
    found = []
    for moved in ([] if gone else draw(some), draw(some)):
        rows = list(theirs)
        for row in moved:
            rows.insert(draw(st.integers(0, len(rows))), ("moved", row))
        ids = pa.array([who for who, _ in rows], pa.string())
        found.append(make([row for _, row in rows]).append_column(IDS, ids))
    return tuple(found)


def examples(kind):
    """Synthesizers fit a model each time, and `joint` lists every sequence: they get fewer."""
    slow = kind.method in ("moments", "lda") or "joint" in kind.name
    return full(4, 60) if slow else full(12, 250)


def faults(kind, tables):
    case = Case(
        name=kind.name,
        config=kind.config(),
        schema=kind.schema,
        tables=(tables,),
    )
    recorded = record_pair(case)
    fault = [recorded.fault] if recorded.fault is not None else []
    return [*fault, *recorded.differences(), *exceedances(recorded)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_noise_call_moves_more_than_declared(kind):
    @settings(max_examples=examples(kind), deadline=None, suppress_health_check=list(HealthCheck))
    @given(pair(kind))
    def check(tables):
        assert faults(kind, tables) == []

    check()


def test_a_wrong_constant_is_seen_at_its_noise_call():
    kind = KINDS["lda/replace-one"]
    rows = [(1.0, 9.0, "q", "yes"), (-1.0, 0.0, "p", "no")]
    tables = table(rows[:1]), table(rows[1:])
    assert faults(kind, tables) == []

    def small(_self, _relation):
        return Sensitivity(l1=0.5, l2=0.5)

    with plant(sensitivity(BoxMoments, small)):
        found = faults(kind, tables)
    assert any(line.startswith("moments: moved") for line in found)
    assert any(line.startswith("all calls together") for line in found)
