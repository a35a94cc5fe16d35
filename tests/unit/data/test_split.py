"""Ranges of a source: together its rows, each once, under their own numbers; their count is not n's."""

import gzip
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data import csv
from adumbra.data.datasets import _guarded, open_dataset, pieces_from, row_groups
from adumbra.data.opening import open_source
from adumbra.data.sources import KeptSource, WatchedSource
from adumbra.data.split import cuts, split
from adumbra.errors import InvalidInput, Unsupported
from adumbra.mechanisms.topk.zone import ZoneSource
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.schema.table import PersonSpec

SCHEMA = Schema.numeric(3, lower=-1.0, upper=1.0)
SETS = Schema(items=ItemSpec(upper=9), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
LENGTHS = (5, 40, 0, 1, 117)


def table_files(folder):
    rng = np.random.default_rng(3)
    for index, rows in enumerate(LENGTHS):
        x = rng.uniform(-1.0, 1.0, (rows, 3))
        columns = {name: x[:, at] for at, name in enumerate(SCHEMA.names)}
        pq.write_table(pa.table(columns), folder / f"{index}.parquet", row_group_size=11)
    return folder


def set_files(folder):
    rng = np.random.default_rng(4)
    for index, rows in enumerate(LENGTHS):
        lists = [np.flatnonzero(row < 0.3).tolist() for row in rng.random((rows, 10))]
        column = pa.array(lists, pa.list_(pa.int64()))
        pq.write_table(pa.table({"items": column}), folder / f"{index}.parquet", row_group_size=11)
    return folder


def rows_of(source, rows):
    """Every row with its number."""
    found = []
    for batch in source.batches(rows):
        values = getattr(batch, "values", None)
        for at in range(len(batch)):
            one = batch.slice(at, at + 1)
            cells = one.values[0].tolist() if values is not None else one.indices.tolist()
            found.append((batch.start + at, cells))
    return found


@given(
    sizes=st.lists(st.integers(0, 60), max_size=12),
    rows=st.integers(1, 9),
    count=st.integers(1, 12),
    shares=st.integers(1, 4),
    most=st.integers(0, 400),
)
@settings(max_examples=200, deadline=None)
def test_cuts_rise_from_0_to_the_end_in_whole_blocks(sizes, rows, count, shares, most):
    starts = [0, *np.cumsum(sizes).tolist()]
    total = min(starts[-1], most)
    found = cuts(starts, total, rows, count, shares)
    assert (found[0], found[-1], len(found)) == (0, total, count + 1)
    assert all(one <= other for one, other in pairwise(found))
    assert all(cut % rows == 0 or cut == total for cut in found)


def test_cuts_go_to_row_groups_and_large_groups_are_cut_between_workers_alone():
    starts = list(range(0, 1601, 100))
    assert cuts(starts, 1600, 1, 16, 2) == starts
    assert cuts([0, 1600], 1600, 1, 16, 2) == [0] * 8 + [800] * 8 + [1600]
    assert cuts([0, 790, 1600], 1600, 16, 4, 2)[2] == 800  # the whole block after the group's start
    assert cuts([0, 1600], 1600, 1, 16, 2, [(0, 1600)]) == [0] * 16 + [1600]
    assert cuts([0, 500], 1600, 1, 4, 4, [(0, 500)]) == [0, 500, 800, 1200, 1600]


@pytest.mark.parametrize("rows", [1, 4, 16, 1000])
@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize(("files", "schema"), [(table_files, SCHEMA), (set_files, SETS)])
def test_ranges_are_the_source(tmp_path, files, schema, rows, count):
    source = open_source(files(tmp_path), schema)
    found = split(source, rows, count, 2)
    assert len(found.parts) == count
    assert [row for part in found.parts for row in rows_of(part, rows)] == rows_of(source, rows)
    firsts = [next((n for n, _ in rows_of(part, rows)), None) for part in found.parts]
    spans = zip(firsts, found.spans, strict=True)
    assert all(first is None or first == start for first, (start, _) in spans)
    with pytest.raises(Unsupported, match="a range of rows is read whole"):
        list(found.parts[0].batches(rows, rows))


@pytest.mark.parametrize(("files", "schema"), [(table_files, SCHEMA), (set_files, SETS)])
def test_what_watchers_of_ranges_see_is_what_one_watcher_sees(tmp_path, files, schema):
    source = WatchedSource(open_source(files(tmp_path), schema))
    alone, merged = (Fingerprint(b"key", source.watched_columns) for _ in range(2))
    source.watch(alone.update)
    list(source.batches(16))
    source.watch(merged.update, merged)
    found = split(source, 16, 5, 2)
    for part in found.parts:
        list(part.batches(16))
    assert not source.is_seen
    found.watched([part.watcher.seen() for part in found.parts])
    assert source.is_seen
    assert (merged.digest(), merged.sketch()) == (alone.digest(), alone.sketch())
    assert split(source, 16, 5, 2).watched is None  # the next pass is not watched


def test_views_split_what_they_look_at(tmp_path):
    source = open_source(set_files(tmp_path), SETS)
    zone = ZoneSource(source, np.array([2, 5, 7]))
    for view in (KeptSource(source), zone, KeptSource(zone)):
        parts = split(view, 8, 4, 2).parts
        assert [row for part in parts for row in rows_of(part, 8)] == rows_of(view, 8)


def test_a_range_ends_where_the_schema_allows_no_more_rows(tmp_path):
    schema = replace(SCHEMA, neighbours=Neighbours.ADD_REMOVE, max_rows=50)
    source = open_source(table_files(tmp_path), schema)
    parts = split(source, 8, 4, 2).parts
    assert sum(len(rows_of(part, 8)) for part in parts) == len(rows_of(source, 8)) == 50


def text_files(folder, kind, lengths):
    """CSV files with numbered rows: plain, packed or in another encoding; their schema."""
    start = 0
    for index, rows in enumerate(lengths):
        cells = [f"{(start + row) / 1000:.3f}" for row in range(rows)]
        text = "".join(f"{line}\n" for line in ["x0,x1,x2", *(f"{one},{one},{one}" for one in cells)])
        place, encoding = folder / f"{index}.csv", "utf-16" if kind == "recoded" else "utf-8"
        if kind == "packed":
            (folder / f"{index}.csv.gz").write_bytes(gzip.compress(text.encode()))
        else:
            place.write_text(text, encoding=encoding)
        start += rows
    return replace(SCHEMA, header=True, encoding="utf-16" if kind == "recoded" else None)


def shares_of(found):
    """For every file, how many of its rows each range takes that looks at it."""
    ends = dict(zip("012345", np.cumsum(TEXTS).tolist(), strict=True))
    shares = {}
    for part, (start, stop) in zip(found.parts, found.spans, strict=True):
        for path in part.rows.paths:
            name = path.name[0]
            first = ends[name] - TEXTS[int(name)]
            shares.setdefault(name, []).append(min(stop, ends[name]) - max(start, first))
    return shares


TEXTS = (300, 40, 0, 5, 170, 400)  # rows of text files


@pytest.mark.parametrize("kind", ["packed", "recoded"])
@pytest.mark.parametrize("count", [1, 2, 8, 40])
def test_a_packed_or_recoded_file_goes_to_one_range_whole(tmp_path, kind, count):
    schema = text_files(tmp_path, kind, TEXTS)
    source = open_source(tmp_path, schema)
    for rows in (1, 16):
        found = split(source, rows, count, min(count, 2))
        assert [row for part in found.parts for row in rows_of(part, rows)] == rows_of(source, rows)
        for shares in shares_of(found).values():
            # ... but for rows up to the next whole block, which the range before has begun
            assert all(one < rows for one in shares[:-1])
        used = sum(stop > start for start, stop in found.spans)
        assert used == {1: 1, 2: 2}.get(count, used)
        assert used >= 3 or count <= 2  # it is divided between files


def test_a_plain_file_is_cut_at_its_marks_beside_a_packed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "COUNT_BYTES", 256)
    schema = text_files(tmp_path, "plain", TEXTS)
    packed = tmp_path / "0.csv"
    (tmp_path / "0.csv.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    source = open_source(tmp_path, schema)
    found = split(source, 1, 16, 4)
    assert [row for part in found.parts for row in rows_of(part, 1)] == rows_of(source, 1)
    shares = shares_of(found)
    assert len(shares["0"]) == 1
    assert len(shares["5"]) > 2


def test_what_cannot_be_divided_is_refused_with_what_works(tmp_path):
    json = tmp_path / "rows.jsonl"
    json.write_text('{"x0": 1, "x1": 2, "x2": 3}\n')
    lines = tmp_path / "rows.dat"
    lines.write_text("1 2\n")
    relation, spec = Neighbours.ADD_REMOVE_PERSON, PersonSpec(column="id", max_rows=2)
    persons = replace(SCHEMA, unit=Unit.PERSON, neighbours=relation, person=spec)
    frame = pa.table({**{name: [0.0] for name in SCHEMA.names}, "id": ["a"]})
    for data, schema, words in (
        (json, SCHEMA, "a file that is neither Parquet nor CSV"),
        (lines, SETS, "a file that is neither Parquet nor CSV"),
        (np.zeros((2, 3)), SCHEMA, "data in memory"),
        (frame, persons, "rows of persons"),
    ):
        with pytest.raises(Unsupported, match=f"engine=dask: {words}.* cannot be divided.*Parquet"):
            split(WatchedSource(open_source(data, schema)), 1, 1, 1)


@pytest.mark.parametrize("relation", [Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE])
def test_ranges_of_a_store_are_its_rows_each_once(tmp_path, relation):
    address = f"file://{table_files(tmp_path)}"
    source = open_source(address, replace(SCHEMA, neighbours=relation))
    whole = rows_of(source, 8)
    assert len(whole) == sum(LENGTHS)
    for rows, count, shares in ((1, 1, 1), (1, 7, 2), (8, 5, 2), (64, 3, 3), (512, 4, 2)):
        found = split(KeptSource(source), rows, count, shares)
        assert [row for part in found.parts for row in rows_of(part, 8)] == whole
        assert [part.public_rows() for part in found.parts] == [None] * count
        assert all(len(part.pin()) == 64 for part in found.parts)
        assert all(address not in repr(part) for part in found.parts)
    before = [part.pin() for part in found.parts]
    pq.write_table(pq.read_table(tmp_path / "0.parquet"), tmp_path / "0.parquet")
    assert [part.pin() for part in found.parts] != before


def test_a_store_that_is_lost_is_refused_without_its_words(tmp_path):
    source = open_source(f"file://{table_files(tmp_path)}", SCHEMA)
    (part,) = split(source, 1, 1, 1).parts
    (tmp_path / "1.parquet").write_bytes(b"SECRET")
    rule = "data: the dataset cannot be read; check that its files are whole"
    with pytest.raises(InvalidInput, match=rule) as told:
        rows_of(part, 8)
    assert "SECRET" not in str(told.value)
    with pytest.raises(InvalidInput, match=rule):
        row_groups(ds.dataset([tmp_path / "1.parquet"], schema=source.data.schema, format="parquet"))


def test_a_dataset_without_an_address_stays_with_one_process(tmp_path):
    data = ds.dataset(table_files(tmp_path), format="parquet")
    with pytest.raises(Unsupported, match="data in memory cannot be divided"):
        split(open_source(data, SCHEMA), 1, 2, 2)


class Refused(Exception):
    """What a store says: with a signed address."""


class Failing:
    """A dataset whose store refuses every request."""

    def __init__(self, held):
        self.schema = held.schema

    def _refuse(self, **_words):
        raise Refused("403 of https://store/rows?signature=SECRET")

    get_fragments = to_batches = count_rows = _refuse


READS = {
    "groups": row_groups,
    "count": lambda data: open_dataset(data, SCHEMA),
    "rows": lambda data: list(pieces_from(data, list(SCHEMA.names), 10, 3)),
    "batches": lambda data: list(_guarded(data, list(SCHEMA.names), 10)),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_store_s_own_words_are_not_repeated(read, tmp_path):
    """Stores raise what they like; only our sentence is left, with no cause and no context."""
    failing = Failing(ds.dataset(table_files(tmp_path), format="parquet"))
    with pytest.raises(InvalidInput, match="the dataset cannot be read") as caught:
        read(failing)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "SECRET" not in repr(caught.value)
