"""A long grid can be stopped and taken up: what passed at this commit is not run again."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import evidence

ROOT = Path(__file__).resolve().parents[2]
NAME, OTHER, SHARED = "test_it.py", "test_other.py", "shared.py"
TESTS = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("name", ["one", "two"])
def test_it(name, record_property):
    assert not Path(__file__).with_name(name).exists()
    record_property("figure", name)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository of its own with two tests, one of which fails."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / NAME).write_text(TESTS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ("support.evidence",)\n')
    (tmp_path / ".gitignore").write_text("tests/two\n__pycache__\n")
    (tmp_path / "tests/two").touch()
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "tester")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(project):
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    subprocess.run(["git", "commit", "-qm", "x"], cwd=project, check=True)


def run(project, **environment):
    """pytest with evidence in a process of its own; returns what it said."""
    code = (
        "import sys, pytest, pathlib\n"
        "from support import evidence\n"
        f"right = evidence.stamp\n"
        f"evidence.stamp = lambda tests: right(tests, pathlib.Path({str(project)!r}))\n"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--evidence', 'kept.jsonl', 'tests']))\n"
    )
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins of others take most of its start
    known = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tests"),
        "ADUMBRA_FULL": "1",
        **alone,
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=known, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def outcomes(project):
    known = evidence.read(project / "kept.jsonl")
    return {name.split("[")[1][:-1]: one["outcome"] for name, one in known.items()}


def test_what_passed_at_this_commit_is_not_run_again(project):
    assert "1 failed, 1 passed" in run(project)
    assert outcomes(project) == {"one": "passed", "two": "failed"}
    (project / "tests/two").unlink()
    assert "1 passed, 1 deselected" in run(project)  # the failed one alone
    assert outcomes(project) == {"one": "passed", "two": "passed"}
    kept = evidence.read(project / "kept.jsonl").values()
    assert [one["figures"] for one in kept] == [[["figure", "one"]], [["figure", "two"]]]
    assert len({one["commit"] for one in kept}) == 1
    assert "2 tests passed on the code as it is now, 0 failed" in run(project)


def test_other_code_is_shown_anew(project):
    (project / "tests/two").unlink()
    run(project)
    before = {one["commit"] for one in evidence.read(project / "kept.jsonl").values()}
    (project / "notes.txt").write_text("no code")
    (project / "tests" / OTHER).write_text("# loaded by no other file of tests\n")
    commit(project)
    assert "2 deselected" in run(project)
    with (project / "tests" / NAME).open("a") as file:
        file.write("# changed\n")
    assert "2 passed" in run(project)
    assert "2 passed" in run(project)  # nobody knows what a changed tree was
    assert {one["commit"] for one in evidence.read(project / "kept.jsonl").values()} == {"changed"}
    commit(project)
    assert "2 passed" in run(project)
    after = {one["commit"] for one in evidence.read(project / "kept.jsonl").values()}
    assert after != before
    assert "changed" not in after


def test_what_tests_share_is_code(project):
    (project / "tests/two").unlink()
    run(project)
    (project / "tests" / SHARED).write_text("# may be loaded\n")
    assert evidence.stamp(f"tests/{NAME}", project) == "changed"
    commit(project)
    assert "2 passed" in run(project)
    assert "2 deselected" in run(project)
    (project / "tests" / OTHER).write_text("# not committed\n")
    assert "2 deselected" in run(project)


def test_no_file_of_tests_loads_another():
    """So a changed file of tests leaves the evidence of all others as it is."""
    files = [*(ROOT / "tests").rglob("*.py")]
    own = {path.stem for path in files if path.name.startswith("test_")}
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in files} - {"support", "conftest.py"}
    for path in files:
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        loaded = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
        loaded += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
        for name in loaded:
            assert name.split(".")[0] not in folders, (path, name)
            assert not own & {*name.split(".")}, (path, name)


def test_the_small_grid_is_no_evidence(project):
    assert "set ADUMBRA_FULL=1" in run(project, ADUMBRA_FULL="")
