"""Docstrings of the public names: complete, and their examples run."""

import doctest
import inspect
from pathlib import Path

import pytest

import adumbra as ad
from adumbra import estimators

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
    page = (Path(__file__).resolve().parents[2] / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [name for name in ad.__all__ if name != "__version__" and f"`{name}" not in page] == []
