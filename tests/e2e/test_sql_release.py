"""A query on the command line: drafted, checked, planned and released; no password is shown."""

import json
import sqlite3

import numpy as np

from support.cli import in_process

SCHEMA = """\
format = "adumbra-schema/2"
[table]
unit = "row"
neighbours = "replace-one"
[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 120
[[columns]]
name = "ward"
kind = "category"
categories = ["north", "south"]
"""


def run(*words, code=0):
    done = in_process(*words)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_query_is_released(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    rows = [(int(age), ("north", "south")[int(age > 50)]) for age in rng.integers(0, 100, 500)]
    with sqlite3.connect("visits.db") as connection:
        connection.execute("CREATE TABLE visits (age INTEGER, ward TEXT, name TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, 'CANARY')", rows)
    connection.close()
    query = "-- address: sqlite:///visits.db?secret=CANARY\nSELECT age, ward, name FROM visits\n"
    (tmp_path / "visits.sql").write_text(query)
    (tmp_path / "visits.toml").write_text(SCHEMA)
    drafted = run("schema", "draft", "visits.sql")
    assert 'name = "age"' in drafted
    said = run("schema", "check", "visits.toml", "visits.sql")
    assert "no fault; 2 columns" in said
    assert "1 column of the data is not declared" in said
    run("ledger", "init", "ledger.db")
    run("ledger", "register", "people", "--ledger", "ledger.db", "--unit", "row", "--neighbours",
        "replace-one", "--epsilon", "2")  # fmt: skip
    said += run("release", "visits.sql", "--schema", "visits.toml", "--method", "moments", "--epsilon",
                "1", "--ledger", "ledger.db", "--population", "people", "--out", "made",
                "--yes")  # fmt: skip
    card = json.loads((tmp_path / "made/card.json").read_bytes())
    assert card["public_inputs"]["schema"]["rows"] == 500
    (tmp_path / "visits.sql").write_text(query.replace("visits.db", "nowhere.db"))
    said += run("schema", "check", "visits.toml", "visits.sql", code=2)
    assert "the database failed" in said
    assert "CANARY" not in said + drafted + json.dumps(card)
