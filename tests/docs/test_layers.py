"""The layers are as drawn, imports obey them, modules stay small."""

import copy
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
MOST_LINES = 400


def drawn_layers():
    """The fenced block of ARCHITECTURE.md that runs from cli to errors."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(cli\n.*?\nerrors)\n```", text, re.DOTALL)
    return [names(line) for line in block.splitlines()]


def names(line):
    return sorted(name.strip() for name in line.split("|"))


def contracts():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return config["tool"]["importlinter"]["contracts"]


def test_layers_are_as_drawn():
    (layers,) = [contract["layers"] for contract in contracts() if contract["type"] == "layers"]
    enforced = [
        sorted(name.strip().removeprefix("adumbra.") for name in line.split("|")) for line in layers
    ]
    assert enforced == drawn_layers()


def test_every_module_is_in_a_layer():
    placed = {name for line in drawn_layers() for name in line}
    top = {
        path.stem for path in (ROOT / "src/adumbra").iterdir() if path.suffix == ".py" or path.is_dir()
    }
    assert top - {"__init__", "__main__", "__pycache__"} - placed == set()


def lint(source):
    """Run import-linter on the package under `source`."""
    return subprocess.run(
        [sys.executable, "-c", LINT, "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        cwd=source.parent,
        env={**os.environ, "PYTHONPATH": str(source)},
    )


def test_contracts_are_kept():
    result = lint(ROOT / "src")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("errors.py", "import adumbra.numerics", "Layers point one way"),
        ("postprocess/__init__.py", "import adumbra.statistics", "What comes after the noise"),
    ],
)
def test_a_planted_import_is_caught(tmp_path, module, line, broken):
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    path = source / "adumbra" / module
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    result = lint(source)
    assert result.returncode == 1
    assert broken in result.stdout


PRIVATE_ROOMS = ("data", "statistics", "engine")
AFTER_THE_NOISE = ("postprocess", "report", "release", "answers")


def private_modules():
    """Every module and package of the rooms that hold private rows."""
    return [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for room in PRIVATE_ROOMS
        for path in sorted((ROOT / "src/adumbra" / room).rglob("*.py"))
    ]


def test_no_module_of_a_private_room_can_be_imported_after_the_noise():
    """The contract itself, on the graph of the package with one import planted at a time."""
    (options,) = [contract for contract in contracts() if contract["id"] == "no-road-back"]
    assert options["forbidden_modules"] == [f"adumbra.{room}" for room in PRIVATE_ROOMS]
    assert sorted(options["source_modules"]) == sorted(f"adumbra.{room}" for room in AFTER_THE_NOISE)
    names = {key: options[key] for key in ("source_modules", "forbidden_modules")}
    contract = ForbiddenContract("no road back", {"root_packages": ["adumbra"]}, names)
    configure()  # of import-linter: its clock
    graph = grimp.build_graph("adumbra", cache_dir=None)
    assert contract.check(copy.deepcopy(graph), verbose=False).kept
    modules = private_modules()
    assert len(modules) > 25
    for room in AFTER_THE_NOISE:
        for module in modules:
            planted = copy.deepcopy(graph)
            planted.add_import(importer=f"adumbra.{room}", imported=module)
            assert not contract.check(planted, verbose=False).kept, (room, module)


def test_modules_stay_small():
    long = {
        str(path.relative_to(ROOT)): count
        for path in (ROOT / "src").rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    }
    assert long == {}
