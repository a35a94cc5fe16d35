"""Docstrings of public names are complete and their examples run; what any docstring names is there."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest

import adumbra as ad
from adumbra import estimators

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FOREIGN = {"_SUCCESS", "NA"}  # a file of Spark's, a value of pandas'
FACES = [getattr(estimators, name) for name in estimators.__all__]


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_an_estimator_says_what_it_takes_gives_and_pays(face):
    text = inspect.getdoc(face)
    for title in ("Parameters\n-", "Attributes\n-", "Examples\n-", "Notes\n-"):
        assert text.count(title) == 1, title
    described = text[text.index("Parameters\n-") : text.index("Attributes\n-")]
    missing = [name for name in inspect.signature(face).parameters if name not in described]
    assert missing == []
    assert "guarantee_" in text[text.index("Attributes\n-") : text.index("Examples\n-")]
    assert "GridSearchCV" in text


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_the_example_of_an_estimator_runs(face):
    (found,) = doctest.DocTestFinder(recurse=False).find(face, face.__name__)
    assert len(found.examples) >= 2
    assert doctest.DocTestRunner().run(found).failed == 0


@pytest.mark.parametrize("function", [ad.release, ad.plan, ad.load], ids=lambda f: f.__name__)
def test_a_function_says_what_it_takes_gives_and_raises(function):
    text = inspect.getdoc(function)
    for title in ("Parameters\n-", "Returns\n-", "Raises\n-"):
        assert title in text
    for name in inspect.signature(function).parameters:
        assert f"\n{name} : " in text


def test_the_reference_page_names_everything_public():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [name for name in ad.__all__ if name != "__version__" and f"`{name}" not in page] == []


def names_of(path, tree):
    """Every name, attribute, keyword and one-word text of a module."""
    found = set(path.with_suffix("").parts)
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            if isinstance(given := getattr(node, field, None), str):
                found |= set(given.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            found |= set(re.findall(r"\w+", node.value))
    return found


def words_of(path, tree):
    """Docstrings and comments of a module."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, holders)]
    return "\n".join([*found, *re.findall(r"#[^\n]*", path.read_text(encoding="utf-8"))])


def absent(text, names, files):
    """Names in back quotes that nothing bears: `name`, `Class.method`, `name(...)`, `_suffix`."""
    lost = []
    for quoted in re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", text):
        parts = [part for part in quoted.split(".") if part]
        ends = quoted.startswith("_") and any(name.endswith(quoted) for name in names)
        if not (ends or quoted in files | FOREIGN or all(part in names for part in parts)):
            lost.append(quoted)
    return lost


def test_what_a_docstring_or_a_proof_names_is_there():
    files = {path.name for path in [*ROOT.glob("*"), *ROOT.glob("src/**/*"), *ROOT.glob("tests/**/*")]}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    names = set().union(*(names_of(*one) for one in trees.items()))
    for path in (ROOT / "tests").rglob("test_*.py"):
        names |= set(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))
    assert absent("`no_such_thing`, `Schema.no_such_field` and `_no_such_end`", names, files) == [
        "no_such_thing",
        "Schema.no_such_field",
        "_no_such_end",
    ]
    texts = {path: words_of(path, tree) for path, tree in trees.items()}
    texts |= {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.proof.md")}
    lost = {path.name: found for path, text in texts.items() if (found := absent(text, names, files))}
    assert lost == {}
