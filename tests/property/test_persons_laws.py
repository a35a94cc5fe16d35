"""Whatever the rows are: cut parts cut to the same rows, and persons do not touch each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adumbra.data.persons import PersonRows, joined, keep_rows, marks_of, weigh_rows

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]), st.integers(0, 2)),
    max_size=30,
)


def rows_of(drawn):
    words = np.array([(person, 0) for person, _, _ in drawn], np.uint64).reshape(-1, 2)
    values = np.array([(a, float(b)) for _, a, b in drawn]).reshape(-1)
    lengths = np.full(len(drawn), 2, np.int64)
    return PersonRows(words, marks_of(words, lengths, values), lengths, values)


def listed(rows):
    values = np.asarray(rows.values).reshape(-1, 2) + 0.0
    return sorted((int(w), *v) for w, v in zip(rows.words[:, 0], values.tolist(), strict=True))


@given(ROWS, st.integers(0, 30), st.integers(1, 5), st.randoms(use_true_random=False))
def test_cut_parts_in_any_order_cut_to_the_same(drawn, place, most, random):
    whole = listed(keep_rows(rows_of(drawn), most).rows)
    shuffled = [*drawn]
    random.shuffle(shuffled)
    parts = [keep_rows(rows_of(part), most).rows for part in (shuffled[:place], shuffled[place:])]
    assert listed(keep_rows(joined(parts), most).rows) == whole


@given(ROWS, st.integers(1, 5))
def test_a_person_is_cut_alone(drawn, most):
    whole = listed(keep_rows(rows_of(drawn), most).rows)
    for person in range(4):
        own = [row for row in drawn if row[0] == person]
        alone = listed(keep_rows(rows_of(own), most).rows)
        assert alone == [row for row in whole if row[0] == person]
        assert len(alone) == min(most, len(own))


@given(ROWS)
def test_rows_survive_packing(drawn):
    rows = rows_of(drawn)
    again = PersonRows.unpack(rows.pack(), np.float64)
    assert listed(again) == listed(rows)
    assert (again.marks == rows.marks).all()


def weights(drawn, most, bits):
    """The rows of each person with their weights, in units of 2^-bits."""
    bounded = keep_rows(rows_of(drawn), most << bits)
    units = 1 << (bits - weigh_rows(bounded, bits))
    values = np.asarray(bounded.rows.values).reshape(-1, 2) + 0.0
    who = bounded.rows.words[:, 0].astype(int)
    return sorted(zip(who.tolist(), map(tuple, values.tolist()), units.tolist(), strict=True))


@given(ROWS, st.integers(1, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_weights_of_a_person_are_its_own_and_add_up_to_the_bound(drawn, most, bits, random):
    whole = weights(drawn, most, bits)
    for person in range(4):
        own = [row for row in drawn if row[0] == person]
        random.shuffle(own)
        alone = weights(own, most, bits)
        assert alone == [row for row in whole if row[0] == person]
        units = [unit for _, _, unit in alone]
        assert sum(units) == min(len(own), most) << bits  # nothing is lost, and nothing too much
        assert len(alone) == min(len(own), most << bits)
        assert all(1 <= unit <= 1 << bits for unit in units)
        assert max(units, default=1) <= 2 * min(units, default=1)  # as evenly as powers of two allow
