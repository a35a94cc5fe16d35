"""A cluster of this machine: scripts that would start it again in every worker, and late workers."""

import subprocess
import sys

import pytest
from distributed.exceptions import WorkerStartTimeoutError

from adumbra.engine import cluster
from adumbra.engine.cluster import local_engine
from adumbra.errors import ClusterFailed
from support.cli import in_process
from support.cluster import SCHEMA

PLAIN = """
from adumbra.engine.cluster import local_engine
with local_engine(1, threads=1) as engine:
    print(type(engine).__name__)
"""
CALLED = """
from adumbra.engine.cluster import local_engine
def run():
    with local_engine(1, threads=1) as engine:
        print(type(engine).__name__)
if __name__ != "__main__":
    print("imported")
run()
"""
GUARDED = """
from adumbra.engine.cluster import local_engine
def run():
    with local_engine(1, threads=1) as engine:
        print(type(engine).__name__)
if __name__ == "__main__":
    print("started")
    run()
"""


def run(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    return subprocess.run(  # a script that waits for workers does so for 300 seconds
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=250
    )


@pytest.mark.parametrize(("text", "line"), [(PLAIN, 3), (CALLED, 8)], ids=["plain", "called"])
def test_a_script_without_a_guard_is_refused_with_the_remedy(tmp_path, text, line):
    done = run(tmp_path, text)
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(
        f"InvalidInput: local_engine in line {line} of the script: it would run again in every worker; "
        'put what starts it below `if __name__ == "__main__":`'
    )


def test_a_guarded_script_runs(tmp_path):
    done = run(tmp_path, GUARDED)
    assert done.stdout.split() == ["started", "DaskEngine"], done.stderr


def test_a_session_has_no_script_to_run_again():
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, text=True, check=False, timeout=250
    )
    assert done.stdout.split() == ["DaskEngine"], done.stderr


class Started:
    """A cluster and its client, as far as they are asked; `ended` counts what was closed."""

    def __init__(self, fault=None):
        self.fault, self.ended, self.new_spec = fault, 0, {"options": {}}

    def scale(self, _count):
        pass

    def close(self):
        self.ended += 1

    def wait_for_workers(self, _count, timeout):
        assert timeout == cluster.START
        if self.fault is not None:
            raise self.fault


@pytest.fixture
def starting(monkeypatch):
    def start(fault):
        made = Started(fault)
        monkeypatch.setattr(cluster, "LocalCluster", lambda *_, **__: made)
        monkeypatch.setattr(cluster, "Client", lambda *_, **__: made)
        return made

    return start


@pytest.mark.parametrize("fault", [WorkerStartTimeoutError(1, 3, 300), OSError("/home/somebody")])
def test_workers_that_do_not_come_in_time_end_the_engine_with_a_reason(starting, fault):
    made = starting(fault)
    rule = r"workers=3: did not all start within 300 seconds \(.*Error\); .*\(nothing was charged\)"
    with pytest.raises(ClusterFailed, match=rule) as caught:
        local_engine(3)
    assert made.ended == 2  # the client, then the cluster
    assert caught.value.__context__ is None
    made = starting(None)
    with local_engine(3) as engine:
        assert (engine.client, made.ended) == (made, 0)
    assert made.ended == 2


def test_the_command_line_ends_with_the_exit_code_of_a_lost_cluster(tmp_path, starting):
    starting(WorkerStartTimeoutError(0, 2, 300))
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    words = f"release rows --schema {tmp_path}/schema.toml --ledger {tmp_path}/l.db --population p --yes"
    words += " --epsilon 1 --engine dask --out"
    done = in_process(*words.split(), tmp_path / "out")
    assert done.returncode == 9, done.stderr
    assert "did not all start within 300 seconds" in done.stderr
