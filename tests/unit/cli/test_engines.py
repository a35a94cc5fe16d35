"""Sizes as people write them, and rates of progress where blocks are public."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from adumbra.cli.engines import EngineFlags, bytes_of, open_engine, progress_bar, rate_words
from adumbra.engine import cluster
from adumbra.engine.dask import DaskEngine
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 GB", 1_500_000_000), ("800MB", 8 * 10**8), ("1GiB", 2**30)],
)
def test_sizes_are_read(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "2", "GB", "-1GB", "1e9", "2 gigabytes", "1GB2"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InvalidInput, match=f"memory={text}: is not a size; write it like 2GB"):
        bytes_of(text)


def flags(**asked):
    usual = {"engine": "local", "scheduler": None, "workers": None, "threads": None, "parts": None}
    return EngineFlags(**(usual | asked))


def test_the_local_engine_gets_the_limit(tmp_path):
    with open_engine(flags(memory="3GB", threads=2), tmp_path / "out") as engine:
        assert (engine.memory, engine.threads) == (3 * 10**9, 2)


@pytest.fixture
def asked_of(monkeypatch):
    """What the two ways to a Dask engine are asked for; nothing is started."""
    asked = []
    for name in ("local_engine", "connect"):
        monkeypatch.setattr(
            cluster, name, lambda *_, **words: asked.append(words) or nullcontext(SimpleNamespace())
        )
    return asked


@pytest.mark.parametrize("scheduler", [None, "tls://10.0.0.1:8786"])
def test_a_dask_engine_gets_the_limit_of_each_process(tmp_path, asked_of, scheduler):
    for memory in ("3GB", None):
        with open_engine(flags(engine="dask", scheduler=scheduler, memory=memory), tmp_path / "out"):
            pass
    assert [words["memory"] for words in asked_of] == [3 * 10**9, None]
    with (
        pytest.raises(InvalidInput, match="memory=3: is not a size"),
        open_engine(flags(engine="dask", memory="3"), tmp_path / "out"),
    ):
        pass
    assert len(asked_of) == 2  # no worker was started


def test_parts_go_to_the_folder_above_the_release_that_is_there(tmp_path, asked_of):
    for out in ("out", "new/out", "new/new/out"):
        with open_engine(flags(engine="dask"), tmp_path / out):
            pass
    assert [words["parts"] for words in asked_of] == [tmp_path] * 3
    missing = tmp_path / "new"
    with (
        pytest.raises(InvalidInput, match="parts=.*new: is not a folder; make it"),
        open_engine(flags(engine="dask", parts=missing), tmp_path / "out"),
    ):
        pass


@pytest.mark.parametrize(
    ("total", "speed", "left", "words"),
    [
        (10, 2.5, 3.0, "2.5 {}/s, 3 s left"),
        (None, 2.5, 3.0, ""),  # a private number of blocks has no rate
        (10, None, None, ""),
    ],
)
def test_rates_of_public_blocks_only(total, speed, left, words):
    task = SimpleNamespace(total=total, speed=speed, finished_speed=None, time_remaining=left)
    for engine in (LocalEngine, DaskEngine):
        assert rate_words(task, engine.unit) == words.format(engine.unit)
    assert (LocalEngine.unit, DaskEngine.unit) == ("blocks", "orders")


def test_the_bar_is_drawn_with_rates():
    with progress_bar(quiet=False) as report:
        for done in range(4):
            report("noisy rows", done, 3)
        report("private", 0, None)
    with progress_bar(quiet=True, unit="orders") as report:
        report("noisy rows", 1, 3)
