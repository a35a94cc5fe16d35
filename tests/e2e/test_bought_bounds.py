"""The custodian who knows no bounds: declare, check, plan, buy, fill in and release."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.schema.schema import Schema
from support.cli import in_process

SCHEMA = """\
format = "adumbra-schema/2"
[table]
unit = "row"
neighbours = "add-remove"
declared_by = "nobody knows the range of incomes"
[[columns]]
name = "income"
kind = "number"
private = true
[[columns]]
name = "city"
kind = "category"
categories = ["north", "south", "west"]
private = true
[[columns]]
name = "member"
kind = "boolean"
"""
PAID = ("--ledger", "ledger.db", "--population", "people")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    rows = {
        "income": rng.uniform(1000.0, 3000.0, 3000),
        "city": np.array(["north", "south"])[rng.choice(2, 3000)],
        "member": rng.random(3000) < 0.5,
    }
    pq.write_table(pa.table(rows), tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


def run(*words, code=0):
    done = in_process(*words)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_bounds_are_bought_filled_in_and_cited(place):
    run("ledger", "init", "ledger.db")
    run("ledger", "register", "people", "--ledger", "ledger.db", "--unit", "row", "--neighbours",
        "add-remove", "--epsilon", "20")  # fmt: skip
    said = run("schema", "check", "people.toml", "people.parquet")
    assert "to do: buy 2 of them by the method bounds" in said
    assert json.loads(run("schema", "check", "people.toml", "--json"))["to_buy"] == ["income", "city"]
    refused = run("plan", "--schema", "people.toml", "--method", "moments", "--epsilon", "1",
                  "-o", "synthetic_rows=9", code=2)  # fmt: skip
    assert "buy it by the method bounds, then run `adumbra schema fill`" in refused
    planned = run("plan", "--schema", "people.toml", "--method", "bounds", "--epsilon", "5",
                  "-o", "expected_rows=3000")  # fmt: skip
    assert "A value is found if about" in planned
    assert "no others" in planned
    run("release", "people.parquet", "--schema", "people.toml", "--method", "bounds", "--epsilon", "5",
        "-o", "chance=1e-9", *PAID, "--out", "bought", "--yes")  # fmt: skip
    run("key", "new", "publisher", "--no-passphrase")
    run("schema", "fill", "people.toml", "bought", "--out", "no.toml", "--key", "publisher.pub", code=4)
    assert not (place / "no.toml").exists()  # nobody signed it
    said = run("schema", "fill", "people.toml", "bought", "--out", "filled.toml")
    assert "2 columns cite the release" in said
    filled = Schema.read(place / "filled.toml")
    income, city, member = filled.columns
    assert income.lower == 896.0
    assert income.upper == 3072.0
    assert city.categories == ("north", "south")
    assert member.source == ""
    assert "to do" not in run("schema", "check", "filled.toml", "people.parquet")
    run("release", "people.parquet", "--schema", "filled.toml", "--method", "moments", "--epsilon", "5",
        "-o", "synthetic_rows=50", *PAID, "--out", "made", "--yes")  # fmt: skip
    columns = json.loads((place / "made/card.json").read_bytes())["public_inputs"]["schema"]["columns"]
    digest = hashlib.sha256((place / "bought/card.json").read_bytes()).hexdigest()[:12]
    assert f"digest    {digest}" in run("verify", "bought")
    assert [digest in one.get("source", "") for one in columns] == [True, True, False]
    shown = run("ledger", "show", "people", "--ledger", "ledger.db")
    assert "bounds" in shown
    assert "moments" in shown
    run("schema", "fill", "people.toml", "made", "--out", "again.toml", code=2)
    run("schema", "fill", "people.toml", "bought", "--out", "filled.toml", code=2)  # it is there
