"""The price is said in the account's own numbers, before anything is paid."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from adumbra.cli.main import app
from adumbra.errors import InvalidInput
from adumbra.privacy.ledger import Population, create_ledger, open_ledger
from support.ledger import ROW

SCHEMA = """format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"

[[groups]]
match = "x{0..3}"
kind = "number"
lower = 0
upper = 1
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    rows = np.random.default_rng(0).uniform(0, 1, (200, 4))
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="x0,x1,x2,x3", comments="")
    with create_ledger(tmp_path / "ledger.db") as book:
        book.register(Population("all", *ROW, 60.0, 1e-6))
        book.register(Population("people", *ROW, 50.0, 1e-6, parent="all"))
        book.register(Population("strict", *ROW, 4.0, 0.0))
    return tmp_path


def asked(population, *words):
    """What `release` says when it gets as far as its question, where nobody answers."""
    command = [
        "release",
        "t.csv",
        "--schema",
        "s.toml",
        "--ledger",
        "ledger.db",
        "--out",
        "r",
        "--population",
    ]
    done = CliRunner().invoke(app, [*command, population, *words])
    assert isinstance(done.exception, InvalidInput)
    assert "give --yes (nothing was charged)" in str(done.exception)
    return " ".join(done.stdout.split())


SAME = ("--method", "pca", "-o", "n_components=1", "--epsilon", "1")
PURE = (*SAME, "--delta", "0")


def test_a_pure_release_says_what_it_takes_of_a_gaussian_account(place):
    said = asked("people", *PURE)
    assert "costs epsilon=1 (pure)" in said
    assert "price people: takes epsilon=6.20731 of 50 at delta=1e-06; 50 left before, 48." in said
    assert "after (squares add)" in said
    assert "price all: takes epsilon=6.20731 of 60" in said  # the parent pays as well
    assert "instead --delta 1e-06 would take epsilon=1 of it, not 6.20731, with Gaussian noise" in said


@pytest.mark.parametrize(
    ("population", "words", "takes"),
    [
        ("people", (*SAME, "--delta", "1e-6"), "takes epsilon=1 of 50 at delta=1e-06"),
        ("people", (*SAME, "--delta", "1e-5"), "takes epsilon=1.14362 of 50 at delta=1e-06"),
        ("strict", PURE, "strict: takes epsilon=1 of 4; 4 left before, 3 after"),
        ("people", ("--method", "jl-laplace", *SAME[2:]), "takes epsilon=6.20731"),  # has no other kind
    ],
)
def test_nothing_else_is_offered_where_nothing_else_is_had(place, population, words, takes):
    said = asked(population, *words)
    assert takes in said
    assert "instead" not in said


def test_what_was_said_is_what_is_charged(place):
    command = "release t.csv --schema s.toml --ledger ledger.db --out r --population people --yes --json"
    done = CliRunner().invoke(app, [*command.split(), *PURE])
    assert done.exit_code == 0, done.exception
    said = json.loads(done.stdout)["price"]
    with open_ledger(place / "ledger.db") as book:
        for quoted in said:
            (statement,) = book.show(quoted["population"])
            assert (quoted["takes"], quoted["left_after"]) == (statement.spent, statement.left)
