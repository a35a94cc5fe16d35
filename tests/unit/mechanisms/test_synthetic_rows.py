"""Synthetic rows come in blocks of a public size, and the whole table keeps its promises."""

import weakref
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adumbra.data.opening import open_source
from adumbra.mechanisms.base import Draft
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig
from adumbra.postprocess import decode
from adumbra.postprocess.matrices import conditional_sizes
from adumbra.postprocess.moments import sampling
from adumbra.postprocess.ron_gauss import model as ron_gauss
from adumbra.postprocess.rules import broken_rows
from adumbra.relations import Neighbours, Unit
from adumbra.release import formats
from adumbra.schema.row_rules import Rule
from adumbra.schema.schema import Column, Kind, Schema
from support.methods import draw

NAMES = "abc"
SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0.0, upper=90.0),
        *(Column(name=f"x{i}", kind=Kind.NUMBER, lower=-1.0, upper=1.0) for i in range(8)),
        Column(name="job", kind=Kind.CATEGORY, categories=tuple(NAMES)),
        Column(name="y", kind=Kind.CATEGORY, categories=("no", "yes")),
    ),
    unit=Unit.ROW,
    neighbours=Neighbours.REPLACE_ONE,
    label="y",
)
LOUD = {"epsilon": 50.0, "delta": 1e-6}
KINDS = {
    "moments": MomentsConfig(**LOUD),
    "ron-gauss": RONGaussConfig(n_components=3, mode="gmm", **LOUD),
    "pca": PCAConfig(n_components=2, output="sample", **LOUD),
    "lda": LDAConfig(**LOUD),
}


def source(schema=SCHEMA):
    rng = np.random.default_rng(0)
    n = 1500
    columns = {"age": rng.integers(0, 91, n)}
    columns |= {f"x{i}": rng.uniform(-1, 1, n) for i in range(8)}
    columns |= {"job": rng.choice(list(NAMES), n, p=[0.6, 0.3, 0.1])}
    columns |= {"y": np.where(rng.uniform(size=n) < 0.3, "yes", "no")}
    return open_source(pa.table(columns), schema)


def cut(monkeypatch, rows):
    """Blocks of so many rows, whatever their width."""
    monkeypatch.setattr(decode, "BLOCK_VALUES", 1)
    monkeypatch.setattr(decode, "BLOCK_ROWS", rows)
    monkeypatch.setattr(sampling, "LEAST_DRAWN", rows)


def made(name, rows, schema=SCHEMA):
    given = source(schema) if name != "pca" else source(replace(schema, label=None))
    return draw(given, replace(KINDS[name], synthetic_rows=rows))


@pytest.mark.parametrize("name", KINDS)
def test_few_blocks_are_alive_however_many_rows_are_drawn(name, monkeypatch, tmp_path):
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")  # nothing to compile
    monkeypatch.setattr(formats, "GROUP_ROWS", 1024)
    cut(monkeypatch, 128)
    blocks, alive, with_rows = [], [], Draft.with_rows

    def watched(self, made, *rest):
        def each():
            for block in made:
                blocks.append(weakref.ref(block))
                alive.append(sum(one() is not None for one in blocks))
                yield block

        return with_rows(self, each(), *rest)

    monkeypatch.setattr(Draft, "with_rows", watched)
    stream = made(name, 20 * 128 + 1).pending["data"]
    assert len(blocks) == 1  # the others wait for the writer
    _, shape = formats.write_table(tmp_path / "data.parquet", stream)
    assert shape["rows"] == 20 * 128 + 1
    assert len(blocks) == 21
    assert max(alive) <= 3


@pytest.mark.parametrize("name", KINDS)
def test_one_block_is_held_and_more_are_the_same_kind_of_table(name, monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    whole = made(name, 900)
    assert not whole.pending
    cut(monkeypatch, 256)
    parts = made(name, 900)
    assert not parts.tables
    table = parts.table()
    assert table.schema.equals(whole.table().schema)
    assert table.num_rows == 900
    assert table.drop_columns(["job"]).to_pandas().duplicated().sum() == 0  # no block repeats another
    shares = [Counter(one["job"].to_pylist())["a"] / 900 for one in (whole.table(), table)]
    # at most 900 independent draws each, standard deviation of the difference below 0.024
    assert shares[0] == pytest.approx(shares[1], abs=0.17)


def test_blocks_change_no_row_of_the_greedy_sampler(monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    whole = made("lda", 700).table()
    cut(monkeypatch, 96)
    assert made("lda", 700).table().equals(whole)


def test_classes_of_ron_gauss_have_their_sizes_and_a_shuffle_s_law(monkeypatch):
    rows, size = 2000, 250
    cut(monkeypatch, size)
    draft = made("ron-gauss", rows)
    wanted = conditional_sizes(np.asarray(draft.arrays["counts"], np.float64), rows)
    labels = np.array([value == "yes" for value in draft.table()["y"].to_pylist()])
    assert [int((~labels).sum()), int(labels.sum())] == wanted
    left, rng = np.array([1400, 600]), np.random.default_rng(5)
    first = np.array([ron_gauss._dealt(left, size, rng)[1] for _ in range(4000)])
    variance = size * 0.3 * 0.7 * (rows - size) / (rows - 1)  # of the hypergeometric law
    # 4,000 draws: 6.1 standard errors, below 1e-9 each; a share of each class has no variance at all
    assert first.mean() == pytest.approx(75.0, abs=6.1 * np.sqrt(variance / 4000))
    assert first.var() == pytest.approx(variance, rel=6.1 * np.sqrt(2 / 4000))


def test_more_rows_than_the_generator_shuffles_have_their_share_of_each_class():
    left = np.array([3 * 10**9, 10**9])
    assert ron_gauss._dealt(left, 1000, np.random.default_rng(0)).tolist() == [750, 250]


def test_rules_hold_in_every_block_and_their_price_is_of_all_rows(monkeypatch, tmp_path):
    """The card's facts are known when the last block is drawn, and cover all of them."""
    cut(monkeypatch, 4096)
    ruled = replace(SCHEMA, rules=(Rule.of({"when": {"age": "<15"}, "then": {"job": "a"}}),))
    rows = 4096 + 700
    draft = made("moments", rows, ruled)
    assert "rows_changed_by_rules" not in draft.facts
    stream, bare = draft.pending["data"], made("moments", rows).table()
    table = draft.table()
    assert broken_rows(ruled, bare) > 0
    assert broken_rows(ruled, table) == 0
    facts = stream.facts()
    moved = np.array(bare["job"].to_pylist()) != np.array(table["job"].to_pylist())
    assert facts["rows_changed_by_rules"] == pytest.approx(moved.mean(), abs=1e-12)
    assert moved[:4096].any() and moved[4096:].any()  # noqa: PT018 - both blocks count
    counts = [Counter(one["job"].to_pylist()) for one in (bare, table)]
    shift = sum(abs(counts[0][job] - counts[1][job]) for job in NAMES) / (2 * rows)
    assert facts["shift_by_rules"].get("job", 0.0) == pytest.approx(shift, abs=1e-12)
