"""The pages about releases say what is so."""

import re
from pathlib import Path

import pytest

from adumbra.release.card import card_schema
from support.release import example_release

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_field_of_the_card_is_described():
    text = (DOCS / "reference/release-format.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert sorted(described) == sorted(card_schema()["properties"]) == sorted(card_schema()["required"])


def test_the_readers_example_runs(tmp_path, monkeypatch, capsys):
    text = (DOCS / "how-to/read-a-release.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    example_release(tmp_path / "release")
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "read-a-release.md", "exec"), {})  # noqa: S102 - our own page
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Release(dppro: data 50 x 4")
    assert lines[-1] == "0 numbers off the grid"
    mean, noise = map(float, re.findall(r"-?[\d.]+\d", lines[1]))
    assert noise == pytest.approx(17 / 50**0.5, abs=1e-3)
    assert abs(mean) < 1
