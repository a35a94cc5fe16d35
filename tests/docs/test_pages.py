"""Docs that cannot drift: Python of tutorials runs, links lead somewhere, every command is described."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import typer

from adumbra.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TUTORIALS = sorted(ROOT.glob("docs/tutorials/*.md"))
DATA = Path(os.environ.get("ADUMBRA_DATA", ROOT.parent / "shared" / "data"))


def blocks(path, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / target).exists(), f"{path.name}: {target} does not exist"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.name)
def test_the_python_of_a_tutorial_runs(path, tmp_path, monkeypatch):
    """One page is one session. A page that names real files needs a data folder beside the project."""
    code = "\n".join(blocks(path, "python"))
    assert code, f"{path.name}: a tutorial shows Python that runs"
    monkeypatch.chdir(tmp_path)
    needed = set(re.findall(r"data/([\w.]+\.parquet)", code))
    (tmp_path / "data").mkdir()
    for name in needed:
        if not (DATA / name).exists():
            sys.stderr.write(f"{path.name}: needs {name} in ADUMBRA_DATA; compiled, not run\n")
            compile(code, str(path), "exec")
            return
        shutil.copy(DATA / name, tmp_path / "data" / name)
    exec(compile(code, str(path), "exec"), {"__name__": "__main__"})  # noqa: S102 - our own pages


def commands(group, prefix=()):
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


def test_every_command_has_help_and_stands_in_the_reference():
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    for words, command in commands(typer.main.get_command(app)):
        assert command.help, f"{' '.join(words)}: has no help"
        assert f"## adumbra {' '.join(words)}" in reference, (
            f"{' '.join(words)}: run tools/cli_reference.py"
        )
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert option in reference, f"{' '.join(words)} {option}: run tools/cli_reference.py"


def test_the_readme_names_both_commands_at_its_top():
    top = (ROOT / "README.md").read_text(encoding="utf-8")[:600]
    assert "make demo" in top
    assert "make test" in top


def test_the_version_is_said_once():
    from adumbra.version import __version__

    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
