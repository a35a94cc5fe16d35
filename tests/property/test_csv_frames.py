"""CSV files that pandas wrote: no text in a cell changes how many rows there are, or another cell."""

import atexit
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adumbra.data.opening import open_source
from support.data import INTEGER, table

SIGNS = [*'",\n\r\t; x1é', "\r\n", '""', "\ufeff", "\x00"]
TEXTS = st.lists(st.sampled_from(SIGNS), max_size=8).map("".join)
FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)


def column_of(path, column):
    source = open_source(path, table(column))
    found = [batch.values[:, 0] for batch in source.batches(4096)]  # noqa: PD011  (no pandas here)
    assert source.public_rows() == sum(map(len, found))
    return np.concatenate(found).tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.sampled_from([None, "\r\n"]))
@example(rows=[("a\rb\rc", "x"), ("\r", "\r")], end=None)
def test_no_text_changes_the_rows_that_pandas_wrote(rows, end):
    made = pd.DataFrame(rows, columns=["note", "b"])
    made["i"] = range(len(rows))
    path = Path(FOLDER.name) / "t.csv"
    made.to_csv(path, index=False, lineterminator=end)
    assert column_of(path, INTEGER) == list(range(len(rows)))


def test_a_long_text_stays_one_cell():
    path = Path(FOLDER.name) / "long.csv"
    for text in ("9,9\n" * 300_000, "\r9,9" * 300_000, '"\n' * 600_000):
        pd.DataFrame({"i": [1, 2, 3], "note": ["", text, "x"]}).to_csv(path, index=False)
        assert column_of(path, INTEGER) == [1, 2, 3]
