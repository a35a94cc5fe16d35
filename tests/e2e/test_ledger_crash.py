"""kill -9 at every fault point: no release without a charge, no corrupt ledger, no redraw of one id."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.ledger import DATABASES, FULL, new_location
from support.ledger_crash import POINTS, TWICE, UNPAID

RUNS = 50 if FULL else 2
SCRIPT = Path(__file__).parents[1] / "support" / "ledger_crash.py"
FORBIDDEN = ("uncharged", "corrupt", "redraws", "unlisted", "wrong sums", "other bytes")


def start(jobs: list[tuple[str, str, str]]) -> subprocess.Popen:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(SCRIPT), json.dumps({"runs": RUNS, "jobs": jobs})]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)


@pytest.mark.parametrize("database", DATABASES)
def test_kill_at_every_point(database, tmp_path, record_property):
    jobs = []
    for number, place in enumerate(POINTS):
        folder = tmp_path / f"work-{number}"
        folder.mkdir()
        jobs.append((place, new_location(database, tmp_path), str(folder)))
    workers = [start(jobs[::2]), start(jobs[1::2])]  # one a core
    total: Counter[str] = Counter()
    for worker in workers:
        output, _ = worker.communicate(timeout=3000)
        assert worker.returncode == 0
        for place, found in json.loads(output).items():
            counts = Counter(found)
            assert counts["kills"] == RUNS, f"{place}: the place was not reached every time"
            for name in FORBIDDEN:
                assert counts[name] == 0, f"{place}: {name}"
            total += counts
    assert total["kills"] == RUNS * len(POINTS)
    assert total["stranded"] > 0
    assert total["resumed"] > 0
    assert total["redraws refused"] > 0
    record_property(
        "figure",
        f"{database}: {total['kills']} kills at {len(POINTS)} points x {RUNS} runs: "
        f"{total['uncharged']} uncharged releases, {total['corrupt']} corrupt ledgers, "
        f"{total['redraws']} redraws ({total['redraws refused']} refused), {total['stranded']} stranded "
        f"spends of which {total['unlisted']} unlisted, {total['resumed']} resumed with the same bytes",
    )


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
