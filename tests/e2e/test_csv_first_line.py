"""What commands do with the first line of a CSV file, declared or not: in full, by the real command."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from adumbra.cli.options import undeclared
from adumbra.schema.schema import Schema
from support.cli import adumbra

HEAD = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
declared_by = "test"
"""
BOUNDS = 'kind = "number"\nlower = 0\nupper = 10\n'
PATTERN = HEAD + '[[groups]]\nmatch = "*"\n' + BOUNDS
LISTED = HEAD + '[[groups]]\nnames = ["x", "y"]\n' + BOUNDS
PERSON = ("1984-03-01", "7319731973")
WARNING = "warning: some of the column names in the first line look like numbers or dates"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "1,2\n3,4\n" * 50
    (tmp_path / "named.csv").write_text("x,y\n" + rows)
    (tmp_path / "nameless.csv").write_text(",".join(PERSON) + "\n" + rows)
    (tmp_path / "wider.csv").write_text("x,y,SECRET\n" + rows.replace("\n", ",5\n"))
    (tmp_path / "pattern.toml").write_text(PATTERN)
    (tmp_path / "listed.toml").write_text(LISTED)
    (tmp_path / "rows.toml").write_text(LISTED.replace("[[groups]]", "header = false\n[[groups]]"))
    assert adumbra("ledger", "init", "ledger.db").returncode == 0
    register = "ledger register people --ledger ledger.db --epsilon 100 --delta 1e-5 --unit row"
    assert adumbra(*register.split(), "--neighbours", "replace-one").returncode == 0
    return tmp_path


def release(data, schema, *more):
    words = f"release {data} --schema {schema} --epsilon 1 --ledger ledger.db --population people --yes"
    return adumbra(*words.split(), "--out", "out", *more)


def assert_silent(done):
    assert not any(cell in done.stdout + done.stderr for cell in (*PERSON, "SECRET"))


def test_a_pattern_publishes_no_person(place):
    """Before: exit code 0, and the first row was the names of the released table."""
    for command in (
        "schema check pattern.toml nameless.csv",
        "schema check pattern.toml nameless.csv --expanded full.toml",
        "plan --schema pattern.toml --data nameless.csv --epsilon 1",
        "schema draft nameless.csv",
    ):
        done = adumbra(*command.split())
        assert done.returncode == 2, command
        assert "may be a row" in done.stderr
        assert_silent(done)
    done = release("nameless.csv", "pattern.toml")
    assert done.returncode == 2
    assert_silent(done)
    assert not (place / "out").exists()
    assert not (place / "full.toml").exists()


def test_a_declared_first_line_is_read_and_its_looks_are_a_warning_only(place):
    for data, warns in (("named.csv", False), ("nameless.csv", True)):
        for command in (
            f"schema check pattern.toml {data} --header",
            f"plan --schema pattern.toml --data {data} --epsilon 1 --header --json",
            f"schema draft {data} --header",
        ):
            done = adumbra(*command.split())
            assert done.returncode == 0, done.stderr
            assert (WARNING in done.stderr) is warns
            assert not any(cell in done.stderr for cell in PERSON)
    drafted = adumbra("schema", "draft", "named.csv", "--header").stdout
    assert "header = true\n" in drafted
    assert re.findall('name = "(.*)"', drafted) == ["x", "y"]
    done = release("named.csv", "pattern.toml", "--header")
    assert done.returncode == 0, done.stderr
    card = json.loads((place / "out" / "card.json").read_text())
    assert card["public_inputs"]["schema"]["header"] is True


def test_rows_without_names_are_released_in_schema_order(place):
    done = release("nameless.csv", "rows.toml")
    assert done.returncode == 0, done.stderr
    assert_silent(done)
    files = [file.read_bytes() for file in (place / "out").rglob("*") if file.is_file()]
    assert not any(cell.encode() in content for cell in PERSON for content in files)
    card = json.loads((place / "out" / "card.json").read_text())
    assert card["public_inputs"]["schema"]["header"] is False
    assert card["public_inputs"]["schema"]["rows"] == 101
    said = adumbra("schema", "check", "rows.toml", "nameless.csv").stdout
    assert "columns are taken in the order of the schema and their number was not compared" in said
    clash = adumbra("schema", "check", "rows.toml", "nameless.csv", "--header")
    assert clash.returncode == 2
    assert "header: the schema says header = false; correct the schema or leave" in clash.stderr


def test_undeclared_columns_are_counted_until_their_names_are_public(place):
    for command in (
        "schema check listed.toml wider.csv",
        "plan --schema listed.toml --data wider.csv --epsilon 1",
    ):
        done = adumbra(*command.split())
        assert done.returncode == 0, done.stderr
        assert "1 column of the data is not declared and stays out\n" in done.stdout
        assert_silent(done)
        facts = json.loads(adumbra(*command.split(), "--json").stdout)
        assert (facts["undeclared"], facts["undeclared_count"]) == (None, 1)
        facts = json.loads(adumbra(*command.split(), "--json", "--header").stdout)
        assert (facts["undeclared"], facts["undeclared_count"]) == (["SECRET"], 1)
        assert "stays out: SECRET" in adumbra(*command.split(), "--header").stdout


def test_the_count_does_not_tell_which_cells_of_a_first_line_are_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = Schema.numeric(1, 0.0, 1.0)
    for spare in ("7,7", "7,8"):
        Path("rows.csv").write_text(f"{declared.names[0]},{spare}\n0.5,1,2\n")
        assert undeclared("rows.csv", declared).count == 2
    assert undeclared("rows.csv", replace(declared, header=True)).count == 2


def test_check_does_not_claim_types_of_csv_files(place):
    said = adumbra("schema", "check", "listed.toml", "named.csv").stdout
    assert "types fit" not in said
    assert "CSV files store no types, so kinds were not compared" in said
