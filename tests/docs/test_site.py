"""The parts of `make site` that need no site builder: pages, their links, and the API reference."""

import sys
from pathlib import Path

import pytest

import adumbra as ad

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import api_pages  # noqa: E402


def load_site():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("adumbra_site", ROOT / "tools/build_site.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = load_site()


def test_every_public_name_is_on_one_page_of_the_reference():
    pages = api_pages.api_pages()
    text = "\n".join(pages.values())
    names = [name for name in ad.__all__ if not name.startswith("_")]
    assert [name for name in names if text.count(f"\n## `{name}`\n") != 1] == []
    assert "### `MomentsSynthesizer.save`" in pages["estimators"]
    assert "### `MomentsSynthesizer.get_params`" not in text  # scikit-learn's own
    assert "    epsilon: float" in pages["configs"]
    assert "- `epsilon, delta`: the price of one fit" in pages["estimators"]


def test_a_docstring_becomes_lists_prose_and_code():
    shown = api_pages.markdown(
        "Sum a < b.\n\nParameters\n----------\na : one,\n    on two lines\nb : `x < y`\n\n"
        "Examples\n--------\n>>> 1\n1"
    )
    assert "Sum a &lt; b." in shown
    assert "- `a`: one, on two lines\n- `b`: `x < y`" in shown
    assert "```pycon\n>>> 1\n1\n```" in shown


def test_links_lead_to_the_new_places(tmp_path, monkeypatch):
    pages = SITE.staged_pages()
    assert len(set(pages.values())) == len(pages)
    how_to = ROOT / "docs/how-to/evaluate.md"
    pages[tmp_path / "page.md"] = "deep/down/page.md"
    picture, code = ROOT / "docs/figures/card.png", ROOT / "Makefile"
    (tmp_path / "page.md").write_text(
        f"# Page\n[a *b*]({how_to}#there) ![p]({picture}) [code]({code})\n"
        f"[out](https://example.org/x)\n```\n[kept]({how_to})\n```\n"
    )
    text = SITE._relinked(tmp_path / "page.md", "deep/down/page.md", pages)
    assert "[a *b*](../../how-to/evaluate.md#there) ![p](../../figures/card.png) code\n" in text
    assert "[out](https://example.org/x)" in text
    assert f"[kept]({how_to})" in text
    (tmp_path / "page.md").write_text("[gone](absent.md)")
    monkeypatch.setattr(SITE, "ROOT", tmp_path)
    with pytest.raises(SystemExit):
        SITE._relinked(tmp_path / "page.md", "page.md", pages)


def test_a_part_from_another_host_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://example.org/">words</a><img src="b.png">')
    assert SITE.outside_parts(tmp_path) == []
    (tmp_path / "a.html").write_text('<script src="https://example.org/x.js"></script>')
    assert len(SITE.outside_parts(tmp_path)) == 1
