"""`adumbra audit` as a person runs it."""

import json

from support.cli import adumbra


def test_an_attack_prints_claim_and_bound(tmp_path):
    done = adumbra(
        "audit",
        "--method",
        "dppro",
        "--epsilon",
        "8",
        "--runs",
        "20000",
        "--figure",
        "a.svg",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "dppro/element" in done.stdout
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


def test_json_holds_claim_bound_and_confidence():
    done = adumbra(
        "audit", "--method", "top-k", "--epsilon", "2", "--delta", "1e-6", "--runs", "1000", "--json"
    )
    attacks = json.loads(done.stdout)["attacks"]
    assert {one["epsilon_claimed"] for one in attacks} == {2.0}
    assert all(one["epsilon_lower"] <= 2.0 and one["confidence"] == 1 - 1e-9 for one in attacks)
    assert not any(one["violated"] for one in attacks)


def test_planted_bugs_are_named():
    done = adumbra("audit", "--mutants", "--method", "jl-laplace", "--runs", "1000", "--json")
    shown = json.loads(done.stdout)
    assert shown["caught"] == shown["planted"] == 2
    assert "secret projection left in the release" in {one["mutant"] for one in shown["mutants"]}


def test_a_replay_counts_its_pairs():
    done = adumbra("audit", "--replay", "--method", "jl-laplace", "--runs", "10", "--json")
    shown = json.loads(done.stdout)
    assert (shown["pairs"], shown["hostile"], shown["differing"]) == (20, 10, 0)
    assert {one["kind"] for one in shown["kinds"]} == {"jl-laplace/row", "jl-laplace/element"}
    unknown = adumbra("audit", "--replay", "--method", "nothing")
    assert (unknown.returncode, "method=nothing: unknown" in unknown.stderr) == (2, True)


def test_mistakes_are_told():
    unknown = adumbra("audit", "--method", "nothing")
    assert (unknown.returncode, "method=nothing: unknown" in unknown.stderr) == (2, True)
    none = adumbra("audit", "--method", "dppro", "--delta", "0", "--runs", "1000")
    assert (none.returncode, "has no such claim" in none.stderr) == (2, True)
    bare = adumbra("audit", "--mutants", "--method", "nothing")
    assert (bare.returncode, "no bug is planted there" in bare.stderr) == (2, True)
