"""RON-Gauss through everything: plan, ledger, release, verify, map test rows, command line."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.cli import adumbra

ROWS = 4000
RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal(ROWS)
TABLE = pa.table(
    {
        **{f"x{j}": 0.4 * HIDDEN + 0.3 * RNG.standard_normal(ROWS) for j in range(12)},
        "age": RNG.integers(18, 91, ROWS),
        "kind": np.where(HIDDEN > 0, "up", "down"),
    }
)


def schema(neighbours=Neighbours.REPLACE_ONE):
    columns = [Column(name=f"x{j}", kind=Kind.NUMBER, lower=-2.0, upper=2.0) for j in range(12)]
    columns.append(Column(name="age", kind=Kind.INTEGER, lower=18, upper=90))
    columns.append(Column(name="kind", kind=Kind.CATEGORY, categories=("down", "up", "empty")))
    rows = ROWS if neighbours.rows_are_public else None
    return Schema(columns=tuple(columns), label="kind", unit=Unit.ROW, neighbours=neighbours, rows=rows)


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE])
def test_a_mixture_is_released_verified_and_maps_test_rows(neighbours, tmp_path):
    book = ad.create_ledger(tmp_path / "ledger.db")
    book.register(ad.Population("p", Unit.ROW, neighbours, epsilon=20.0, delta=1e-6))
    config = ad.RONGaussConfig(epsilon=8.0, delta=1e-6, mode="gmm", expected_rows=ROWS)
    ad.release(
        TABLE, config, schema=schema(neighbours), ledger=book, population="p", out=tmp_path / "out"
    )
    ad.verify(tmp_path / "out")
    made = ad.load(tmp_path / "out")
    rows = made.data
    assert rows.schema.field("age").type == pa.int64()
    assert set(rows["kind"].to_pylist()) <= {"down", "up", "empty"}
    assert rows.num_rows == pytest.approx(ROWS, abs=0 if neighbours.rows_are_public else 300)
    kinds, x = np.array(rows["kind"].to_pylist()), rows["x0"].to_numpy()
    assert x[kinds == "up"].mean() > x[kinds == "down"].mean() + 0.3
    lines = {line["purpose"]: line["scale"] for line in made.card["mechanisms"]}
    assert lines["gram, entries off the diagonal"] == pytest.approx(lines["gram"] / 2**0.5)
    # a recipient maps rows of their own by the released matrix, and finds the classes there
    encoded = np.stack([TABLE[f"x{j}"].to_numpy() / 4 for j in range(12)], axis=1)
    encoded = np.c_[encoded, (TABLE["age"].to_numpy() - 18) / 72 - 0.5] / made.arrays["row_norm"][0]
    mapped = encoded @ made.arrays["projection"]
    placed = made.arrays["centres"] @ made.arrays["projection"] + made.arrays["means"]
    line = placed[1] - placed[0]
    side = (mapped - (placed[0] + placed[1]) / 2) @ np.linalg.solve(made.arrays["covariances"][0], line)
    assert np.mean((side > 0) == (HIDDEN > 0)) > 0.9


def done(*arguments, cwd):
    finished = adumbra(*arguments, cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_command_line_plans_and_releases(tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    (tmp_path / "rows.toml").write_text(schema().to_toml())
    done("ledger", "init", "ledger.db", cwd=tmp_path)
    register = "ledger register people --ledger ledger.db --epsilon 2 --delta 1e-6 --unit row"
    done(*register.split(), "--neighbours", "replace-one", cwd=tmp_path)
    method = "--schema rows.toml --method ron-gauss --epsilon 1 --delta 1e-6 -o mode=gmm"
    asked = method.split()
    planned = json.loads(done("plan", *asked, "--json", cwd=tmp_path))
    table = planned["details"]["noise_to_signal_by_n_components"]
    assert [row["n_components"] for row in table] == sorted(row["n_components"] for row in table)
    pay = ["--ledger", "ledger.db", "--population", "people", "--yes", "--out", "out"]
    done("release", "rows.parquet", *asked, *pay, cwd=tmp_path)
    card = ad.load(tmp_path / "out").card
    assert card["method"]["name"] == "ron-gauss"
    assert card["facts"]["components"] == planned["details"]["components"]
