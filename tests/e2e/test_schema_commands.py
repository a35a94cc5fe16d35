"""`adumbra schema draft | check` on real files."""

import json
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from adumbra.cli.schema_commands import app
from adumbra.errors import InvalidInput, SchemaError
from adumbra.relations import Neighbours
from adumbra.schema.schema import Schema
from support.canary import COLUMNS

RUN = CliRunner()


@pytest.fixture
def data(tmp_path):
    columns = {f"p{i}": np.full(4, 123456.0) for i in range(5)}
    pq.write_table(pa.table(columns | {"town": ["CANARY"] * 4}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def invoke(*arguments):
    return RUN.invoke(app, [str(argument) for argument in arguments])


def test_a_draft_becomes_a_schema(data, tmp_path):
    printed = invoke("draft", data)
    assert printed.exit_code == 0
    assert 'match = "p{0..4}"' in printed.output
    assert "CANARY" not in printed.output
    assert "123456" not in printed.output  # the statistics of the file hold it
    target = tmp_path / "s.toml"
    assert invoke("draft", data, "--out", target).exit_code == 0
    assert target.read_text() == printed.output
    again = invoke("draft", data, "--out", target)
    assert isinstance(again.exception, InvalidInput)
    assert "exists already; choose another name or give --force" in str(again.exception)
    assert invoke("draft", data, "--out", target, "--force").exit_code == 0
    unfinished = invoke("check", target)
    assert isinstance(unfinished.exception, SchemaError)
    assert all("TODO" in fault for fault in unfinished.exception.faults)
    as_json = invoke("check", target, "--json")
    assert as_json.exit_code == 2
    assert json.loads(as_json.output)["faults"] == list(unfinished.exception.faults)
    text = target.read_text().replace('unit = "TODO"', 'unit = "row"')
    text = text.replace('neighbours = "TODO"', 'neighbours = "replace-one"').replace('["TODO"]', '["x"]')
    text = text.replace('lower = "TODO"', "lower = 0").replace('upper = "TODO"', "upper = 1")
    target.write_text(text.replace('"TODO"', '"me"'))
    done = invoke("check", target, data)
    assert done.exit_code == 0
    assert "no fault; 6 columns, unit row, neighbours replace-one; names and types fit" in done.output
    facts = json.loads(invoke("check", target, data, "--json").output)
    assert facts["columns"] == 6
    assert facts["digest"] == Schema.read(target).digest()


def test_check_says_no_more_than_was_compared(tmp_path):
    """A query's types and the names of JSON lines are not looked at."""
    schema = Schema.numeric(1, 0, 1, neighbours=Neighbours.ADD_REMOVE, names=["agee"])
    (tmp_path / "s.toml").write_text(schema.to_toml())
    (tmp_path / "a.jsonl").write_text('{"age": 0.5}\n')
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (agee TEXT)")
    connection.close()
    (tmp_path / "a.sql").write_text(f"-- address: sqlite:///{tmp_path}/a.db\nSELECT agee FROM t")
    said = invoke("check", tmp_path / "s.toml", tmp_path / "a.jsonl").output
    assert "names stand in the rows and were not compared; JSON lines store no types" in said
    said = invoke("check", tmp_path / "s.toml", tmp_path / "a.sql").output
    assert "the query has the declared names; types of a query are not asked for" in said


def test_check_lists_what_does_not_fit(data, tmp_path):
    schema = tmp_path / "s.toml"
    schema.write_text(COLUMNS)
    wrong = invoke("check", schema, data)
    assert isinstance(wrong.exception, SchemaError)
    assert "columns 'a', 'i', 'b', 'c' absent" in str(wrong.exception)


def test_patterns_are_expanded_on_request(data, tmp_path):
    schema, out = tmp_path / "s.toml", tmp_path / "full.toml"
    head = COLUMNS[: COLUMNS.index("[[columns]]")]
    schema.write_text(head + '[[groups]]\nmatch = "p*"\nkind = "number"\nlower = 0\nupper = 1\n')
    assert "columns by pattern" in invoke("check", schema).output
    assert json.loads(invoke("check", schema, "--json").output)["columns"] is None
    refused = invoke("check", schema, "--expanded", out)
    assert isinstance(refused.exception, InvalidInput)
    assert invoke("check", schema, data, "--expanded", out).exit_code == 0
    assert Schema.read(out).names == ("p0", "p1", "p2", "p3", "p4")


def test_item_sets(tmp_path):
    (tmp_path / "t.dat").write_text("1 2\n")
    schema = tmp_path / "s.toml"
    schema.write_text(COLUMNS[: COLUMNS.index("[[columns]]")] + "[items]\nuniverse = 9\n")
    assert "item sets of 9 items" in invoke("check", schema, tmp_path / "t.dat").output
    assert 'universe = "TODO"' in invoke("draft", tmp_path / "t.dat").output


def test_an_older_file_is_upgraded_and_keeps_its_words_and_digest(tmp_path):
    old = tmp_path / "s.toml"
    old.write_bytes(b"# ours\r\n" + COLUMNS.encode().replace(b"\n", b"\r\n"))
    before = old.read_bytes()
    assert b'format = "adumbra-schema/1"' in before
    other = tmp_path / "new.toml"
    assert invoke("upgrade", old, "--out", other).exit_code == 0
    assert old.read_bytes() == before
    assert other.read_bytes() == before.replace(b"schema/1", b"schema/2")
    assert Schema.read(other).digest() == Schema.read(old).digest()
    assert "upgraded" in invoke("upgrade", old).output
    assert old.read_bytes() == other.read_bytes()
    assert "nothing to upgrade" in invoke("upgrade", old).output
    assert old.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("text", ["", "format = ", 'format = "adumbra-schema/9"', "[table]\nformat = 1"])
def test_what_is_no_older_schema_is_not_rewritten(tmp_path, text):
    file = tmp_path / "s.toml"
    file.write_text(text)
    assert isinstance(invoke("upgrade", file).exception, SchemaError)
    assert file.read_text() == text
    assert isinstance(invoke("upgrade", tmp_path / "absent").exception, InvalidInput)
