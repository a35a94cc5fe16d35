"""Statistics before noise are the same bits on any threads, block size, row order."""

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info, threadpool_limits

from adumbra.data.bounds import bound_rows, project
from adumbra.data.encode import Encoder
from adumbra.data.opening import open_source
from adumbra.engine import local
from adumbra.engine.local import LocalEngine, decoding, grouped
from adumbra.errors import InvalidInput
from adumbra.matrices import public_matrix
from adumbra.numerics import NOISE_BLOCK
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec, Schema
from adumbra.statistics.counts import Norm, TruncatedCounts, item_rows
from adumbra.statistics.moments import Gram, RowSum

ROWS, WIDTH = 20_000, 12
PERMUTATIONS = 100 if os.environ.get("ADUMBRA_FULL") else 20
SCHEMA = Schema.numeric(WIDTH, lower=-1.0, upper=1.0)
ENCODER = Encoder(SCHEMA)


def table():
    rng = np.random.default_rng(5)
    return rng.uniform(-1.2, 1.2, (ROWS, WIDTH)) ** 3


def prepare(batch):
    return bound_rows(ENCODER.encode(batch), 0.7)


def engines():
    for threads in (1, 2):
        for blocks in (1, 2, 16):
            yield LocalEngine(threads=threads, rows_per_block=blocks * NOISE_BLOCK)


def test_sum_and_gram_are_bit_identical_over_permutations_threads_and_blocks():
    x = table()
    everything = bound_rows(ENCODER.encode(next(open_source(x, SCHEMA).batches(32_768))), 0.7)
    z = everything.units.astype(np.int64)
    reference = {"gram": z.T @ z, "sum": z.sum(axis=0)}
    rng = np.random.default_rng(6)
    variants = list(engines())
    for index in range(PERMUTATIONS):
        order = rng.permutation(ROWS) if index else np.arange(ROWS)
        source = open_source(x[order], SCHEMA)
        for engine in variants if index < 5 else [variants[index % len(variants)]]:
            for name, statistic in (("gram", Gram(width=WIDTH)), ("sum", RowSum(width=WIDTH))):
                value = engine.fold(source, prepare, statistic, stage=name)
                assert np.array_equal(value.units, reference[name])


def test_projected_rows_are_bit_identical_over_threads_and_blocks():
    x = table()
    matrix = public_matrix("gaussian", WIDTH, 5, matrix_seed=3)
    source = open_source(x, SCHEMA)
    z = bound_rows(ENCODER.encode(next(source.batches(32_768))), 0.7)
    reference = z.units.astype(np.int64) @ matrix.units.astype(np.int64)
    for engine in engines():
        parts = list(
            engine.map_blocks(source, lambda b: (b.start, project(prepare(b), matrix)), stage="rows")
        )
        assert [start for start, _ in parts] == list(range(0, ROWS, NOISE_BLOCK))
        assert np.array_equal(np.concatenate([part for _, part in parts]).astype(np.int64), reference)


@pytest.mark.parametrize(("joined", "calls"), [(1, 5), (200_000, 3), (local.JOINED_BYTES, 1)])
def test_counts_of_sets_are_bit_identical_over_threads_blocks_and_what_is_summed_together(
    monkeypatch, joined, calls
):
    monkeypatch.setattr(local, "JOINED_BYTES", joined)
    schema = Schema(items=ItemSpec(upper=99), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    x = csr_array(np.random.default_rng(8).random((ROWS, 100)) < 0.03)
    lengths = x.sum(axis=1)
    weights = np.minimum(1 << 15, (2 << 15) // np.maximum(lengths, 1))
    seen = []

    def rows_of(batch):
        seen.append(batch.start)
        return item_rows(batch)

    statistic = TruncatedCounts(width=100, length=2, norm=Norm.L1)
    for engine in engines():
        seen.clear()
        value = engine.fold(open_source(x, schema), rows_of, statistic, stage="count")
        assert np.array_equal(value.units, weights @ x.astype(np.int64))
        assert sorted(seen) == list(range(0, ROWS, engine.rows_per_block))
    wider = csr_array((x.data, x.indices, x.indptr), shape=(ROWS, 2**16))  # 4,096 rows a block
    many = open_source(wider, replace(schema, items=ItemSpec(upper=2**16 - 1)))
    seen.clear()
    wide = LocalEngine().fold(many, rows_of, replace(statistic, width=2**16), stage="count")
    assert np.array_equal(wide.units[:100], value.units)
    assert not wide.units[100:].any()
    assert len(seen) == calls


def test_a_float_gram_would_not_pass():
    """The planted wrong: the same test on unquantised rows sees different bits."""
    x = table()
    order = np.random.default_rng(7).permutation(ROWS)
    assert not np.array_equal(x.T @ x, x[order].T @ x[order])


def test_progress_tells_stages_and_public_blocks():
    seen = []
    engine = LocalEngine(rows_per_block=NOISE_BLOCK, progress=lambda *args: seen.append(args))
    engine.fold(open_source(table(), SCHEMA), prepare, RowSum(width=WIDTH), stage="mean")
    assert seen[0] == ("mean", 0, 5)
    assert seen[-1] == ("mean", 5, 5)


def test_progress_hides_private_row_counts():
    seen = []
    schema = Schema.numeric(WIDTH, lower=-1.0, upper=1.0, neighbours=Neighbours.ADD_REMOVE)
    engine = LocalEngine(rows_per_block=NOISE_BLOCK, progress=lambda *args: seen.append(args))
    engine.fold(open_source(table(), schema), prepare, RowSum(width=WIDTH), stage="mean")
    assert set(seen) == {("mean", 0, None)}


def test_small_blocks_are_handed_out_together_up_to_the_rows_and_bytes_of_one():
    def starts(most, *room):
        groups = grouped(open_source(table(), SCHEMA).batches(NOISE_BLOCK), most, *room)
        return [[batch.start // NOISE_BLOCK for batch in group] for group in groups]

    assert starts(NOISE_BLOCK) == [[0], [1], [2], [3], [4]]
    assert starts(2 * NOISE_BLOCK) == [[0, 1], [2, 3], [4]]
    assert starts(16 * NOISE_BLOCK) == [[0, 1, 2, 3, 4]]
    assert starts(16 * NOISE_BLOCK, 3 * NOISE_BLOCK * WIDTH * 8) == [[0, 1, 2], [3, 4]]
    assert starts(16 * NOISE_BLOCK, 1) == [[0], [1], [2], [3], [4]]  # one block is always taken
    assert list(grouped(iter(()), NOISE_BLOCK)) == []


def test_an_abandoned_map_stops_reading():
    parts = LocalEngine(rows_per_block=NOISE_BLOCK).map_blocks(
        open_source(table(), SCHEMA), lambda batch: batch.start, stage="rows"
    )
    assert next(parts) == 0
    parts.close()


@pytest.mark.parametrize("rows", [0, -NOISE_BLOCK, 100])
def test_blocks_must_hold_whole_noise_blocks(rows):
    with pytest.raises(
        InvalidInput, match=f"rows_per_block={rows}: must be a positive multiple of 4096"
    ):
        LocalEngine(rows_per_block=rows)


def test_threads_must_be_positive():
    with pytest.raises(InvalidInput, match="threads=-1: must be at least 1"):
        LocalEngine(threads=-1)


def test_files_are_decoded_by_as_many_threads_as_rows_are_worked_on_by():
    before, seen = pa.cpu_count(), []
    engine = LocalEngine(threads=before + 3, progress=lambda *_: seen.append(pa.cpu_count()))
    engine.fold(open_source(table(), SCHEMA), prepare, RowSum(width=WIDTH), stage="mean")
    assert seen[-1] == before + 3
    assert pa.cpu_count() == before


def test_workers_alone_have_short_buffers():
    """In a longer one numpy repeats bounds for two columns of a noise block, three times as slow."""
    before, source = np.getbufsize(), open_source(table(), SCHEMA)
    found = LocalEngine(threads=2).map_blocks(source, lambda _: np.getbufsize(), stage="rows")
    assert set(found) == {NOISE_BLOCK}
    assert np.getbufsize() == before


def test_passes_that_overlap_leave_arrow_as_the_first_one_found_it():
    before = pa.cpu_count()
    first, second = decoding(before + 1), decoding(before + 4)
    first.__enter__()
    second.__enter__()
    assert pa.cpu_count() == before + 4
    first.__exit__(None, None, None)
    assert pa.cpu_count() == before + 4
    second.__exit__(None, None, None)
    assert pa.cpu_count() == before


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_passes_that_overlap_leave_blas_as_the_first_one_found_it():
    source = open_source(table(), SCHEMA)

    def begun():
        rows = LocalEngine(threads=2).map_blocks(source, len, stage="rows")
        next(rows)
        return rows

    with threadpool_limits(3, user_api="blas"):
        first, second = begun(), begun()
        assert blas_threads() == {1}
        first.close()
        assert blas_threads() == {1}  # the second one still needs it
        third = begun()
        second.close()
        third.close()
        assert blas_threads() == {3}


def test_a_library_that_is_loaded_while_a_pass_runs_is_held_by_the_next_and_left_as_it_was(monkeypatch):
    """A library that the first pass does not know: as if it were loaded after that one began."""
    known = local._libraries(0)
    assert known.lib_controllers
    blank = known.select(user_api=[])
    met = iter([blank, known])
    monkeypatch.setattr(local, "_libraries", lambda _: next(met))
    with threadpool_limits(3, user_api="blas"):
        first, second = local.one_blas_thread(), local.one_blas_thread()
        first.__enter__()
        assert blas_threads() == {3}
        second.__enter__()
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        first.__exit__(None, None, None)
        assert blas_threads() == {3}
