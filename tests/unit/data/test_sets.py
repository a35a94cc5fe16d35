"""Item sets from every kind of data."""

import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from adumbra.data.opening import compare, describe, open_source
from adumbra.data.parquet import ahead, piece_rows
from adumbra.data.sets import item_spec
from adumbra.data.sources import SetBatch, join_sets
from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from support.data import table

RAW = [[3, 1, 1, None, 77], None, [], [-5, 2], [4]]
SETS = [[1, 3], [], [], [2], [4]]


def sets(lower=0, upper=4, neighbours=Neighbours.REPLACE_ONE, **facts):
    return Schema(
        items=ItemSpec(lower=lower, upper=upper), unit=Unit.ROW, neighbours=neighbours, **facts
    )


def rows(data, schema, size=2):
    batches = list(open_source(data, schema).batches(size))
    assert [batch.start for batch in batches] == list(range(0, size * len(batches), size))
    return [b.indices[b.indptr[i] : b.indptr[i + 1]].tolist() for b in batches for i in range(len(b))]


def test_lists(tmp_path):
    data = pa.table({"items": RAW, "other": ["CANARY"] * 5})
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=2)
    for source in (data, pl.from_arrow(data), tmp_path / "t.parquet"):
        assert rows(source, sets()) == SETS
        assert open_source(source, sets()).public_rows() == 5
        assert open_source(source, sets(neighbours=Neighbours.ADD_REMOVE)).public_rows() is None
        later = list(open_source(source, sets()).batches(2, start=2))
        assert [len(batch) for batch in later] == [2, 1]
        assert later[0].indices.tolist() == [2]
    for kind in (pa.large_list(pa.uint64()), pa.list_(pa.int8())):
        positive = pa.array([[3, 1], None, [4, 9]], kind)
        assert rows(pa.table({"items": positive}), sets()) == [[1, 3], [], [4]]
    fixed = pa.array([[3, 1], [0, 0]], pa.list_(pa.int64(), 2))
    assert rows(pa.table({"items": fixed}), sets()) == [[1, 3], [0]]


def test_chunks_and_files_do_not_matter(tmp_path):
    parts = pa.chunked_array(
        [pa.array(RAW[:1]), pa.array(RAW[1:4], pa.list_(pa.int64())), pa.array(RAW[4:])]
    )
    assert rows(pa.table({"items": parts}), sets()) == SETS
    for number, part in enumerate(parts.chunks):
        pq.write_table(pa.table({"items": part}), tmp_path / f"{number}.parquet")
    assert rows(tmp_path, sets()) == SETS
    assert open_source(tmp_path, sets()).pin() == open_source(tmp_path, sets()).pin() != "memory"


def test_long_lists_are_read_in_short_pieces(tmp_path):
    path = tmp_path / "long.parquet"
    lists = [list(range(100))] * 60 + [[1]] * 60
    data = pa.table({"items": lists, "item": [[1]] * 120, "items2": [list(range(50))] * 120})
    pq.write_table(data, path, row_group_size=60)
    assert piece_rows((path,), "items", 1000, 65_536) == 10
    assert piece_rows((path,), "items", 50, 65_536) == 1
    assert piece_rows((path,), "items", 10**9, 40) == 40
    assert piece_rows((path,), "item", 1000, 65_536) == 1000
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"items": pa.array([], pa.list_(pa.int32()))}), empty)
    assert piece_rows((empty,), "items", 1000, 70) == 70
    schema = sets(upper=99)
    assert rows(path, schema, size=50) == lists


def test_fimi_files(tmp_path):
    (tmp_path / "a.dat").write_bytes(b"3 1 1\r\n\n2.0 -1 x 9999999999999 2\n")
    (tmp_path / "b.dat").write_bytes(b"\t4 \n 0")
    assert rows(tmp_path, sets()) == [[1, 3], [], [2], [4], [0]]
    source = open_source(tmp_path, sets(rows=5))
    assert source.public_rows() == 5
    assert [len(batch) for batch in source.batches(2, start=2, stop=4)] == [2]
    assert [batch.indices.tolist() for batch in source.batches(1, start=4)] == [[0]]
    with pytest.raises(InvalidInput, match="rows=6: the data has 5"):
        open_source(tmp_path, sets(rows=6))
    with pytest.raises(InvalidInput, match=r"\.dat files hold item sets; declare"):
        open_source(tmp_path, table())
    assert describe(tmp_path)[0][1] == [("items", pa.list_(pa.int64()))]
    assert compare(tmp_path, sets()) == (sets(), [])
    assert len(source.pin()) == 64


def test_matrices():
    dense = np.zeros((5, 5))
    dense[[0, 0, 3, 4], [1, 3, 2, 4]] = [1, 2, 3, -1]
    stored = sp.csr_array(dense)
    stored.data[0] = 0.0  # a stored zero is no item
    assert rows(dense, sets()) == SETS
    assert rows(dense > 0, sets())[:4] == SETS[:4]
    assert rows(sp.coo_array(dense), sets()) == SETS
    assert rows(stored, sets())[0] == [3]
    assert stored.data[0] == 0.0
    shifted = sets(lower=10, upper=14)
    assert rows(dense, shifted) == SETS
    with pytest.raises(InvalidInput, match="data of 5 columns: the schema declares 3"):
        open_source(dense, sets(upper=2))
    dense[1] = [np.nan, np.inf, -np.inf, 0, 0]  # no number, no item
    assert rows(dense, sets()) == SETS
    assert rows(sp.csr_array(dense), sets()) == SETS
    assert rows(dense.astype(object), sets()) == SETS
    assert rows(dense.astype(str), sets()) == SETS
    assert rows(dense + 0j, sets()) == SETS


def test_max_rows_and_universe():
    data = pa.table({"items": RAW})
    private = sets(neighbours=Neighbours.ADD_REMOVE, max_rows=3)
    assert rows(data, private) == SETS[:3]
    assert rows(data, sets(lower=2, upper=3)) == [[1], [], [], [0], []]


def test_an_item_that_is_no_whole_number_changes_no_other():
    assert rows(pa.table({"items": [[1, 2], [2.5, 3]]}), sets()) == [[1, 2], [3]]
    assert rows(pa.table({"items": [["1", "x"], ["3"]]}), sets()) == [[1], [3]]
    for empty in ([[], []], [None, None]):  # Arrow finds no type in empty rows
        assert rows(pa.table({"items": empty}), sets()) == [[], []]
    strange = [[1, 2], [None, "3", b"4", 2.5, -1, 10**30, [1]], "12", None, {2: 1}, (x for x in [1])]
    assert rows(pd.DataFrame({"items": strange}), sets()) == [[1, 2], [3, 4], [], [], [2], [1]]
    assert compare(pd.DataFrame({"items": strange}), sets()) == (sets(), [])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"other": RAW}), "data: column 'items' occurs 0 times; need it once"),
        (pa.table([RAW, RAW], names=["items", "items"]), "occurs 2 times"),
        (
            pa.table({"items": pa.array([[1]], pa.list_(pa.date32()))}),
            "column 'items' of type list<item: date32[day]> holds no item sets",
        ),
        (pa.table({"items": [1]}), "column 'items' of type int64 holds no item sets; use list<int>"),
    ],
)
def test_refusals(data, message):
    with pytest.raises(InvalidInput) as caught:
        open_source(data, sets())
    assert message in str(caught.value)
    assert compare(data, sets())[1] == [str(caught.value)]


def test_long_matrices_come_in_pieces():
    rows_in = 70_000
    matrix = sp.csr_array(
        (np.ones(rows_in), (np.arange(rows_in), np.arange(rows_in) % 5)), shape=(rows_in, 5)
    )
    source = open_source(matrix, sets())
    found = np.concatenate([batch.indices for batch in source.batches(4096)])
    assert np.array_equal(found, np.arange(rows_in) % 5)
    assert source.pin() == open_source(pa.table({"items": RAW}), sets()).pin() == "memory"


def test_a_table_has_no_item_spec():
    with pytest.raises(InvalidInput, match="items are absent"):
        item_spec(table())


def test_batches_slice_and_hide_their_items():
    batch = SetBatch(4096, np.array([0, 2, 2, 3]), np.array([7, 9, 8]), 10)
    part = batch.slice(1, 3)
    assert (part.start, part.indptr.tolist(), part.indices.tolist()) == (4097, [0, 0, 1], [8])
    assert (batch.noise_block, batch.lengths.tolist(), len(part)) == (1, [2, 0, 1], 2)
    assert "9" not in repr(batch).replace("4096", "")


def test_neighbouring_batches_are_joined():
    batches = list(open_source(pa.table({"items": RAW}), sets()).batches(2))
    whole = join_sets(batches)
    assert (whole.start, len(whole), whole.width) == (0, 5, 5)
    assert whole.indices.dtype == np.int32
    parts = [whole.slice(i, i + 1).indices.tolist() for i in range(5)]
    assert parts == SETS
    assert join_sets(batches[1:]).start == 2
    assert join_sets(batches[2:]) is batches[2]


def test_pieces_are_fetched_one_ahead_in_order_and_faults_pass_on():
    fetched = []

    def pieces(last):
        for number in range(last):
            fetched.append(number)
            yield number
        if last == 3:
            raise InvalidInput("damaged")

    assert list(ahead(pieces(5))) == [0, 1, 2, 3, 4]
    with pytest.raises(InvalidInput, match="damaged"):
        list(ahead(pieces(3)))
    fetched.clear()
    some = ahead(pieces(10))
    assert next(some) == 0
    some.close()
    assert fetched in ([0], [0, 1])  # never more than one ahead
    assert not [thread for thread in threading.enumerate() if "ThreadPoolExecutor" in thread.name]
