"""A canary planted in many kinds of bad input is in no output, no exception and no released file."""

import contextlib
import tempfile
import traceback
from pathlib import Path

import pytest

from adumbra.cli import main as cli
from adumbra.data.opening import compare, describe, open_source
from adumbra.errors import AdumbraError
from adumbra.report import figures
from adumbra.schema.schema import Schema
from support.canary import BYTES, COLUMNS, SIGNS, WORD, bad_files, bad_objects
from support.cli import adumbra

FILES = bad_files()
OBJECTS = bad_objects()
PAY = [
    "--method",
    "dppro",
    "--epsilon",
    "1",
    "--delta",
    "1e-6",
    "-o",
    "n_components=2",
    "-o",
    "row_norm=2",
    "--population",
    "people",
    "--yes",
]


def assert_silent(text: str | bytes) -> None:
    shown = text.decode("latin-1") if isinstance(text, bytes) else text
    assert not any(sign in shown for sign in SIGNS)


def told(error: BaseException | None) -> str:
    """Everything that an exception and those behind it say, hidden or not."""
    parts = []
    while error is not None:
        parts += [*traceback.format_exception_only(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


def read(data, schema):
    """Open and read everything; an error of ours is returned, any other is a failure."""
    try:
        source = open_source(data, schema)
        shown = [repr(source), source.pin(), str(source.public_rows())]
        shown += [repr(batch) for batch in source.batches(4096)]
    except AdumbraError as error:
        return told(error), False
    return "\n".join(shown), True


def test_there_are_enough_kinds():
    assert len(FILES) >= 50
    assert len({kind.title for kind in FILES}) == len(FILES)


@pytest.mark.parametrize("kind", FILES, ids=lambda kind: kind.title)
def test_files_at_the_source(kind, tmp_path, capfd):
    path = kind.write(tmp_path)
    schema = Schema.parse(kind.schema)
    with contextlib.suppress(AdumbraError):
        _, faults = compare(path, schema)
        assert_silent("\n".join(faults))
    assert_silent(read(path, schema)[0])
    captured = capfd.readouterr()
    assert_silent(captured.out + captured.err)


@pytest.mark.parametrize("title", OBJECTS)
def test_objects_at_the_source(title, capfd):
    schema = Schema.parse(COLUMNS)
    assert_silent(read(OBJECTS[title], schema)[0])
    with contextlib.suppress(AdumbraError):
        assert_silent(str(describe(OBJECTS[title])))
    captured = capfd.readouterr()
    assert_silent(captured.out + captured.err)


def run(monkeypatch, capfd, *arguments):
    """The command line in this process (a start for each of 150 commands would take minutes)."""
    monkeypatch.setattr("sys.argv", ["adumbra", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    captured = capfd.readouterr()
    assert_silent(captured.out + captured.err)
    return stopped.value.code


@pytest.fixture(scope="module", autouse=True)
def _pictures():
    """Draw each picture of the page once: every release here has the same guarantee, so the same."""
    drawn, draw = {}, figures._svg
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            figures, "_svg", lambda how, *key: drawn.get(key) or drawn.setdefault(key, draw(how, *key))
        )
        yield


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    assert adumbra("ledger", "init", path).returncode == 0
    register = f"ledger register people --ledger {path} --epsilon 200 --delta 1e-5 --unit row"
    done = adumbra(*register.split(), "--neighbours", "replace-one")
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("kind", FILES, ids=lambda kind: kind.title)
def test_files_at_the_command_line(kind, tmp_path, monkeypatch, capfd, ledger):
    path = kind.write(tmp_path)
    schema, out = tmp_path / "schema.toml", tmp_path / "out"
    assert run(monkeypatch, capfd, "schema", "check", schema, path) in (0, 2)
    assert run(monkeypatch, capfd, "schema", "check", schema, path, "--json") in (0, 2)
    planned = ("plan", "--schema", schema, "--data", path, "--epsilon", "1")
    assert run(monkeypatch, capfd, *planned) in (0, 2)
    assert run(monkeypatch, capfd, *planned, "--json") in (0, 2)
    expanded = tmp_path / "out.toml"
    assert run(monkeypatch, capfd, "schema", "check", schema, path, "--expanded", expanded) in (0, 2)
    if kind.suffix == ".csv":
        assert run(monkeypatch, capfd, "schema", "draft", path) == 2
        assert run(monkeypatch, capfd, "schema", "draft", path, "--out", tmp_path / "out.draft") == 2
    code = run(
        monkeypatch, capfd, "release", path, "--schema", schema, *PAY, "--ledger", ledger, "--out", out
    )
    assert code == (0 if read(path, Schema.parse(kind.schema))[1] else 2)
    for file in [*tmp_path.glob("out*"), *tmp_path.rglob("out/**/*"), *ledger.parent.iterdir()]:
        if file.is_file():
            assert_silent(file.read_bytes())
    if code == 0:
        assert run(monkeypatch, capfd, "verify", out) == 0
        assert run(monkeypatch, capfd, "inspect", out) == 0


def test_the_canary_would_be_heard(tmp_path, monkeypatch, capfd):
    for text in (f"invalid value '{WORD}'", b"\x00" + BYTES, f"7319731973.25 {SIGNS[1]}"):
        with pytest.raises(AssertionError):
            assert_silent(text)
    hidden = AdumbraError("public text")
    hidden.__context__ = ValueError(WORD)
    assert WORD in told(hidden)  # an exception that is only hidden counts as well


def test_a_foreign_exception_loses_its_text(tmp_path, monkeypatch, capfd):
    def leak(*_):
        raise ValueError(WORD)

    path = FILES[0].write(tmp_path)
    monkeypatch.setattr("adumbra.data.files.fill_column", leak)
    planned = ["release", path, "--schema", tmp_path / "schema.toml", *PAY]
    assert run(monkeypatch, capfd, *planned, "--ledger", "absent.db", "--out", tmp_path / "out") != 0
    monkeypatch.setattr("adumbra.data.csv_header.read_header", leak)
    assert run(monkeypatch, capfd, "schema", "draft", path, "--header") == 1


def test_a_pattern_reads_no_first_line_and_rows_without_one_are_all_read():
    titles = [kind for kind in FILES if kind.title.startswith("pattern: ")]
    assert titles
    for kind in titles:
        with tempfile.TemporaryDirectory() as folder:
            shown, is_read = read(kind.write(Path(folder)), Schema.parse(kind.schema))
            assert not is_read
            assert "may be a row; declare header = true in [table]" in shown
    for kind in (kind for kind in FILES if kind.title.startswith("rows: ")):
        with tempfile.TemporaryDirectory() as folder:
            assert read(kind.write(Path(folder)), Schema.parse(kind.schema))[1], kind.title


def test_both_outcomes_occur(tmp_path):
    outcomes = []
    for number, kind in enumerate(FILES):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes.append(read(kind.write(folder), Schema.parse(kind.schema))[1])
    assert outcomes.count(True) >= 40
    assert outcomes.count(False) >= 10
