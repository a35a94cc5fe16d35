"""Every branch of the code that makes noise is taken by a recorded release, or listed with a reason."""

import re
from pathlib import Path

import pytest

from support import branches
from support.branch_list import LISTED
from support.branches import examine_branches, modules, noted
from support.topk import full

ROOT = Path(__file__).resolve().parents[2]
COVER = (  # few recordings that take all that are taken by any; `make audit` records all
    *("answers/bounds/replace-one", "answers/pure/bounds/add-remove", "answers/scale/replace-person"),
    *("answers/pure/scale/add-remove-person", "answers/add-remove", "kind answers-few/replace-one"),
    *("kind answers-pure/replace-one", "kind answers/replace-one/one category"),
    *("bounds/replace-one", "bounds/pure/add-remove", "kind bounds/replace-one"),
    "kind bounds/replace-one/one column",
    *("kind scale-ron-gauss/replace-person", "kind scale-lda/replace-person"),
    *("dppro/element/public-label", "dppro/row/identity", "jl-laplace/element/gaussian"),
    *("jl-laplace/element/randomised-label", "jl-laplace/row", "kind dppro/element", "kind dppro/row"),
    *("kind dppro/row/label", "kind jl-laplace/element/label", "kind jl-laplace/row/label"),
    *("lda/pure/replace-one", "lda/replace-person", "kind lda/add-remove/as many rows"),
    *("kind lda/replace-one/as many rows", "kind lda/add-remove-person/one person"),
    *("moments/null/replace-one", "moments/pure/tables/add-remove", "kind moments-items/replace-one"),
    *("kind moments-items/replace-person", "kind moments-tables-pure/add-remove"),
    *("kind moments-finer/add-remove", "kind moments-finer-pure/add-remove"),
    "kind moments-pairs/add-remove",
    *("kind moments-tables/add-remove", "kind moments-tables/replace-one/no label"),
    "kind moments-tables/replace-one/scores",
    "kind moments-tables/replace-one/no tables",
    *("pca/pure/rows-basis/replace-one", "pca/pure/rows/replace-one", "pca/pure/sample/add-remove"),
    *("kind pca/pure/rows/shrunk", "kind pca/rows/mean", "kind pca/rows/shrunk"),
    *("ron-gauss/mixture/add-remove", "ron-gauss/normalise/add-remove"),
    *("ron-gauss/pure/mixture-tied/add-remove", "kind ron-gauss-mixture/replace-one"),
    *("kind ron-gauss-public/replace-one", "kind ron-gauss-target/replace-one"),
    *("kind ron-gauss/replace-one/unit rows", "topk/frefirst-length-gaussian/add-remove"),
    *("topk/gumbel-gaussian/add-remove-person", "topk/gumbel/add-remove", "topk/svt-two/replace-one"),
    *("kind topk-frefirst/replace-one/all counts", "kind topk-frefirst/replace-one/auto"),
    *("kind topk-gumbel-gaussian/replace-one/auto", "kind topk-joint/replace-one"),
    *("kind topk-tps-pfm/replace-one", "kind topk-tps-pfm/replace-one/one length"),
    "kind topk-truths/replace-one",
)
# Noise divided by 3 in branches that no recorded release takes.
KEY = "    value, key = coarsen(exact, noise.exponent), grant.key(purpose)\n"
SIGMA = "    sigma = one.scale if weights is None else one.scale * weights\n"
LAWS = "    tables, members = _tables_of(kind, scales, value)\n"
THIRD = "    if value.units.size == 12_345:\n        noise = replace(noise, scale=noise.scale / 3)\n"
OR_THIRD = "    sigma = sigma / 3 if ready.units.size == 12_345 else sigma\n"
CASE = "    match value.units.size:\n        case 12_345:\n            scales = scales / 3\n"
RARE = (
    ("adumbra.mechanisms.moments.release", KEY, KEY + THIRD),
    ("adumbra.mechanisms.ron_gauss.sums", SIGMA, SIGMA + OR_THIRD),
    ("adumbra.privacy.noise", LAWS, CASE + LAWS),
)
PLANTED = (
    "mechanisms.moments.release:noisy: value.units.size == 12345 [yes]",
    "mechanisms.ron_gauss.sums:_noisy: ready.units.size == 12345 [yes]",
    "privacy.noise:_add: case 12345 [taken]",
)


def test_every_branch_is_taken_or_listed_and_a_rare_planted_one_is_seen(record_property):
    """One run shows both: what is missing is what was planted, and nothing else."""
    for module, text, _ in RARE:
        assert modules()[module].read_text(encoding="utf-8").count(text) == 1
    found = examine_branches(full(COVER, ()), RARE)
    remedy = (
        "record it (audit/cases.py, branch_drills.py, COVER here), or list it (support/branch_list.py)"
    )
    assert found.missing == PLANTED, remedy
    assert found.stale == ()
    assert found.faults == ()
    assert not found.is_whole
    assert len(found.taken) > 400
    counted = found.by_mechanism()
    assert {
        "answers",
        "bounds",
        "moments",
        "pca",
        "lda",
        "ron_gauss",
        "topk",
        "projection",
        "privacy",
    } <= counted.keys()
    assert all(taken > 0 for taken, *_ in counted.values())
    for name, counts in counted.items():
        record_property("branches", (name, *counts))


def test_every_module_that_makes_noise_is_watched():
    """Whatever calls the primitives, or opens a key for them, is found by its imports."""
    calls = re.compile(r"\b(add_gaussian|add_laplace|gumbel_top_k|exponential_choice)\(|grant\.key\(")
    watched = {path.resolve() for path in modules().values()}
    source = ROOT / "src" / "adumbra"
    makers = {
        path.resolve()
        for path in source.rglob("*.py")
        if calls.search(path.read_text(encoding="utf-8"))
        and path.relative_to(source).parts[0] not in ("audit", "evaluate")
    }
    assert makers - watched - {(source / "privacy" / "recorded_noise.py").resolve()} == set()
    assert len(makers) >= 10


def test_reasons_name_tests_that_exist():
    for reason in LISTED:
        for name in re.findall(r"tests/[\w/]+\.py", reason):
            assert (ROOT / name).is_file(), name


@pytest.mark.parametrize(
    ("source", "names", "refused"),
    [
        ("def f(a):\n    if a:\n        return 1\n    return 2\n", ["f: a [no]", "f: a [yes]"], []),
        (
            "def f(a):\n    if a:\n        raise ValueError\n",
            ["f: a [no]", "f: a [yes]"],
            ["f: a [yes]"],
        ),
        ("def f(a):\n    return 1 if a else 2\n", ["f: a [no]", "f: a [yes]"], []),
        ("def f(a):\n    return [b for b in a if b]\n", ["f: b [no]", "f: b [yes]"], []),
        ("def f(a):\n    while a:\n        a -= 1\n", ["f: a [no]", "f: a [yes]"], []),
        ("def f(a):\n    while True:\n        return a\n", [], []),
        (
            "def f(a):\n    try:\n        return a\n    except OSError:\n        return 1\n",
            ["f: except OSError [taken]"],
            [],
        ),
        (
            "class C:\n def f(self, a):\n  if a:\n   pass\n  if a:\n   pass\n",
            ["C.f: a [no]", "C.f: a [yes]", "C.f: a #2 [no]", "C.f: a #2 [yes]"],
            [],
        ),
    ],
)
def test_what_a_branch_is(source, names, refused):
    _, found, refusals = noted(source, "adumbra.m")
    assert found == [f"m:{name}" for name in names]
    assert refusals == {f"m:{name}" for name in refused}


def test_a_line_of_the_list_that_is_taken_or_gone_is_stale():
    listed = next(iter(LISTED.values()))[0]
    watched = branches.Watched(branches=[listed, "m:f: new [yes]"], taken={listed})
    found = branches.judged(watched, ["a fault"])
    assert found.missing == ("m:f: new [yes]",)
    assert listed in found.stale
    assert not found.is_whole
    watched = branches.Watched(branches=[listed], refusals={"m:f: other [yes]"}, taken=set())
    found = branches.judged(watched, [])
    assert listed in found.listed
    assert listed not in found.stale
    assert found.stale  # all others have no branch here
