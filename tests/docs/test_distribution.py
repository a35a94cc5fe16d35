"""What is packed is listed: a user's rows and ledger lie in the same folder as the code."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import release_check  # noqa: E402

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


def test_the_release_check_finds_strangers_and_gaps(tmp_path):
    (tmp_path / "rows.parquet").write_text("private")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        for name in ("README.md", "PKG-INFO", "docs/rows.parquet"):
            packed.add(tmp_path / "rows.parquet", f"adumbra-1/{name}")
    tracked = {"README.md", "src/adumbra/errors.py", "src/adumbra/version.py"}
    assert release_check.strangers(tmp_path / "a.tar.gz", tracked) == ["docs/rows.parquet"]
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as packed:
        packed.writestr("adumbra/errors.py", "")
    assert release_check.missing(tmp_path / "a.whl", tracked) == ["src/adumbra/version.py"]


def test_classifiers_hold():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert release_check.false_classifiers(settings) == []
    wrong = {
        "requires-python": ">=2.7",
        "classifiers": [*settings["project"]["classifiers"], "License :: x"],
    }
    found = release_check.false_classifiers({"project": wrong})
    assert found == ["Programming Language :: Python :: 3 :: Only", "License :: x"]
