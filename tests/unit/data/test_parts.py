"""Blocks that are converted by workers: the same rows, fewer bytes held, nothing left to the reader."""

import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.data import files, parquet, sources
from adumbra.data.opening import open_source
from adumbra.data.persons import PersonSource
from adumbra.data.sources import KeptSource, WatchedSource, parts
from adumbra.engine.local import BLOCK_BYTES, WIDE_BYTES, LocalEngine, block_rows, fold_rows
from adumbra.mechanisms.projection.config import DPProConfig
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig
from adumbra.numerics import NOISE_BLOCK
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from adumbra.schema.table import PersonSpec
from support.methods import draw

ROWS, WIDTH = 5 * NOISE_BLOCK + 77, 7
SCHEMA = Schema.numeric(WIDTH, -1.0, 1.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    values = rng.uniform(-2, 2, (ROWS, WIDTH))
    values[rng.uniform(size=values.shape) < 0.01] = np.nan
    table = pa.table({name: values[:, j] for j, name in enumerate(SCHEMA.names)})
    found = tmp_path_factory.mktemp("parts") / "table.parquet"
    pq.write_table(table, found, row_group_size=3000)
    return found


@dataclass
class Sums:
    """A statistic that tells how many totals were begun."""

    begun: list = field(default_factory=list)
    exponent: int = 0

    def zero(self):
        self.begun.append(0)
        return np.zeros(WIDTH, np.int64)

    def add(self, total, rows):
        total += rows.sum(axis=0)
        return total


def units(batch):
    return np.rint(batch.values * 2**15).astype(np.int64)


def whole(source, rows=NOISE_BLOCK, **where):
    return np.concatenate([batch.values for batch in source.batches(rows, **where)])


def test_workers_convert_and_show_rows_and_begin_one_total_each(path, monkeypatch):
    threads, fill = set(), files.fill_column

    def noted(*args):
        threads.add(threading.current_thread())
        fill(*args)

    monkeypatch.setattr(files, "fill_column", noted)
    digests, values = set(), []
    for workers in (1, 2, 5):
        source, seen = WatchedSource(open_source(path, SCHEMA)), Fingerprint(b"key", WIDTH)
        source.watch(seen.update)
        statistic = Sums()
        engine = LocalEngine(threads=workers, rows_per_block=NOISE_BLOCK)
        values.append(engine.fold(source, units, statistic, stage="sums").units)
        assert source.is_seen
        assert len(statistic.begun) <= workers + 1  # and the one that they are added to
        digests.add((seen.digest(), tuple(seen.sketch())))
    assert threading.main_thread() not in threads
    assert len(digests) == 1
    assert all(np.array_equal(one, values[0]) for one in values)


def test_parts_are_the_batches_whoever_reads_them_and_in_any_order(path):
    for data in (path, pq.read_table(path), whole(open_source(path, SCHEMA))):
        source = open_source(data, SCHEMA)
        found = list(parts(source, NOISE_BLOCK, NOISE_BLOCK))
        batches = [part.read() for part in reversed(found)][::-1]
        assert [batch.start for batch in batches] == [NOISE_BLOCK * (i + 1) for i in range(5)]
        assert [(len(p), p.nbytes) for p in found] == [(len(b), b.nbytes) for b in batches]
        assert np.array_equal(
            np.concatenate([b.values for b in batches]), whole(source, start=NOISE_BLOCK)
        )


def test_a_pass_that_was_not_read_to_the_end_is_not_kept(path):
    kept = KeptSource(open_source(path, SCHEMA))
    first = [part.read() for part in list(parts(kept, NOISE_BLOCK))[:2]]  # the others were not read
    assert np.array_equal(whole(kept)[: 2 * NOISE_BLOCK], np.concatenate([b.values for b in first]))
    again = [part.read() for part in parts(kept, NOISE_BLOCK)]
    assert all(a is b for a, b in zip(again, kept.batches(NOISE_BLOCK), strict=True))


def test_wide_row_groups_are_read_a_few_columns_at_a_time(path, monkeypatch):
    plain = whole(open_source(path, SCHEMA))
    read, most = pq.ParquetFile.read_row_group, []

    def noted(self, group, columns):
        most.append(len(columns))
        return read(self, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    monkeypatch.setattr(parquet, "COLUMNS_AT_ONCE", 3)
    assert np.array_equal(whole(open_source(path, SCHEMA)), plain)
    assert np.array_equal(
        whole(open_source(path, SCHEMA), start=2 * NOISE_BLOCK), plain[2 * NOISE_BLOCK :]
    )
    assert max(most) == 3
    count = len(most)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 8 * WIDTH * 2999)  # a group is one row too many
    assert np.array_equal(whole(open_source(path, SCHEMA)), plain)
    assert len(most) - count <= 3  # the last group alone is small enough
    count = len(most)
    monkeypatch.setattr(parquet, "PAGED_COLUMNS", 3)  # so many columns have pages too large to be held
    monkeypatch.setattr(parquet, "GROUP_BYTES", 8 * WIDTH * 1000)
    source = open_source(path, SCHEMA)
    for rows in (70, 500, NOISE_BLOCK):
        blocks = [batch.values for batch in source.batches(rows)]
        assert np.array_equal(np.concatenate(blocks), plain)
    assert len(most) - count > 3 * -(-WIDTH // 3)  # windows of every group, in each pass


def test_pieces_of_a_wide_row_group_are_let_go_one_by_one(tmp_path):
    """Found by measurement: slices of groups of 480 MB kept them, and a release took 3.6 GB."""
    values = np.random.default_rng(3).uniform(-1.0, 1.0, (600, 9_000))
    values[7, 11] = np.nan  # that column stays where Arrow put it
    held = pa.array(values[:, 11], from_pandas=True)
    columns = {f"x{j}": held if j == 11 else values[:, j] for j in range(9_000)}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet", row_group_size=300)
    before, most, seen = pa.total_allocated_bytes(), 0, []
    names = list(columns)
    for piece in parquet.parquet_pieces((tmp_path / "wide.parquet",), names, 50, 0):
        most = max(most, pa.total_allocated_bytes() - before)
        seen.append(np.column_stack([c.to_numpy(zero_copy_only=False) for c in piece.columns]))
    assert np.array_equal(np.concatenate(seen), values, equal_nan=True)
    assert most < 8 * values[:300].size / 2  # what Arrow itself holds: of a group of 22 MB, few columns


def test_persons_are_bounded_before_workers_sum_and_every_bounded_row_is_shown_once(
    tmp_path, monkeypatch
):
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, (5 * NOISE_BLOCK, WIDTH))
    ids = rng.integers(0, 2000, len(values))  # about 10 rows each, of which 5 are used
    table = {name: values[:, j] for j, name in enumerate(SCHEMA.names)}
    found = tmp_path / "persons.parquet"
    pq.write_table(pa.table({**table, "who": ids}), found, row_group_size=3000)
    schema = replace(
        SCHEMA,
        unit=Unit.PERSON,
        neighbours=Neighbours.ADD_REMOVE_PERSON,
        person=PersonSpec(column="who", max_rows=5),
    )
    kept = np.minimum(np.bincount(ids), 5).sum()  # more than two blocks
    plain, lengths, read = whole(open_source(found, schema)), [], PersonSource._pieces

    def noted(self):
        for piece in read(self):
            lengths.append(len(piece))
            yield piece

    monkeypatch.setattr(PersonSource, "_pieces", noted)
    monkeypatch.setattr(parquet, "COLUMNS_AT_ONCE", 3)
    monkeypatch.setattr(parquet, "PIECE_ROWS", 1000)
    for workers in (1, 3):
        source, shown = WatchedSource(open_source(found, schema)), []
        source.watch(shown.append)
        engine = LocalEngine(threads=workers, rows_per_block=NOISE_BLOCK)
        total = engine.fold(source, units, Sums(), stage="sums").units
        assert np.array_equal(total, np.rint(plain * 2**15).astype(np.int64).sum(axis=0))
        assert sum(map(len, shown)) == len(plain) == kept
    assert max(lengths) == 1000  # a wide row group is converted in pieces
    assert sum(lengths) == 2 * len(values)  # the data is read once per source


def test_slices_change_no_released_number(path, monkeypatch):
    configs = [
        DPProConfig(n_components=3, epsilon=1.0, delta=1e-6),
        RONGaussConfig(epsilon=1.0, delta=1e-6, n_components=2, synthetic_rows=100),
    ]
    whole_blocks = [draw(open_source(path, SCHEMA), config) for config in configs]
    taken = _fingerprint(path)
    monkeypatch.setattr(sources, "SLICE_VALUES", 100)
    for config, before in zip(configs, whole_blocks, strict=True):
        after = draw(open_source(path, SCHEMA), config)
        assert after.table().equals(before.table())
        assert after.arrays.keys() == before.arrays.keys()
        for name, array in before.arrays.items():
            assert np.array_equal(after.arrays[name], array)
    assert _fingerprint(path) == taken


def _fingerprint(path):
    """What a watcher of a whole pass keeps."""
    source, taken = WatchedSource(open_source(path, SCHEMA)), Fingerprint(b"key", WIDTH)
    source.watch(taken.update)
    assert sum(map(len, source.batches(NOISE_BLOCK))) > NOISE_BLOCK
    return taken.facts()


def test_blocks_are_bounded_in_bytes_whatever_the_width():
    for width in (1, 10, 100, 511, 513, 1000, 10_000, 100_000, 10**6):
        assert fold_rows(width) >= 1
        assert 8 * width * fold_rows(width) <= max(WIDE_BYTES, 8 * width)
        assert block_rows(width) % NOISE_BLOCK == 0
        assert 8 * width * block_rows(width) <= max(BLOCK_BYTES, 8 * width * NOISE_BLOCK)


KINDS = {
    "number": pa.float64(), "half": pa.float32(), "long": pa.int64(), "short": pa.int16(),
    "flag": pa.bool_(), "day": pa.date32(),
}  # fmt: skip


def wide_file(folder, kind, *, has_nulls, rows=4000, width=800, group=4000):
    """Columns of one kind, some cells of them missing."""
    rng = np.random.default_rng(5)
    cells = rng.integers(0, 2 if kind == pa.bool_() else 100, (rows, width))
    columns = {}
    for j in range(width):
        missing = rng.random(rows) < 0.001 if has_nulls else np.zeros(rows, bool)
        columns[f"x{j}"] = pa.array(cells[:, j].astype(np.int32), mask=missing).cast(kind)
    table = pa.table(columns)
    pq.write_table(table, folder / "wide.parquet", row_group_size=group)
    return folder / "wide.parquet", table


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_windows_of_a_wide_row_group_hold_their_own_rows_alone(kind, has_nulls, tmp_path, monkeypatch):
    """Found in review: one null, or another type, and every window kept the whole row group."""
    path, table = wide_file(tmp_path, kind, has_nulls=has_nulls)
    monkeypatch.setattr(parquet, "PAGED_COLUMNS", 513)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 8 * 800 * 250)
    monkeypatch.setattr(parquet, "DECODED_BYTES", 8 * 4000 * 20)
    before, most, seen = pa.total_allocated_bytes(), 0, []
    for piece in parquet.parquet_pieces((path,), table.column_names, 50, 0):
        most = max(most, pa.total_allocated_bytes() - before)
        seen.append(piece)
    assert pa.Table.from_batches(seen).equals(table)
    if kind != pa.bool_():  # whose few bytes are padded
        assert most < table.nbytes / 4


@pytest.mark.parametrize("start", [0, 1, 249, 250, 2000, 3999])
def test_windows_before_the_first_row_are_not_decoded(start, tmp_path, monkeypatch):
    path, table = wide_file(tmp_path, pa.float64(), has_nulls=True, group=2000)
    monkeypatch.setattr(parquet, "PAGED_COLUMNS", 513)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 8 * 800 * 250)
    decoded, window = [], parquet._window
    monkeypatch.setattr(
        parquet, "_window", lambda *told: decoded.append((told[1], told[3].start)) or window(*told)
    )
    found = list(parquet.parquet_pieces((path,), table.column_names, 50, start))
    assert pa.Table.from_batches(found).equals(table.slice(start))
    assert decoded[0] == (start // 2000, start % 2000 // 250 * 250)
    assert len(decoded) == 8 * (2 - start // 2000) - start % 2000 // 250
