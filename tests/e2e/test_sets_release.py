"""Item sets from a FIMI file to synthetic sets: paid once, written, verified, shown, read again."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adumbra as ad
from adumbra.errors import InvalidInput
from support.cli import adumbra

ITEMS, ROWS = 12, 3000
SHARES = np.linspace(0.6, 0.05, ITEMS)
SCHEMA = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
declared_by = "the shop"
[items]
lower = 1
upper = 12
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    bought = np.random.default_rng(0).random((ROWS, ITEMS)) < SHARES
    lines = (" ".join(str(i + 1) for i in np.flatnonzero(row)) + "\n" for row in bought)
    (folder / "baskets.dat").write_text("".join(lines))
    (folder / "baskets.toml").write_text(SCHEMA)
    register = "ledger register shop --ledger ledger.db --epsilon 4 --delta 1e-6 --unit row"
    pay = "--schema baskets.toml --ledger ledger.db --population shop --yes"
    for line in (
        "ledger init ledger.db",
        f"{register} --neighbours replace-one",
        f"release baskets.dat {pay} --method moments --epsilon 2 --delta 1e-6 --out out",
    ):
        done = adumbra(*line.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_the_release_is_verified_and_says_what_it_holds(shop):
    assert adumbra("verify", "out", cwd=shop).returncode == 0
    inspected = adumbra("inspect", "out", "--json", cwd=shop)
    contents = json.loads(inspected.stdout)["card"]["contents"]
    assert contents["tables"] == {"data": {"rows": ROWS, "columns": [["items", "list<int32>"]]}}
    assert adumbra("report", "out", "--out", "page.html", cwd=shop).returncode == 0
    for page in ("page.html", "out/card.html"):
        assert "rows of 1 column: 1 of sets of items" in (shop / page).read_text()


def test_the_sets_are_of_the_universe_and_near_the_true_shares(shop):
    release = ad.load(shop / "out")
    assert release.data.schema == pa.schema([("items", pa.list_(pa.int32()))])
    pairs = release.to_pairs()
    items = pairs["item"].to_numpy()
    assert (items.min() >= 1, items.max() <= ITEMS) == (True, True)
    lists = release.data["items"].to_pylist()
    assert all(row == sorted(set(row)) for row in lists)
    rows = [(i, item) for i, row in enumerate(lists) for item in row]
    assert list(zip(*pairs.to_pydict().values(), strict=True)) == rows
    shares = np.bincount(items, minlength=ITEMS + 1)[1:] / ROWS
    # Sampling moves a share by 0.009 at most, the noise by 0.006 (one sigma each): 8 of them together.
    assert np.abs(shares - SHARES).max() < 8 * 0.011
    with pytest.raises(
        InvalidInput, match=r"column \['items'\] holds sets of items; use `to_pairs\(\)`"
    ):
        release.to_numpy()
    assert "<td>[" in release._repr_html_()


def test_what_was_released_is_a_source_of_sets_again(shop):
    read = adumbra("schema", "check", "baskets.toml", "out/data/data.parquet", cwd=shop)
    assert (read.returncode, read.stderr) == (0, "")
    assert pq.read_schema(shop / "out/data/data.parquet").metadata is None
