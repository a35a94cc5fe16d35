"""What a newcomer types: README's own commands lead to a verified release and an evaluation."""

import re
import shlex
from pathlib import Path

import pytest

from adumbra.cli import demo
from adumbra.evaluate import learning
from support.cli import adumbra, in_process

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def small_demo(monkeypatch):
    """The demo's table with fewer rows and columns, and fewer models; all else as it is."""
    small = {"ROWS": 400, "LEFT_OUT": 100, "PANELS": (), "COSTS": 3, "PROCEDURES": 2, "SURVEY": 2}
    for name, value in small.items():
        monkeypatch.setattr(demo, name, value)
    for models in (learning.CLASSIFIERS, learning.REGRESSORS):  # trees take most of the time
        monkeypatch.delitem(models, "boosted trees")
    monkeypatch.delitem(learning.CLASSIFIERS, "random forest")


def test_four_commands_of_the_readme_lead_to_a_release_and_its_evaluation(
    small_demo, tmp_path, monkeypatch
):
    section = README.split("## Try it")[1]
    (block,) = re.findall(r"^```sh\n(.*?)^```", section.split("\n## ")[0], re.DOTALL | re.MULTILINE)
    commands = block.strip().splitlines()
    assert len(commands) <= 4
    assert commands[0] == "make demo"
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert "$(BIN)/adumbra demo --out demo-out" in makefile
    monkeypatch.chdir(tmp_path)
    for command in ["adumbra demo --out demo-out", *commands[1:]]:
        program, *arguments = shlex.split(command)
        assert program in ("adumbra", ".venv/bin/adumbra")
        done = in_process(*arguments)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    pages = [tmp_path / "demo-out" / name for name in ("evaluation.html", "both.html")]
    assert all("NOT FOR RELEASE" in page.read_text() for page in pages)
    assert all(page.stat().st_mode & 0o077 == 0 for page in pages)
    again = in_process(
        "release", "demo-out/patients.parquet", "--schema", "demo-out/patients.toml", "--epsilon", "0.1",
        "--ledger", "demo-out/ledger.db", "--population", "patients", "--out", "third", "--yes",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert (
        "earlier releases were compared with the private rows"
        in (tmp_path / "third/card.json").read_text()
    )


def test_commands_for_scripts_do_not_ask():
    """A release without --yes stops in a script: every one of README's says it."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    releases = [line for line in lines if "adumbra release" in line]
    assert len(releases) >= 2
    assert all("--yes" in line for line in releases)


def test_the_demo_has_structure_worth_looking_at():
    table = demo.example_table(20_000)
    assert table.num_columns == demo.COLUMNS == 200
    outcome = table["outcome"].to_pylist()
    assert 0.002 < outcome.count("died") / 20_000 < 0.02  # a rare class
    assert 0.2 < table["survey_09"].null_count / 20_000 < 0.6  # gaps
    costs = table["cost_15"].to_numpy()
    assert 0.6 < (costs == 0).mean() < 0.9  # mostly 0
    assert costs.mean() > 2 * sorted(costs)[10_000]  # skewed
    import numpy as np

    within = np.corrcoef(table["heart_00"].to_numpy(), table["heart_01"].to_numpy())[0, 1]
    assert abs(within) > 0.3  # one panel is one group


NEEDED = {
    "--schema": "adumbra schema draft",
    "--ledger": "adumbra ledger init",
    "--population": "adumbra ledger register",
}


@pytest.mark.parametrize("missing", NEEDED)
def test_a_missing_option_names_the_command_that_makes_one(missing):
    given = [word for name in NEEDED if name != missing for word in (name, "x")]
    done = adumbra("release", "x.csv", "--epsilon", "1", "--out", "y", *given)
    assert done.returncode == 2
    assert f"Missing option '{missing}'." in done.stderr
    named = NEEDED[missing]
    assert named in done.stderr
    assert adumbra(*named.split()[1:], "--help").returncode == 0  # there is such a command


def test_commands_of_a_ledger_name_it_too():
    for words in (["show"], ["raise", "people", "--epsilon", "2", "--reason", "x"]):
        assert "Make one: adumbra ledger init FILE" in adumbra("ledger", *words).stderr
    assert "ledger init FILE" not in adumbra("ledger", "init").stderr  # which makes it
