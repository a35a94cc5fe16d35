"""Sizes as people write them, and rates of progress where blocks are public."""

from types import SimpleNamespace

import pytest

from adumbra.cli.engines import EngineFlags, bytes_of, open_engine, progress_bar, rate_words
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


def test_the_local_engine_gets_the_limit_and_dask_refuses_it(tmp_path):
    with open_engine(flags(memory="3GB", threads=2), tmp_path / "out") as engine:
        assert (engine.memory, engine.threads) == (3 * 10**9, 2)
    asked = flags(engine="dask", memory="3GB")
    with (
        pytest.raises(InvalidInput, match="memory=3GB: is a limit of threads of this process"),
        open_engine(asked, tmp_path / "out"),
    ):
        pass


@pytest.mark.parametrize(
    ("total", "speed", "left", "words"),
    [
        (10, 2.5, 3.0, "2.5 blocks/s, 3 s left"),
        (None, 2.5, 3.0, ""),  # a private number of blocks has no rate
        (10, None, None, ""),
    ],
)
def test_rates_of_public_blocks_only(total, speed, left, words):
    task = SimpleNamespace(total=total, speed=speed, finished_speed=None, time_remaining=left)
    assert rate_words(task) == words


def test_the_bar_is_drawn_with_rates():
    with progress_bar(quiet=False) as report:
        for done in range(4):
            report("noisy rows", done, 3)
        report("private", 0, None)
    with progress_bar(quiet=True) as report:
        report("noisy rows", 1, 3)
