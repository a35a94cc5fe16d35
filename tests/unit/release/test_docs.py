"""The pages about releases say what is so."""

import re
from pathlib import Path

from adumbra.release.card import card_schema

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_field_of_the_card_is_described():
    text = (DOCS / "reference/release-format.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert sorted(described) == sorted(card_schema()["properties"])
    assert set(described) - set(card_schema()["required"]) == {"not_private", "provenance", "signed_by"}
