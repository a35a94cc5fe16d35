"""The benchmark behind docs/explanation/utility.md: its page, its comparison, its floor."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from comparison import facts
from scipy.stats import ttest_ind
from utility import (
    held_out_surveys,
    held_out_tables,
    moments,
    moments_page,
    moments_tables,
    others,
    others_page,
)
from utility.tables_common import ADD, schema_of

from adumbra.schema.schema import Column, Kind

PAGE = facts.ROOT / "docs" / "explanation" / "utility.md"


def line(value, *, method="moments", epsilon=1.0, draw=0, source="new", data="xor"):
    cell = {"data": data, "method": method, "epsilon": epsilon, "draw": draw, "source": source}
    return {"kind": "utility", **cell, "scores": {"LR AUC": value, "CPU s": 1.0}}


def test_the_page_is_what_the_results_say(tmp_path):
    copy = tmp_path / "utility.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    moments_page.write(facts.read(facts.RESULTS / "utility.jsonl"), copy)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_the_source_measured_last_counts_and_every_method_has_its_own():
    lines = [line(0.6, source="old"), line(0.7), line(0.8, draw=1), line(0.5, method="lda")]
    cells = moments_page.cells_of(lines)
    assert cells["xor", "moments", 1.0, "LR AUC"][0] == pytest.approx(0.75)
    assert cells["xor", "lda", 1.0, "LR AUC"][0] == 0.5
    shown = moments_page.table(cells, "xor", [1.0])
    assert shown.startswith("| xor | LR AUC | .750 (2) |")


def test_a_loss_beyond_the_interval_is_named(tmp_path, capsys):
    for name, values in (("old", (0.90, 0.901, 0.899)), ("new", (0.80, 0.801, 0.799))):
        lines = [line(value, draw=draw) for draw, value in enumerate(values)]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    moments.main(["--compare", str(tmp_path / "old"), str(tmp_path / "new")])
    moments.main(["--compare", str(tmp_path / "new"), str(tmp_path / "old")])
    found = [text.split()[-1] for text in capsys.readouterr().out.splitlines() if "LR" in text]
    assert found == ["WORSE", "better"]


def test_the_floor_has_one_way_laws_and_nothing_else():
    train, test, schema = moments_tables.parity(rows=4000, width=5)
    floor = moments.independent(train, schema, 8.0, 0)
    assert floor.schema.names == train.schema.names
    found = moments.scores(floor, test, schema, "xor")
    assert found["one-way TV"] < 0.05
    assert abs(np.corrcoef(floor["b0"].to_numpy(), floor["b1"].to_numpy())[0, 1]) < 0.1
    assert found["GB AUC"] < 0.65
    assert moments.scores(train, test, schema, "xor")["GB AUC"] > 0.8


def test_what_was_seen_of_the_held_out_tables_counts_as_tuned_on():
    listed, seen = set(held_out_tables.NAMES), set(held_out_tables.SEEN)
    assert listed & moments_tables.TUNED == seen
    assert (len(listed), len(seen)) == (65, 21)
    assert listed < set(moments_tables.NAMES)


def test_the_page_says_how_many_tables_are_held_out():
    held = [name for name in moments_tables.NAMES if name not in moments_tables.TUNED]
    assert len(held) >= len(moments_tables.NAMES) / 2
    said = f"They are {len(held)} of {len(moments_tables.NAMES)} tables."
    assert said in PAGE.read_text(encoding="utf-8")


def test_the_rule_of_the_surveys_reads_shapes_alone():
    codes = {f"c{i}": [i % 2, 0] * 1_000 + [1] for i in range(6)}
    taken = pd.DataFrame(codes)
    assert held_out_surveys.is_taken(taken, 2_000)
    assert not held_out_surveys.is_taken(taken, 2_002)
    assert not held_out_surveys.is_taken(taken.iloc[:, :5], 2_000)
    numbers = taken.assign(**{f"c{i}": range(2_001) for i in range(5)})
    assert not held_out_surveys.is_taken(numbers, 2_000)
    assert held_out_surveys.codes_of(numbers) == ["c5"]


def test_a_missing_code_of_a_held_out_table_is_a_code_of_its_own():
    frame, columns = held_out_tables.declared(pd.DataFrame({"code": ["a", None, "b"]}), "code")
    assert columns[0].categories == ("?", "a", "b")
    assert frame["code"].tolist() == ["a", "?", "b"]


def test_held_out_columns_are_declared_by_their_values_alone():
    values = {
        "code": [0, 1] * 10,
        "whole": range(20),
        "real": [i / 3 for i in range(20)],
        "text": ["a", "b"] * 10,
        "class": range(20),
    }
    frame, columns = held_out_tables.declared(pd.DataFrame(values), "class")
    assert [column.kind.value for column in columns] == [
        "category", "integer", "number", "category", "category",
    ]  # fmt: skip
    assert columns[0].categories == ("0", "1")
    assert (columns[1].lower, columns[1].upper) == (0, 19)
    assert frame["code"].tolist()[:2] == ["0", "1"]


def test_the_page_says_where_the_floor_is_better_and_whether_that_is_sure():
    def cells(ours, floor, half, draws=3):
        key = ("xor", "moments", 1.0, "one-way TV"), ("xor", "independent", 1.0, "one-way TV")
        return {key[0]: (ours, half, draws), key[1]: (floor, half, draws)}

    assert "No mean" in moments_page.below(cells(0.02, 0.03, 0.001), ["xor"], [1.0])
    sure = moments_page.below(cells(0.04, 0.03, 0.001), ["xor"], [1.0])
    assert "**one-way .040 ± .001 (.030)**" in sure
    assert "**" not in moments_page.below(cells(0.04, 0.03, 0.012), ["xor"], [1.0])
    one = cells(0.04, 0.03, float("nan"), draws=1)
    assert "**" not in moments_page.below(one, ["xor"], [1.0])
    real = {("xor", "real", None, "one-way TV"): (0.035, float("nan"), 1)}
    assert "real rows .035" in moments_page.below(cells(0.04, 0.03, 0.001) | real, ["xor"], [1.0])


def test_the_trees_are_those_of_every_budget():
    """A table whose budgets were measured on two trees is listed under both."""
    lines = [line(0.5, data="adult", source="old")]
    lines += [line(0.5, epsilon=e, source="old") for e in (0.1, 1.0, 8.0)]
    lines.append(line(0.5, epsilon=8.0))
    found = moments_page.trees(lines)
    assert "`new` (`xor` at ε = 8); `old` (`xor` at ε = 0.1 and 1, `adult`)." in found
    whole = moments_page.trees([*lines, *(line(0.5, epsilon=e) for e in (0.1, 1.0))])
    assert "`new` (`xor`); `old` (`adult`)." in whole


def test_the_page_says_where_more_budget_is_worse():
    def cells(score, less, more, half=0.001, draws=3):
        keys = [("xor", "moments", epsilon, score) for epsilon in (1.0, 8.0)]
        return dict(zip(keys, ((less, half, draws), (more, half, draws)), strict=True))

    worse = moments_page.more_is_worse(cells("LR AUC", 0.90, 0.80), ["xor"])
    assert "`xor`: LR AUC .800 ± .001 (.900 ± .001)" in worse
    assert "of 1 scores" in worse
    assert "in none of 1" in moments_page.more_is_worse(cells("LR AUC", 0.80, 0.90), ["xor"])
    assert "in none of 1" in moments_page.more_is_worse(cells("LR AUC", 0.90, 0.89, half=0.1), ["xor"])
    assert "in none of 0" in moments_page.more_is_worse(cells("LR AUC", 0.9, 0.8, draws=1), ["xor"])
    assert "one-way TV .030" in moments_page.more_is_worse(cells("one-way TV", 0.02, 0.03), ["xor"])
    assert "in none" in moments_page.more_is_worse(cells("one-way TV", 0.03, 0.02), ["xor"])


def test_the_page_shows_the_largest_cpu_and_rivals_that_have_a_figure():
    lines = [line(0.7, epsilon=e) for e in (0.1, 1.0, 8.0)]
    for one, seconds in zip(lines, (1.0, 2.0, 7.5), strict=True):
        one["scores"]["CPU s"] = seconds
    cells = moments_page.cells_of(lines)
    alone = moments_page.whole(cells, ["xor"], [0.1, 1.0, 8.0])
    assert "| floor | real | CPU s, largest |" in alone
    assert alone.rstrip().endswith("| 7.5 |")
    cells = moments_page.cells_of([*lines, line(0.61, method="lda")])
    both = moments_page.whole(cells, ["xor"], [0.1, 1.0, 8.0])
    assert "| floor | lda | real |" in both
    assert "ron-gauss" not in both
    assert "| .610 |  | 7.5 |" in both


def test_the_interval_of_a_difference_is_welchs():
    left, right = [1.0, 1.2, 1.4, 0.9], [2.0, 2.9, 2.4]
    found = facts.half_of_difference(facts.interval(left), facts.interval(right))
    low, high = ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
    assert found == pytest.approx((high - low) / 2.0)
    assert facts.half_of_difference(facts.interval([1.0]), facts.interval(right)) == math.inf
    assert facts.half_of_difference(facts.interval([1.0, 1.0]), facts.interval([2.0, 2.0])) == 0.0


def test_a_package_gets_rows_without_missing_ones_and_gives_the_same_types_back():
    columns = [
        Column(name="flag", kind=Kind.BOOLEAN),
        Column(name="code", kind=Kind.CATEGORY, categories=("a", "b"), missing="category"),
        Column(name="whole", kind=Kind.INTEGER, lower=2, upper=9),
        Column(name="part", kind=Kind.NUMBER, lower=-1.0, upper=1.0),
    ]
    rows = pa.table({"flag": [True, False], "code": ["b", None], "whole": [3, 9], "part": [0.5, np.nan]})
    given, public = others.told(rows, schema_of(columns, "flag"))
    assert given.to_pydict() == {
        "flag": ["1", "0"], "code": ["b", "N"], "whole": [3, 9], "part": [0.5, -1.0],
    }  # fmt: skip
    for name, levels in (("flag", ("0", "1")), ("code", ("a", "b", "N"))):
        assert next(c for c in public.columns if c.name == name).categories == levels
    back = others.untold(given, schema_of(columns, "flag")).to_pydict()
    assert back == {"flag": [True, False], "code": ["b", None], "whole": [3, 9], "part": [0.5, -1.0]}


def other(method, value, *, source="dpmm 1", draw=0, outcome="ok"):
    told = {"data": "xor", "method": method, "epsilon": 1.0, "source": source, "draw": draw}
    ended = {"outcome": outcome, "message": "900 s", "cpu_s": 70.0}
    scores = {} if value is None else {"LR AUC": value}
    return {"kind": "other", **told, **ended, "scores": scores}


def own(*values, source="new"):
    return [other("adumbra", value, source=source, draw=draw) for draw, value in enumerate(values)]


def others_section(*lines):
    return others_page.section(lines, moments_page.shown, moments_page.short)


def test_the_page_says_where_another_package_is_better_and_how_it_ended():
    theirs = (other("dpmm_mst", 0.75), other("dpmm_aim", None, outcome="time-out"))
    worse = others_section(*own(0.7), *theirs)
    assert "LR AUC: first on 0 of 1; behind on `xor` (ε = 1, by .050)." in worse
    assert "time-out: 900 s" in worse
    assert "LR AUC: first on 1 of 1." in others_section(*own(0.8), *theirs)
    assert not others_section(*own(0.7))


def test_our_draws_under_add_remove_are_the_ones_that_are_compared():
    theirs = other("dpmm_mst", 0.75)
    found = others_section(line(0.9), theirs, *own(0.5, source="old"), *own(0.7, 0.74, 0.78))
    assert "| xor | 1 | **adumbra** | .740 ± .099 |" in found
    assert "by .010, within)" in found
    assert "by .250)" in others_section(theirs, *own(0.49, 0.5, 0.51))


def test_our_draws_for_it_are_add_remove_and_made_once(tmp_path, monkeypatch):
    seen = []

    def small(_folder, _name):
        return moments_tables.parity(rows=2000, width=4)

    def noted(method, table, schema, epsilon, seed):
        seen.append(schema.neighbours)
        return real(method, table, schema, epsilon, seed)

    real = moments.synthesize
    monkeypatch.setattr(others, "load", small)
    monkeypatch.setattr(moments, "synthesize", noted)
    out = tmp_path / "lines.jsonl"
    words = ["--environments", str(tmp_path), "--only", "xor", "--methods", "adumbra", "--draws", "2"]
    for _ in range(2):
        others.main([*words, "--out", str(out)])
    lines = facts.read(out)
    assert seen == [ADD, ADD]
    assert [line["kind"] for line in lines] == ["others", "other", "other"]
    assert [line.get("draw") for line in lines] == [None, 0, 1]
    assert all(0.0 < line["scores"]["two-way TV"] < 0.5 for line in lines[1:])


@pytest.mark.parametrize(("levels", "cells"), [(("a", "N"), ["a", "N"]), (("a", "b"), ["a", None])])
def test_a_missing_code_never_stands_for_another_one(levels, cells):
    columns = [Column(name="code", kind=Kind.CATEGORY, categories=levels)]
    with pytest.raises(ValueError, match="'N' cannot stand for a missing code"):
        others.told(pa.table({"code": cells}), schema_of(columns, "code"))


def test_the_page_says_in_short_what_all_tables_show():
    def cell(value):
        return (value, 0.01, 3)

    cells = {
        ("a", "moments", 1.0, "one-way TV"): cell(0.1),
        ("a", "independent", 1.0, "one-way TV"): cell(0.2),
        ("b", "moments", 1.0, "one-way TV"): cell(0.3),
        ("b", "independent", 1.0, "one-way TV"): cell(0.2),
        ("c", "moments", 1.0, "one-way TV"): cell(0.9),
        ("a", "moments", 1.0, "LR AUC"): cell(0.7), ("a", "real", None, "LR AUC"): cell(0.9),
        ("b", "moments", 1.0, "LR AUC"): cell(0.5), ("b", "real", None, "LR AUC"): cell(0.55),
    }  # fmt: skip
    lines = moments_page.in_short(cells, ["a", "b", "c"], [1.0]).splitlines()
    assert "| 1.000 (1 of 2) |" in next(line for line in lines if "one-way" in line)
    assert "| .500 (1) |" in next(line for line in lines if line.startswith("| LR AUC:"))
    assert next(line for line in lines if "two-way" in line).endswith("|  |")
