"""One SQL query as a source: the laws of every reader, on SQLite and on a real PostgreSQL server."""

import math
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adumbra as ad
from adumbra.data import sql
from adumbra.data.opening import compare, describe, open_source
from adumbra.data.sql import VARIABLE, SqlQuery
from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.schema.table import PersonSpec
from support.data import MIXED, table
from support.ledger import DATABASES, new_location

NAMES = [column.name for column in MIXED]
PRIVATE = table(neighbours=Neighbours.ADD_REMOVE)
CELLS = st.one_of(
    st.none(), st.floats(allow_nan=False), st.integers(-(2**62), 2**62), st.binary(max_size=6),
    st.sampled_from(["1", "-2.5", "x", "y", "true", "", " 3 ", "é", "CANARY", "2020-01-01", "nan"]),
)  # fmt: skip
ROWS = st.lists(st.lists(CELLS, min_size=len(NAMES), max_size=len(NAMES)), max_size=6)
LIST = ", ".join(NAMES)
SELECT = "SELECT " + LIST + " FROM t ORDER BY rowid"  # noqa: S608


def rows_of(data, schema=PRIVATE):
    blocks = [np.asarray(batch.values) for batch in open_source(data, schema).batches(2)]
    return np.concatenate([np.empty((0, schema.width)), *blocks]).tolist()


def filled_database(place, rows):
    place.unlink(missing_ok=True)
    with sqlite3.connect(place) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(NAMES)})")
        connection.executemany("INSERT INTO t VALUES (" + ", ".join("?" * len(NAMES)) + ")", rows)  # noqa: S608
    connection.close()
    return f"sqlite:///{place}"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("sql")


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_each_cell_is_read_by_itself_as_in_a_frame(place, rows):
    found = rows_of(SqlQuery(filled_database(place / "a.db", rows), SELECT))
    assert len(found) == len(rows)
    assert all(math.isfinite(value) for row in found for value in row)
    assert found == rows_of(pd.DataFrame(rows, columns=NAMES, dtype=object))
    alone = [rows_of(SqlQuery(filled_database(place / "b.db", [row]), SELECT)) for row in rows]
    assert [row for one in alone for row in one] == found


def test_text_that_is_no_unicode_is_a_cell_like_others(tmp_path):
    address = filled_database(tmp_path / "a.db", [["1", 2, "x", 1]] * 3)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE t SET b = CAST(X'ff41' AS TEXT) WHERE rowid = 2")
    connection.close()
    one, other, third = rows_of(SqlQuery(address, SELECT))
    assert one == third
    assert one[0] == other[0]


def test_rows_are_read_once_and_blocks_are_those_of_any_source(tmp_path, monkeypatch):
    monkeypatch.setattr(sql, "PIECE_ROWS", 3)
    rows = [[float(i), i, "xy"[i % 2], i % 2] for i in range(10)]
    query = SqlQuery(filled_database(tmp_path / "a.db", rows), SELECT)
    source = open_source(query, table())
    assert source.public_rows() == 10
    whole = rows_of(query)
    (tmp_path / "a.db").unlink()  # nobody asks the database again
    again = [np.asarray(b.values).tolist() for b in source.batches(4, start=4)]
    assert again == [whole[4:8], whole[8:]]
    assert [np.asarray(b.values).tolist() for b in source.batches(10)] == [whole]
    assert source.pin() == open_source(
        SqlQuery(filled_database(tmp_path / "a.db", rows), SELECT), table()
    ).pin()  # fmt: skip


def test_only_max_rows_count_where_n_is_private(tmp_path):
    address = filled_database(tmp_path / "a.db", [[0.5, 1, "x", 1]] * 5)
    assert len(rows_of(SqlQuery(address, SELECT), replace(PRIVATE, max_rows=3))) == 3
    with pytest.raises(InvalidInput, match="max_rows=3: the data has"):
        open_source(SqlQuery(address, SELECT), replace(table(), max_rows=3))


def test_the_spool_on_disk_gives_the_same_rows(tmp_path, monkeypatch):
    rows = [[float(i), i, "x", 1] for i in range(50)]
    query = SqlQuery(filled_database(tmp_path / "a.db", rows), SELECT)
    held = rows_of(query)
    monkeypatch.setattr(sql, "PIECE_ROWS", 7)
    monkeypatch.setattr(sql, "Spool", lambda: sql_spool(0))
    assert rows_of(query) == held


def sql_spool(held):
    from adumbra.data.spool import Spool

    return Spool(held)


def test_a_file_says_the_query_and_where(tmp_path, monkeypatch):
    address = filled_database(tmp_path / "a.db", [[0.5, 1, "x", 1]])
    expected = rows_of(SqlQuery(address, SELECT))
    (tmp_path / "q.sql").write_text(f"-- address: {address}\n{SELECT}\n")
    assert rows_of(tmp_path / "q.sql") == expected
    assert rows_of(str(tmp_path / "q.sql")) == expected
    assert [name for name, _ in describe(tmp_path / "q.sql")[0][1]] == NAMES
    assert compare(tmp_path / "q.sql", PRIVATE) == (PRIVATE, [])
    (tmp_path / "q.sql").write_text(SELECT)
    with pytest.raises(InvalidInput, match=f"does not say where; .* set {VARIABLE}"):
        rows_of(tmp_path / "q.sql")
    monkeypatch.setenv(VARIABLE, address)
    assert rows_of(tmp_path / "q.sql") == expected
    (tmp_path / "q.sql").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match="cannot be read as UTF-8"):
        rows_of(tmp_path / "q.sql")


@pytest.mark.parametrize(
    ("address", "query", "words"),
    [
        ("sqlite:///{}/a.db", "SELECT CANARY FROM t", "the database failed (OperationalError)"),
        ("sqlite:///{}/none.db", SELECT, "the database failed (FileNotFoundError)"),
        ("sqlite:///{}/a.db", "DELETE FROM t", "the database failed (OperationalError)"),
        ("sqlite:///{}/a.db", "BEGIN", "the query gives no rows"),
        ("no address with CANARY", SELECT, "the database failed (ArgumentError)"),
        ("nosuch://me:CANARY@host/db", SELECT, "the database failed (NoSuchModuleError)"),
        ("postgresql://me:CANARY@/db?host=/nowhere", SELECT, "the database failed (OperationalError)"),
        ("sqlite:///{}/a.db", "SELECT a FROM t", "columns 'i', 'b', 'c' absent"),
        ("sqlite:///{}/a.db", "SELECT " + LIST + ", a FROM t", "column 'a' twice"),  # noqa: S608
    ],
)  # fmt: skip
def test_a_failing_query_says_nothing_of_cells_or_passwords(tmp_path, address, query, words):
    filled_database(tmp_path / "a.db", [["CANARY"] * len(NAMES)])
    given_query = SqlQuery(address.format(tmp_path), query)
    with pytest.raises(InvalidInput) as caught:
        open_source(given_query, PRIVATE)
    assert words in str(caught.value)
    shown = str(caught.value) + repr(caught.value.__context__) + repr(given_query)
    assert "CANARY" not in shown.replace("SELECT CANARY", "")
    assert caught.value.__cause__ is None
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)  # nothing was deleted
    connection.close()


def test_item_sets_and_empty_queries_are_refused(tmp_path):
    address = filled_database(tmp_path / "a.db", [])
    items = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=3))
    with pytest.raises(InvalidInput, match="a query holds no item sets"):
        open_source(SqlQuery(address, SELECT), items)
    with pytest.raises(InvalidInput, match="give an address and the text of one query"):
        SqlQuery(address, " ")


def test_persons_are_bounded_by_their_ids(tmp_path):
    rows = [[0.1 * i, i, "x", 1] for i in range(6)]
    address = filled_database(tmp_path / "a.db", rows)
    person = PersonSpec(column="who", max_rows=2)
    schema = replace(PRIVATE, unit=Unit.PERSON, neighbours=Neighbours.ADD_REMOVE_PERSON, person=person)
    query = SqlQuery(address, "SELECT " + LIST + ", i / 5 AS who FROM t")  # noqa: S608
    assert len(rows_of(query, schema)) == 3  # two of the five rows of one person, one of the other


def test_a_person_of_many_rows_pushes_out_no_others(tmp_path, monkeypatch):
    """`max_rows` limits the rows that are used, after the bound of persons, not those that are read."""
    monkeypatch.setattr(sql, "PIECE_ROWS", 2)
    person = PersonSpec(column="who", max_rows=1)
    private = replace(PRIVATE, unit=Unit.PERSON, neighbours=Neighbours.ADD_REMOVE_PERSON, person=person)
    select = "SELECT " + LIST + ", max(i, 0) AS who FROM t GROUP BY rowid ORDER BY rowid"  # noqa: S608
    others = [[0.1, i, "x", 1] for i in range(1, 4)]
    for giants in (0, 9):
        rows = [[0.5, -i, "x", 1] for i in range(giants)] + others
        query = SqlQuery(filled_database(tmp_path / "a.db", rows), select)
        assert len(rows_of(query, replace(private, max_rows=4))) == 3 + (giants > 0)


KINDS = (
    Column(name="d", kind=Kind.DATE, lower="2000-01-01", upper="2030-01-01", missing="null"),
    Column(name="s", kind=Kind.DATETIME, lower="2000-01-01T00:00:00", upper="2030-01-01T00:00:00",
           missing="null"),
    Column(name="n", kind=Kind.NUMBER, lower=0.0, upper=10.0, missing="null"),
    Column(name="w", kind=Kind.CATEGORY, categories=("p", "q"), missing="category"),
    Column(name="j", kind=Kind.CATEGORY, categories=("p", "q"), missing="category"),
)  # fmt: skip
STRANGE = (
    "('2020-01-31', '2020-01-31 08:30:00+02', 2.5, 'p', '{}')",
    "('infinity', 'infinity', 'NaN', 'é', '{\"a\": 1}')",
    "('0044-03-15 BC', '294276-01-01 00:00:00+00', 1e300, '', NULL)",
    "(NULL, NULL, NULL, NULL, '" + "9" * 5000 + "')",
)


@pytest.mark.parametrize("database", DATABASES[1:])
def test_postgresql_gives_every_cell_that_python_cannot_hold(tmp_path, database):
    address = new_location(database, tmp_path)
    with psycopg.connect(address) as connection:
        connection.execute(
            "CREATE TABLE v (k serial, d date, s timestamptz, n numeric, w text, j jsonb)"
        )
        for row in STRANGE:
            connection.execute("INSERT INTO v (d, s, n, w, j) VALUES " + row)  # noqa: S608
    schema = Schema(columns=KINDS, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    source = open_source(SqlQuery(address, "SELECT d, s, n, w, j, k FROM v ORDER BY k"), schema)
    (batch,) = source.batches(9)
    found = np.asarray(batch.values)
    day, second, number, word, _ = (column.fill for column in schema.columns)
    first = [schema.columns[0].text(found[0, 0]), schema.columns[1].text(found[0, 1])]
    assert first == ["2020-01-31", "2020-01-31T06:30:00"]
    assert found[0, 2:4].tolist() == [2.5, 0.0]
    assert found[1, :4].tolist() == [day, second, number, word]
    assert found[2, :2].tolist() == [day, second]
    assert found[2, 2] == 10.0
    assert found[3, :4].tolist() == [day, second, number, word]
    with pytest.raises(InvalidInput, match="the database failed"):  # read-only
        open_source(SqlQuery(address, "DELETE FROM v RETURNING d, s, n, w, j"), schema)
    config = ad.AnswersConfig(epsilon=1.0, columns=("w",))
    ledger = ad.create_ledger(tmp_path / "l.db")
    ledger.register(ad.Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 2.0))
    query = SqlQuery(address, "SELECT d, s, n, w, j FROM v, generate_series(1, 1000)")
    plain = replace(schema, columns=tuple(replace(one, missing=None) for one in KINDS))
    made = ad.release(query, config, schema=plain, ledger=ledger, population="p", out=tmp_path / "r")
    assert made.card["public_inputs"]["schema"]["rows"] == 4000
