"""A script that would start its engine again in every worker is refused at once."""

import subprocess
import sys

import pytest

pytest.importorskip("distributed")

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
