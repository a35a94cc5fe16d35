"""`--goal`, `--method auto` and `plan --figure`, as a person types them."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from adumbra.cli.demo import example_schema
from support.cli import in_process

FIGURE = Path(__file__).parents[2] / "docs/figures/plan_epsilon.svg"
PLAIN = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
rows = 500
label = "c"
[[groups]]
match = "x_{0..5}"
kind = "number"
lower = 0.0
upper = 1.0
[[columns]]
name = "c"
kind = "category"
categories = ["a", "b"]
"""


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "s.toml").write_text(PLAIN)
    return tmp_path / "s.toml"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--goal", "classify"], "chosen    moments: of the methods with classes"),
        (["--method", "auto"], "chosen    moments: of tables it keeps most"),
        (["--goal", "distances"], "chosen    dppro: "),
        (["--goal", "distances", "--method", "auto", "--delta", "0"], "chosen    jl-laplace: "),
        (["--goal", "distances", "--epsilon", "0.5,2"], "chosen    dppro: "),
        (["--goal", "classify", "--method", "lda"], "lda  costs"),
        (["--goal", "clusters", "--method", "ron-gauss"], "expected components of the projection: 2"),
    ],
)
def test_a_goal_chooses_and_says_why(schema, flags, words):
    done = in_process("plan", "--schema", schema, "--epsilon", "1", *flags)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


def test_one_cell_is_learned_from_laplace_rows_and_given_options_stay(schema):
    cells = PLAIN.replace('"row"', '"element"').replace("replace-one", "one-element")
    schema.write_text(cells)
    plan = ["plan", "--schema", schema, "--epsilon", "1", "--goal", "classify"]
    done = in_process(*plan)
    assert "chosen    jl-laplace: learners that know the noise" in done.stdout
    assert "The label c is randomised" in done.stdout
    done = in_process(*plan, "-o", "label=public", "--delta", "1e-6")
    assert "chosen    dppro: " in done.stdout
    assert "The label c is released as it is" in done.stdout
    words = " ".join(done.stdout.split())
    assert "deviation of 1.41 where this has 4.22, without a delta" in words


def test_a_table_of_truths_is_ranked_and_compared(schema):
    truths = PLAIN.replace('label = "c"\n', "").replace(
        '"number"\nlower = 0.0\nupper = 1.0', '"boolean"'
    )
    truths = truths.replace(
        'kind = "category"\ncategories = ["a", "b"]', 'kind = "integer"\nlower = 0\nupper = 1'
    )
    schema.write_text(truths)
    plan = ["plan", "--schema", schema, "--epsilon", "1", "-o", "k=3"]
    assert (
        "chosen    top-k: all columns are true or false" in in_process(*plan, "--goal", "top-k").stdout
    )
    done = in_process(*plan, "--compare", "--goal", "top-k")
    assert "not compared" not in done.stdout


def test_a_goal_that_the_method_or_schema_cannot_serve_is_refused(schema):
    done = in_process("plan", "--schema", schema, "--epsilon", "1", "--goal", "top-k")
    assert (done.returncode, "declare [items]" in done.stderr) == (2, True)
    done = in_process(
        "plan", "--schema", schema, "--epsilon", "1", "--goal", "answers", "--method", "dppro"
    )
    assert (done.returncode, "does not serve goal=answers" in done.stderr) == (2, True)


def test_comparing_says_what_a_method_takes_before_it_asks_for_options(schema):
    """Before, pca and top-k asked for options that would not have helped."""
    schema.write_text(PLAIN.replace("upper = 1.0\n", 'upper = 1.0\nmissing = "null"\n'))
    done = in_process("plan", "--schema", schema, "--epsilon", "1", "--compare")
    lines = {line.split(": ")[1]: line for line in done.stdout.splitlines() if line.startswith("not")}
    assert "takes item sets, or columns of booleans; the schema declares a table" in lines["top-k"]
    assert "needs numbers" in lines["pca"]
    assert "needs numbers" in lines["dppro"]
    served = in_process("plan", "--schema", schema, "--epsilon", "1", "--compare", "--goal", "top-k")
    assert "moments" not in served.stdout


def test_the_choice_is_in_the_json_and_release_takes_the_same_rule(schema, tmp_path):
    done = in_process("plan", "--schema", schema, "--epsilon", "1", "--goal", "distances", "--json")
    facts = json.loads(done.stdout)
    assert facts["chosen"].startswith("dppro: ")
    assert facts["method"] == "dppro"
    rows = "".join(f"{i / 500},0.1,0.2,0.3,0.4,0.5,{'ab'[i % 2]}\n" for i in range(500))
    (tmp_path / "t.csv").write_text("x_0,x_1,x_2,x_3,x_4,x_5,c\n" + rows)
    book = tmp_path / "l.db"
    for words in (["init", book], ["register", "p", "--ledger", book, "--epsilon", "4", "--unit", "row",
                                   "--neighbours", "replace-one"]):  # fmt: skip
        assert in_process("ledger", *words).returncode == 0
    made = in_process(
        "release", tmp_path / "t.csv", "--schema", schema, "--epsilon", "1", "--goal", "distances",
        "--ledger", book, "--population", "p", "--out", tmp_path / "r", "--yes",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "chosen    dppro: " in made.stdout
    card = json.loads((tmp_path / "r/card.json").read_text())
    best = facts["expected"]["best_n_components"]
    assert card["method"]["config"]["n_components"] == best


def test_the_figure_of_the_how_to_page_is_what_the_command_draws(tmp_path):
    (tmp_path / "s.toml").write_text(example_schema())
    out = tmp_path / "plan.svg"
    done = in_process(
        "plan", "--schema", tmp_path / "s.toml", "--epsilon", "0.1,0.3,1,3", "--figure", out
    )
    assert done.returncode == 0, done.stderr
    assert out.read_text() == FIGURE.read_text(encoding="utf-8")
    root = ET.fromstring(out.read_text())  # noqa: S314 - our own
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        "svg", "title", "style", "rect", "g", "text", "path", "circle",
    }  # fmt: skip
    assert "54.8" in out.read_text()  # rounded up, as the table says it
    taken = in_process("plan", "--schema", tmp_path / "s.toml", "--epsilon", "1", "--figure", out)
    assert (taken.returncode, "exists already" in taken.stderr) == (2, True)


def test_a_plan_is_of_the_threads_that_are_given(schema):
    schema.write_text(PLAIN.replace("rows = 500", "rows = 200000").replace("{0..5}", "{0..999}"))
    plan = ["plan", "--schema", schema, "--epsilon", "1", "--method", "ron-gauss", "--json"]
    few, many = (
        json.loads(in_process(*plan, "--threads", count).stdout)["size"]["peak_memory_bytes"]
        for count in ("1", "16")
    )
    assert few < 0.6 * many
    limit = ["--memory", f"{(few + many) // 2 // 10**6}MB"]  # what fits one thread alone
    assert in_process(*plan, "--threads", "1", *limit).returncode == 0
    assert in_process(*plan, "--threads", "16", *limit).returncode == 7
    done = in_process(*plan, "--threads", "1", "--compare")
    assert done.returncode == 2
    assert "threads: is asked of one plan" in done.stderr
