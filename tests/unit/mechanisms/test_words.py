"""What a page says of a row is true of the rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.mechanisms.base import Published
from adumbra.mechanisms.methods import config_of, method_of
from adumbra.mechanisms.pictured import NOTHING, pictures_of_release
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from support.methods import draw, released

ROWS = 40
COLUMNS = (
    Column(name="x", kind=Kind.NUMBER, lower=0.0, upper=1.0),
    Column(name="z", kind=Kind.NUMBER, lower=0.0, upper=1.0),
    Column(name="two", kind=Kind.BOOLEAN),
)
SCHEMA = Schema(
    columns=COLUMNS, unit=Unit.ROW, neighbours=Neighbours.REPLACE_ONE, label="two", rows=ROWS
)
RNG = np.random.default_rng(1)
DATA = pa.table(
    {"x": np.linspace(0.0, 1.0, ROWS), "z": RNG.random(ROWS), "two": pa.array(RNG.random(ROWS) < 0.5)}
)
TRUE = {"delta": 1e-6, "epsilon": 900.0}  # so little noise that a row can be told from another


def said_and_drawn(config):
    draft = draw(open_source(DATA, SCHEMA), config)
    settled = method_of(config).settle(config, SCHEMA)
    said = method_of(config).steps().words(settled, Published(arrays=draft.arrays, tables=draft.tables))
    return said["data"], released(draft)


@pytest.mark.parametrize(
    "config",
    [
        ad.MomentsConfig(**TRUE),
        ad.LDAConfig(**TRUE),
        ad.RONGaussConfig(n_components=2, **TRUE),
        ad.RONGaussConfig(n_components=2, mode="gmm", output="projected", **TRUE),
        ad.PCAConfig(n_components=2, output="sample", **TRUE),
    ],
    ids=["moments", "lda", "ron-gauss", "ron-gauss projected", "pca sample"],
)
def test_synthetic_rows_are_called_so(config):
    words, rows = said_and_drawn(config)
    assert words.startswith("Synthetic rows, drawn from noisy statistics. No row belongs to a person")
    first = rows.column(0).to_numpy()
    assert abs(np.corrcoef(first, np.arange(ROWS))[0, 1]) < 0.9  # no order of the private rows in it


def test_rows_of_pca_are_those_of_the_table_in_order():
    words, rows = said_and_drawn(ad.PCAConfig(n_components=3, **TRUE))
    assert words.startswith("One row per private row, in the same order")
    assert rows.num_rows == ROWS
    assert np.corrcoef(rows["x"].to_numpy(), DATA["x"].to_numpy())[0, 1] > 0.9


def test_without_a_direction_every_row_of_pca_is_the_mean():
    """The page said that each was one private row, changed by noise."""
    words, rows = said_and_drawn(ad.PCAConfig(n_components=0, **TRUE))
    assert words == "Every row is the noisy mean; there are as many as private rows."
    assert rows.num_rows == ROWS
    assert len(set(zip(*rows.to_pydict().values(), strict=True))) == 1
    draft = draw(open_source(DATA, SCHEMA), ad.PCAConfig(n_components=0, **TRUE))
    assert draft.facts["rows"] == "each is the noisy mean"


@pytest.mark.parametrize("config", [ad.DPProConfig, ad.JLLaplaceConfig])
def test_projected_rows_say_what_their_label_is(config):
    words, rows = said_and_drawn(config(n_components=2, epsilon=1.0))
    assert words == "One row per private row, in the same order: encoded, projected and with noise."
    assert rows.column_names == ["y1", "y2"]
    words, rows = said_and_drawn(config(n_components=2, epsilon=1.0, label="public"))
    assert "The column two is that of the private row, without noise: it was declared public." in words
    assert rows["two"].to_pylist() == DATA["two"].to_pylist()
    words, rows = said_and_drawn(config(n_components=2, epsilon=1.0, label="randomised"))
    assert "The column two is randomised: true with chance 0." in words
    assert rows["two"].to_pylist() != DATA["two"].to_pylist()


def test_a_card_of_another_version_is_shown_without_pictures(tmp_path):
    """Its method, or an option of it, is not known here; what is released stays readable."""
    config = ad.MomentsConfig(epsilon=2.0)
    ledger = ad.create_ledger(tmp_path / "ledger.db")
    ledger.register(ad.Population("people", SCHEMA.unit, SCHEMA.neighbours, 3.0, 1e-6))
    made = ad.release(
        DATA, config, schema=SCHEMA, ledger=ledger, population="people", out=tmp_path / "r"
    )
    assert pictures_of_release(made) != NOTHING
    method = dict(made.card["method"])
    for later in (
        {"name": "quantiles"},
        {"config": {**method["config"], "epsilon": -1.0}},
        {"config": {**method["config"], "later_option": 1}},
    ):
        newer = replace(made, card={**made.card, "method": {**method, **later}})
        assert pictures_of_release(newer) == NOTHING
    with pytest.raises(InvalidInput, match="'later_option' is no option of it here; a later version"):
        config_of(method["name"], {**method["config"], "later_option": 1})
