"""The page for those who come from other packages: our snippets run, the peers' are valid Python."""

import ast
import re
from pathlib import Path

import coming_from
import pytest
import throughput
from comparison import environments

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "coming-from.md"


def blocks(info):
    return re.findall(
        rf"^```{info}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_our_snippets_run_and_give_rows_of_the_schema(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = {"__name__": "__main__"}
    *code, estimator = blocks("python")
    exec(compile("\n".join(code), str(PAGE), "exec"), session)  # noqa: S102 - our own page
    released = session["synthetic"]
    assert released.shape == session["df"].shape
    assert set(released["ward"]) <= {"a", "b", "c"}
    assert released["age"].between(18, 90).all()
    assert (tmp_path / "released" / "card.json").exists()
    exec(compile(estimator, str(PAGE), "exec"), session)  # noqa: S102 - our own page
    assert len(session["synthetic"]) == 2000


@pytest.mark.parametrize("code", blocks("python peer"))
def test_snippets_of_peers_are_python_and_end_in_synthetic_rows(code):
    last = ast.parse(code).body[-1]
    assert isinstance(last, ast.Assign)
    assert last.targets[0].id == "synthetic"


def test_lines_to_a_first_release_are_counted_from_the_page():
    found = dict(throughput.first_release())
    assert found["smartnoise-synth"] == 3
    ours = "Adumbra, with a schema, a ledger and a release folder"
    assert set(found) == {ours, "smartnoise-synth", "SDV", "OpenDP", "dpmm"}
    assert found[ours] > 25  # the schema is part of it


def test_every_snippet_of_a_peer_has_an_environment_to_run_in():
    table, found = coming_from.snippets(PAGE.read_text(encoding="utf-8"))
    assert set(found) == set(coming_from.PACKAGES)
    assert set(coming_from.PACKAGES.values()) <= set(environments.RECIPES)
    assert len(found) == len(blocks("python peer"))
    assert "df = pd.DataFrame(" in table
