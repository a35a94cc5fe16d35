"""Bounded persons: at most m rows of each, chosen by their own rows, in memory and through the spool."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from adumbra.audit.recorder import DirectEngine
from adumbra.data.opening import _opened, compare, open_source
from adumbra.data.persons import PersonSource, bounded_source
from adumbra.data.sources import WatchedSource
from adumbra.data.spool import Spool
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, SchemaError, Unsupported
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.schema.table import PersonSpec
from adumbra.statistics.counts import ItemCounts, item_rows
from adumbra.statistics.histograms import Histograms, cell_rows

MOST = 3


def schema_of(most=MOST, **spec):
    return Schema(
        columns=(
            Column(name="a", kind=Kind.NUMBER, lower=0.0, upper=1.0),
            Column(name="c", kind=Kind.CATEGORY, categories=("x", "y")),
        ),
        unit=Unit.PERSON,
        neighbours=Neighbours.ADD_REMOVE_PERSON,
        person=PersonSpec(column="id", max_rows=most, **spec),
    )


def purchases(rows=2000, persons=300, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.geometric(0.02, rows), persons)  # some have many rows, some one
    return pa.table(
        {"id": ids, "a": rng.random(rows).round(4), "c": np.array(["x", "y"])[rng.integers(0, 2, rows)]}
    )


def rows_of(batches):
    return [tuple(row) for batch in batches for row in np.asarray(batch.values).tolist()]


def kept(source, rows=4096):
    return rows_of(source.batches(rows))


def encoded(table):
    return [
        (a, float(c == "y")) for a, c in zip(table["a"].to_pylist(), table["c"].to_pylist(), strict=True)
    ]


def test_no_person_has_more_rows_than_declared_and_none_fewer_than_it_could():
    table = purchases()
    rows = kept(open_source(table, schema_of()))
    owners = defaultdict(list)
    for owner, row in zip(table["id"].to_pylist(), encoded(table), strict=True):
        owners[row].append(owner)
    used = Counter(owners[row][0] for row in rows if len(set(owners[row])) == 1)
    assert max(used.values()) == MOST
    have = Counter(table["id"].to_pylist())
    assert len(rows) == sum(min(MOST, count) for count in have.values())


def test_order_files_and_spool_change_nothing(tmp_path):
    table, schema = purchases(), schema_of()
    whole = sorted(kept(open_source(table, schema)))
    rng = np.random.default_rng(1)
    mixed = table.take(rng.permutation(len(table)))
    assert sorted(kept(open_source(mixed, schema))) == whole
    for number, part in enumerate((mixed.slice(0, 700), mixed.slice(700, 5), mixed.slice(705))):
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=97)
    assert sorted(kept(open_source(tmp_path, schema))) == whole
    pa_csv.write_csv(mixed, tmp_path / "all.csv")
    assert sorted(kept(open_source(tmp_path / "all.csv", schema))) == whole
    assert sorted(kept(open_source(mixed.to_pandas(), schema))) == whole
    for held in (0, 5000):
        spooled = PersonSource(_opened(tmp_path / "*.parquet", schema), held=held)
        assert sorted(kept(spooled)) == whole
        assert spooled._kept.is_on_disk


def test_other_persons_change_nothing():
    table, schema = purchases(), schema_of()
    rows = Counter(kept(open_source(table, schema)))
    ids = np.asarray(table["id"])
    for person in (1, 2, 50, 300):
        without = table.filter(pa.array(ids != person))
        gone = rows - Counter(kept(open_source(without, schema)))
        come = Counter(kept(open_source(without, schema))) - rows
        assert not come
        assert sum(gone.values()) == min(MOST, int((ids == person).sum()))


def test_the_choice_does_not_follow_the_position():
    values = [0.1 * step for step in range(10)]
    schema, chosen = schema_of(most=1), set()
    for turn in range(10):
        turned = [*values[turn:], *values[:turn]]
        table = pa.table({"id": ["p"] * 10, "a": turned, "c": ["x"] * 10})
        (row,) = kept(open_source(table, schema))
        chosen.add(row)
    assert len(chosen) == 1
    firsts = Counter()
    for person in range(400):  # nor the value: over persons each row has the same chance
        table = pa.table({"id": [f"p{person}"] * 10, "a": values, "c": ["x"] * 10})
        firsts[kept(open_source(table, schema))[0]] += 1
    assert len(firsts) == 10
    # Each count is binomial(400, 1/10): beyond 100 with a chance below 1e-20 (Chernoff), times 10.
    assert max(firsts.values()) < 100


def test_one_giant_person_holds_no_memory():
    rows = 300_000
    table = pa.table(
        {"id": pa.array(np.zeros(rows, np.int64)), "a": np.linspace(0, 1, rows), "c": ["x"] * rows}
    )
    source = PersonSource(_opened(table, schema_of()), held=100_000)
    assert len(kept(source)) == MOST
    assert source._kept is not None
    assert not source._kept.is_on_disk  # pieces were cut before they were held


def test_rows_without_an_id():
    table = pa.table(
        {"id": [None, None, "", "b", None, "b"], "a": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "c": ["x"] * 6}
    )
    assert sorted(row[0] for row in kept(open_source(table, schema_of()))) == [0.4, 0.6]
    one = kept(open_source(table, schema_of(no_person="one-person")))
    assert len(one) == MOST + 2
    assert len(kept(open_source(table.slice(0, 3), schema_of()))) == 0


def test_blocks_are_fixed_ranges_and_every_pass_is_the_same():
    source = open_source(purchases(), schema_of())
    first = kept(source)
    for rows in (1, 7, 100, len(first), 10_000):
        batches = list(source.batches(rows))
        assert [len(batch) for batch in batches[:-1]] == [rows] * (len(batches) - 1)
        assert [batch.start for batch in batches] == list(range(0, len(first), rows))
        assert rows_of(batches) == first
    assert rows_of(source.batches(10, 20, 40)) == first[20:40]
    assert source.public_rows() is None


def test_no_more_rows_than_the_schema_allows():
    limited = Schema(**{**_fields(schema_of()), "max_rows": 50})
    assert len(kept(open_source(purchases(), limited), rows=20)) == 50


def _fields(schema):
    fields = schema.__dataclass_fields__.items()
    return {name: getattr(schema, name) for name, one in fields if one.init}


def baskets():
    rng = np.random.default_rng(3)
    rows = [sorted({int(item) for item in rng.integers(0, 20, rng.integers(0, 6))}) for _ in range(200)]
    return pa.table({"items": pa.array(rows, pa.list_(pa.int64())), "id": rng.integers(0, 30, 200)})


def set_schema(most=2):
    return Schema(
        unit=Unit.PERSON,
        neighbours=Neighbours.REPLACE_PERSON,
        items=ItemSpec(upper=19),
        person=PersonSpec(column="id", max_rows=most),
    )


def sets(source, rows=64):
    return sorted(
        tuple(batch.indices[start:stop].tolist())
        for batch in source.batches(rows)
        for start, stop in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)
    )


def test_item_sets_by_person(tmp_path):
    table, schema = baskets(), set_schema()
    found = sets(open_source(table, schema))
    have = Counter(table["id"].to_pylist())
    assert len(found) == sum(min(2, count) for count in have.values())
    pq.write_table(
        table.take(np.random.default_rng(4).permutation(200)), tmp_path / "b.parquet", row_group_size=17
    )
    assert sets(open_source(tmp_path / "b.parquet", schema)) == found
    spooled = PersonSource(_opened(tmp_path / "b.parquet", schema), held=0)
    assert sets(spooled) == found


def test_what_has_no_column_of_ids_is_refused(tmp_path):
    schema = schema_of()
    with pytest.raises(InvalidInput, match="no column names; give a table"):
        open_source(np.zeros((3, 2)), schema)
    with pytest.raises(InvalidInput, match="column 'id' absent"):
        open_source(purchases().drop_columns(["id"]), schema)
    lists = purchases(5).set_column(0, "id", pa.array([[1]] * 5))
    with pytest.raises(InvalidInput, match="holds no ids"):
        open_source(lists, schema)
    (tmp_path / "s.dat").write_text("1 2\n")
    with pytest.raises(InvalidInput, match="no column names"):
        open_source(tmp_path / "s.dat", set_schema())
    with pytest.raises(InvalidInput, match="'id' occurs 0 times"):
        open_source(baskets().select(["items"]), set_schema())
    assert compare(purchases().drop_columns(["id"]), schema)[1]
    assert not compare(purchases(), schema)[1]


def test_rows_that_nobody_bounded_go_no_further():
    raw = _opened(purchases(), schema_of())
    with pytest.raises(InvalidInput, match="rows are not bounded"):
        WatchedSource(raw)
    wider = PersonSource(_opened(purchases(), schema_of()))
    assert WatchedSource(wider).schema.rows is None
    assert bounded_source(raw).most_of_a_person == MOST


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("unit", '"row"\nneighbours = "add-remove"', "needs unit='person'"),
        ("max_rows_per_person", "0", "must lie between 1 and"),
        ("max_rows_per_person", '"many"', "must be a whole number"),
        ("bound", '"first"', "must be keep or scale"),
        ("no_person", '"guess"', "must be drop or one-person"),
        ("person", '"a"', "is never released"),
        ("rows", "10", "is private under replace-person"),
        ("header", "false", "has no column of ids"),
    ],
)
def test_faults_of_a_schema(field, value, message):
    table = {
        "unit": '"person"\nneighbours = "replace-person"',
        "person": '"id"',
        "max_rows_per_person": "4",
    }
    table[field] = value
    lines = "\n".join(f"{name} = {said}" for name, said in table.items())
    column = '[[columns]]\nname = "a"\nkind = "boolean"\n'
    with pytest.raises(SchemaError, match=message):
        Schema.parse(f'format = "adumbra-schema/2"\n[table]\n{lines}\n{column}')


def test_a_person_needs_its_column_and_the_second_format():
    text = '[table]\nunit = "person"\nneighbours = "replace-person"\n'
    text += '[[columns]]\nname = "a"\nkind = "boolean"\n'
    with pytest.raises(SchemaError, match="person is absent"):
        Schema.parse('format = "adumbra-schema/2"\n' + text)
    more = text.replace("[[columns]]", 'person = "id"\nmax_rows_per_person = 2\n[[columns]]')
    with pytest.raises(SchemaError, match="person: needs format='adumbra-schema/2'"):
        Schema.parse('format = "adumbra-schema/1"\n' + more)
    schema = Schema.parse('format = "adumbra-schema/2"\n' + more)
    assert Schema.parse(schema.to_toml()) == schema
    assert schema.reach.rows == 2


def test_a_pattern_never_takes_the_ids():
    text = (
        'format = "adumbra-schema/2"\n[table]\nunit = "person"\nneighbours = "replace-person"\n'
        'person = "x_id"\nmax_rows_per_person = 2\n[[groups]]\nmatch = "x_*"\nkind = "boolean"\n'
    )
    table = pd.DataFrame({"x_id": [1], "x_a": [True]})
    assert open_source(table, Schema.parse(text)).schema.names == ("x_a",)


def test_a_spool_on_disk_shows_nothing():
    spool = Spool(held=10)
    secret = b"the id of somebody" * 10
    spool.put(b"small", 1)
    assert not spool.is_on_disk
    spool.put(secret, 2)
    spool.put(b"last", 1)
    assert list(spool.frames(1)) == [b"small", b"last"]
    assert list(spool.frames(2)) == [secret]
    spool._file.seek(0)
    on_disk = spool._file.read()
    assert len(on_disk) > len(secret)
    assert b"somebody" not in on_disk
    assert b"small" not in on_disk
    spool.close()


def test_released_tables_are_read_without_ids():
    schema = schema_of()
    table = purchases(20).drop_columns(["id"])
    assert len(kept(open_source(table, schema.by_row()))) == 20
    assert schema.by_row().columns == schema.columns
    assert schema.by_row().by_row() == schema.by_row()


CLOSE = (2**53, 2**53 + 1)  # one number in float64


def close_ids(kind, values=CLOSE):
    ids = pa.array([kind(value) for value in values])
    return pa.table({"id": ids, "a": [0.25] * len(values), "c": ["x"] * len(values)})


def used_of(path, tables, most=1, **spec):
    path.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, path / f"{number}.parquet")
    return len(kept(open_source(path, schema_of(most=most, **spec))))


def test_close_ids_are_apart_where_every_file_tells_them_apart(tmp_path):
    assert used_of(tmp_path / "a", [close_ids(int), close_ids(str), close_ids(int)]) == 2
    # A file of float64 may have rounded an id, so that all of them are compared in float64.
    assert used_of(tmp_path / "b", [close_ids(int), close_ids(float), close_ids(str)]) == 1
    pa_csv.write_csv(close_ids(int), tmp_path / "c.csv")
    assert len(kept(open_source(tmp_path / "c.csv", schema_of(most=1)))) == 2
    for kind, persons in ((int, 2), (float, 1)):
        pq.write_table(close_ids(kind), tmp_path / f"{kind.__name__}.parquet")
        found = ds.dataset(tmp_path / f"{kind.__name__}.parquet")
        assert len(kept(open_source(found, schema_of(most=1)))) == persons
    lines = "".join(f'{{"id": {number}, "a": 0.25, "c": "x"}}\n' for number in (*CLOSE, 7, '"7"'))
    (tmp_path / "rows.jsonl").write_text(lines)
    assert len(kept(open_source(tmp_path / "rows.jsonl", schema_of(most=1)))) == 2
    texts = close_ids(str, ("07", "7"))
    assert used_of(tmp_path / "d", [texts]) == 1
    assert used_of(tmp_path / "e", [texts, close_ids(int, (7,))], ids="as-written") == 2
    with pytest.raises(InvalidInput, match="ids='as-written': needs ids that are stored as text"):
        open_source(close_ids(str).to_pandas(), schema_of(ids="as-written"))


def test_no_row_of_a_data_frame_decides_how_other_ids_are_read():
    """pandas makes float64 of whole numbers, for one row that has none, and objects for one text."""
    for more in ([], [None], ["x"], [1.5]):
        frame = pd.DataFrame({"id": [*CLOSE, *more], "a": 0.25, "c": "x"})
        named = 1 + (more in (["x"], [1.5]))
        assert len(kept(open_source(frame, schema_of(most=1)))) == named


@pytest.mark.parametrize("grows", [True, False])
def test_a_limit_of_rows_moves_no_more_than_one_person_replaced(monkeypatch, grows):
    """Beyond `max_rows` one person more pushes at most m rows of others out, in memory or not."""
    monkeypatch.setattr("adumbra.data.persons.secrets.token_bytes", lambda count: b"s" * count)
    limited = Schema(**{**_fields(schema_of()), "max_rows": 60})
    table = purchases(400, 60)
    ids = np.asarray(table["id"])
    whole = [
        kept(PersonSource(_opened(table, limited), held=held), rows=16) for held in (0, 2000, 10**9)
    ]
    assert whole[0] == whole[1] == whole[2]
    assert len(whole[0]) == 60
    pushed = 0
    for person in range(1, 61):
        other = table.filter(pa.array(ids != person))
        if not grows:
            new = pa.table({"id": [1000 + person] * 9, "a": np.linspace(0, 1, 9), "c": ["y"] * 9})
            other = pa.concat_tables([other, new])
        for held in (0, 10**9):
            rows = Counter(kept(PersonSource(_opened(other, limited), held=held), rows=16))
            before = Counter(whole[0])
            assert max((before - rows).total(), (rows - before).total()) <= MOST
            pushed += (rows - before).total() > 0
    assert pushed > 10  # the limit was at work


def weighed(source, rows=16):
    """Rows by the units that they weigh, in the order in which they come."""
    found = []
    for batch in source.batches(rows):
        assert batch.start % rows == 0
        found += [(row, batch.weight) for row in rows_of([batch])]
    return found


def test_all_rows_count_at_weights_that_add_up_to_the_bound(monkeypatch):
    monkeypatch.setattr("adumbra.data.persons.secrets.token_bytes", lambda count: b"s" * count)
    table, schema = purchases(), schema_of(bound="scale")
    found = [weighed(PersonSource(_opened(table, schema), held=held)) for held in (0, 20_000, 10**9)]
    assert found[0] == found[1] == found[2]
    have = Counter(table["id"].to_pylist())
    assert sum(weight for _, weight in found[0]) == sum(min(MOST, n) for n in have.values()) << 6
    assert len(found[0]) == len(table)  # nobody has more than 64 times the bound
    weights = [weight for _, weight in found[0]]
    assert weights == sorted(weights, reverse=True)  # a limit leaves the lightest out
    assert len(set(weights)) > 2


def test_a_limit_of_weights_moves_no_more_than_two_persons(monkeypatch):
    monkeypatch.setattr("adumbra.data.persons.secrets.token_bytes", lambda count: b"s" * count)
    limited = Schema(**{**_fields(schema_of(bound="scale")), "max_rows": 200 << 6})
    table = purchases(400, 60)
    ids = np.asarray(table["id"])

    def units(data, held):
        found = Counter()
        for row, weight in weighed(PersonSource(_opened(data, limited), held=held)):
            found[row] += weight
        return found

    whole, pushed = units(table, 10**9), 0
    assert sum(whole.values()) <= limited.max_rows
    for person in range(1, 61):
        other = table.filter(pa.array(ids != person))
        new = pa.table({"id": [1000 + person] * 9, "a": np.linspace(0, 1, 9), "c": ["y"] * 9})
        for data in (other, pa.concat_tables([other, new])):
            rows = units(data, 0)
            gone, come = (whole - rows).total(), (rows - whole).total()
            assert max(gone, come) <= 2 * MOST << 6
            assert min(gone, come) <= MOST << 6
            pushed += min(gone, come) > 0
    assert pushed > 10


def test_an_engine_weighs_rows_and_maps_none():
    schema = schema_of(bound="scale")
    source = open_source(purchases(), schema)
    expected = np.zeros(2)
    for row, weight in weighed(source):
        expected[int(row[1])] += weight / 64

    def cells(batch):
        return cell_rows(np.asarray(batch.values)[:, 1:].astype(np.int64), (2,))

    statistic = Histograms(cells=(2,))
    for engine in (LocalEngine(threads=1, rows_per_block=4096), LocalEngine(threads=2), DirectEngine()):
        assert engine.fold(source, cells, statistic, stage="x").to_float().tolist() == expected.tolist()
        with pytest.raises(Unsupported, match="can be summed and nothing else"):
            list(engine.map_blocks(source, len, stage="x"))
    spec = PersonSpec(column="id", max_rows=2, bound="scale")
    lists = open_source(baskets(), Schema(**{**_fields(set_schema()), "person": spec}))
    counts = np.zeros(20)
    for batch in lists.batches(7):
        np.add.at(counts, batch.indices, batch.weight / 64)
    found = LocalEngine().fold(lists, item_rows, ItemCounts(width=20), stage="x")
    assert found.to_float() == pytest.approx(counts)
    assert found.exponent == -6
