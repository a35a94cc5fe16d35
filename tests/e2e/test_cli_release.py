"""One release from the command line, and the text of the likeliest mistakes."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from adumbra.cli import planning
from support.cli import adumbra, at_terminal

SCHEMA = """format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"
declared_by = "test"

[[groups]]
match = "x{0..5}"
kind = "number"
lower = -1.0
upper = 1.0

[[columns]]
name = "colour"
kind = "category"
categories = ["red", "green", "blue"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.uniform(-1, 1, 5000) for j in range(6)}
    columns["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, 5000)]
    pq.write_table(pa.table(columns), folder / "table.parquet")
    (folder / "table.toml").write_text(SCHEMA)
    assert adumbra("ledger", "init", "ledger.db", cwd=folder).returncode == 0
    register = "ledger register people --ledger ledger.db --epsilon 2 --delta 1e-6 --unit row"
    done = adumbra(*register.split(), "--neighbours", "replace-one", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


METHOD = [
    "--schema",
    "table.toml",
    "--method",
    "dppro",
    "--epsilon",
    "1",
    "--delta",
    "1e-6",
    "-o",
    "n_components=3",
]
PAY = ["--ledger", "ledger.db", "--population", "people", "--yes"]


def test_a_release_goes_through_every_command(place):
    checked = adumbra("schema", "check", "table.toml", "table.parquet", cwd=place)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    planned = adumbra("plan", *METHOD, "--json", cwd=place)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["guarantee"]["delta"] == 1e-6
    done = adumbra("release", "table.parquet", *METHOD, *PAY, "--out", "first", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "epsilon=1 at delta=1e-06" in done.stdout
    assert sorted(path.name for path in (place / "first").iterdir()) == [
        "card.html",
        "card.json",
        "data",
        "model.safetensors",
        "proof.json",
    ]
    assert pq.read_table(place / "first/data/data.parquet").shape == (5000, 3)
    assert adumbra("verify", "first", cwd=place).returncode == 0
    inspected = adumbra("inspect", "first", "--json", cwd=place)
    assert json.loads(inspected.stdout)["card"]["guarantee"]["value"]["neighbours"] == "replace-one"
    shown = adumbra("ledger", "show", "--ledger", "ledger.db", cwd=place)
    assert "people" in shown.stdout


ASK = PAY[:-1]  # as a person at a terminal


@pytest.mark.parametrize("pay", [PAY, ASK], ids=["--yes", "asked"])
def test_an_overspend_is_refused_at_once_with_what_would_pass(place, pay):
    over = [word if word != "1" else "3" for word in METHOD]
    done = adumbra("release", "table.parquet", *over, *pay, "--out", "refused", cwd=place, stdin="y\n")
    assert done.returncode == 3
    assert "costs epsilon=3" in done.stdout  # the plan comes first
    assert "needs up to" in done.stdout
    assert "Charge population" not in done.stdout + done.stderr  # nothing is asked
    assert "epsilon=3.0 asked" in done.stderr
    assert "for population people; ask for at most" in done.stderr
    assert not (place / "refused").exists()


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        ("table.parquet --out table.toml", "out=table.toml: exists already; choose a new folder", 2),
        (
            "table.parquet --out table.toml/out",
            "out=table.toml/out: no folder can be made there (Not a directory)",
            2,
        ),
        ("table.parquet --out /proc/foo/bar", "no folder can be made there (No such file", 2),
        ("table.parquet --out " + "x" * 250, "no folder can be made there (File name too long)", 2),
        ("table.parquet --before-dp " + "x" * 20_001, "before_dp: breaks the rule `maxLength`", 2),
        ("table.parquet --population nobody", "population=nobody: not registered", 2),
        ("table.parquet --ledger none.db", "none.db: no such file", 2),
        ("table.parquet --engine spark", "engine=spark: unknown; use local", 2),
        ("table.parquet --schema other.toml", "column 'weight' absent; rename in the data", 2),
        ("none.parquet", "none.parquet", 2),
    ],
)
def test_what_is_plainly_wrong_is_said_without_a_question(place, words, text, code):
    (place / "other.toml").write_text(SCHEMA.replace("colour", "weight"))
    rows, *options = words.split()
    asked = [*METHOD, *ASK, "--out", "plain"]
    for name, value in zip(options[::2], options[1::2], strict=True):
        if name in asked:
            asked[asked.index(name) + 1] = value
        else:
            asked += [name, value]
    done = adumbra("release", rows, *asked, cwd=place, stdin="y\n")
    assert done.returncode == code
    assert text in done.stderr
    assert "Charge population" not in done.stdout + done.stderr
    assert "internal fault" not in done.stderr


def test_a_changed_byte_fails_verification(place):
    done = adumbra(
        "release", "table.parquet", *METHOD[:5], "0.1", *METHOD[6:], *PAY, "--out", "broken", cwd=place
    )
    assert done.returncode == 0, done.stderr
    path = place / "broken/data/data.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = adumbra("verify", "broken", cwd=place)
    assert done.returncode == 4
    assert "data/data.parquet" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--method", "dpro"], "method=dpro: unknown; choose one of"),
        (["--method", "dppro", "-o", "components=3"], "did you mean n_components?"),
        (
            ["--method", "dppro", "-o", "n_components=three"],
            "n_components=three: must be a whole number",
        ),
        (["--method", "dppro"], "option n_components: is needed for method=dppro"),
        (["--method", "pca", "-o", "n_components=-1"], "n_components=-1: must be 0 or above"),
        (
            ["--method", "dppro", "-o", "n_components"],
            "n_components: needs a value; write -o n_components=",
        ),
    ],
)
def test_mistakes_are_named_with_their_remedy(place, arguments, text):
    done = adumbra("plan", "--schema", "table.toml", "--epsilon", "1", *arguments, cwd=place)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("method", ["moments", "pca", "jl-laplace"])
def test_without_a_delta_the_method_has_its_own_as_in_python(place, method):
    needed = ["-o", "n_components=2"] if method != "moments" else []
    words = ["plan", "--schema", "table.toml", "--epsilon", "1", "--method", method, *needed]
    planned = json.loads(adumbra(*words, "--json", cwd=place).stdout)
    listed = json.loads(adumbra("methods", "--json", cwd=place).stdout)
    (default,) = [row[2] for row in listed[method]["options"] if row[0] == "delta"]
    assert planned["guarantee"]["delta"] == float(default) == (0.0 if method == "jl-laplace" else 1e-6)
    pure = json.loads(adumbra(*words, "--delta", "0", "--json", cwd=place).stdout)
    assert pure["guarantee"]["delta"] == 0.0


def test_a_release_inside_a_release_is_refused(place):
    (place / "outer").mkdir()
    (place / "outer/card.json").write_text('{\n  "format": "adumbra-release/2"\n}\n')
    done = adumbra("release", "table.parquet", *METHOD, *PAY, "--out", "outer/inner", cwd=place)
    assert done.returncode == 2
    assert "out=outer/inner: lies inside the release" in done.stderr
    assert sorted(path.name for path in (place / "outer").iterdir()) == ["card.json"]


STOPPED = """
import os, signal
from adumbra.cli.main import main
from adumbra.privacy.ledger import files
def stop(at):
    if at == {at!r}:
        os.kill(os.getpid(), signal.{name})
files.checkpoint = stop
main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("draw: before", "is reserved and stays charged; nothing was drawn yet; `adumbra ledger void`"),
        ("seal: before the flush", "is drawn and stays charged; its noise is never drawn again"),
        ("publish: moved, not flushed", "is publishing and stays charged; `adumbra ledger resume`"),
    ],
)
def test_a_stop_says_which_entry_stays_charged_and_what_to_do(tmp_path, place, at, text, name, code):
    for file in ("table.parquet", "table.toml"):
        (tmp_path / file).symlink_to(place / file)
    adumbra("ledger", "init", "ledger.db", cwd=tmp_path)
    register = "ledger register people --ledger ledger.db --epsilon 2 --delta 1e-6 --unit row"
    adumbra(*register.split(), "--neighbours", "replace-one", cwd=tmp_path)
    command = [sys.executable, "-c", STOPPED.format(at=at, name=name), "release", "table.parquet"]
    command += [*METHOD, *PAY, "--out", "stopped"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    shown = json.loads(adumbra("ledger", "show", "--ledger", "ledger.db", "--json", cwd=tmp_path).stdout)
    (entry,) = shown["populations"][0]["stranded"]
    assert f"stopped\nentry={entry}: {text}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_release_never_overwrites(place):
    (place / "taken").mkdir()
    done = adumbra("release", "table.parquet", *METHOD, *PAY, "--out", "taken", cwd=place)
    assert done.returncode == 2
    assert "out=taken: exists already; choose a new folder" in done.stderr


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"], ids=["no", "enter", "end"])
def test_the_person_is_asked_before_anything_is_paid(place, answer):
    before = adumbra("ledger", "show", "--ledger", "ledger.db", "--json", cwd=place).stdout
    less = [word if word != "1" else "0.5" for word in METHOD]
    command = ["release", "table.parquet", *less, *ASK, "--out", "asked"]
    done = at_terminal(*command, answer=answer, cwd=place)
    assert done.returncode == 1
    assert "Charge population people and release?" in done.stdout
    assert done.stderr.endswith("nothing was charged\n")
    assert adumbra("ledger", "show", "--ledger", "ledger.db", "--json", cwd=place).stdout == before


def test_ctrl_c_at_the_question_charges_nothing(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", stop)
    with pytest.raises(typer.Exit) as stopped:
        planning._require_consent("Charge?", err=False)
    assert stopped.value.exit_code == 130
    assert capsys.readouterr().err.endswith("nothing was charged\n")


def test_without_a_terminal_there_is_nobody_to_ask(place):
    before = adumbra("ledger", "show", "--ledger", "ledger.db", "--json", cwd=place).stdout
    less = [word if word != "1" else "0.5" for word in METHOD]
    done = adumbra("release", "table.parquet", *less, *ASK, "--out", "asked", cwd=place, stdin="y\n")
    assert done.returncode == 2
    assert "there is no terminal to ask at; give --yes (nothing was charged)" in done.stderr
    assert adumbra("ledger", "show", "--ledger", "ledger.db", "--json", cwd=place).stdout == before


def test_the_question_stays_out_of_the_json(place):
    little = [word if word != "1" else "0.05" for word in METHOD]
    command = ["release", "table.parquet", *little, *ASK, "--out", "json", "--json"]
    done = at_terminal(*command, answer="y\n", cwd=place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["out"] == "json"
    assert "price     people: takes epsilon=0.05 of 2" in done.stderr
    assert "Charge population people and release?" in done.stderr


def test_a_pattern_is_expanded_by_the_names_in_the_data(place):
    (place / "open.toml").write_text(SCHEMA.replace("x{0..5}", "x*"))
    arguments = ["--schema", "open.toml", *METHOD[2:]]
    done = adumbra("plan", *arguments, cwd=place)
    assert done.returncode == 2
    assert "match='x*': the number of columns is not known yet" in done.stderr
    done = adumbra("plan", *arguments, "--data", "table.parquet", cwd=place)
    assert done.returncode == 0, done.stderr


def test_methods_lists_every_option(place):
    done = adumbra("methods")
    assert done.returncode == 0
    assert "n_components" in done.stdout
    assert "dppro" in json.loads(adumbra("methods", "--json").stdout)


def test_version_and_help():
    assert adumbra("--version").stdout.startswith("adumbra 0.")
    for words in ([], ["plan"], ["release"], ["ledger"], ["schema"], ["demo"], ["verify"], ["inspect"]):
        assert adumbra(*words, "--help").returncode == 0
