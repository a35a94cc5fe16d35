"""Answers of workers: sealed, whole, of their own order; parts of rows: the first one stands."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data.sources import WatchedSource
from adumbra.engine import orders
from adumbra.engine.dask import DaskEngine
from adumbra.engine.local import LocalEngine
from adumbra.engine.orders import (
    Answer,
    MergeOrder,
    SumOrder,
    carry_out,
    merge,
    opened,
    put_part,
    sealed,
)
from adumbra.errors import ClusterFailed, InvalidInput, NoiseKeyReused
from adumbra.privacy.fingerprint import Fingerprint

KEY, OTHER = bytes(32), bytes([1]) * 32
PRIVATE = "0.123456789"


def answer(scale=1):
    arrays = [scale * np.arange(6).reshape(2, 3), np.array([7], np.uint64), np.empty(0, np.uint64)]
    return Answer({"files": [["a", "b"]]}, arrays)


@pytest.mark.parametrize("piece", [1, 5, 16, orders.PIECE_BYTES])
def test_an_answer_comes_back_as_it_was_in_pieces_of_any_size(monkeypatch, piece):
    monkeypatch.setattr(orders, "PIECE_BYTES", piece)
    found = opened(sealed(answer(), KEY, 3), KEY, 3)
    assert found.facts == answer().facts
    for one, other in zip(found.arrays, answer().arrays, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_what_dask_holds_of_an_answer_is_ciphertext():
    content = b"".join(piece.tobytes() for piece in sealed(answer(2**40), KEY, 3))
    assert np.arange(6)[1:].tobytes() not in content
    assert b"files" not in content
    assert content != b"".join(piece.tobytes() for piece in sealed(answer(2**40), KEY, 3))


def test_an_answer_that_was_changed_swapped_or_is_of_another_pass_or_order_is_refused(monkeypatch):
    monkeypatch.setattr(orders, "PIECE_BYTES", 16)
    good = sealed(answer(), KEY, 3)
    changed = [piece.copy() for piece in good]
    changed[2][0] ^= 1
    swapped = [*good[:2], good[3], good[2], *good[4:]]
    for bad in (changed, swapped, good[:-1], sealed(answer(), OTHER, 3)):
        with pytest.raises(ClusterFailed, match="not of this pass"):
            opened(bad, KEY, 3)
    with pytest.raises(ClusterFailed, match="of another order"):
        opened(good, KEY, 4)


def test_sums_are_added_and_what_was_seen_is_kept():
    order = MergeOrder(number=9, seal=KEY)
    found = opened(merge(order, sealed(answer(), KEY, 1), sealed(answer(10), KEY, 2)), KEY, 9)
    assert np.array_equal(found.arrays[0], 11 * np.arange(6).reshape(2, 3))
    assert [array.tolist() for array in found.arrays[1:]] == [[7], [], [7], []]
    failed = sealed(Answer({"failed": "", "words": "OSError"}), KEY, 1)
    assert opened(merge(order, sealed(answer(), KEY, 2), failed), KEY).facts["words"] == "OSError"
    assert opened(merge(order, sealed(answer(), OTHER, 2)), KEY).facts["failed"] == "ClusterFailed"


class Broken:
    """A source that fails with a value in its text."""

    def __init__(self, error):
        self.error = error

    def pin(self):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ValueError(PRIVATE), "", "ValueError"),
        (KeyError(PRIVATE), "", "KeyError"),
        (MemoryError(PRIVATE), "OutOfMemory", "worker: not enough memory"),
        (OSError(2, PRIVATE), "InvalidInput", "data: a worker finds other files"),
        (SystemExit(PRIVATE), "", "SystemExit"),
    ],
)
def test_a_worker_never_raises_and_says_nothing_of_the_rows(monkeypatch, error, kind, words):
    source = Broken(error)
    order = SumOrder(number=1, seal=KEY, source=source, pin="", code="", prepare=len, statistic=None)
    monkeypatch.setattr(orders, "why_unfit", lambda _: None)
    facts = opened(carry_out(order), KEY, 1).facts
    assert facts["failed"] == kind
    assert facts["words"].startswith(words)
    assert PRIVATE not in str(facts)
    assert repr(order) == "SumOrder(hidden)"


def part(number):
    return pa.py_buffer(f"rows {number}".encode())


def test_the_first_part_stands_and_another_one_is_refused(tmp_path):
    name, digest = put_part(tmp_path, "000001-000000", part(1))
    assert put_part(tmp_path, name, part(1)) == [name, digest]  # a task that ran twice
    with pytest.raises(NoiseKeyReused, match="part=000001-000000: is there already and differs"):
        put_part(tmp_path, name, part(2))
    assert (tmp_path / name).read_bytes() == b"rows 1"
    assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing else is left
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_plain_release_loads_nothing_of_dask():
    code = "import sys, adumbra.prepared, adumbra.workflow, adumbra.cli.planning; "
    code += "print(sorted({'dask', 'distributed', 'adumbra.engine.orders'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_watches_rows_for_the_ledger_loads_nothing_of_it_in_a_worker():
    sent = {part.__module__ for part in (Fingerprint, SumOrder, WatchedSource)}
    code = f"import sys, {', '.join(sent)}; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_worker_keeps_the_memory_of_blocks_also_where_dask_tells_it_to_return_it():
    code = """
import resource, numpy as np
from adumbra.engine.orders import keep_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(40):
        np.zeros(2**21) + 1.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
keep_memory()
faults()
print(first, faults())
"""
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    returned, kept = map(int, done.stdout.split())
    assert kept < returned / 4


@pytest.mark.parametrize(
    "engine",
    [lambda rows: DaskEngine(None, rows_per_block=rows), lambda rows: LocalEngine(rows_per_block=rows)],
    ids=["dask", "local"],
)
def test_blocks_that_split_a_block_of_noise_are_refused_when_the_engine_is_made(engine):
    with pytest.raises(InvalidInput, match="rows_per_block=100: must be a positive multiple of 4096"):
        engine(100)
