"""Both projections through everything: schema, ledger, release, verify, distances from the card."""

import json

import numpy as np
import pytest
from scipy.sparse import random_array

import adumbra as ad
from adumbra.engine.local import LocalEngine, blocks_ahead
from adumbra.postprocess.distances import DistanceModel, pair_distances
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import ItemSpec
from support.methods import draw
from support.projection import PAIRS, SetSource, items

CONFIGS = {
    "dppro": lambda **more: ad.DPProConfig(n_components=12, epsilon=60.0, delta=1e-6, **more),
    "jl-laplace": lambda **more: ad.JLLaplaceConfig(n_components=12, epsilon=60.0, **more),
}


def ledger_at(path, unit, delta):
    book = ad.create_ledger(path)
    book.register(ad.Population("p", *PAIRS[unit], epsilon=200.0, delta=delta))
    return book


@pytest.mark.parametrize("unit", ["row", "element"])
@pytest.mark.parametrize("method", CONFIGS)
def test_a_table_is_released_verified_and_measured(method, unit, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, size=(5000, 30))
    schema = ad.Schema.numeric(30, 0.0, 1.0, unit=PAIRS[unit][0], neighbours=PAIRS[unit][1])
    book = ledger_at(tmp_path / "ledger.db", unit, 1e-6 if method == "dppro" else 0.0)
    made = ad.release(
        x, CONFIGS[method](), schema=schema, ledger=book, population="p", out=tmp_path / "out"
    )
    again = ad.load(tmp_path / "out")
    ad.verify(tmp_path / "out")
    assert again.data.equals(made.data)
    assert again.card["method"]["name"] == method
    noise = again.card["mechanisms"][0]
    rows = again.to_numpy()
    assert np.array_equal(np.rint(rows / noise["grid"]), rows / noise["grid"])
    model = DistanceModel.from_facts(again.card["facts"]["distances"])
    estimates = pair_distances(model, rows[:2500], rows[2500:])
    exact = np.sum((x[:2500] - x[2500:]) ** 2, axis=1)
    assert np.std(estimates - exact) < 3.0 * np.mean(model.standard_error(estimates))
    assert (method == "dppro") == ("projection" in again.arrays)
    assert (method == "dppro") == (tmp_path / "out" / "model.safetensors").exists()
    assert ("never written" in json.dumps(again.card)) == (method == "jl-laplace")


@pytest.mark.parametrize("method", CONFIGS)
def test_sparse_rows_are_released(method, tmp_path):
    table = random_array((6000, 200), density=0.03, format="csr", rng=np.random.default_rng(1))
    schema = ad.Schema(items=ItemSpec(upper=199), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    book = ledger_at(tmp_path / "ledger.db", "row", 1e-6 if method == "dppro" else 0.0)
    config = CONFIGS[method](row_norm=3.0)
    made = ad.release(table, config, schema=schema, ledger=book, population="p", out=tmp_path / "out")
    assert made.data.num_rows == 6000
    assert made.data.num_columns == 12


def test_a_release_streams_a_few_blocks_at_a_time():
    """40 blocks of sets: few are read before their rows are handed on.

    Beside those that workers have in store there is one that waits for its place, and one more, whose
    reading showed that the group before it is full.
    """
    most = blocks_ahead(2) + 2
    assert most < 10
    dense = np.zeros((40 * 4096, 8), dtype=bool)
    read = []

    class Counted(SetSource):
        def batches(self, rows, start=0, stop=None):
            for batch in super().batches(rows, start, stop):
                read.append(batch.start)
                yield batch

    config = ad.DPProConfig(n_components=2, epsilon=1.0, delta=1e-6, row_norm=1.0)
    engine = LocalEngine(threads=2, rows_per_block=4096)
    draft = draw(Counted(dense, items(8)), config, engine=engine)
    assert read == []  # nothing is read before somebody writes
    for done, _ in enumerate(draft.pending["data"].batches):
        assert len(read) - done <= most
    assert len(read) == 40
