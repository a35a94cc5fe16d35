"""Top-k from files to a verified release; the same exact sums from every format, block and thread."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.engine.local import LocalEngine
from adumbra.errors import BudgetRefused, InvalidInput
from adumbra.numerics import NOISE_BLOCK
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
from adumbra.statistics.counts import Norm, TruncatedCounts, item_rows
from support.methods import draw
from support.topk import market

WIDTH = 40
SCHEMA = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=ItemSpec(upper=WIDTH - 1))
ROWS = market(2 * NOISE_BLOCK + 100, WIDTH)


def formats(folder):
    lists = pa.array(ROWS, pa.list_(pa.int32()))
    pq.write_table(pa.table({"items": lists}), folder / "one.parquet", row_group_size=777)
    (folder / "rows.dat").write_text("".join(" ".join(map(str, row)) + "\n" for row in ROWS))
    (folder / "parts").mkdir()
    for number, (a, b) in enumerate(((0, 5000), (5000, 5001), (5001, len(ROWS)))):
        pq.write_table(pa.table({"items": lists[a:b]}), folder / "parts" / f"{number}.parquet")
    lengths = np.array([len(row) for row in ROWS])
    items = np.concatenate([np.array(row, np.int64) for row in ROWS])
    matrix = csr_array(
        (np.ones(len(items)), items, np.r_[0, np.cumsum(lengths)]), shape=(len(ROWS), WIDTH)
    )
    messy = [[*reversed(row), *row, 10**9, -5] for row in ROWS]
    return {
        "parquet": str(folder / "one.parquet"),
        "folder": str(folder / "parts"),
        "fimi": str(folder / "rows.dat"),
        "scipy.sparse": matrix,
        "messy": pa.table({"items": pa.array(messy, pa.list_(pa.int64()))}),
    }


def test_every_format_block_and_thread_count_gives_the_same_bits(tmp_path):
    statistic = TruncatedCounts(width=WIDTH, length=3, norm=Norm.L2)
    config = ad.TopKConfig(k=7, epsilon=0.5, delta=0.0)
    sums, tables = [], []
    for data in formats(tmp_path).values():
        source = open_source(data, SCHEMA)
        for engine in (LocalEngine(threads=1), LocalEngine(threads=2, rows_per_block=2 * NOISE_BLOCK)):
            sums.append(engine.fold(source, item_rows, statistic, stage="count").units.tobytes())
            tables.append(draw(source, config, seed=5, engine=engine).tables["data"])
    assert len(set(sums)) == 1
    assert all(table.equals(tables[0]) for table in tables)


@pytest.mark.parametrize("algorithm", ["auto", "tps-refine", "em"])
def test_a_table_of_truths_gives_what_its_sets_give(tmp_path, algorithm):
    """The paper's own data: 0 and 1 by column; booleans and integers, in CSV and in memory."""
    held = np.zeros((len(ROWS), WIDTH), np.int64)
    for place, row in enumerate(ROWS):
        held[place, row] = 1
    names = [f"article {number}" for number in range(WIDTH)]
    truths = [
        Column(name=name, kind=Kind.BOOLEAN)
        if number % 2
        else Column(name=name, kind=Kind.INTEGER, lower=0, upper=1)
        for number, name in enumerate(names)
    ]
    schema = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, columns=tuple(truths))
    table = pa.table(dict(zip(names, held.T, strict=True)))
    pa_csv.write_csv(table, tmp_path / "rows.csv")
    config = ad.TopKConfig(k=7, epsilon=0.5, delta=0.0, algorithm=algorithm)
    sets = draw(open_source(formats(tmp_path)["parquet"], SCHEMA), config, seed=5).tables["data"]
    for data in (table, tmp_path / "rows.csv", held):
        found = draw(open_source(data, schema), config, seed=5).tables["data"]
        assert found.drop_columns(["name"]).equals(sets)
        assert found["name"].to_pylist() == [names[item] for item in sets["item"].to_pylist()]


@pytest.mark.parametrize("method", ["auto", "tps-pfm", "joint"])
def test_a_release_is_paid_written_and_verified(tmp_path, method):
    data = formats(tmp_path)["parquet"]
    ledger = ad.create_ledger(tmp_path / "ledger.db")
    ledger.register(ad.Population("shop", Unit.ROW, Neighbours.ADD_REMOVE, 1.0, 0.0))
    config = ad.TopKConfig(k=5, epsilon=0.75, delta=0.0, algorithm=method)
    out = tmp_path / "out"
    made = ad.release(data, config, schema=SCHEMA, ledger=ledger, population="shop", out=out)
    assert made.data["rank"].to_pylist() == [1, 2, 3, 4, 5]
    again = ad.load(out)
    assert again.data.equals(made.data)
    ad.verify(out)
    with pytest.raises(BudgetRefused):
        ad.release(data, config, schema=SCHEMA, ledger=ledger, population="shop", out=tmp_path / "more")


def test_a_dictionary_that_is_absent_costs_nothing(tmp_path):
    ledger = ad.create_ledger(tmp_path / "ledger.db")
    ledger.register(ad.Population("shop", Unit.ROW, Neighbours.ADD_REMOVE, 1.0, 0.0))
    before = ledger.head().sequence
    items = ItemSpec(upper=WIDTH - 1, dictionary=str(tmp_path / "nowhere.csv"))
    schema = Schema(unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE, items=items)
    with pytest.raises(InvalidInput, match=r"nowhere.csv: no such file; give a public file"):
        ad.release(
            pa.table({"items": [[1], [2]]}),
            ad.TopKConfig(k=1, epsilon=1.0, delta=0.0),
            schema=schema,
            ledger=ledger,
            population="shop",
            out=tmp_path / "out",
        )
    assert ledger.head().sequence == before
