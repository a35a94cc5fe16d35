"""What is packed is listed: a user's rows and ledger lie in the same folder as the code."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_PACKED = {".ci", ".gitattributes", ".gitignore"}  # of the repository, not of the package


def test_the_sdist_takes_the_tracked_parts_and_nothing_else():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.fail("run this test in a git clone: it compares the list with what is tracked")
    tracked = {name.split("/")[0] for name in listed.stdout.split("\n") if name} - NOT_PACKED
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = settings["tool"]["hatch"]["build"]["targets"]
    packed = build["sdist"]["only-include"]
    assert {name.split("/")[0] for name in packed} == tracked
    assert all((ROOT / name).exists() for name in packed)
    assert "include" not in build["sdist"]
    assert build["wheel"]["packages"] == ["src/adumbra"]
