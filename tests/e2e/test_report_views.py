"""`inspect` and `verify` as a person runs them."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from adumbra.cli import release_views
from adumbra.errors import VerificationFailed
from adumbra.release.artifact import verify
from adumbra.report.page import render
from support.release import example_card, example_release, example_tables, write_staged

app = typer.Typer()
app.command("inspect")(release_views.inspect)
app.command("verify")(release_views.verify)


@pytest.fixture
def release(tmp_path):
    example_release(tmp_path / "r", page=render)
    return tmp_path / "r"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_inspect_shows_promise_noise_and_page(release):
    result = run("inspect", release)
    assert result.exit_code == 0
    shown = [
        "Cohort 7, projected",
        "epsilon=1 at delta=1e-06",
        "gaussian",
        "54.8 %",
        "50 rows x 4 columns",
    ]
    shown += ["array 3 x 4", "card.html", verify(release).digest, "entry e-000017"]
    assert [part for part in shown if part not in result.stdout] == []
    facts = json.loads(run("inspect", release, "--json").stdout)
    checked = verify(release)
    assert facts == {"digest": checked.digest, "card": checked.card, "signature": None}


def test_inspect_works_without_a_page(tmp_path):
    write_staged(tmp_path / "r", tables=example_tables(), arrays={}, card=example_card(), page=None)
    assert "card.html" not in run("inspect", tmp_path / "r").stdout


def test_hostile_words_neither_colour_nor_steer_the_terminal(tmp_path):
    hostile = "[red]\x1b[31m\x07\u202e[/red]"
    card = example_card(about={"title": hostile}, declared_by=hostile, limits=[hostile], method=hostile)
    write_staged(tmp_path / "r", tables=example_tables(), arrays={}, card=card, page=None)
    output = run("inspect", tmp_path / "r").stdout
    assert output.count(r"[red]\x1b[31m\x07\u202e[/red]") >= 4
    assert not set(output) & set("\x1b\x07\u202e")


def test_verify_says_what_it_covered(release):
    digest = verify(release).digest
    assert "4 files" in run("verify", release).stdout
    assert "compare it with what the publisher names" in run("verify", release).stdout
    assert "as the publisher names it" in run("verify", release, "--digest", digest).stdout
    facts = json.loads(run("verify", release, "--json").stdout)
    assert facts["verified"] is True
    assert facts["digest"] == digest


def test_verify_names_every_fault_and_exits_with_4(release):
    (release / "card.html").write_text("x")
    (release / "extra").write_text("x")
    result = run("verify", release)
    assert isinstance(result.exception, VerificationFailed)
    assert len(str(result.exception).split("\n")) == 2
    result = run("verify", release, "--json")
    assert result.exit_code == 4
    assert len(json.loads(result.stdout)["faults"]) == 2


def test_the_installed_command_returns_4(release):
    (release / "card.html").write_text("x")
    command = [sys.executable, "-c", "from adumbra.cli.main import main; main()", "verify", str(release)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith("error: card.html: has 1 bytes")
