"""kill -9 at every fault point: no release without a charge, no corrupt ledger, no redraw of one id."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.ledger import DATABASES, FULL, new_location
from support.ledger_crash import POINTS, PROTOCOL, TWICE, UNPAID, WORKFLOW

RUNS = 50 if FULL else 2
SCRIPT = Path(__file__).parents[1] / "support" / "ledger_crash.py"
FORBIDDEN = ("uncharged", "corrupt", "redraws", "unlisted", "wrong sums", "other bytes", "forgotten")


def start(
    jobs: list[tuple[str, str, str]], driver: str = PROTOCOL, runs: int = RUNS
) -> subprocess.Popen:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(SCRIPT), json.dumps({"driver": driver, "runs": runs, "jobs": jobs})]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)


def kill(database: str, folder: Path, places, driver: str, runs: int) -> Counter[str]:
    """Kill at each place so many times; every law is checked for each place."""
    jobs = []
    for number, place in enumerate(places):
        work = folder / f"work-{number}"
        work.mkdir()
        jobs.append((place, new_location(database, folder), str(work)))
    workers = [start(jobs[::2], driver, runs), start(jobs[1::2], driver, runs)]  # one a core
    total: Counter[str] = Counter()
    for worker in workers:
        output, _ = worker.communicate(timeout=6000)
        assert worker.returncode == 0
        for place, found in json.loads(output).items():
            counts = Counter(found)
            assert counts["kills"] == runs, f"{place}: the place was not reached every time"
            for name in FORBIDDEN:
                assert counts[name] == 0, f"{place}: {name}"
            total += counts
    assert total["kills"] == runs * len(places)
    return total


def figure(what: str, places, runs: int, total: Counter[str]) -> str:
    return (
        f"{what}: {total['kills']} kills at {len(places)} points x {runs} runs: "
        f"{total['uncharged']} uncharged releases, {total['corrupt']} corrupt ledgers, "
        f"{total['redraws']} redraws ({total['redraws refused']} refused), {total['stranded']} stranded "
        f"spends of which {total['unlisted']} unlisted, {total['resumed']} resumed with the same bytes; "
        f"{total['whole copies']} plain copies whole, {total['forgotten']} charges forgotten by them"
    )


@pytest.mark.parametrize("database", DATABASES)
def test_kill_at_every_point(database, tmp_path, record_property):
    total = kill(database, tmp_path, POINTS, PROTOCOL, RUNS)
    assert total["stranded"] > 0
    assert total["resumed"] > 0
    assert total["redraws refused"] > 0
    if database == "sqlite":
        assert total["whole copies"] + total["refused copies"] == total["kills"]
        assert total["whole copies"] > 0
    record_property("figure", figure(database, POINTS, RUNS, total))


def test_kill_a_whole_release(tmp_path, record_property):
    """The same grid around `workflow.release`, with real tables, cards and pages."""
    places, runs = (POINTS, 10) if FULL else (POINTS[4:-1:4], 1)
    total = kill("sqlite", tmp_path, places, WORKFLOW, runs)
    assert total["resumed"] > 0
    record_property("figure", figure("sqlite, workflow.release", places, runs, total))


def test_the_harness_sees_what_it_looks_for(tmp_path):
    jobs = []
    for place in (UNPAID, TWICE):
        folder = tmp_path / place.split()[-1]
        folder.mkdir()
        jobs.append((place, new_location("sqlite", tmp_path), str(folder)))
    output, _ = start(jobs).communicate(timeout=600)
    found = json.loads(output)
    assert found[UNPAID]["uncharged"] > 0
    assert found[TWICE]["redraws"] > 0
