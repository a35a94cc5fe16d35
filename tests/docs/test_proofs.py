"""Every proof was read against the code as it is, names real tests, and its seal can break."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ("Claim", "Preconditions", "Proof", "Numerics", "Attacked by", "References")
CONVERSION = Path("adumbra/privacy/conversion.py")


def load_tool():
    """Import tools/seal.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("seal", ROOT / "tools" / "seal.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["seal"] = module
    spec.loader.exec_module(module)
    return module


seal = load_tool()
PROOFS = seal.find_proofs(ROOT / "src")


def test_there_are_proofs():
    assert {"conversion.proof.md", "calibration.proof.md", "guarantee.proof.md"} <= {
        p.name for p in PROOFS
    }


@pytest.mark.parametrize("path", PROOFS, ids=lambda p: p.name)
def test_proof_is_sealed(path):
    assert seal.faults([path], ROOT / "src") == []


@pytest.mark.parametrize("path", PROOFS, ids=lambda p: p.name)
def test_proof_stands_beside_its_code(path):
    """It covers something of the package that it lies in."""
    package = ".".join(path.parent.relative_to(ROOT / "src").parts)
    assert any(re.match(rf"{re.escape(package)}[.:]", name) for name in seal.read_proof(path).covers)


@pytest.mark.parametrize("path", PROOFS, ids=lambda p: p.name)
def test_proof_has_every_section(path):
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    missing = [section for section in SECTIONS if not any(h.startswith(section) for h in headings)]
    assert missing == []


@pytest.mark.parametrize("path", PROOFS, ids=lambda p: p.name)
def test_attacks_exist(path):
    text = path.read_text(encoding="utf-8")
    section = re.search(r"^#+ Attacked by.*?\n(.*?)(?=^#+ |\Z)", text, re.DOTALL | re.MULTILINE)[1]
    named = re.findall(r"(?:(tests/[\w/]+\.py)(?:::|\b))?\b(test_\w+)?", section)
    named = [(file, test) for file, test in named if file or test]
    assert named, "an attacked-by section names at least one test"
    everywhere = defined_tests(sorted((ROOT / "tests").rglob("test_*.py")))
    for file, test in named:
        if file:
            assert (ROOT / file).is_file(), f"{file} is named but does not exist"
        if test:
            known = defined_tests([ROOT / file]) if file else everywhere
            assert test in known, f"{test} is named but does not exist"


def defined_tests(files):
    """The names of test functions and of test files."""
    found = {file.stem for file in files}
    for file in files:
        found.update(re.findall(r"^\s*def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE))
    return found


@pytest.fixture
def copy(tmp_path):
    """A sealed copy of one module and its proof, to plant changes in."""
    source = tmp_path / "src"
    (source / CONVERSION).parent.mkdir(parents=True)
    for name in (CONVERSION, CONVERSION.with_suffix(".proof.md")):
        shutil.copy(ROOT / "src" / name, source / name)
    proof = source / CONVERSION.with_suffix(".proof.md")
    seal.write_seal(proof, source)
    assert seal.faults([proof], source) == []
    return source, proof


def plant(source, old, new):
    path = source / CONVERSION
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return pure_to_mu(epsilon / 2)", "return pure_to_mu(epsilon / 3)"),
        ("PRECISION = 256", "PRECISION = 53"),
        ("FAR = 40.0", "FAR = 4.0"),
        ("half = _mpf(mu) / 2\n    exact", "half = _mpf(mu) / 3\n    exact"),
        ("while Fraction(root) ** 2 < exact:", "while Fraction(root) ** 2 > exact:"),
    ],
)
def test_a_changed_constant_breaks_the_seal(copy, old, new):
    source, proof = copy
    plant(source, old, new)
    (fault,) = seal.faults([proof], source)
    assert fault.startswith("conversion.proof.md: proof not re-read")
    seal.write_seal(proof, source)
    assert seal.faults([proof], source) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Phi(-x) = erfc(x / sqrt 2) / 2."""', '"""Other words."""'),
        ("PRECISION = 256  # bits", "PRECISION = 256  # binary digits"),
        (
            "    return _real.erfc(x / _real.sqrt(2)) / 2",
            "\n    return (_real.erfc(x / _real.sqrt(2)) / 2)",
        ),
    ],
)
def test_words_and_layout_do_not_break_the_seal(copy, old, new):
    source, proof = copy
    plant(source, old, new)
    assert seal.faults([proof], source) == []


@pytest.mark.parametrize(
    ("front", "complaint"),
    [
        ("# no front matter\n", "must open with front matter"),
        ("---\nseal: 1\n---\n", "must open with front matter"),
        ("---\ncovers: []\nseal: 1\n---\n", "covers nothing"),
        ("---\ncovers: [adumbra.nowhere:f]\nseal: 1\n---\n", "no such module"),
        ("---\ncovers: [adumbra.privacy.conversion:nothing]\nseal: 1\n---\n", "no such definition"),
        (
            "---\ncovers: [adumbra.privacy.conversion:delta_of.inner]\nseal: 1\n---\n",
            "no such definition",
        ),
    ],
)
def test_broken_front_matter_is_reported(copy, front, complaint):
    source, proof = copy
    proof.write_text(front, encoding="utf-8")
    (fault,) = seal.faults([proof], source)
    assert complaint in fault


def test_names_may_stand_in_a_list(tmp_path):
    path = tmp_path / "x.proof.md"
    path.write_text("---\ncovers:\n  - a.b:c\n  - a.b:D.e\nseal:\n---\n", encoding="utf-8")
    assert seal.read_proof(path).covers == ("a.b:c", "a.b:D.e")


def test_a_proof_may_cover_what_computes_a_kept_file(tmp_path):
    (tmp_path / "src").mkdir()
    tool = tmp_path / "tools/m.py"
    tool.parent.mkdir()
    tool.write_text("def f():\n    return 1\n", encoding="utf-8")
    before = seal.compute_seal(("tools.m:f",), tmp_path / "src")
    tool.write_text("def f():\n    return 2\n", encoding="utf-8")
    assert seal.compute_seal(("tools.m:f",), tmp_path / "src") != before


def test_methods_and_classes_are_told_apart(tmp_path):
    module = tmp_path / "m.py"
    module.write_text("class A:\n    x: int = 1\n    def f(self):\n        return 1\n", encoding="utf-8")
    names = ("m:A", "m:A.f", "m:A.x")
    before = [seal.compute_seal((name,), tmp_path) for name in names]
    module.write_text(module.read_text().replace("return 1", "return 2"), encoding="utf-8")
    after = [seal.compute_seal((name,), tmp_path) for name in names]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, False, True]


def test_the_command_checks_and_reseals(tmp_path):
    """The script itself: exit 1 and the proof's name when a seal is broken, 0 after resealing."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "seal.py", tmp_path / "tools" / "seal.py")
    module = tmp_path / "src" / "m.py"
    module.parent.mkdir()
    module.write_text("def f():\n    return 1\n", encoding="utf-8")
    proof = module.with_suffix(".proof.md")
    proof.write_text("---\ncovers: [m:f]\nseal: 0\n---\n", encoding="utf-8")

    def run(*arguments):
        command = [sys.executable, str(tmp_path / "tools" / "seal.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    broken = run()
    assert broken.returncode == 1
    assert "m.proof.md: proof not re-read" in broken.stderr
    assert "make reseal PROOF=src/m.proof.md" in broken.stderr
    assert run("--write", str(proof)).returncode == 0
    whole = run()
    assert (whole.returncode, whole.stdout) == (0, "1 proofs sealed\n")
    proof.write_text("---\ncovers: [m:g]\nseal: 0\n---\n", encoding="utf-8")
    refused = run("--write", str(proof))
    assert refused.returncode == 1
    assert refused.stderr == "m:g: no such definition\n"
