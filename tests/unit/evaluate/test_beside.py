"""SDMetrics' time grows with the square of the columns: it gets a public part of a wide table."""

import importlib.util
import itertools
import warnings

import numpy as np

from adumbra.evaluate.beside import JUDGED_COLUMNS, judged_columns, sdmetrics_quality
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema


def wide(columns):
    named = tuple(Column(name=f"x{at}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for at in range(columns))
    return Schema(columns=named, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)


def test_a_narrow_table_is_judged_whole_and_a_wide_one_evenly():
    assert judged_columns(3) == [0, 1, 2]
    places = judged_columns(200)
    assert (len(places), places[0]) == (JUDGED_COLUMNS, 0)
    assert {later - one for one, later in itertools.pairwise([*places, 200])} <= {6, 7}


def test_the_part_is_named():
    rng = np.random.default_rng(0)
    rows = rng.random((60, JUDGED_COLUMNS + 2))
    judged = sdmetrics_quality(wide(JUDGED_COLUMNS + 2), rows, [rows[::-1]])
    if importlib.util.find_spec("sdmetrics") is None:
        assert judged["note"] == ""
    else:
        assert (
            judged["note"]
            == f"SDMetrics judged {JUDGED_COLUMNS} of {JUDGED_COLUMNS + 2} columns, evenly spaced"
        )
        assert judged["scores"][0]["Overall"] > 0.99


def test_its_warnings_are_not_shown():
    """Whether SDMetrics warns depends on private rows."""
    rows = np.random.default_rng(0).random((10_000, 2)) / 2.0
    released = rows.copy()
    released[:10] = 1.0  # scipy warns that it has no exact value for so small a difference
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        sdmetrics_quality(wide(2), rows, [released])
    assert shown == []
