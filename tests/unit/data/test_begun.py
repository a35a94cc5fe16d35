"""Rows that are read ahead: the same rows, no value used, errors in their place, no thread left."""

import threading
import time
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.data import begun, files
from adumbra.data.begun import BegunSource
from adumbra.data.opening import open_source
from adumbra.data.parquet import COLUMNS_AT_ONCE, ParquetSource
from adumbra.data.sources import WatchedSource
from adumbra.engine.local import AHEAD_BYTES, LocalEngine, block_rows
from adumbra.errors import InvalidInput
from adumbra.numerics import NOISE_BLOCK
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

ROWS, WIDTH = 3 * NOISE_BLOCK + 77, 5
SCHEMA = Schema.numeric(WIDTH, -1.0, 1.0)
PIECE_BYTES = 8 * WIDTH * NOISE_BLOCK
ALL = 2**40


def write(path, rows=ROWS, seed=0, group=3000):
    values = np.random.default_rng(seed).uniform(-2, 2, (rows, WIDTH))
    pq.write_table(pa.table({name: values[:, j] for j, name in enumerate(SCHEMA.names)}), path,
                   row_group_size=group, compression="none", use_dictionary=False)  # fmt: skip
    return path


@pytest.fixture
def source(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.parquet", seed=number)
    return open_source(tmp_path, SCHEMA)


def readers():
    return [one for one in threading.enumerate() if one.name == "adumbra-begun"]


def values(source, rows=NOISE_BLOCK, **where):
    return np.concatenate([batch.values for batch in source.batches(rows, **where)])


def read_through(source):
    """Wait until the thread has read all that it may."""
    for thread in readers():
        thread.join()
    return source


@pytest.mark.parametrize("most", [0, 1, 2 * PIECE_BYTES, ALL])
@pytest.mark.parametrize("rows", [NOISE_BLOCK, 1000, 2 * NOISE_BLOCK])
def test_rows_are_the_same_whatever_was_read_ahead(source, most, rows):
    plain = [(batch.start, batch.values.tobytes()) for batch in source.batches(rows)]
    for wait in (read_through, lambda given: given):  # the thread is stopped while it reads, too
        ahead = wait(source.begun(NOISE_BLOCK, most))
        assert [(batch.start, batch.values.tobytes()) for batch in ahead.batches(rows)] == plain
        assert [(batch.start, batch.values.tobytes()) for batch in ahead.batches(rows)] == plain
    assert not readers()


def test_the_first_pass_takes_what_was_read_and_reads_on(source, monkeypatch):
    opened, pieces = [], ParquetSource.pieces

    def counted(self, rows, start):
        opened.append(start)
        return pieces(self, rows, start)

    monkeypatch.setattr(ParquetSource, "pieces", counted)
    ahead = read_through(source.begun(NOISE_BLOCK, PIECE_BYTES))
    assert opened == [0]
    assert np.array_equal(values(ahead, start=NOISE_BLOCK), values(source, start=NOISE_BLOCK))
    assert opened == [0, NOISE_BLOCK, NOISE_BLOCK]  # a part of the rows takes nothing
    first = values(ahead)
    assert opened == [0, NOISE_BLOCK, NOISE_BLOCK]  # one reader for what was there and what was not
    assert np.array_equal(values(ahead), first)
    assert opened[3:] == [0]


def test_no_more_is_read_than_allowed_and_what_is_taken_is_let_go(source):
    sizes = []
    for most in (0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 1):
        ahead = read_through(source.begun(NOISE_BLOCK, most))
        sizes.append(sum(piece.get_total_buffer_size() for piece in ahead._held))
        assert sizes[-1] < most + 2 * PIECE_BYTES
        count, pieces = len(ahead._held), ahead.pieces(NOISE_BLOCK, 0)
        next(pieces)
        assert len(ahead._held) == max(count - 1, 0)
        pieces.close()  # a pass that is stopped
        assert not ahead._held
    assert sizes[0] == 0 < sizes[1] < sizes[3]


def test_nothing_looks_at_a_value_before_a_pass(source, monkeypatch):
    used = []
    monkeypatch.setattr(files, "filled", lambda *block: used.append(block))
    ahead = read_through(source.begun(NOISE_BLOCK, ALL))
    assert ahead._held
    ahead.end()
    assert used == []


def test_what_nobody_takes_is_dropped_and_the_thread_ends(source, monkeypatch):
    ahead = source.begun(NOISE_BLOCK, ALL)
    ahead.end()
    assert not readers()
    assert not ahead._held
    ahead.end()
    assert np.array_equal(values(ahead), values(source))  # as if nothing had been begun


def test_a_thread_ends_by_itself(source):
    ahead = source.begun(NOISE_BLOCK, PIECE_BYTES)
    (thread,) = readers() or [ahead._thread]
    thread.join(60)
    assert not thread.is_alive()
    assert not thread.daemon


def test_a_pass_takes_rows_while_the_thread_reads_its_last_piece(source, monkeypatch):
    reading, pieces = threading.Event(), ParquetSource.pieces

    def slow(self, rows, start):
        for place, piece in enumerate(pieces(self, rows, start)):
            if place == 1:
                reading.wait(60)
            yield piece

    plain = list(source.pieces(NOISE_BLOCK, 0))
    monkeypatch.setattr(ParquetSource, "pieces", slow)
    ahead = source.begun(NOISE_BLOCK, ALL)
    while not ahead._held:
        time.sleep(0.001)
    taken = ahead.pieces(NOISE_BLOCK, 0)
    assert next(taken).equals(plain[0])
    assert readers()
    reading.set()
    assert list(taken) == plain[1:]
    assert not readers()


@pytest.mark.parametrize("fault", [OSError("secret"), MemoryError(), KeyboardInterrupt(), ValueError(7)])
def test_an_error_waits_for_its_place(source, monkeypatch, fault):
    pieces = ParquetSource.pieces

    def broken(self, rows, start):
        yield from islice(pieces(self, rows, start), 2)
        raise fault

    monkeypatch.setattr(ParquetSource, "pieces", broken)
    ahead = read_through(source.begun(NOISE_BLOCK, ALL))
    found = []
    with pytest.raises(type(fault)) as raised:
        found.extend(ahead.pieces(NOISE_BLOCK, 0))
    assert raised.value is fault
    assert len(found) == 2
    read_through(source.begun(NOISE_BLOCK, ALL)).end()  # and of what is dropped nobody hears


def test_a_damaged_file_is_named_as_without_reading_ahead(source):
    path = source.paths[1]
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    said = []
    for begins in (False, True):
        watched, seen = WatchedSource(source), []
        if begins:
            watched.begin(NOISE_BLOCK, ALL)
            read_through(watched)
        with pytest.raises(InvalidInput) as raised:
            seen.extend(watched.batches(NOISE_BLOCK))
        error = raised.value
        said.append((str(error), error.__cause__, error.__context__, len(seen), watched.is_seen))
    assert said[0] == said[1]
    assert "cannot be read as Parquet" in said[0][0]


def test_a_vanished_file_is_named_as_without_reading_ahead(source):
    source.paths[2].unlink()
    said = []
    for begins in (False, True):
        watched = WatchedSource(source)
        if begins:
            watched.begin(NOISE_BLOCK, ALL)
            read_through(watched)
        with pytest.raises(InvalidInput) as raised:
            list(watched.batches(NOISE_BLOCK))
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_where_no_thread_is_to_be_had_all_is_read_later(source, monkeypatch):
    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(begun, "Thread", NoThread)
    ahead = source.begun(NOISE_BLOCK, ALL)
    assert np.array_equal(values(ahead), values(source))
    source.begun(NOISE_BLOCK, ALL).end()


def test_a_watcher_sees_the_rows_that_were_read_ahead(source):
    digests = set()
    for begins in (False, True):
        watched, seen = WatchedSource(source), Fingerprint(b"key", WIDTH)
        if begins:
            LocalEngine().begin(watched)
        watched.watch(seen.update)
        for _ in watched.batches(NOISE_BLOCK):
            pass
        assert watched.is_seen
        digests.add(tuple(part.tobytes() for part in seen.seen()))
    assert len(digests) == 1
    assert not readers()


def test_an_engine_asks_for_its_own_blocks_within_its_memory(source, monkeypatch):
    asked = []
    monkeypatch.setattr(ParquetSource, "begun", lambda _, rows, most: asked.append((rows, most)))
    for engine in (LocalEngine(), LocalEngine(rows_per_block=NOISE_BLOCK, memory=2**30)):
        engine.begin(WatchedSource(source))
    assert asked == [(block_rows(WIDTH), AHEAD_BYTES // 2), (NOISE_BLOCK, 2**30 // 16)]


def test_wide_tables_and_other_sources_are_not_begun(tmp_path):
    wide = Schema.numeric(COLUMNS_AT_ONCE + 1, -1.0, 1.0)
    pq.write_table(pa.table({name: [0.5] for name in wide.names}), tmp_path / "wide.parquet")
    here = pa.table({name: [0.5] for name in SCHEMA.names})
    for data, schema in ((tmp_path, wide), (here, SCHEMA)):
        watched = WatchedSource(open_source(data, schema))
        LocalEngine().begin(watched)
        assert not readers()
        assert len(values(watched)) == 1
        watched.end()


def test_a_begun_source_is_for_any_pieces():
    table = pa.table({name: np.linspace(-1, 1, ROWS) for name in SCHEMA.names})
    plain = open_source(table, SCHEMA)
    assert np.array_equal(values(BegunSource(plain, NOISE_BLOCK, ALL)), values(plain))


@pytest.mark.parametrize("taken", [0, 1, 4])
def test_a_pass_keeps_its_rows_when_the_release_is_closed_meanwhile(source, taken):
    """They were dropped, and the pass went on behind them: a release of a tenth of the rows."""
    watched = WatchedSource(source)
    watched.begin(NOISE_BLOCK, ALL)
    read_through(source)
    pieces = watched._begun.pieces(NOISE_BLOCK, 0)
    rows = sum(piece.num_rows for piece in islice(pieces, taken))
    watched.end()
    assert rows + sum(piece.num_rows for piece in pieces) == 3 * ROWS
    assert not readers()


def test_an_error_that_was_read_ahead_stays_when_the_release_is_closed_meanwhile(source, monkeypatch):
    def broken(*_):
        yield pa.record_batch({name: [0.0] for name in SCHEMA.names})
        raise InvalidInput("damaged")

    monkeypatch.setattr(ParquetSource, "pieces", broken)
    ahead = read_through(source.begun(NOISE_BLOCK, ALL))
    pieces = ahead.pieces(NOISE_BLOCK, 0)
    next(pieces)
    ahead.end()
    with pytest.raises(InvalidInput, match="damaged"):
        list(pieces)


def test_a_fork_reads_by_itself(source, monkeypatch):
    """It has what was read ahead but no thread, and the reader may be in the middle of a piece."""
    ahead = read_through(source.begun(NOISE_BLOCK, ALL))
    monkeypatch.setattr(begun.os, "getpid", lambda: -1)
    assert sum(piece.num_rows for piece in ahead.pieces(NOISE_BLOCK, 0)) == 3 * ROWS
    ahead.end()
    assert ahead._held  # the parent's
    monkeypatch.undo()
    ahead.end()
    assert not ahead._held


def test_fewer_threads_than_arrow_has_read_nothing_ahead(source, monkeypatch):
    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    for threads, is_begun in ((1, False), (2, True)):
        watched = WatchedSource(source)
        LocalEngine(threads=threads).begin(watched)
        assert (watched._begun is not None) is is_begun
        watched.end()


def test_of_texts_one_piece_is_read_ahead(tmp_path):
    """They may take far more memory than the plan, which knows their levels alone, has counted."""
    levels = tuple(f"a level with a long name, number {i}" for i in range(3))
    column = Column(name="x", kind=Kind.CATEGORY, categories=levels)
    schema = Schema(columns=(column,), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"x": [levels[i % 3] for i in range(ROWS)]}), path, row_group_size=3000)
    source = open_source(path, schema)
    ahead = source.begun(1000, ALL)
    read_through(ahead)
    assert len(ahead._held) == 1
    assert np.array_equal(values(ahead), values(source))
