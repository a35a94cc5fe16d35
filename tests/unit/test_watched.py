"""What a watcher sees: every row of the first whole pass once, in integers, for tables and item sets."""

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data.schema import ItemSpec, Schema
from adumbra.data.sources import open_source
from adumbra.data.watched import SET_COLUMNS, WatchedSource
from adumbra.numerics import NOISE_BLOCK, ROW_BITS
from adumbra.relations import Neighbours, Unit

WIDTH = 1000
SETS = [[0, 255], [], [0, 256, 512], [999], [3, 3, 4000, 3]]


def sets_source(rows, neighbours=Neighbours.ADD_REMOVE, width=WIDTH):
    schema = Schema(items=ItemSpec(upper=width - 1), unit=Unit.ROW, neighbours=neighbours)
    return open_source(pa.table({"items": rows}), schema)


def folded(rows):
    """The naive loop: item j falls into column j mod 256, with a weight that tells j apart."""
    table = np.zeros((len(rows), SET_COLUMNS))
    for number, row in enumerate(rows):
        for item in {item for item in row if item < WIDTH}:
            table[number, item % SET_COLUMNS] += 1 + item // SET_COLUMNS
    return table


def test_item_sets_are_folded_and_seen_once():
    seen = []
    watched = WatchedSource(sets_source(SETS), seen.append)
    assert not watched.is_seen
    batches = list(watched.batches(2))
    assert watched.is_seen
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert np.array_equal(np.concatenate(seen), folded(SETS))
    assert watched.watched_columns == SET_COLUMNS == seen[0].shape[1]
    list(watched.batches(2))
    assert len(seen) == 3


def test_sets_that_differ_in_one_item_are_seen_to_differ():
    for first, second in (([1], []), ([1], [257]), ([1, 2], [1, 3]), ([0, 256], [512])):
        seen = []
        list(WatchedSource(sets_source([first, second]), seen.append).batches(2))
        rows = np.concatenate(seen)
        differ = not np.array_equal(rows[0], rows[1])
        # 0 and 256 together weigh as much as 512 alone: one fold of two columns; the tripwire may
        # take such rows for one another, which costs a needless or a missing line in a private log
        assert differ == ((first, second) != ([0, 256], [512]))


def test_weights_end_where_a_table_s_values_do():
    seen = []
    wide = sets_source([[2**30]], width=2**30 + 1)
    list(WatchedSource(wide, seen.append).batches(1))
    assert seen[0].max() == 2.0**ROW_BITS


def test_part_of_the_rows_is_no_whole_pass():
    seen = []
    watched = WatchedSource(sets_source(SETS), seen.append)
    list(watched.batches(2, start=2))
    list(watched.batches(2, stop=2))
    next(watched.batches(2))
    assert not watched.is_seen
    assert len(seen) == 1  # the pass that was left had shown its first block


def test_long_blocks_are_shown_in_noise_blocks():
    seen = []
    rows = NOISE_BLOCK + 5
    watched = WatchedSource(sets_source([[i % WIDTH] for i in range(rows)]), seen.append)
    list(watched.batches(2 * NOISE_BLOCK))
    assert [len(part) for part in seen] == [NOISE_BLOCK, 5]


def test_tables_are_quantised_to_their_bounds():
    seen = []
    x = np.array([[-1.0, 0.0], [1.0, 0.5]])
    watched = WatchedSource(open_source(x, Schema.numeric(2, lower=-1.0, upper=1.0)), seen.append)
    list(watched.batches(2))
    assert seen[0].tolist() == [[0.0, 2.0**14], [2.0**15, 24576.0]]
    assert watched.watched_columns == 2


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_a_public_number_of_rows_enters_the_schema(relation):
    watched = WatchedSource(sets_source(SETS, relation))
    rows = 5 if relation is Neighbours.REPLACE_ONE else None
    assert (watched.schema.rows, watched.public_rows()) == (rows, rows)
    assert (watched.width, watched.pin()) == (WIDTH, "memory")
