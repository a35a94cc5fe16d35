"""Copies of a ledger: plain ones that forget nothing, backups that are whole, and the way back."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from sqlalchemy import text as sql

from adumbra.errors import AdumbraError, InvalidInput, LedgerError, VerificationFailed
from adumbra.privacy.ledger import (
    Population,
    backup_ledger,
    create_ledger,
    files,
    open_ledger,
    restore_ledger,
    store,
)
from adumbra.privacy.ledger.files import convert
from support.ledger import DATABASES, ROW, new_location, register, reserve, run


@contextmanager
def writers(location, count=2):
    """Processes that reserve without end, until the block is left."""
    children = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                with open_ledger(location) as ledger:
                    while True:
                        reserve(ledger, epsilon=1e-6)
            finally:
                os._exit(1)
        children.append(pid)
    try:
        yield
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def spends(ledger) -> set[str]:
    return {entry.id for entry in ledger.show("people")[0].entries}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_plain_copy_while_others_write_is_whole_or_refused(tmp_path):
    location = tmp_path / "ledger.db"
    with create_ledger(location) as ledger:
        register(ledger, epsilon=1000.0)
    whole = 0
    # one writer: two wait for each other, and all take turns on two cores
    with writers(location, 1), open_ledger(location) as ledger:
        for _ in range(30):
            before = spends(ledger)
            copy = tmp_path / "copy.db"
            subprocess.run(["cp", location, copy], check=True)  # not here: closing it would drop locks
            try:
                with open_ledger(copy) as copied:
                    copied.verify()
                    assert before <= spends(copied)
                whole += 1
            except (LedgerError, VerificationFailed):
                pass  # torn in the middle of a commit, and said to be so
            copy.unlink()
    assert whole > 0


def left_by_an_earlier_version(folder):
    """A ledger with a write-ahead log that a crash left, and the id of a charge that is only there."""
    location = folder / "old.db"
    with create_ledger(location) as ledger:
        register(ledger)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.require_mode = lambda connection, _: connection.execute("PRAGMA journal_mode = WAL")
            store.convert = lambda *_: None
            os.write(writing, reserve(open_ledger(location)).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as said:
        entry = said.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert (folder / "old.db-wal").stat().st_size > 0
    return location, entry


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_log_of_an_earlier_version_is_moved_into_the_file(tmp_path):
    location, entry = left_by_an_earlier_version(tmp_path)
    shutil.copy(location, tmp_path / "alone.db")
    (tmp_path / "alone.db").chmod(0o600)
    with open_ledger(tmp_path / "alone.db") as copied:
        assert spends(copied) == set()  # what this is about: the copy forgot the charge
    with open_ledger(location) as ledger:
        assert spends(ledger) == {entry}
        ledger.verify()
    assert [path.name for path in tmp_path.glob("old.db*")] == ["old.db"]
    with sqlite3.connect(location) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_ledger_that_an_earlier_version_holds_open_is_left_alone(tmp_path, monkeypatch):
    location, entry = left_by_an_earlier_version(tmp_path)
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.3)
    other = sqlite3.connect(location, isolation_level=None)
    other.execute("SELECT * FROM adumbra_heads").fetchall()
    with pytest.raises(LedgerError, match="in the mode of an earlier version .*; end that process"):
        open_ledger(location)
    other.close()
    with open_ledger(location) as ledger:
        assert spends(ledger) == {entry}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_many_may_convert_one_ledger_at_the_same_moment(tmp_path):
    location, entry = left_by_an_earlier_version(tmp_path)
    (waiting, go), (reading, writing) = os.pipe(), os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            try:
                os.close(go)
                os.read(waiting, 1)
                found = spends(open_ledger(location))
                os.write(writing, f"{sorted(found)}\n".encode())
            finally:
                os._exit(0)
        children.append(child)
    for end in (waiting, go, writing):  # the last holder of `go` is gone: all start
        os.close(end)
    with os.fdopen(reading) as said:
        assert said.read() == f"['{entry}']\n" * 4
    for child in children:
        os.waitpid(child, 0)


def test_a_file_that_cannot_be_written_is_said_to_be_so(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened for writing"):
        convert(tmp_path / "none" / "ledger.db", 0.1)


def test_opening_a_ledger_twice_keeps_the_locks_of_the_first(tmp_path):
    """POSIX drops every lock of a process on a file when it closes any descriptor of that file."""
    location = tmp_path / "ledger.db"
    code = (
        "import sqlite3, sys\n"
        "try: sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error: print(error)\n"
    )
    with create_ledger(location) as ledger:
        register(ledger)
        with ledger._store.write():
            open_ledger(location).close()
            done = subprocess.run(
                [sys.executable, "-c", code, location], capture_output=True, text=True, check=True
            )
            assert done.stdout.strip() == "database is locked"


@pytest.mark.parametrize("database", DATABASES)
def test_a_reading_is_of_one_moment(database, tmp_path):
    location = new_location(database, tmp_path)
    with create_ledger(location) as one, open_ledger(location) as two:
        register(one)
        count = sql("SELECT count(*) FROM adumbra_entries")
        with one.snapshot() as connection:
            before = connection.execute(count).scalar()
            thread = threading.Thread(target=reserve, args=(two,))
            thread.start()
            thread.join(2 if database == "postgresql" else 0.3)
            assert connection.execute(count).scalar() == before == 0
        thread.join()
        one.verify()
        assert len(spends(one)) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_backup_while_others_write_is_whole(location, tmp_path):
    with create_ledger(location) as ledger:
        register(ledger, epsilon=1000.0)
    with writers(location), open_ledger(location) as ledger:
        for number in range(5):
            before = spends(ledger)
            head = backup_ledger(ledger, tmp_path / f"kept-{number}.db")
            with open_ledger(tmp_path / f"kept-{number}.db") as kept:
                assert before <= spends(kept)
                assert kept.head() == head
                kept.verify()
    assert stat.S_IMODE((tmp_path / "kept-0.db").stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("back_to", DATABASES)
def test_there_and_back(location, back_to, tmp_path):
    with create_ledger(location) as ledger:
        register(ledger, "all", 10.0)
        register(ledger, "people", 5.0, parent="all")
        run(ledger, tmp_path, reserve(ledger))
        ledger.record_fingerprint(reserve(ledger), ledger.fingerprint(2))
        head = backup_ledger(ledger, tmp_path / "kept.db", tmp_path / "kept.json")
        assert json.loads((tmp_path / "kept.json").read_text()) == head.to_dict()
        assert head == ledger.head()
        shown = ledger.show()
    again = new_location(back_to, tmp_path)
    with restore_ledger(tmp_path / "kept.db", again, against=head.to_dict()) as restored:
        assert restored.show() == shown
        assert restored.head() == head
        reserve(restored)  # it goes on
        restored.verify(head.to_dict())


def test_an_older_backup_is_seen_against_a_kept_head_and_only_so(location, tmp_path):
    with create_ledger(location) as ledger:
        register(ledger)
        first = backup_ledger(ledger, tmp_path / "older.db")
        reserve(ledger)
        newest = ledger.head()
    place = new_location(DATABASES[-1], tmp_path)
    with pytest.raises(
        VerificationFailed, match="which this ledger lacks; it was rolled back"
    ) as failed:
        restore_ledger(tmp_path / "older.db", place, against=newest.to_dict())
    assert "older.db: not restored; a newer backup" in str(failed.value)
    restore_ledger(tmp_path / "older.db", place, against=first.to_dict()).close()  # nothing could tell


def test_a_ledger_that_is_not_whole_is_not_backed_up(tmp_path):
    with create_ledger(tmp_path / "l.db") as ledger:
        register(ledger)
        with ledger._store.write() as connection:
            connection.execute(sql("DROP TRIGGER adumbra_populations_update"))
            connection.execute(sql("UPDATE adumbra_populations SET purpose = 'another'"))
        with pytest.raises(VerificationFailed, match="populations people: does not agree with the log"):
            backup_ledger(ledger, tmp_path / "kept.db")
    assert [path.name for path in tmp_path.iterdir()] == ["l.db"]


def test_a_backup_replaces_nothing(tmp_path, monkeypatch):
    with create_ledger(tmp_path / "l.db") as ledger:
        ledger.register(Population("people", *ROW, 1.0, 0.0))
        (tmp_path / "there.json").write_text("mine")
        for path, head, said in (
            (tmp_path / "l.db", None, r"backup=.*l.db: exists already; choose another name"),
            (tmp_path / "k.db", tmp_path / "there.json", "head=.*there.json: exists already; choose"),
            (tmp_path / "no" / "k.db", None, "backup=.*: its folder does not exist; make it first"),
            (tmp_path / "k.db", tmp_path / "k.db", "is the backup itself"),
            ("postgresql://a/b", None, "is written to a file"),
        ):
            with pytest.raises(InvalidInput, match=said):
                backup_ledger(ledger, path, head)

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files, "write_new", full)
        with pytest.raises(LedgerError, match=r"cannot be written \(No space left on device\)"):
            backup_ledger(ledger, tmp_path / "k.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.db", "there.json"]
    for name, said in (("none.db", "no such file"), ("there.json", "is not a ledger")):
        with pytest.raises(
            InvalidInput, match=f"backup=.*{name}: {said}; give the file that `adumbra led"
        ):
            restore_ledger(tmp_path / name, tmp_path / "x.db", against={})
    (tmp_path / "l.db").chmod(0o640)
    with pytest.raises(InvalidInput, match="mode 0640 lets others read it"):
        restore_ledger(tmp_path / "l.db", tmp_path / "x.db", against={})
    with pytest.raises(AdumbraError, match="is a file; give its path"):
        restore_ledger("postgresql://a/b", tmp_path / "x.db", against={})
