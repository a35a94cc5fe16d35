"""A release folder: what is written, how it is read back, and which faults are named."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.errors import InvalidInput, VerificationFailed
from adumbra.release import artifact, card, formats, storage
from adumbra.release.artifact import find_faults, load, off_grid, verify
from adumbra.release.formats import TableStream
from adumbra.release.storage import write_staged
from support.release import (
    example_arrays,
    example_card,
    example_guarantee,
    example_release,
    example_tables,
    files_of,
    reseal,
)


@pytest.fixture
def release(tmp_path):
    example_release(tmp_path / "r")
    return tmp_path / "r"


def faults_of(folder, **kwargs):
    with pytest.raises(VerificationFailed) as caught:
        verify(folder, **kwargs)
    assert find_faults(folder, **kwargs) == (tuple(str(caught.value).split("\n")), None)
    return str(caught.value)


def test_a_release_reads_back_as_it_was_written(tmp_path):
    digest = example_release(tmp_path / "new" / "r")
    folder = tmp_path / "new" / "r"
    verified = verify(folder, digest=digest)
    assert verified.digest == digest == hashlib.sha256((folder / "card.json").read_bytes()).hexdigest()
    assert verified.files == 4
    assert verified.size == sum(len(content) for content in files_of(folder).values())
    again = load(str(folder))
    assert again.data.equals(example_tables()["data"])
    assert set(again.arrays) == set(example_arrays())
    for name, array in example_arrays().items():
        assert again.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(again.arrays[name], array)
    assert again.guarantee == example_guarantee()
    assert again.path == folder
    assert sorted(files_of(folder)) == [
        "card.html",
        "card.json",
        "data/data.parquet",
        "model.safetensors",
    ]


def test_the_page_sees_every_file_but_itself(tmp_path):
    seen = []
    example_release(tmp_path / "r", page=lambda card: seen.append(card) or "page")
    assert sorted(seen[0]["files"]) == ["data/data.parquet", "model.safetensors"]
    assert "card.html" in json.loads((tmp_path / "r/card.json").read_text())["files"]


def test_arrays_page_and_tables_are_each_optional(tmp_path):
    write_staged(tmp_path / "a", tables={}, arrays=example_arrays(), card=example_card(), page=None)
    write_staged(tmp_path / "t", tables=example_tables(), arrays={}, card=example_card(), page=None)
    assert sorted(files_of(tmp_path / "a")) == ["card.json", "model.safetensors"]
    assert sorted(files_of(tmp_path / "t")) == ["card.json", "data/data.parquet"]
    with pytest.raises(InvalidInput, match="no table, only arrays"):
        _ = load(tmp_path / "a").data
    assert load(tmp_path / "t").arrays == {}


def test_the_same_release_has_the_same_bytes_whatever_the_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "GROUP_ROWS", 2048)
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=5000), "w": rng.choice(["a", "b", "ü"], size=5000)})
    made = []
    for i, size in enumerate([5000, 4096, 2048, 777, 1]):
        stream = TableStream(table.schema, iter(table.to_batches(max_chunksize=size)))
        write_staged(
            tmp_path / str(i), tables={"rows": stream}, arrays={}, card=example_card(), page=None
        )
        made.append(files_of(tmp_path / str(i)))
    assert all(files == made[0] for files in made)
    footer = pq.ParquetFile(tmp_path / "0/data/rows.parquet").metadata
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [2048, 2048, 904]
    assert footer.metadata is None
    assert load(tmp_path / "3").data.equals(table)


def test_array_bytes_depend_on_values_only(tmp_path):
    arrays = example_arrays()
    other = {name: np.asfortranarray(arrays[name]) for name in reversed(arrays)}
    other["counts"] = np.repeat(other["counts"], 2)[::2].astype(">i8")
    for name, given in (("a", arrays), ("b", other)):
        write_staged(tmp_path / name, tables={}, arrays=given, card=example_card(), page=None)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_wide_tables_get_shorter_row_groups():
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(2000)])
    batch = pa.record_batch([pa.array(np.zeros(9000))] * 2000, schema=schema)
    groups = formats._row_groups(schema, iter([batch]))
    sizes = [sum(piece.num_rows for piece in group) for group in groups]
    assert sizes == [4096, 4096, 808]


def test_dictionary_and_large_text_become_plain_text_and_metadata_goes(tmp_path):
    words = ["b", "a", "b"]
    table = pa.table(
        {
            "d": pa.array(words).dictionary_encode(),
            "l": pa.array(words, pa.large_string()),
            "v": pa.array(words, pa.string_view()),
        }
    ).replace_schema_metadata({"pandas": "secret"})
    write_staged(tmp_path / "r", tables={"t": table}, arrays={}, card=example_card(), page=None)
    data = load(tmp_path / "r").data
    assert data.schema == pa.schema([(name, pa.string()) for name in "dlv"])
    assert data.column("d").to_pylist() == words
    assert b"secret" not in (tmp_path / "r/data/t.parquet").read_bytes()


def test_an_empty_table_and_missing_values_survive(tmp_path):
    tables = {"empty": pa.table({"x": pa.array([], pa.float64()), "s": pa.array([], pa.string())}),
              "holes": pa.table({"x": pa.array([1.0, None]), "s": pa.array([None, "a"])})}  # fmt: skip
    write_staged(tmp_path / "r", tables=tables, arrays={}, card=example_card(), page=None)
    again = load(tmp_path / "r")
    assert again.data.num_rows == 0
    assert again.tables["holes"].equals(tables["holes"])


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (pa.table({"x": [[1, 2]]}), "holds numbers, booleans, text, dates .* and sets of items"),
        (pa.table({"x": pa.array([[[1]]], pa.list_(pa.list_(pa.int32())))}), "type list<item: list<"),
        (pa.table({"x": pa.array([1], pa.timestamp("s"))}), "holds numbers"),
        (pa.table([[1], [2]], names=["x", "x"]), "two columns of one name"),
        (pa.table({}), "at least one column"),
    ],
)
def test_tables_that_a_release_cannot_hold(tmp_path, table, rule):
    with pytest.raises(InvalidInput, match=rule):
        write_staged(tmp_path / "r", tables={"t": table}, arrays={}, card=example_card(), page=None)


@pytest.mark.parametrize("name", ["", "Up", "../x", "a/b", "a" * 65, ".hidden", "a\n"])
def test_table_names_cannot_escape(tmp_path, name):
    with pytest.raises(InvalidInput, match="table names"):
        write_staged(tmp_path / "r", tables={name: pa.table({"x": [1]})}, arrays={}, card={}, page=None)


def test_arrays_that_a_release_cannot_hold(tmp_path):
    for i, array in enumerate([np.array(["a"]), np.array([object()]), np.array([1j])]):
        with pytest.raises(InvalidInput, match="holds numbers and booleans"):
            write_staged(
                tmp_path / str(i), tables={}, arrays={"a": array}, card=example_card(), page=None
            )
    with pytest.raises(FileNotFoundError):  # a fault of the disk keeps its own name and exit code
        formats.write_arrays(tmp_path / "no such" / "m", {"a": np.ones(1)})


def test_a_folder_is_filled_once(tmp_path, release):
    with pytest.raises(InvalidInput, match="must be new, or an empty folder of your own"):
        example_release(release)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="must be new, or an empty folder of your own"):
        example_release(tmp_path / "file")
    with pytest.raises(InvalidInput, match="must be new, or an empty folder of your own"):
        example_release(tmp_path / "file" / "inner")


def test_a_bad_or_endless_card_is_not_written(tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="limits: breaks the rule `type`"):
        example_release(tmp_path / "r", card={**example_card(), "limits": 3}, page=None)
    monkeypatch.setattr(card, "CARD_LIMIT", 100)
    with pytest.raises(InvalidInput, match="shorten the schema or what is said about it"):
        example_release(tmp_path / "s")


def test_every_file_and_folder_is_synced(tmp_path, monkeypatch):
    synced = []
    true_fsync = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: (synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())), true_fsync(fd)),
    )
    example_release(tmp_path / "r")
    relative = [os.path.relpath(path, tmp_path) for path in synced]
    files = ["r/data/data.parquet", "r/model.safetensors", "r/card.html", "r/card.json"]
    assert relative == [*files, "r/data", "r", "."]


def test_not_a_folder(tmp_path):
    with pytest.raises(InvalidInput, match="is not a folder"):
        verify(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="is not a folder"):
        load(tmp_path / "nothing")


def test_every_fault_is_listed_at_once(release):
    (release / "extra.txt").write_text("x")
    (release / "data/data.parquet").unlink()
    (release / "card.html").write_text("longer than it was before")
    text = faults_of(release, digest="0" * 64)
    parts = ["extra.txt: an unknown member", "data/data.parquet: is missing", "card.html: has 25 bytes"]
    assert all(part in text for part in [*parts, "is not the release of the digest given"])


def test_unknown_members_of_every_kind(release):
    (release / ".hidden").write_text("x")
    (release / "sub").mkdir()
    (release / "data/deep").mkdir()
    (release / "data/other.parquet").write_text("x")
    (release / "data/\x1b[31m.parquet").write_text("x")
    os.mkfifo(release / "pipe")
    text = faults_of(release)
    assert text.count("unknown member") == 5
    assert "data/other.parquet: is not listed in the card" in text
    assert "\x1b" not in text


def test_a_folder_full_of_strangers_is_told_in_a_few_lines(release):
    for number in range(50):
        (release / f"{number}.txt").write_text("x")
    lines = faults_of(release).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "and 30 more; is this the folder of a release?"


@pytest.mark.parametrize("name", ["card.html", "card.json", "data/data.parquet", "data"])
def test_links_are_refused_even_to_the_right_bytes(release, tmp_path, name):
    (release / name).rename(tmp_path / "moved")
    (release / name).symlink_to(tmp_path / "moved")
    assert f"{name}: a link" in faults_of(release)


def test_a_link_to_the_whole_release_is_the_readers_own_choice(release, tmp_path):
    (tmp_path / "latest").symlink_to(release)
    assert load(tmp_path / "latest").data.num_rows == 50


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'"x"',
        b"[" * 100000,
        b'{"a": NaN}',
        b'{"a":1}',
        b"1e999",
        b'{"a": "\\ud800"}',
    ],
)
def test_a_card_that_is_not_one(release, raw):
    (release / "card.json").write_bytes(raw)
    assert "card.json: is not a JSON object in canonical form" in faults_of(release)


def test_a_missing_or_huge_card(release, monkeypatch):
    monkeypatch.setattr(artifact, "CARD_LIMIT", 100)
    assert "card.json: is larger than 100 bytes" in faults_of(release)
    (release / "card.json").unlink()
    (release / "stranger").touch()  # in a folder that is no release every file is one
    assert faults_of(release) == "card.json: is missing; is this the folder of a release?"


def test_the_card_must_seal_itself(release):
    card = json.loads((release / "card.json").read_text())
    card["before_dp"] = "none"
    text = json.dumps(card, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    (release / "card.json").write_text(text)
    assert faults_of(release) == "card.json: its own hash is wrong"


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("guarantee", "value"), {}, "guarantee/value: is not a guarantee"),
        (("guarantee", "value", "epsilon"), "much", "guarantee/value: is not a guarantee"),
        (("unit", "unit"), "element", "for another unit or relation"),
        (("ledger", "head", "sequence"), 18, "ledger/head: its signature does not hold"),
        (("ledger", "head", "signature"), "ab" * 64, "ledger/head: its signature does not hold"),
        (("contents", "main"), "other", "its contents are not its files"),
        (("contents", "arrays"), {}, "its contents are not its files"),
        (("contents", "tables"), {}, "its contents are not its files"),
        (("contents", "tables", "data", "rows"), 51, "has other rows or columns than the card states"),
        (("contents", "arrays", "matrix", "shape"), [4, 3], "has other arrays than the card states"),
    ],
)
def test_a_card_that_contradicts_itself_or_its_files(release, place, value, fault):
    def change(card):
        inner = card
        for name in place[:-1]:
            inner = inner[name]
        inner[place[-1]] = value
        return card

    reseal(release, change)
    assert fault in faults_of(release)


def test_files_of_another_kind_under_the_right_name(release):
    (release / "data/data.parquet").write_bytes(b"PAR1 is not enough PAR1")
    (release / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    reseal(release)
    assert "data/data.parquet: is not a readable Parquet file" in faults_of(release)
    assert "model.safetensors: has other arrays" in faults_of(release)
    (release / "model.safetensors").write_bytes(b"no")
    reseal(release)
    assert "model.safetensors: is not a readable safetensors file" in faults_of(release)


def test_files_that_change_after_loading_are_named(release):
    again = load(release)
    (release / "data/data.parquet").write_bytes(b"gone")
    (release / "model.safetensors").write_bytes(b"gone")
    with pytest.raises(VerificationFailed, match=r"data/data.parquet: is not a readable"):
        _ = again.data
    with pytest.raises(VerificationFailed, match=r"model.safetensors: is not a readable"):
        _ = again.arrays["matrix"]


def test_memory_is_bounded_by_the_file_unless_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "READ_FLOOR", 2**24)
    bomb = pa.table({"s": ["x" * 2**20] * 64, "x": np.zeros(64)})
    write_staged(tmp_path / "r", tables={"t": bomb}, arrays={}, card=example_card(), page=None)
    assert (tmp_path / "r/data/t.parquet").stat().st_size < 2**13
    with pytest.raises(VerificationFailed, match=r"asks for 67108864 bytes of memory, 16777216 allowed"):
        _ = load(tmp_path / "r").data
    with pytest.raises(VerificationFailed, match="1000 allowed"):
        _ = load(tmp_path / "r", max_bytes=1000).data
    assert load(tmp_path / "r", max_bytes=2**27).data.equals(bomb)


def test_a_file_may_be_closed_twice(tmp_path):
    sink = formats.HashingFile(tmp_path / "f")
    sink.write(b"x")
    sink.close()
    sink.close()
    assert sink.written() == formats.Written(hashlib.sha256(b"x").hexdigest(), 1)


def test_many_rows_claimed_by_a_small_file_are_refused(tmp_path):
    rows = 2**22
    zeros = pa.table({f"c{i}": np.zeros(rows, dtype=np.int8) for i in range(4)})
    write_staged(tmp_path / "r", tables={"t": zeros}, arrays={}, card=example_card(), page=None)
    with pytest.raises(VerificationFailed, match="asks for"):
        _ = load(tmp_path / "r", max_bytes=2**26).data
    assert load(tmp_path / "r").data.num_rows == rows


def test_off_grid_counts_what_no_lattice_has():
    grid = 2.0**-20
    good = np.arange(-1000, 1000) * grid
    assert off_grid(good, grid) == 0
    assert off_grid(good * 2.0**40, grid) == 0
    bad = np.concatenate([good, [grid / 2, 0.1, np.nan, np.inf, -np.inf]])
    assert off_grid(bad, grid) == 5
    assert off_grid(np.array([5e-324, 1e308]), 2.0**-20) == 1
    assert off_grid(np.array([5e-324, 2.0**500, 0.0]), 2.0**500) == 1
    for grid in (0.0, 0.3, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="power of two"):
            off_grid(good, grid)


def test_no_module_of_the_release_loads_code():
    for module in (artifact, card, storage, formats):
        source = Path(module.__file__).read_text()
        words = ("import pickle", "joblib", "eval(", "exec(", "allow_pickle")
        assert not any(word in source for word in words)


def test_what_is_staged_has_the_times_of_a_day(release):
    times = {path.stat().st_mtime_ns for path in [release, *release.rglob("*")]}
    assert len(times) == 1
    assert times.pop() % storage.DAY == 0
