"""Rows held between passes are the rows of the file, and too many are not held."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from adumbra.data.opening import open_source
from adumbra.data.sources import KeptSource, SetBatch
from adumbra.mechanisms.topk.zone import ZoneSource, zone_source
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.statistics.counts import item_rows

SCHEMA = Schema(items=ItemSpec(upper=9), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
ROWS = [[0, 1], [], [5], [2, 3, 9], [4]]


class CountedSource:
    """A source that tells how often it was read."""

    def __init__(self):
        self.inner, self.reads = open_source(pa.table({"items": ROWS}), SCHEMA), 0
        self.schema, self.width = self.inner.schema, self.inner.width

    def batches(self, rows, start=0, stop=None):
        self.reads += 1
        return self.inner.batches(rows, start, stop)

    def public_rows(self):
        return self.inner.public_rows()

    def pin(self):
        return self.inner.pin()


def rows_of(batches):
    return [batch.indices[a:b].tolist() for batch in batches for a, b in pairwise(batch.indptr)]


def test_a_second_whole_pass_comes_from_memory():
    source = CountedSource()
    kept = KeptSource(source)
    assert [rows_of(kept.batches(2)) for _ in range(3)] == [ROWS] * 3
    assert source.reads == 1
    assert rows_of(kept.batches(2, start=2)) == ROWS[2:]
    assert rows_of(kept.batches(2, stop=2)) == ROWS[:2]
    assert source.reads == 3
    assert [len(batch) for batch in kept.batches(5)] == [5]  # another block size is another pass
    assert (source.reads, rows_of(kept.batches(5)), source.reads) == (4, ROWS, 4)


def test_what_does_not_fit_is_read_again():
    needed = sum(batch.nbytes for batch in CountedSource().batches(2))
    for room, reads in ((needed, 1), (needed - 1, 2), (0, 2)):
        source = CountedSource()
        kept = KeptSource(source, most=room)
        assert rows_of(kept.batches(2)) == rows_of(kept.batches(2)) == ROWS
        assert source.reads == reads


def test_a_pass_that_was_left_is_not_kept():
    source = CountedSource()
    kept = KeptSource(source)
    next(kept.batches(2))
    assert rows_of(kept.batches(2)) == ROWS
    assert source.reads == 2


def test_public_facts_are_the_source_s_own():
    kept = KeptSource(CountedSource())
    assert (kept.schema, kept.width, kept.public_rows(), kept.pin()) == (SCHEMA, 10, 5, "memory")
    assert next(kept.batches(2)).indices.dtype == np.int32


def test_rows_of_a_few_columns_are_cut_once_and_numbered_as_they_rise():
    source = CountedSource()
    zone = zone_source(source, np.array([9, 1, 4]))
    cut = [[0], [], [], [2], [1]]
    assert rows_of(zone.batches(2)) == rows_of(zone.batches(2)) == cut
    assert source.reads == 1
    assert (zone.schema, zone.width, zone.public_rows(), zone.pin()) == (SCHEMA, 10, 5, "memory")
    assert {batch.width for batch in zone.batches(2)} == {3}


def test_a_zone_of_what_is_no_set_is_the_zone_of_the_set():
    """Repeats, disorder and items outside the universe: cutting and making sets may change places."""
    rng = np.random.default_rng(4)
    columns = np.array([7, 0, 3, 9])
    for _ in range(200):
        lengths = rng.integers(0, 8, 20)
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        batch = SetBatch(0, indptr, rng.integers(-3, 14, indptr[-1]), 10)
        rows = item_rows(ZoneSource(CountedSource(), columns)._cut(batch))
        expected = [
            sorted({(0, 3, 7, 9).index(item) for item in batch.indices[a:b] if item in (0, 3, 7, 9)})
            for a, b in pairwise(indptr)
        ]
        assert [rows.indices[a:b].tolist() for a, b in pairwise(rows.indptr)] == expected
        assert rows.width == 4
