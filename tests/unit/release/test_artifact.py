"""A release in hand: its faces for pandas, polars, numpy and notebooks."""

import builtins
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.release.artifact import ReadOnDemand, load, off_grid, open_written, verify
from adumbra.release.storage import write_staged
from support.release import example_card, example_release, example_tables


@pytest.fixture
def release(tmp_path):
    example_release(tmp_path / "r")
    return load(tmp_path / "r")


def test_what_was_just_written_is_opened_by_its_digest(tmp_path, release):
    digest = verify(release.path).digest
    assert open_written(release.path, digest).data.equals(release.data)
    with pytest.raises(VerificationFailed, match="not the release of the digest given"):
        open_written(release.path, "0" * 64)
    table = release.path / "data" / "data.parquet"
    table.write_bytes(table.read_bytes() + b"0")
    with pytest.raises(VerificationFailed, match="the card says"):
        open_written(release.path, digest)


def test_frames(release):
    assert release.to_pandas()["ward"].tolist() == release.data["ward"].to_pylist()
    assert release.to_polars().to_arrow()["c1"].to_pylist() == release.data["c1"].to_pylist()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_library_that_is_not_there_is_named(release, library, monkeypatch):
    true_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == library:
            raise ModuleNotFoundError(name)
        return true_import(name, *args, **kwargs)

    class Frameless:
        def to_pandas(self):
            raise ModuleNotFoundError("pandas")

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(release.tables._held, "data", Frameless())
    with pytest.raises(InvalidInput, match=f"{library} is not installed"):
        getattr(release, f"to_{library}")()


def test_numpy(tmp_path, release):
    with pytest.raises(InvalidInput, match=r"column \['ward'\] holds text"):
        release.to_numpy()
    table = pa.table({"x": [1.5, 2.5], "b": [True, False], "n": pa.array([7, None])})
    write_staged(tmp_path / "n", tables={"t": table}, arrays={}, card=example_card(), page=None)
    matrix = load(tmp_path / "n").to_numpy()
    np.testing.assert_array_equal(matrix, [[1.5, 1, 7], [2.5, 0, np.nan]])
    assert matrix.dtype == np.float64


def test_sets_of_items_as_pairs(tmp_path, release):
    with pytest.raises(InvalidInput, match="holds no sets of items; use `data` as it is"):
        release.to_pairs()
    sets = pa.chunked_array([[[3, 5], []], [[5]]], pa.list_(pa.int32()))
    write_staged(
        tmp_path / "s", tables={"t": pa.table({"s": sets})}, arrays={}, card=example_card(), page=None
    )
    again = load(tmp_path / "s")
    assert again.data["s"].to_pylist() == [[3, 5], [], [5]]
    assert again.to_pairs().to_pylist() == [
        {"row": 0, "item": 3},
        {"row": 0, "item": 5},
        {"row": 2, "item": 5},
    ]
    with pytest.raises(InvalidInput, match=r"column \['s'\] holds sets of items"):
        again.to_numpy()


def test_repr_is_short_and_has_the_promise(release):
    assert repr(release) == (
        f"Release(dppro: data 50 x 4, counts 3, flags 2, matrix 3 x 4; {release.guarantee.sentence()})"
    )
    assert repr(release.tables) == "<data>"


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        assert attrs == []
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_the_notebook_face_is_escaped(tmp_path):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    table = pa.table({hostile: [hostile] * 9, **{f"c{i}": np.arange(9) for i in range(20)}})
    card = example_card(about={"title": hostile, "date": "2026-11-16"})
    write_staged(tmp_path / "h", tables={"t": table}, arrays={}, card=card, page=None)
    parsed = Tags(load(tmp_path / "h")._repr_html_())
    assert set(parsed.tags) == {"div", "p", "strong", "br", "table", "thead", "tbody", "tr", "th", "td"}
    assert parsed.text.count(hostile) == 1 + 1 + 5
    assert parsed.tags.count("th") == 8


def test_the_notebook_face_without_a_table(tmp_path):
    write_staged(tmp_path / "a", tables={}, arrays={"m": np.eye(2)}, card=example_card(), page=None)
    assert set(Tags(load(tmp_path / "a")._repr_html_()).tags) == {"div", "p", "strong", "br"}


def test_parts_are_read_once_and_only_when_asked():
    asked = []
    parts = ReadOnDemand(("a", "b"), lambda name: asked.append(name) or name.upper())
    assert (len(parts), list(parts), asked) == (2, ["a", "b"], [])
    assert parts["b"] == parts["b"] == "B"
    assert asked == ["b"]
    with pytest.raises(KeyError):
        parts["c"]


def test_example_values_are_on_the_grid_of_the_card(release):
    table = example_tables()["data"]
    grid = release.card["mechanisms"][0]["grid"]
    assert off_grid(np.column_stack([table["c1"].to_numpy(), table["c2"].to_numpy()]), grid) == 0
