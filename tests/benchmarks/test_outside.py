"""The outside judge's arithmetic, and `make outside` on a small made-up folder."""

import gzip
import json
import os
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import outside
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import facts, kmarginal, nist, outside_page

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ADUMBRA_DATA", ROOT.parent / "shared" / "data")) / "nist_crc"
CODES = {
    "PUMA": {"dtype": "object", "values": ["a", "b"]},
    "SEX": {"dtype": "int64", "values": [1, 2]},
    "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1", "2"]},
    "AGEP": {"dtype": "int64", "min": 0, "max": 99},
    "PINCP": {"dtype": "object", "has_null": True, "null_value": "N", "min": -1000, "max": 90000},
}


def plain(seed, rows):
    """Codes alone: no column that is cut."""
    rng = np.random.default_rng(seed)
    return {
        "PUMA": rng.choice(["a", "b"], rows).tolist(),
        "SEX": rng.choice(["1", "2"], rows, p=[0.3, 0.7]).tolist(),
        "MSP": rng.choice(["N", "1", "2"], rows).tolist(),
        "HISP": rng.choice(["0", "1"], rows, p=[0.9, 0.1]).tolist(),
    }


PLAIN = {name: CODES[name] for name in ("PUMA", "SEX", "MSP")} | {"HISP": {"values": [0, 1]}}


def by_counting(target, file):
    """The definition, cell by cell: every pair together with PUMA."""
    pairs = list(combinations([name for name in target if name != "PUMA"], 2))
    total = 0.0
    for pair in pairs:
        sides = [
            Counter(zip(*(t[name] for name in ("PUMA", *pair)), strict=True)) for t in (target, file)
        ]
        sizes = [len(t["PUMA"]) for t in (target, file)]
        total += sum(
            abs(sides[0][cell] / sizes[0] - sides[1][cell] / sizes[1]) for cell in set().union(*sides)
        )
    return 500 * (2 - total / len(pairs))


def test_equal_tables_score_1000_and_disjoint_ones_0():
    rows = {"PUMA": ["a"] * 4, "SEX": ["1"] * 4, "HISP": ["0"] * 4}
    schema = {name: PLAIN[name] for name in rows}
    assert kmarginal.score(rows, rows, schema) == (1000.0, [])
    assert kmarginal.score(rows, rows | {"PUMA": ["b"] * 4}, schema) == (0.0, [])
    half = rows | {"SEX": ["1", "1", "2", "2"]}
    assert kmarginal.score(rows, half, schema)[0] == pytest.approx(500.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_score_is_the_definition(seed):
    target, file = plain(seed, 400), plain(100 + seed, 250)
    found, dropped = kmarginal.score(target, file, PLAIN)
    assert not dropped
    assert found == pytest.approx(by_counting(target, file), abs=1e-9)


def test_codes_are_read_as_whole_numbers_and_strange_ones_drop_their_column():
    target = plain(0, 100)
    same = target | {"SEX": [f"{cell}.0" for cell in target["SEX"]]}
    assert kmarginal.score(target, same, PLAIN) == (1000.0, [])
    strange = target | {"MSP": ["7", *target["MSP"][1:]]}
    assert kmarginal.score(target, strange, PLAIN) == (1000.0, ["MSP"])


def test_wide_numbers_are_cut_at_equal_shares_of_the_target():
    ages = [str(age) for age in range(100)]
    true, file = kmarginal.codes("AGEP", ages, ages, CODES)
    assert np.array_equal(true, file)
    # The lowest edge belongs to the first bin, every other edge closes the bin on its left.
    assert sorted(Counter(true.tolist()).values()) == [4] + [5] * 18 + [6]
    beyond, _ = kmarginal.codes("AGEP", ages, ["120"], CODES)  # one of the 20 goes to what lies beyond
    assert len(set(beyond.tolist())) == 19
    income, other = kmarginal.codes("PINCP", [*ages, "N"], ["N", "3"], CODES)
    assert income[-1] == other[0] == 0
    assert len(set(income.tolist())) == 20  # 19 shares and the missing ones


def folder_of(path, scores=None, rows=600):
    """A target of the same layout as NIST's, with one submitted table per epsilon."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["1", "2"], rows)
    table = {
        "PUMA": rng.choice(["a", "b"], rows).tolist(),
        "SEX": sex.tolist(),
        "MSP": np.where(rng.random(rows) < 0.8, sex, "N").tolist(),
        "AGEP": [str(age) for age in rng.integers(0, 100, rows)],
        "PINCP": np.where(
            rng.random(rows) < 0.2, "N", rng.integers(0, 90000, rows).astype(str)
        ).tolist(),
    }
    home = path / "ma2019"
    (home / "files").mkdir(parents=True)
    lines = [",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True))]
    (home / "ma2019.csv.gz").write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    (home / "ma2019.json").write_text(json.dumps({"schema": CODES}))
    board = ["target,feature_set,algorithm,library,epsilon,delta,variant,k_marginal,file"]
    for epsilon in (1, 10):
        made = {name: rng.permutation(cells).tolist() for name, cells in table.items()}
        pq.write_table(pa.table(made), home / "files" / f"{epsilon}.parquet")
        score = kmarginal.score(table, made, CODES)[0] + (scores or 0.0)
        file = f"ma2019/files/{epsilon}.parquet"
        board.append(f"ma2019,simple-features,shuffle,somebody,{epsilon},,,{score:.2f},{file}")
    (path / "LEADERBOARD.csv").write_text("\n".join(board) + "\n")
    return path


def words_of(path, tmp_path):
    where = ["--results", str(tmp_path / "results"), "--pages", str(tmp_path / "pages")]
    chosen = ["--targets", "ma2019", "--sets", "simple-features", "--draws", "2", "--curve", ""]
    return ["--data", str(path), *chosen, *where]


def test_make_outside_on_a_small_folder(tmp_path, capsys):
    words = words_of(folder_of(tmp_path / "data"), tmp_path)
    outside.main(words)
    lines = facts.read(tmp_path / "results" / "outside.jsonl")
    ours = [line for line in lines if line.get("who") == outside.OURS]
    assert {(line["epsilon"], line["draw"]) for line in ours} == {
        (e, d) for e in (1.0, 10.0) for d in (0, 1)
    }
    by_who = {
        who: [x["score"] for x in lines if x.get("who") == who]
        for who in (outside.FLOOR, outside.CEILING)
    }
    assert len(by_who[outside.FLOOR]) == len(by_who[outside.CEILING]) == 2
    assert min(by_who[outside.CEILING]) > max(by_who[outside.FLOOR])  # half of the rows keep SEX x MSP
    assert lines[0]["machine"]["cores"] == os.cpu_count()
    page = (tmp_path / "pages" / "outside.md").read_text()
    assert "shuffle (somebody)" in page
    assert "| Massachusetts | simple (5) |" in page
    assert (tmp_path / "pages" / "outside_ma2019.svg").read_text().startswith("<svg")


def test_what_a_clean_source_has_measured_is_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "source_state", lambda: {"commit": "c", "source": "clean"})
    words = words_of(folder_of(tmp_path / "data"), tmp_path)
    outside.main(words)
    path = tmp_path / "results" / "outside.jsonl"
    before = path.read_text()
    outside.main(words)
    assert path.read_text() == before
    monkeypatch.setattr(facts, "source_state", lambda: {"commit": "d", "source": "newer"})
    outside.main(words)
    added = [json.loads(line) for line in path.read_text()[len(before) :].splitlines()]
    assert {line.get("who") for line in added} == {
        None,
        outside.OURS,
    }  # the run's own line, and our draws
    cells = outside_page.Results(facts.read(path)).cells
    shown = cells["ma2019", "simple-features", 1.0, outside.OURS, outside.OURS]
    assert [line["source"] for line in shown] == ["newer", "newer"]


def test_a_leaderboard_that_says_something_else_stops_the_run(tmp_path):
    words = words_of(folder_of(tmp_path / "data", scores=1.0), tmp_path)
    with pytest.raises(SystemExit, match="leaderboard"):
        outside.main(words)


def test_judges_that_differ_stop_the_run(tmp_path, monkeypatch):
    path = folder_of(tmp_path / "data")
    (path / "judge.py").write_text(
        "import pandas as pd\n"
        "class Judge:\n    def __init__(self, *facts): pass\n    def score(self): return 1.0\n"
    )
    with pytest.raises(SystemExit, match="judges differ"):
        outside.main(words_of(path, tmp_path))


def test_the_second_implementation_gives_the_leaderboard_of_nist():
    if not DATA.exists():
        sys.stderr.write("needs nist_crc in ADUMBRA_DATA; the small folder alone was judged\n")
        return
    for name in nist.TARGETS:
        target = nist.Target(DATA, name)
        for chosen in ("industry-focused", "family-focused"):
            given = target.submissions(chosen, 1.0)[0]
            file = kmarginal.texts(target.read(given.file))
            true = kmarginal.texts(target.table.select(target.columns(chosen)))
            assert kmarginal.score(true, file, target.dictionary)[0] == pytest.approx(
                given.score, abs=0.006
            )


def test_the_page_is_what_the_results_say(tmp_path):
    outside_page.write(facts.read(facts.RESULTS / "outside.jsonl"), tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_text() == (facts.PAGES / path.name).read_text(), (
            f"{path.name}: run make outside"
        )


def judged_line(who, name, epsilon, quality):
    cell = {"target": "ma2019", "set": "simple-features", "epsilon": epsilon, "who": who, "name": name}
    return {"kind": "sdmetrics", **cell, "source": "s", "quality": quality}


def test_the_reading_of_sdmetrics_names_what_it_lost_and_what_is_below_the_floor():
    ours, floor, other = outside_page.OURS, outside_page.FLOOR, "mst (somebody)"
    lines = [
        judged_line(ours, ours, 1.0, 0.8), judged_line("submitted", other, 1.0, 0.7),
        judged_line(ours, ours, 10.0, 0.9), judged_line("submitted", other, 10.0, 0.95),
        judged_line(floor, floor, None, 0.85),
    ]  # fmt: skip
    said = outside_page.metrics_reading(outside_page.Results(lines))
    assert "in 1 of 2 cells (one release each" in said
    assert "Not above: Massachusetts simple at ε = 10 (0.900; mst (somebody) 0.950)." in said
    assert "Below the floor: Massachusetts simple at ε = 1 (0.800; floor 0.850)." in said
    better = outside_page.metrics_reading(
        outside_page.Results([lines[2], judged_line(floor, floor, None, 0.1)])
    )
    assert "None of ours is below the floor." in better
    assert "Not above" not in better


def test_the_table_of_the_readme_is_what_the_results_say():
    found = outside_page.Results(facts.read(facts.RESULTS / "outside.jsonl"))
    assert outside_page.readme(found) in (ROOT / "README.md").read_text(), "README.md: run make outside"
