"""After a crash or a mistake: another target, the same modes, what can go, names that are not burnt."""

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adumbra import workflow
from adumbra.cli.main import app
from adumbra.errors import InvalidInput, LedgerError, Unsupported, VerificationFailed
from adumbra.mechanisms.projection import DPProConfig
from adumbra.privacy.ledger import State, create_ledger, files, open_ledger
from adumbra.release.artifact import verify
from adumbra.schema.schema import Schema
from support.ledger import register, reserve

CONFIG = DPProConfig(n_components=2, epsilon=1.0, delta=1e-6)
ROWS = np.random.default_rng(5).uniform(-1, 1, (300, 4))


def digest_of(folder):
    return verify(folder).digest


def release(location, out):
    schema = Schema.numeric(4, -1.0, 1.0)
    return workflow.release(ROWS, CONFIG, schema=schema, ledger=location, population="people", out=out)


def modes(folder: Path) -> dict[str, int]:
    found = {".": stat.S_IMODE(folder.stat().st_mode)}
    for path in folder.rglob("*"):
        found[str(path.relative_to(folder))] = stat.S_IMODE(path.stat().st_mode)
    return found


class Crash(Exception):
    """Stands for the end of the process."""


def release_until(monkeypatch, location, out, place):
    """A release that ends at a checkpoint; its entry."""

    def stop(name):
        if name == place:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(files, "checkpoint", stop)
        with pytest.raises(Crash):
            release(location, out)
    with open_ledger(location) as ledger:
        return ledger.show("people")[0].stranded[-1]


@pytest.fixture
def book(location):
    with create_ledger(location) as ledger:
        register(ledger, epsilon=50.0, delta=1e-6)
    return location


def test_a_taken_target_is_replaced_by_another(book, tmp_path, monkeypatch):
    release(book, tmp_path / "plain")
    entry = release_until(monkeypatch, book, tmp_path / "out", "publish: committed, not moved")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").write_text("theirs")
    with open_ledger(book) as ledger:
        with pytest.raises(LedgerError, match="exists already; free the place, or resume with --target"):
            ledger.resume(entry.id, digest_of=digest_of)
        with pytest.raises(LedgerError, match="exists already; choose another place"):
            ledger.resume(entry.id, tmp_path / "plain", digest_of=digest_of)
    words = ["ledger", "resume", entry.id, "--ledger", book, "--target", str(tmp_path / "second")]
    done = CliRunner().invoke(app, words)
    assert done.stdout == f"published {entry.id} at {tmp_path / 'second'}\n"
    assert modes(tmp_path / "second") == modes(tmp_path / "plain")
    with open_ledger(book) as ledger:
        found = ledger.show("people")[0].entries[-1]
        assert (found.state, found.target) == (State.PUBLISHED, str(tmp_path / "second"))
        assert ledger.resume(entry.id, digest_of=digest_of) == tmp_path / "second"
        ledger.verify()
    assert (tmp_path / "out" / "theirs").read_text() == "theirs"


def test_bytes_that_another_resume_moved_are_found(book, tmp_path, monkeypatch):
    entry = release_until(monkeypatch, book, tmp_path / "out", "publish: committed, not moved")
    with open_ledger(book) as ledger:
        ledger._retarget(entry.id, tmp_path / "second")
        Path(entry.staged).rename(tmp_path / "out")  # by one who saw the first target
        assert ledger.resume(entry.id, digest_of=digest_of) == tmp_path / "out"
        assert ledger.show("people")[0].entries[-1].target == str(tmp_path / "out")
        ledger.verify()


def test_a_stranger_at_the_target_is_not_taken_for_the_release(book, tmp_path, monkeypatch):
    entry = release_until(monkeypatch, book, tmp_path / "out", "publish: committed, not moved")
    release(book, tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "out")
    for path in sorted(Path(entry.staged).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    Path(entry.staged).rmdir()
    with open_ledger(book) as ledger, pytest.raises(VerificationFailed, match="are not those"):
        ledger.resume(entry.id, digest_of=digest_of)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277])
def test_modes_do_not_follow_the_umask(tmp_path, mask):
    old = os.umask(mask)
    try:
        with create_ledger(tmp_path / "l.db") as ledger:
            register(ledger, epsilon=50.0, delta=1e-6)
        release(tmp_path / "l.db", tmp_path / "new" / "deep" / "out")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "l.db").stat().st_mode) == 0o600
    for folder in ("new", "new/deep", "new/deep/out", "new/deep/out/data"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o755, folder
    for path in (tmp_path / "new/deep/out").rglob("*.*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o644, path.name


def test_a_staging_folder_is_private_exclusive_and_cannot_be_foreseen(book, tmp_path, monkeypatch):
    first = release_until(monkeypatch, book, tmp_path / "out", "seal: committed")
    second = release_until(monkeypatch, book, tmp_path / "out", "seal: committed")
    for entry in (first, second):
        assert stat.S_IMODE(Path(entry.staged).stat().st_mode) == 0o700
    tokens = {Path(entry.staged).name.split(".")[-2] for entry in (first, second)}
    assert len(tokens) == 2
    assert all(len(token) == 16 for token in tokens)
    monkeypatch.setattr("secrets.token_hex", lambda _: "0" * 16)  # a stranger who could foresee it
    with open_ledger(book) as ledger:
        sequence = ledger.head().sequence + 1
    name = f".out.{first.id.split('-')[0]}-{sequence:06d}.{'0' * 16}.staged"
    (tmp_path / "theirs").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(FileExistsError):
        release(book, tmp_path / "out")
    assert not list((tmp_path / "theirs").iterdir())


def clean(folder, location, *more):
    done = CliRunner().invoke(app, ["ledger", "clean", str(folder), "--ledger", location, *more])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_clean_lists_and_removes_what_nobody_will_publish(book, tmp_path, monkeypatch):
    drawn = release_until(monkeypatch, book, tmp_path / "a", "seal: before the flush")
    sealed = release_until(monkeypatch, book, tmp_path / "b", "seal: committed")
    release(book, tmp_path / "c")
    (orphan,) = tmp_path.glob(f".a.{drawn.id}.*.staged")
    half = tmp_path / ".l.db.0123456789abcdef.new"
    half.write_bytes(b"SQLite format 3\0")
    strange = [tmp_path / ".a.00000000-000001.staged", tmp_path / ".notes.new", tmp_path / ".b.staged"]
    for path in strange:
        path.mkdir()
    (tmp_path / f".x.{drawn.id}.staged").symlink_to(tmp_path / "c")
    text = clean(tmp_path, book)
    assert f"can go: {orphan}, of entry {drawn.id}, which is drawn" in text
    assert f"can go: {half}, a file that was never finished" in text
    assert len(text.splitlines()) == 3
    assert orphan.exists()
    assert half.exists()
    assert clean(tmp_path, book, "--remove").startswith("removed: ")
    assert not orphan.exists()
    assert not half.exists()
    assert all(path.exists() for path in (*strange, tmp_path / "c"))
    assert clean(tmp_path, book) == "nothing was left here\n"
    with open_ledger(book) as ledger:
        ledger.resume(sealed.id, tmp_path / "b", digest_of=digest_of)
    with pytest.raises(InvalidInput, match="is not a folder"):
        clean(tmp_path / "none", book)


def test_clean_leaves_what_is_being_written(book, tmp_path, monkeypatch):
    drawn = release_until(monkeypatch, book, tmp_path / "a", "seal: before the flush")
    (orphan,) = tmp_path.glob(f".a.{drawn.id}.*.staged")
    code = (
        "import fcntl, os, sys\n"
        "handle = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(handle, fcntl.LOCK_EX)\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, orphan], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "held\n"
        assert clean(tmp_path, book, "--remove") == "nothing was left here\n"
        assert orphan.exists()
        writer.stdin.close()
    assert "removed" in clean(tmp_path, book, "--remove")


def test_a_release_holds_its_staging_folder(book, tmp_path, monkeypatch):
    seen = []

    def look(name):
        if name == "seal: flushed":
            (folder,) = tmp_path.glob(".out.*.staged")
            handle = os.open(folder, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(handle)
            seen.append(clean(tmp_path, book, "--remove"))

    monkeypatch.setattr(files, "checkpoint", look)
    release(book, tmp_path / "out")
    assert seen == ["nothing was left here\n"]


def raised(location, *words):
    done = CliRunner().invoke(app, ["ledger", "raise", "people", "--ledger", location, *words])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_the_delta_of_an_unused_account_can_change(location, tmp_path):
    CliRunner().invoke(app, ["ledger", "init", location])
    words = ["--epsilon", "4", "--delta", "0", "--unit", "row", "--neighbours", "replace-one"]
    text = CliRunner().invoke(app, ["ledger", "register", "people", "--ledger", location, *words]).stdout
    assert "it pays for pure releases only; `ledger raise --delta` can change that" in text
    assert "4.0 at delta=1e-06" in raised(location, "--delta", "1e-6", "--reason", "for moments")
    release(location, tmp_path / "out")
    with open_ledger(location) as ledger:
        shown = ledger.show("people")[0]
        assert (shown.population.delta, shown.spent) == (1e-6, 1.0)
        ledger.verify()
        with pytest.raises(LedgerError, match="was charged already, so its delta stays 1e-06"):
            ledger.change_delta("people", 1e-5, "again")
    text = CliRunner().invoke(app, ["ledger", "show", "--ledger", location]).stdout
    assert "from 4.0 to 4.0, delta now 1e-06: for moments" in text
    with pytest.raises(InvalidInput, match="give the new cap, a --delta, or both"):
        raised(location, "--reason", "nothing")
    assert "of 5.0 at" in raised(location, "--epsilon", "5", "--reason", "agreed")


def test_a_delta_changes_only_where_it_may(ledger):
    register(ledger, "all", 10.0)
    register(ledger, "people", 5.0, parent="all")
    for act, error, said in (
        (lambda: ledger.change_delta("people", 1e-6, "x"), Unsupported, "its parent all is pure"),
        (lambda: ledger.change_delta("all", 0.0, "x"), InvalidInput, "is the delta of all already"),
        (lambda: ledger.change_delta("all", 1e-6, "x", epsilon=9.0), InvalidInput, "not be below"),
        (lambda: ledger.change_delta("all", 1e-6, ""), InvalidInput, "reason"),
        (lambda: ledger.change_delta("all", -1.0, "x"), InvalidInput, "delta"),
    ):
        with pytest.raises(error, match=said):
            act()
    ledger.change_delta("all", 1e-6, "first the parent", epsilon=11.0)
    ledger.change_delta("people", 1e-6, "then the child")
    with pytest.raises(Unsupported, match="its parent all is pure"):
        ledger.change_delta("all", 0.0, "back")
    ledger.void(reserve(ledger, "people", 0.1, 1e-6), "a mistake")
    with pytest.raises(LedgerError, match="was charged already"):
        ledger.change_delta("people", 1e-5, "after a void")  # its charge was priced by the old delta
    ledger.verify()
