"""What commands say: help, undeclared columns, choices, remedies, wrapped lines, the card's words."""

import dataclasses
import hashlib
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from adumbra import workflow
from adumbra.cli.main import app, given_once, plain_help
from adumbra.cli.options import describe_options, make_config
from adumbra.cli.planning import print_hanging
from adumbra.errors import InvalidInput, SchemaError
from adumbra.mechanisms.fields import CHOICES
from adumbra.mechanisms.methods import METHODS
from adumbra.privacy.ledger import Population, create_ledger
from adumbra.relations import Neighbours, Unit
from adumbra.release.artifact import load, verify
from adumbra.report.page import in_order
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from support.ledger import ROW

SCHEMA = """format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"
rows = 60

[[groups]]
match = "x{0..1}"
kind = "number"
lower = 0
upper = 1
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    rows = np.random.default_rng(0).uniform(0, 1, 60)
    hostile = {"stray\x1b[31m": rows}
    wide = {"x0": rows, "x1": rows} | hostile | {f"extra{i}": rows for i in range(9)}
    pq.write_table(pa.table(wide), tmp_path / "t.parquet")
    with create_ledger(tmp_path / "ledger.db") as book:
        book.register(Population("people", *ROW, 9.0, 1e-6))
    return tmp_path


def run(words, *more):
    done = CliRunner().invoke(app, [*words.split(), *more])
    if done.exception is not None:
        raise done.exception
    return done.stdout


PLAN = "plan --schema s.toml --epsilon 1 --data t.parquet"


@pytest.mark.parametrize("words", ["schema check s.toml t.parquet", PLAN])
def test_columns_that_nobody_declared_are_said_to_stay_out(place, words):
    said = run(words)
    assert "10 columns of the data are not declared and stay out: stray\\x1b[31m, extra0, " in said
    assert "extra6 and 2 more" in said
    assert "\x1b" not in said
    names = json.loads(run(words, "--json"))["undeclared"]
    assert (len(names), names[0]) == (10, "stray\x1b[31m")
    pq.write_table(pq.read_table("t.parquet", columns=["x0", "x1", "extra3"]), "t.parquet")
    assert "1 column of the data is not declared and stays out: extra3" in run(words)
    pq.write_table(pq.read_table("t.parquet", columns=["x0", "x1"]), "t.parquet")
    assert "not declared" not in run(words)


def test_a_wrong_number_of_rows_is_refused_as_by_release(place):
    (place / "s.toml").write_text(SCHEMA.replace("60", "5"))
    text = "rows=5: the data has 60; correct the schema or the data"
    with pytest.raises(SchemaError, match=f"s.toml: {text}"):
        run("schema check s.toml t.parquet")
    with pytest.raises(InvalidInput, match=text):
        run(PLAN)
    done = CliRunner().invoke(app, ["schema", "check", "s.toml", "t.parquet", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["faults"]) == (2, [f"s.toml: {text}"])
    private = SCHEMA.replace("rows = 60\n", "").replace("replace-one", "add-remove")
    (place / "s.toml").write_text(private)
    assert "no fault" in run("schema check s.toml t.parquet")


def test_the_card_says_what_the_command_line_was_told(place):
    release = "release t.parquet --schema s.toml --epsilon 1 --ledger ledger.db --population people"
    about = ["--about", "title=A & B = C", "--about", "intended-use=teaching", "--about", "curator=Us"]
    made = json.loads(run(f"{release} --yes --json --out r", *about))
    said = load("r").card["about"]
    assert (said["title"], said["intended_use"], said["curator"]) == ("A & B = C", "teaching", "Us")
    assert (
        made["digest"]
        == verify("r").digest
        == hashlib.sha256((place / "r/card.json").read_bytes()).hexdigest()
    )
    assert made["entry"] == load("r").card["ledger"]["entry"]
    for word, text in {
        "colour=red": "is not a part of a card; known are curator, date",
        "title": "about=title: needs a value; write --about title=...",
        "population=x": "has a flag of its own; give --population",
        "curator=me": "about=curator: is given twice; give it once",
    }.items():
        with pytest.raises(InvalidInput, match=text):
            run(f"{release} --yes --out other", *about, "--about", word)
    assert not (place / "other").exists()


@pytest.mark.parametrize(
    ("method", "options", "text"),
    [
        (
            "moments",
            [],
            "synthetic_rows=None: the number of rows is private; .* \\(-o synthetic_rows=...\\)",
        ),
        ("ron-gauss", [], "expected_rows.* -o expected_rows=...\\)"),
        ("pca", ["n_components=-1"], "n_components=-1: must be 0 or above \\(-o n_components=...\\)"),
        ("pca", [], "option n_components: is needed for method=pca; add -o n_components=...$"),
    ],
)
def test_a_remedy_is_spelled_as_an_option(place, method, options, text):
    (place / "s.toml").write_text(SCHEMA.replace("rows = 60\n", "").replace("replace-one", "add-remove"))
    words = [word for option in options for word in ("-o", option)]
    with pytest.raises(InvalidInput, match=text):
        run(f"{PLAN} --method {method}", *words)


NEEDED = {"dppro": ["n_components=2"], "jl-laplace": ["n_components=2"], "pca": ["n_components=1"]}
NEEDED |= {"top-k": ["k=2"]}


def test_every_choice_is_listed_and_no_other_is_taken():
    for described in METHODS:
        method, kind = described.name, described.config
        delta = 1e-6 if method == "dppro" else 0.0
        texts = [field for field in dataclasses.fields(kind) if field.type in (str, "str")]
        for name, words in ((field.name, field.metadata[CHOICES]) for field in texts):
            assert words
            (row,) = [row for row in describe_options(kind) if row[0] == name]
            assert row[1] == " or ".join(words)
            for word in words:
                make_config(method, 1.0, delta, [*NEEDED.get(method, []), f"{name}={word}"])
            with pytest.raises(InvalidInput) as problem:
                make_config(method, 1.0, delta, [*NEEDED.get(method, []), f"{name}=none-such"])
            assert all(word in str(problem.value) for word in words)


NUMBERS = tuple(Column(name=f"x{i}", kind=Kind.NUMBER, lower=0.0, upper=1.0) for i in range(4))
GROUP = Column(name="c", kind=Kind.CATEGORY, categories=("a", "b"))
TABLES = {
    "tables": {"columns": NUMBERS},
    "tables with a label": {"columns": (*NUMBERS, GROUP), "label": "c"},
    "item sets": {"columns": (), "items": ItemSpec(upper=9)},
}
GUESSES = {
    "moments": ["synthetic_rows=9"],
    "ron-gauss": ["expected_rows=100"],
    "lda": ["expected_rows=100"],
}
GUESSES |= {"pca": ["output=sample"]}


@pytest.mark.parametrize("described", METHODS, ids=lambda one: one.name)
def test_what_a_method_takes_is_what_its_plan_takes(described):
    method, data, relations = described.name, described.data, described.neighbours
    for kind, shape in TABLES.items():
        for neighbours in (one for one in Neighbours if not one.value.endswith("-person")):
            unit = Unit.ELEMENT if neighbours is Neighbours.ONE_ELEMENT else Unit.ROW
            rows = 100 if neighbours.rows_are_public else None
            schema = Schema(unit=unit, neighbours=neighbours, rows=rows, **shape)
            if method == "bounds":
                private = tuple(dataclasses.replace(one, private=True) for one in schema.columns)
                schema = dataclasses.replace(schema, columns=private)
            options = [*NEEDED.get(method, []), *(GUESSES.get(method, []) if rows is None else [])]
            if kind == "item sets" and unit is Unit.ROW and method in ("dppro", "jl-laplace"):
                options.append("row_norm=2")
            said = kind in data if "label" in data or kind == "item sets" else "tables" in data
            said = said and ("label" in kind or "label" not in data)
            try:
                config = make_config(method, 1.0, 1e-6 if method == "dppro" else 0.0, options)
                taken = bool(workflow.plan(config, schema).noise)
            except InvalidInput:
                taken = False
            known = str(neighbours) in relations.replace(f"{neighbours}-person", "")
            assert taken == (said and known), (kind, neighbours)


def test_methods_says_what_each_is_for():
    listed = json.loads(run("methods --json"))
    assert sorted(listed) == sorted(method.name for method in METHODS)
    text = " ".join(run("methods").split())
    for name, facts in listed.items():
        assert f"--method {name} for {facts['for']} takes {facts['data']};" in text


def test_help_shows_flags_without_a_value_and_arguments_in_capitals(capsys):
    command = plain_help(typer.main.get_command(app))
    for words in (
        ["schema", "check"],
        ["release"],
        ["report"],
        ["ledger", "show"],
        ["verify"],
        ["audit"],
    ):
        command([*words, "-h"], standalone_mode=False)
        shown = capsys.readouterr().out
        assert "<bool>" not in shown
        (usage,) = re.findall(r"Usage: .*", shown)
        assert re.findall(r"[{\[]([A-Za-z]+)[}\]]", usage) == re.findall(r"[{\[]([A-Z]+)[}\]]", usage)
        assert "[[" not in usage
        assert "--help" in shown
    assert "about one minute" in shown  # how long an audit takes


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (
            ["plan", "--method", "moments", "--epsilon", "1", "--schema", "s", "--epsilon", "2"],
            "--epsilon",
        ),
        (["release", "--delta=0", "d", "--delta", "1e-6"], "--delta"),
        (["ledger", "register", "p", "--unit", "row", "--unit=element"], "--unit"),
        (["audit", "--seed", "1", "--seed", "1"], "--seed"),
    ],
)
def test_an_option_given_twice_is_refused(words, option):
    """The last one won, without a word: a budget that was not meant was planned and charged."""
    command = given_once(typer.main.get_command(app))
    with pytest.raises(Exception, match=f"Option {option} is given twice; give it once"):
        command(words, standalone_mode=False)


def test_options_that_repeat_by_nature_may():
    command = given_once(typer.main.get_command(app))
    asked = ["plan", "--schema", "none.toml", "--method", "moments", "--epsilon", "1"]
    with pytest.raises(InvalidInput, match="none.toml"):
        command([*asked, "-o", "numbers=bins", "-o", "synthetic_rows=5"], standalone_mode=False)


def test_further_lines_start_below_the_first_letter(capsys):
    print_hanging(Console(width=19), "one two three four five six replace-one", "- ")
    assert capsys.readouterr().out.splitlines() == [
        "- one two three",
        "  four five six",
        "  replace-one",
    ]


def test_2_comes_before_10():
    names = ["length 1", "length 10", "length 100", "length 2", "a", "10", "2"]
    shown = list(in_order(dict.fromkeys(names, 0.5)))
    assert shown == ["2", "10", "a", "length 1", "length 2", "length 10", "length 100"]
