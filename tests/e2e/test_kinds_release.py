"""Dates, ordered levels and atoms through a whole release: rows, card, page, answers, further rows."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import adumbra as ad
from adumbra.errors import Unsupported
from adumbra.relations import Neighbours, Unit

ROWS = 4000
SCHEMA = """format = "adumbra-schema/2"
[table]
unit = "row"
neighbours = "replace-one"
[[columns]]
name = "day"
kind = "date"
lower = 2020-01-01
upper = 2023-12-31
missing = "null"
[[columns]]
name = "seen"
kind = "datetime"
lower = 2020-01-01T00:00:00
upper = 2023-12-31T23:59:59
[[columns]]
name = "pain"
kind = "ordinal"
categories = ["none", "mild", "strong", "worst"]
[[columns]]
name = "pay"
kind = "number"
lower = -1000
upper = 1000
atoms = [0]
[[rules]]
when = { day = "<2020-07-01" }
then = { pain = "<=mild" }
[[derived]]
name = "half"
cut = "day"
at = ["2022-01-01"]
"""


def frame():
    rng = np.random.default_rng(5)
    depth = rng.normal(size=ROWS)
    day = np.clip(700 + 200 * depth, 0, 1460).astype(int)
    pain = np.digitize(depth + 0.5 * rng.normal(size=ROWS), [-0.5, 0.5, 1.5])
    start = np.datetime64("2020-01-01", "us")
    return pd.DataFrame(
        {
            "day": pd.Series(start + day * np.timedelta64(1, "D")).where(rng.random(ROWS) > 0.2),
            "seen": start + (day * 86_400 + 3_600) * np.timedelta64(1, "s"),
            "pain": np.array(["none", "mild", "strong", "worst"])[pain],
            "pay": np.where(rng.random(ROWS) < 0.11, 0.0, rng.normal(200, 80, ROWS)),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    ledger = ad.create_ledger(folder / "ledger.db")
    ledger.register(ad.Population("p", Unit.ROW, Neighbours.REPLACE_ONE, 200.0, 1e-3))
    schema, data = ad.Schema.parse(SCHEMA), frame()
    release = ad.release(
        data,
        ad.MomentsConfig(epsilon=20.0, delta=1e-6),
        schema=schema,
        ledger=ledger,
        population="p",
        out=folder / "out",
    )
    return data, release, folder, ledger


def test_rows_keep_shares_orders_and_types(made):
    data, release, folder, _ = made
    assert ad.verify(folder / "out").card["contents"]["tables"]["data"]["columns"][:2] == [
        ["day", "date32[day]"],
        ["seen", "timestamp[us]"],
    ]
    table = release.data
    assert table.schema.field("day").type == pa.date32()
    rows = table.to_pandas()
    # At epsilon 20 the noise of a share is below .002, thirty times less than what is allowed.
    assert abs((rows.pay == 0).mean() - (data.pay == 0).mean()) < 0.02
    assert abs(rows.day.isna().mean() - 0.2) < 0.02
    assert rows.seen.between(pd.Timestamp(2020, 1, 1), pd.Timestamp(2023, 12, 31, 23, 59, 59)).all()
    rank = {"none": 0, "mild": 1, "strong": 2, "worst": 3}
    for frame_ in (data, rows):  # later days have more pain
        held = frame_[frame_.day.notna()]
        assert np.corrcoef(pd.to_datetime(held.day).astype("int64"), held.pain.map(rank))[0, 1] > 0.5
    early = rows.day.notna() & (pd.to_datetime(rows.day) < pd.Timestamp(2020, 7, 1))
    assert set(rows.pain[early]) <= {"none", "mild"}
    late = (pd.to_datetime(rows.day) >= pd.Timestamp(2022, 1, 1)).astype(float)
    assert (rows.half.fillna(-1) == late.where(rows.day.notna(), -1)).all()
    page = (folder / "out" / "card.html").read_text()
    assert "2020-01-01" in page
    assert "counted apart: 0" in page


def test_answers_and_further_rows_take_dates(made):
    data, release, folder, _ = made
    asked = ad.load(folder / "out")
    truth = (data.pain >= "strong").mean()  # "strong" < "worst", as it happens
    assert abs(asked.ask("share where pain>=strong").value - truth) < 0.02
    low, high = asked.share("seen<2022-01-01", level=1 - 1e-9).interval
    assert low <= (data.seen < pd.Timestamp(2022, 1, 1)).mean() <= high
    more = ad.sample(release, 50, where={"day": ">=2022-06-01", "pain": "strong..worst"})
    assert min(more["day"].to_pylist()) >= dt.date(2022, 6, 1)
    assert set(more["pain"].to_pylist()) <= {"strong", "worst"}


@pytest.mark.parametrize("method", ["ron-gauss", "pca", "dppro", "jl-laplace"])
def test_other_methods_take_them_or_refuse_in_their_plan(made, method):
    data, _, folder, ledger = made
    configs = {
        "ron-gauss": ad.RONGaussConfig(epsilon=1.0),
        "pca": ad.PCAConfig(epsilon=1.0, n_components=2, output="sample"),
        "dppro": ad.DPProConfig(epsilon=1.0, n_components=3),
        "jl-laplace": ad.JLLaplaceConfig(epsilon=1.0, n_components=3),
    }
    text = SCHEMA.partition("[[rules]]")[0]
    with pytest.raises(Unsupported, match="atoms: .* cannot keep them"):
        ad.plan(configs[method], ad.Schema.parse(text))
    plain = ad.Schema.parse(text.replace("atoms = [0]\n", "").replace('missing = "null"\n', ""))
    release = ad.release(
        data, configs[method], schema=plain, ledger=ledger, population="p", out=folder / method
    )
    if method in ("ron-gauss", "pca"):
        assert release.data.schema.field("day").type == pa.date32()
        assert set(release.data["pain"].to_pylist()) <= {"none", "mild", "strong", "worst"}
