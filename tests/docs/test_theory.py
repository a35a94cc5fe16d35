"""What is cited exists: ids of docs/theory.md, documents, files of the repository, decision records."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).name  # quotes what is wrong, to test the tests
THEORY = ROOT / "docs" / "theory.md"
IDS = re.findall(r'<a id="([A-Z]\d+)"></a>', THEORY.read_text(encoding="utf-8"))
ID = r"[DTE]\d+"
# `docs/theory.md T6, T7 and E12`, or `T5 to T8`: every id that follows the name of the page
CITED = re.compile(
    rf"theory\.md(?:`)?[\s(#]*(?:\w+ \w+ \()?(?P<ids>{ID}(?:(?:, | and | to |,\n\s*#? ?){ID})*)"
)
DOCUMENT = re.compile(r"(?<![\w*<>./-])((?:[\w.-]+/)*\w[\w.-]*\.md)\b")
SOURCE = re.compile(
    r"(?<![\w*<>./-])((?:src|tests|tools|benchmarks|docs)/[\w/.-]+\.(?:py|md|toml|json))\b"
)
# Names that a test makes up, and pages of the built site.
INVENTED = {
    "tests/docs/test_proofs.py": {"x.proof.md", "m.proof.md", "src/m.proof.md", "tools/m.py"},
    "tests/docs/test_distribution.py": {"src/adumbra/a.py", "src/adumbra/b.py"},
    "tests/docs/test_site.py": {"../../how-to/evaluate.md", "absent.md", "deep/down/page.md", "page.md"},
    "tests/unit/data/test_opening.py": {"notes.md"},
    "tools/build_site.py": {
        "contents.md",
        "decisions/index.md",
        "gallery/index.md",
        "index.md",
        "reference/theory.md",
    },
    "tools/seal.py": {"x.proof.md"},
}


def texts():
    """Every text file of the project, by its path."""
    folders = ("src", "tests", "tools", "docs", "benchmarks")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    kinds = (".py", ".md", ".toml", ".j2", ".css", ".json")
    kept = [path for path in [*ROOT.glob("*"), *found] if path.suffix in kinds and path.name != HERE]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(kept)}


TEXTS = texts()
DOCUMENTS = {name for name in TEXTS if name.endswith(".md")}


def cited_ids(text):
    """The ids of docs/theory.md that a text cites, ranges filled in."""
    found = set()
    for match in CITED.finditer(text):
        found |= set(re.findall(ID, match["ids"]))
        for first, last in re.findall(rf"({ID}) to ({ID})", match["ids"]):
            found |= {f"{first[0]}{number}" for number in range(int(first[1:]), int(last[1:]) + 1)}
    return found


def lost_names(name, text):
    """Documents and files that a text names and the repository does not hold."""
    here = (ROOT / name).parent
    lost = []
    for cited in {*DOCUMENT.findall(text), *SOURCE.findall(text)} - INVENTED.get(name, set()):
        beside = (here / cited).resolve()
        on_page = (ROOT / "docs" / "benchmarks" / cited).resolve()  # where benchmarks write their pages
        by_name = "/" not in cited and any(Path(one).name == cited for one in DOCUMENTS)
        if not (
            beside.exists()
            or (ROOT / cited).exists()
            or (ROOT / "docs" / cited).exists()
            or (name.startswith("benchmarks/") and on_page.exists())
            or by_name
        ):
            lost.append(cited)
    return sorted(lost)


def test_each_id_of_the_theory_stands_once_and_is_the_name_of_a_statement():
    assert len(IDS) == len(set(IDS))
    text = THEORY.read_text(encoding="utf-8")
    for one in IDS:
        assert re.search(rf'^<a id="{one}"></a>\*\*{one} ', text, re.MULTILINE), one
    for letter in "DTE":
        numbers = sorted(int(one[1:]) for one in IDS if one[0] == letter)
        assert numbers == list(range(1, len(numbers) + 1)), letter


def test_every_id_that_the_theory_names_is_there():
    named = set(re.findall(rf"\b{ID}\b", THEORY.read_text(encoding="utf-8")))
    assert named == set(IDS)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_what_is_cited_exists(name):
    assert cited_ids(TEXTS[name]) <= set(IDS)
    assert lost_names(name, TEXTS[name]) == []
    assert "design notes" not in TEXTS[name].replace('"design notes"', "")


@pytest.mark.parametrize("name", sorted(one for one in DOCUMENTS if one.endswith(".proof.md")))
def test_an_id_in_a_proof_is_cited_with_its_page(name):
    """A bare E12 would leave the reader to guess which document has it."""
    bare = set(re.findall(r"\b[TE]\d{1,2}\b", TEXTS[name])) - cited_ids(TEXTS[name])
    assert bare == set()


def test_the_citations_are_seen():
    """The patterns above have something to find, and find what is wrong."""
    assert cited_ids("(docs/theory.md T6, T7)") == {"T6", "T7"}
    assert cited_ids("docs/theory.md says why (E1 to E3, E20 to E22).") == {
        "E1",
        "E2",
        "E3",
        "E20",
        "E21",
        "E22",
    }
    assert cited_ids("docs/theory.md E7, E10,\nE11)") == {"E7", "E10", "E11"}
    assert cited_ids("[E12](../theory.md#E12)") == {"E12"}
    assert lost_names("src/adumbra/numerics.py", "see lost.md 1.2, docs/design.md and src/lost.py") == [
        "docs/design.md",
        "lost.md",
        "src/lost.py",
    ]
    cited = set().union(*(cited_ids(text) for name, text in TEXTS.items() if name.startswith("src/")))
    assert {"T4", "T6", "T7", "T8", "T9", "T10", "T14", "T16", "E12", "E16", "E25", "E27"} <= cited


def test_decision_records_have_no_gaps():
    records = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))
    for name in records:
        text = TEXTS[f"docs/decisions/{name}"]
        assert text.startswith(f"# {name[:4]} "), name
        for part in (
            "**Context.**",
            "**Decision.**",
            "**Consequences.**",
            "**What would change our mind.**",
        ):
            assert part in text, f"{name}: {part}"


def test_every_decision_that_is_cited_is_recorded():
    records = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")}
    for name, text in TEXTS.items():
        cited = set(re.findall(r"\bdecisions?/(\d{4})\b|\bdecision (\d{4})\b", text))
        assert {one or other for one, other in cited} <= records, name
