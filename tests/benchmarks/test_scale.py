"""The page on speed: it says what was missed, how runs spread, and what a cluster's driver limits."""

import json

import pytest
import scale_page

PROJECT = {"n_components": 20, "epsilon": 1.0, "delta": 1e-6}


def line(ratio, spent, *, engine="local", first=True, rows=2_000_000):
    ours = {"cpu": ratio, "spent": spent, "wall": 1.0, "main": 2.0, "started": 0.0}
    ours |= {"peak_mb": 9.0, "worker_mb": 1.0}
    return {
        "method": "dppro", "rows": rows, "columns": 100, "target": 1.5, "config": PROJECT, "axis": "",
        "reference": "rows", "engine": engine, "name": f"dppro {engine}", "ratio": ratio,
        "ours": ours, "theirs": {"cpu": 1.0, "started": 0.0}, "load": 1.0, "is_first": first,
        "distinct": None,
    }  # fmt: skip


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(scale_page, "PAGE", tmp_path / "performance.md")
    monkeypatch.setattr(scale_page, "FOLDER", tmp_path)

    def written(*lines):
        kept = tmp_path / "scale.jsonl"
        kept.write_text("".join(json.dumps(one) + "\n" for one in lines))
        scale_page.write(kept)
        return (tmp_path / "performance.md").read_text()

    return written


def test_a_missed_ratio_is_called_so_and_a_met_one_is_not(page):
    assert "**1.60** | 1.5 (missed)" in page(line(1.6, 1.8))
    assert "(missed)" not in page(line(1.4, 1.8))


def test_the_spread_is_over_runs_before_other_work_alone(page):
    said = page(line(1.6, 1.6), line(1.2, 1.8), line(1.4, 1.7), line(9.0, 0.5, first=False))
    assert "| dppro local | 3 | 1.20 | 1.40 | 1.60 | 2 of 3 | 1.60 | 1.70 | 1.80 | 2 of 3 |" in said


def test_released_rows_wait_for_the_driver_on_paper(page):
    ours = next(row for row in page(line(1.4, 1.8, engine="dask")).splitlines() if "10^9 x 10^3" in row)
    output = scale_page.planned("dppro", PROJECT, 2_000_000, 100).output
    whole = scale_page.planned("dppro", PROJECT, 10**9, 10**3).output
    assert scale_page.duration(whole / (output / 2.0)) in ours


def test_growth_is_drawn(page, tmp_path):
    lines = [
        line(1.4, 1.8) | {"axis": "rows", "rows": rows, "name": f"dppro {rows}"}
        for rows in (1_000, 10_000, 100_000)
    ]
    start = line(0.1, 0.1) | {"axis": "start", "rows": 100, "name": "start"}
    assert "performance_rows.svg" in page(start, *lines)
    assert "<polyline" in (tmp_path / "performance_rows.svg").read_text()
