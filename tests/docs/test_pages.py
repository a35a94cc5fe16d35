"""Docs that cannot drift: Python of tutorials runs, links lead somewhere, every command is described."""

import os
import re
import shutil
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer

import adumbra as ad
from adumbra.cli.main import app
from adumbra.cli.options import describe_options
from adumbra.mechanisms.fields import HELP
from adumbra.mechanisms.methods import METHODS
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.cli import adumbra

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RUN = [ROOT / "docs/reference/python.md", ROOT / "docs/how-to/evaluate.md"]
TUTORIALS = sorted([*ROOT.glob("docs/tutorials/*.md"), *RUN])
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


def test_the_commands_of_the_distances_page_run_after_its_python(tmp_path, monkeypatch):
    page = ROOT / "docs/tutorials/distances.md"
    monkeypatch.chdir(tmp_path)
    code = [
        block for block in blocks(page, "python") if "digits.toml" in block or "load_digits" in block
    ]
    exec(compile("\n".join(code), str(page), "exec"), {"__name__": "__main__"})  # noqa: S102 - as above
    (commands,) = blocks(page, "sh")
    for line in commands.replace("\\\n", " ").splitlines():
        done = adumbra(*line.split()[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert ad.load(tmp_path / "released-digits").data.num_rows == 1797


def test_the_python_of_reading_a_release_runs_and_its_error_bars_are_the_cards(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = 3000
    table = pa.table(
        {"weight": rng.normal(70, 12, rows), "ward": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)]}
    )
    schema = Schema(
        columns=(
            Column(name="weight", kind=Kind.NUMBER, lower=30.0, upper=200.0),
            Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b", "c")),
        ),
        unit=Unit.ROW,
        neighbours=Neighbours.REPLACE_ONE,
    )
    with ad.create_ledger("ledger.db") as book:
        book.register(ad.Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 9.0, 1e-6))
        pay = {"schema": schema, "ledger": book, "population": "p"}
        ad.release(table, ad.JLLaplaceConfig(n_components=3, epsilon=1.0), **pay, out="release")
        ad.release(table, ad.MomentsConfig(epsilon=1.0), **pay, out="synthetic")
    page = ROOT / "docs/how-to/read-a-release.md"
    said = {}
    exec(compile("\n".join(blocks(page, "python")), str(page), "exec"), said)  # noqa: S102 - our own page
    assert "0 numbers off the grid" in capsys.readouterr().out
    # The noise of a mean of Laplace noise, as it is: 2 b^2 a number. The rows themselves add a little.
    spread = said["values"].std(axis=0) / rows**0.5
    assert said["mean_error"] == pytest.approx(spread, rel=0.25)
    shares = np.array([said["synthetic"].data["ward"].to_pylist().count(ward) for ward in "abc"]) / rows
    true = np.array([table["ward"].to_pylist().count(ward) for ward in "abc"]) / rows
    assert np.abs(shares - true).max() < 8 * said["share_error"]  # a normal error passes it once in 1e15
    assert len(said["found"].draws) == 3


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


def test_every_option_of_every_method_is_explained():
    reference = (ROOT / "docs/reference/methods.md").read_text(encoding="utf-8")
    for method in METHODS:
        assert all(field.metadata[HELP] for field in fields(method.config))
        for row in describe_options(method.config):
            line = f"| `{row[0]}` | {' | '.join(row[1:])} |"
            assert line in reference, f"{method}, {row[0]}: run tools/cli_reference.py"


def test_the_readme_names_both_commands_at_its_top():
    top = (ROOT / "README.md").read_text(encoding="utf-8")[:600]
    assert "make demo" in top
    assert "make test" in top


def test_the_version_is_said_once():
    from adumbra.version import __version__

    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
