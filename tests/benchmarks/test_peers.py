"""The comparison with peers: caps hold, ends are told apart, judges count right, changes are named."""

import itertools
import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from comparison import capped, environments, facts, judges, peers_page, tables

CAPS = capped.Caps(cpu_seconds=2, wall_seconds=60, memory_gib=2.0)


def ended(code, tmp_path, caps=CAPS):
    return capped.run([sys.executable, "-S", "-c", code], caps, tmp_path / "log")


def test_a_run_that_ends_well_tells_what_it_used(tmp_path):
    found = ended("x = bytearray(100_000_000)", tmp_path)
    assert (found.outcome, found.message) == ("ok", "")
    assert found.peak_mb > 95


def test_a_crash_is_a_result_with_its_message_and_without_folders(tmp_path):
    found = ended("raise TypeError('no file /home/someone/x/model.bin')", tmp_path)
    assert (found.outcome, found.message) == ("crash", "TypeError: no file .../model.bin")


def test_processor_time_is_capped(tmp_path):
    found = ended("while True: pass", tmp_path)
    assert (found.outcome, found.message) == ("time-out", "2 s of processor time")
    assert found.cpu_s < 10


def test_processor_time_of_many_short_processes_is_capped_together(tmp_path):
    spend = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-S', '-c', {spend!r}])"
    found = ended(code, tmp_path)
    assert (found.outcome, found.message) == ("time-out", "2 s of processor time")
    assert 2.0 <= found.cpu_s < 10


def test_the_peak_is_that_of_the_run_and_not_of_its_judge(tmp_path):
    judge = np.ones(50_000_000)  # 400 MB, which a fork would pass on
    assert ended("pass", tmp_path).peak_mb < 100
    assert judge[-1] == 1.0


def test_the_message_of_a_crash_is_a_line_with_words(tmp_path):
    code = "raise TypeError('budget of 1 is not enough\\n\")')"
    assert "budget of 1 is not enough" in ended(code, tmp_path).message


def test_wall_time_is_capped_for_the_whole_group(tmp_path):
    caps = capped.Caps(cpu_seconds=60, wall_seconds=1, memory_gib=2.0)
    found = ended("import time; time.sleep(600)", tmp_path, caps)
    assert (found.outcome, found.message) == ("time-out", "1 s of wall time")


def test_memory_is_capped(tmp_path):
    assert ended("bytearray(4 * 2**30)", tmp_path).outcome == "memory"


def test_total_variation_of_three_columns_is_the_definition():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 3, (200, 4)), rng.integers(0, 3, (150, 4))
    wanted = []
    for places in itertools.combinations(range(4), 3):
        cells = list(itertools.product(range(3), repeat=3))
        shares = [
            [np.mean((side[:, places] == cell).all(axis=1)) for cell in cells] for side in (left, right)
        ]
        wanted.append(np.abs(np.subtract(*shares)).sum() / 2)
    found = judges.total_variation(left, right, judges.sets_of(4, 3))
    assert found == pytest.approx(np.mean(wanted), abs=1e-12)


def test_rare_levels_are_those_below_one_in_a_hundred():
    real = np.array([0] * 992 + [1] * 8)[:, None]
    assert judges.rare_levels(real, real) == 0.0
    assert judges.rare_levels(np.zeros((500, 1), int), real) == pytest.approx(
        1.0
    )  # the rare level is gone
    assert judges.rare_levels(real, np.array([0, 1])[:, None]) is None


def test_wide_tables_are_judged_on_the_same_few_pairs():
    assert len(judges.sets_of(30, 2)) == 435
    assert judges.sets_of(300, 2) == judges.sets_of(300, 2)
    assert len(judges.sets_of(300, 3)) == judges.PAIRS


def test_peers_get_rows_and_public_facts_and_their_rows_come_back(tmp_path):
    train, _, schema = tables.numeric(14)
    train = train.slice(0, 50)
    tables.write(tmp_path, train, schema)
    public = json.loads((tmp_path / "public.json").read_text())
    assert public["label"] == "y"
    assert public["bounds"]["x0"] == [-1.0, 1.0]
    again = tables.read(tmp_path / "train.csv", schema)
    assert again.equals(train.select(again.column_names))
    (tmp_path / "odd.csv").write_text(
        ",".join(schema.names) + "\n" + ",".join(["7.0"] + [""] * 12 + ["1.0"]) + "\n"
    )
    odd = tables.read(tmp_path / "odd.csv", schema).to_pylist()[0]
    assert (odd["x0"], odd["x1"], odd["y"]) == (1.0, None, "1")


def draw(method, auc, source, outcome="ok", run="1", table="num14"):
    scores = {"lr_auc": auc, "two_way_tv": 0.1} if outcome == "ok" else {}
    return {
        "kind": "draw", "method": method, "table": table, "draw": 0, "source": source, "cap_s": 10,
        "outcome": outcome, "message": "", "scores": scores, "cpu_s": 5.0, "run": run, "rows": 9,
    }  # fmt: skip


def test_what_changed_is_named_and_what_did_not_is_not():
    before = [
        draw("adumbra_moments", 0.80, "a"),
        draw("dpmm_mst", 0.70, "dpmm 1"),
        draw("mbi_pairs", 0.6, "m, adapter 2"),
    ]
    now = [
        draw("adumbra_moments", 0.85, "b", run="2"),
        draw("dpmm_mst", 0.70, "d 2", outcome="crash", run="2"),
        draw("mbi_pairs", 0.601, "m, adapter 2", run="2"),
    ]
    said = list(peers_page.changes(before, now))
    assert said[0] == "changed: adumbra_moments on num14: LR AUC 0.800 -> 0.850"
    assert said[1].startswith("changed: dpmm_mst on num14: ok -> crash")
    assert said[2] == "3 cells measured, 2 changes against the results before"


def test_the_reading_says_where_we_are_behind():
    lines = [
        draw("adumbra_moments", 0.80, "a"), draw("dpmm_mst", 0.90, "d"),
        draw("adumbra_moments", 0.95, "a", table="num50"), draw("dpmm_mst", 0.90, "d", table="num50"),
    ]  # fmt: skip
    said = peers_page.reading(peers_page.Results(lines)).splitlines()[0]
    assert "first on num50" in said
    assert "behind on num14 (dpmm MST better by 0.100)" in said


def test_an_install_that_fails_is_a_result(tmp_path, monkeypatch):
    monkeypatch.setitem(
        environments.RECIPES, "none", environments.Recipe(install=("./no-such-folder",), check="pass")
    )
    made = environments.make(tmp_path, "none")
    assert not made.ok
    assert made.message.startswith("ERROR")
    assert str(tmp_path) not in made.message


def test_the_page_is_what_the_results_say(tmp_path):
    peers_page.write(facts.RESULTS, tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_text() == (facts.PAGES / path.name).read_text(), f"{path.name}: run make peers"


def test_intervals_are_students():
    assert facts.interval([1.0, 2.0, 3.0])[:2] == pytest.approx((2.0, 2.4841377))
    mean, half, count = facts.interval([4.0])
    assert (mean, count) == (4.0, 1)
    assert np.isnan(half)


def test_tables_keep_missing_codes_and_fill_missing_numbers():
    column = pa.chunked_array([[1.0, None, float("nan")]])
    assert tables._filled(column, None) == ["1", "N", "N"]
    assert tables._filled(column, (5, 9)) == [5, 5, 5]


def test_a_peers_budget_is_the_most_that_its_accounting_allows():
    from comparison import adapters

    from adumbra.privacy.conversion import mu_of

    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-5), (8.0, 1e-6)):
        assert adapters.mu_of(epsilon, delta) == pytest.approx(mu_of(epsilon, delta), rel=1e-9)
        rho = adapters.zcdp_of(epsilon, delta)
        assert rho < adapters.mu_of(epsilon, delta) ** 2 / 2  # zCDP is never tighter than one Gaussian
        assert rho > (np.sqrt(np.log(1 / delta) + epsilon) - np.sqrt(np.log(1 / delta))) ** 2
    assert adapters.zcdp_of(1.0, 1e-6) == pytest.approx(0.0243559, rel=1e-5)  # dpmm's cdp_rho


def test_a_budget_of_mst_is_found_whose_parts_fit():
    from comparison import adapters

    whole = float((np.sqrt(np.log(1e6) + 1) - np.sqrt(np.log(1e6))) ** 2)
    refused = whole * (1 - 19 / 1000)  # as recorded: 0.0008568497789255051 > 0.0008568497789255035
    assert not adapters.parts_fit(refused, 49)
    assert adapters.parts_fit(refused, 9)
    rho = adapters.zcdp_of(1.0, 1e-6)
    assert any(adapters.parts_fit(rho * (1 - k * 1e-7), 49) for k in range(1000))


def test_an_end_at_a_smaller_cap_gives_way_and_a_finished_draw_does_not():
    late = draw("dpmm_mst", 0.0, "d", outcome="time-out")
    done = [draw("dpmm_mst", auc, "d") | {"cap_s": cap} for auc, cap in ((0.8, 10), (0.9, 20))]
    found = peers_page.Results([late, *done])
    assert [line["outcome"] for line in found.cells["dpmm_mst", "num14"]] == ["ok", "ok"]
    assert found.mean("dpmm_mst", "num14", "lr_auc")[0] == pytest.approx(0.85)


def test_a_lead_within_our_interval_is_called_so():
    ours = [draw("adumbra_moments", auc, "a") for auc in (0.80, 0.82, 0.84)]
    said = peers_page.standing(peers_page.Results([*ours, draw("dpmm_mst", 0.81, "d")]), "lr_auc")
    assert "first on num14 (within our interval); behind on none" in said


def test_a_method_that_is_used_in_another_way_is_run_again():
    sys.path.append(str(facts.ROOT / "benchmarks"))
    import peers

    assert set(peers.REVISED) <= set(peers.METHODS)
    assert set(peers.METHODS) <= set(peers_page.NAMES)


def test_runs_of_one_number_stand_in_one_order():
    """Two processes may count alike; sets of names have another order in each process."""
    where = {"processor": "p", "cores": 2, "memory_gib": 1, "python": "3"}
    same = {"kind": "run", "date": "d", "source": "s", "machine": where, "versions": {}}
    runs = [{**same, "run": f"7.{n}", "commit": f"c{n}", "command": f"m{n}"} for n in range(20)]
    lines = [draw(f"m{n}", 0.5, "s", run=f"7.{n}") for n in range(20)]
    said = peers_page.origin(peers_page.Results([*runs, *lines])).splitlines()
    found = [line.partition("commit c")[2].partition(":")[0] for line in said]
    assert found == sorted(map(str, range(20)))


def test_lines_of_an_earlier_use_are_not_shown():
    """A crash by our own mistake is no result of a peer."""
    early = draw("opendp_mst", 0.0, "opendp 1", outcome="crash", table="num50")
    found = peers_page.Results([early, draw("opendp_mst", 0.7, "opendp 1, adapter 2")])
    assert set(found.cells) == {("opendp_mst", "num14")}
    assert found.stop("opendp_mst") == ""
