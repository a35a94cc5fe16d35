"""What a watcher sees: every row of the first whole pass once, in integers, for tables and item sets."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from adumbra.data.opening import open_source
from adumbra.data.sources import SET_COLUMNS, WatchedSource
from adumbra.numerics import NOISE_BLOCK, ROW_BITS
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema

WIDTH = 1000
SETS = [[0, 255], [], [0, 256, 512], [999], [3, 3, 4000, 3]]


def sets_source(rows, neighbours=Neighbours.ADD_REMOVE, width=WIDTH):
    schema = Schema(items=ItemSpec(upper=width - 1), unit=Unit.ROW, neighbours=neighbours)
    return open_source(pa.table({"items": rows}), schema)


def seen_of(source, rows=2):
    """What a watcher sees of one pass, as dense rows."""
    seen = []
    list(WatchedSource(source, seen.append).batches(rows))
    return np.concatenate([part.toarray() for part in seen])


def dense(rows):
    """The naive loop."""
    table = np.zeros((len(rows), WIDTH))
    for number, row in enumerate(rows):
        table[number, [item for item in row if item < WIDTH]] = 1
    return table


def test_item_sets_are_seen_once_and_whole():
    seen = []
    watched = WatchedSource(sets_source(SETS), seen.append)
    assert not watched.is_seen
    batches = list(watched.batches(2))
    assert watched.is_seen
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert np.array_equal(np.concatenate([part.toarray() for part in seen]), dense(SETS))
    assert watched.watched_columns == WIDTH == seen[0].shape[1]
    list(watched.batches(2))
    assert len(seen) == 3


def test_a_wide_universe_is_folded_with_weights_that_tell_items_apart():
    top = 2**31 - 1
    source = sets_source([[3], [3 + SET_COLUMNS], [top], [3, 5 + SET_COLUMNS]], width=2**31)
    rows = seen_of(source)
    assert rows.shape == (4, SET_COLUMNS) == (4, WatchedSource(source).watched_columns)
    assert rows[:, 3].tolist() == [1.0, 2.0, 0.0, 1.0]
    assert rows[2, top % SET_COLUMNS] == 2.0**ROW_BITS == rows.max()
    assert rows[3, 5] == 2.0


def test_the_tripwire_tells_item_sets_apart_and_knows_them_again():
    def digest(rows, block=2):
        fingerprint = Fingerprint(b"k" * 32, WIDTH)
        list(WatchedSource(sets_source(rows), fingerprint.update).batches(block))
        return fingerprint.digest()

    assert digest(SETS) == digest(SETS[::-1]) == digest(SETS, block=4)
    others = [SETS[:-1], [*SETS, []], [[0, 254], *SETS[1:]], [[0], [255], *SETS[2:]]]
    assert len({digest(SETS), *map(digest, others)}) == 5
    dense_one = Fingerprint(b"k" * 32, WIDTH)
    dense_one.update(dense(SETS))
    assert dense_one.digest() == digest(SETS)


def test_long_sets_of_a_wide_universe_are_hashed_exactly():
    """Every item of one column, in the heaviest classes, and more items than there are columns."""
    width, top = 2**31, 2**31 // SET_COLUMNS
    column = 7 + SET_COLUMNS * np.arange(top)
    heavy = np.arange(width - 8 * SET_COLUMNS, width)
    rows = [column.tolist(), heavy.tolist(), heavy[1:].tolist()]
    fingerprint = Fingerprint(b"k" * 32, SET_COLUMNS)
    seen = []

    def see(part):
        seen.append(part)
        fingerprint.update(part)

    list(WatchedSource(sets_source(rows, width=width), see).batches(3))
    cells = seen[0].toarray()
    assert cells[0, 7] == top * (top + 1) // 2  # far above 2^15
    exact = Fingerprint(b"k" * 32, SET_COLUMNS)
    key = exact._matrix.astype(object)  # Python's own integers are the oracle
    for row in rows:
        items = np.array(row)
        weights = (1 + items // SET_COLUMNS).astype(object)
        sums = [int(weights @ key[items % SET_COLUMNS, lane]) for lane in range(2)]
        assert max(sums) > 2**53 or len(row) == top  # beyond what float64 could add
        one = csr_array(np.array([1], dtype=np.uint64)[None, :])
        exact._matrix = np.array([sums], dtype=np.uint64)
        exact.update(one)
    assert (fingerprint.digest(), fingerprint.sketch()) == (exact.digest(), exact.sketch())


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
    assert [part.shape[0] for part in seen] == [NOISE_BLOCK, 5]


def test_tables_are_quantised_to_their_bounds():
    seen = []
    x = np.array([[-1.0, 0.0], [1.0, 0.5]])
    watched = WatchedSource(open_source(x, Schema.numeric(2, lower=-1.0, upper=1.0)), seen.append)
    list(watched.batches(2))
    assert seen[0].tolist() == [[0.0, 2.0**14], [2.0**15, 24576.0]]
    assert watched.watched_columns == 2


def test_a_column_of_one_value_leaves_the_others_to_tell_rows_apart():
    seen = []
    columns = (
        Column(name="only", kind=Kind.CATEGORY, categories=("single",)),
        Column(name="x", kind=Kind.NUMBER, lower=0.0, upper=1.0),
    )
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    data = pa.table({"only": ["single", "single"], "x": [0.0, 1.0]})
    list(WatchedSource(open_source(data, schema), seen.append).batches(2))
    assert seen[0].tolist() == [[0.0, 0.0], [0.0, 2.0**15]]


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_a_public_number_of_rows_enters_the_schema(relation):
    watched = WatchedSource(sets_source(SETS, relation))
    rows = 5 if relation is Neighbours.REPLACE_ONE else None
    assert (watched.schema.rows, watched.public_rows()) == (rows, rows)
    assert (watched.width, watched.pin()) == (WIDTH, "memory")
