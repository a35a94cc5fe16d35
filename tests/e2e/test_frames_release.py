"""A release of a data frame: one cell that changes the type of its column changes one row."""

import numpy as np
import pandas as pd
import pytest

import adumbra as ad
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

ROWS = 2000


@pytest.mark.parametrize("cell", [False, None, 1j], ids=repr)
def test_a_column_of_truths_stays_one(tmp_path, cell):
    sick = Column(name="sick", kind=Kind.CATEGORY, categories=("false", "true"), missing="false")
    age = Column(name="age", kind=Kind.NUMBER, lower=0, upper=120)
    schema = Schema(columns=(sick, age), unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE)
    ledger = ad.create_ledger(tmp_path / "ledger.db")
    ledger.register(ad.Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 50.0, 0.0))
    data = pd.DataFrame({"sick": [True] * (ROWS - 1) + [cell], "age": np.full(ROWS, 50.0)})
    release = ad.release(
        data,
        ad.MomentsConfig(epsilon=50.0, delta=0.0),
        schema=schema,
        ledger=ledger,
        population="p",
        out=tmp_path / "out",
    )
    # Laplace noise of scale 2/50 a count or less for each part of the budget: far below 100 rows.
    assert np.mean(release.data["sick"].to_pandas() == "true") > 0.95
