"""Files that commands write: none is replaced unasked, and a bad place is told before any work."""

import pytest
from typer.testing import CliRunner

from adumbra.cli.main import app
from adumbra.errors import InvalidInput
from adumbra.privacy.ledger import create_ledger
from adumbra.report.page import render
from support.release import example_release

SCHEMA = """format = "adumbra-schema/1"
# a comment that no machine writes

[table]
unit = "row"
neighbours = "replace-one"

[[columns]]
name = "x"
kind = "number"
lower = 0
upper = 1
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example_release(tmp_path / "release", page=render)
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "t.csv").write_text("x\n0.5\n")
    (tmp_path / "folder").mkdir()
    create_ledger(tmp_path / "ledger.db").close()
    return tmp_path


WRITERS = {
    "report release --out": ("out", "page.html"),
    "schema draft t.csv --header --out": ("out", "draft.toml"),
    "schema check s.toml t.csv --expanded": ("expanded", "full.toml"),
    "audit --method dppro --runs 10 --figure": ("figure", "figure.svg"),
}


def refused(command, path):
    done = CliRunner().invoke(app, [*command.split(), path])
    assert isinstance(done.exception, InvalidInput), done.output
    assert done.stdout == ""
    return str(done.exception)


@pytest.mark.parametrize("command", WRITERS)
def test_no_file_is_replaced_unless_forced(place, command):
    flag, name = WRITERS[command]
    (place / name).write_bytes(b"precious")
    said = refused(command, name)
    assert said == f"{flag}={name}: exists already; choose another name or give --force"
    (place / f"dangling-{name}").symlink_to("nowhere")
    assert "exists already" in refused(command, f"dangling-{name}")
    assert (place / name).read_bytes() == b"precious"
    done = CliRunner().invoke(app, [*command.split(), name, "--force"])
    assert done.exit_code == 0, done.exception
    assert b"precious" not in (place / name).read_bytes()


@pytest.mark.parametrize("command", WRITERS)
def test_an_absent_folder_is_the_users_fault_and_told_by_name(place, command):
    flag, name = WRITERS[command]
    said = refused(command, f"none/{name}")
    assert said == f"{flag}=none/{name}: its folder does not exist; make it first"
    assert "folder" in refused(command, "folder")  # a name that is taken by a folder


def test_the_schema_itself_keeps_its_comments(place):
    refused("schema check s.toml t.csv --expanded", "s.toml")
    assert (place / "s.toml").read_text() == SCHEMA


def test_a_page_inside_the_release_is_refused_for_what_it_would_break(place):
    said = refused("report release --out", "release/page.html")
    assert "lies in the release; it would no longer verify; choose another place" in said
