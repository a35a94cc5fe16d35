"""The auditor is audited: every planted bug is found, and nothing is found where nothing is planted."""

from dataclasses import replace
from functools import cache

import pytest

from adumbra.audit.attack import attack
from adumbra.audit.checks import examine, settle, transcripts
from adumbra.audit.hostile import hostile_tables
from adumbra.audit.mutant_list import MUTANTS
from adumbra.audit.mutants import EPSILON, Verdict, chosen_mutants, try_mutants
from adumbra.audit.recorder import record_pair
from support.claims import claims
from support.planting import plant
from support.topk import full

CASES = {case.name: case for case in claims(EPSILON)}


@cache
def settled(case):
    """The case with the worst of its pairs, found once: many bugs are planted into one case."""
    return settle(CASES[case])


def host_of(mutant):
    """The case that a bug is planted into."""
    is_plain = mutant.config is None and mutant.tables is None
    return settled(mutant.case) if is_plain else mutant.host(CASES)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(mutant, record_property):
    host = host_of(mutant)
    with plant(mutant.patches()):
        findings = tuple(examine(host, 200_000, mutant.check))
    verdict = Verdict(mutant=mutant.name, case=mutant.case, check=mutant.check, findings=findings)
    assert verdict.caught
    record_property("bug", mutant.name)


def test_every_check_has_a_bug_that_it_alone_is_there_for():
    checks = {mutant.check for mutant in MUTANTS}
    wanted = {"replay", "sensitivity", "steps", "attack", "grid", "freshness", "secrets", "engine"}
    assert checks == wanted


def test_a_pair_that_shows_nothing_of_the_claim_is_a_finding():
    """Two equal tables: no call moves, so every other check is content."""
    case = CASES["dppro/row"]
    same = replace(case, tables=((case.before, case.before),))
    found = examine(same, 1_000)
    assert [one.check for one in found] == ["steps"]
    assert "only 0 of the claim" in found[0].detail
    assert examine(replace(same, is_worst=False), 1_000) == []
    assert attack(same, 1_000).blind
    assert not attack(case, 1_000).blind


def test_transcripts_reach_what_likely_noise_does_not():
    """The noisy radius of `moments`: narrow at its likely noise, wide at noise that is rare."""
    host = CASES["moments/add-remove"]
    seen = [record_pair(host, one).parts[0]["fact clip_radius"] for one in transcripts()]
    assert max(map(float, seen)) > 3 * float(seen[0])


def test_there_are_twenty_or_more_with_names_of_their_own():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20


def test_nothing_is_found_where_nothing_is_planted():
    """Chance of a false alarm: below 1e-9 for each attack and each comparison of noise."""
    hosts = {(mutant.case, mutant.tables is None): mutant for mutant in reversed(MUTANTS)}
    findings = {name: examine(host_of(one), full(5_000, 200_000)) for name, one in hosts.items()}
    assert {name: found for name, found in findings.items() if found} == {}
    assert len(findings) >= 12


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("dppro", "jl-laplace"))])
def test_released_labels_are_not_taken_for_numbers_off_the_grid(name):
    """The check of the grid ended in a TypeError on every case with a label of text."""
    assert examine(CASES[name], 1_000, "grid") == []


@pytest.mark.parametrize("name", ["dppro/element/public-label", "jl-laplace/element/public-label"])
def test_a_public_label_that_leaves_is_no_alarm(name):
    """Hostile neighbours changed the label, which is known of every row and leaves as it is."""
    host = CASES[name]
    assert examine(host, 1_000, "replay") == []
    randomised = CASES[name.replace("public", "randomised")]
    _, others = hostile_tables(randomised.schema)
    _, fixed = hostile_tables(host.schema, host.schema.label)
    labels = [{table[host.schema.label][0].as_py() for _, table in tables} for tables in (others, fixed)]
    assert len(labels[0]) > 1
    assert len(labels[1]) == 1


def test_another_seed_is_no_alarm():
    """A secret matrix follows from the seed, and the worst pair of its case is made for the first."""
    host = CASES["jl-laplace/row/items"]
    assert examine(host, 1_000, "steps", seed=22) == []
    assert examine(host, 1_000, "steps") == []


def test_bugs_are_planted_in_another_process():
    """Nothing of this process changes while they are tried, and the verdicts come back whole."""
    places = [(place, name) for mutant in MUTANTS for place, name, _ in mutant.patches()]
    before = [getattr(place, name) for place, name in places]
    seen = []
    for verdict in try_mutants(1_000, "jl-laplace", thorough=True):
        assert all(
            getattr(place, name) is right for (place, name), right in zip(places, before, strict=True)
        )
        seen.append(verdict)
    assert [one.mutant for one in seen] == [one.name for one in chosen_mutants("jl-laplace")]
    assert all(one.caught and one.findings[0].detail for one in seen)
