"""`adumbra audit` as a person runs it; all but one in this process, which is quicker."""

import json

import pytest
from typer.testing import CliRunner

from adumbra.audit.replay_kinds import kinds
from adumbra.cli.main import app
from adumbra.errors import InvalidInput
from support.cli import adumbra


def audit(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_an_attack_prints_claim_and_bound_and_draws_them(tmp_path):
    done = audit("--method", "lda", "--epsilon", 8, "--runs", 20_000, "--figure", tmp_path / "a.svg")
    assert done.exit_code == 0, done.stderr
    assert "lda/add-remove, delta=1e-06" in done.stdout
    assert "12 claims attacked, 0 refuted" in done.stdout
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


def test_json_holds_claim_bound_and_confidence():
    done = audit("--method", "top-k", "--epsilon", 2, "--delta", 1e-6, "--runs", 1000, "--json")
    attacks = json.loads(done.stdout)["attacks"]
    assert {one["epsilon_claimed"] for one in attacks} == {2.0}
    assert all(one["epsilon_lower"] <= 2.0 and one["confidence"] == 1 - 1e-9 for one in attacks)
    assert not any(one["violated"] for one in attacks)


def test_planted_bugs_are_named():
    done = audit("--mutants", "--method", "jl-laplace", "--runs", 1000, "--json")
    shown = json.loads(done.stdout)
    assert shown["caught"] == shown["planted"] == 4
    assert "secret projection left in the release" in {one["mutant"] for one in shown["mutants"]}


def test_a_replay_counts_its_pairs():
    done = audit("--replay", "--method", "jl-laplace", "--runs", 10, "--json")
    shown = json.loads(done.stdout)
    pairs = 10 * sum(kind.method == "jl-laplace" for kind in kinds())
    assert pairs >= 40
    assert (shown["pairs"], shown["hostile"], shown["differing"]) == (pairs, pairs // 2, 0)
    kinds_of = ("", "/items", "/label")
    units = {f"jl-laplace/{unit}{of}" for unit in ("row", "element") for of in kinds_of}
    units |= {"jl-laplace/cell-moves", "jl-laplace/row-moves"}
    assert {one["kind"] for one in shown["kinds"]} == units


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "dpro"), "method=dpro: unknown; choose one of dppro, jl-laplace"),
        (("--replay", "--method", "dpro"), "method=dpro: unknown"),
        (("--mutants", "--method", "dpro"), "method=dpro: unknown"),
        (("--replay", "--mutants"), "give one of them"),
        (("--replay", "--figure", "a.svg"), "leave the other out"),
        (("--figure", "a.gif"), "must end in one of"),
        (("--figure", "none/a.svg"), "its folder does not exist"),
        (("--method", "dppro", "--delta", "0"), "has no such claim"),
    ],
)
def test_mistakes_are_told_before_anything_runs(arguments, words):
    done = audit(*arguments)
    assert isinstance(done.exception, InvalidInput)
    assert words in str(done.exception)


def test_a_mistake_is_one_line_and_a_code():
    done = adumbra("audit", "--method", "nothing")
    assert (done.returncode, "method=nothing: unknown" in done.stderr) == (2, True)
