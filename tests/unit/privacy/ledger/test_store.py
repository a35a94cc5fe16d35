"""Files, connections, locks and forks."""

import os
import sqlite3
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from sqlalchemy import text as sql
from sqlalchemy import update

from adumbra.errors import (
    BudgetRefused,
    InvalidInput,
    LedgerError,
    LedgerNotWritable,
    VerificationFailed,
)
from adumbra.privacy.ledger import chain, create_ledger, memory_ledger, open_ledger, store
from adumbra.privacy.ledger.model import keys
from support.ledger import DATABASES, new_location, register, reserve, server


def test_a_ledger_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "ledger.db"
    with create_ledger(path) as ledger:
        register(ledger)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes.pop("ledger.db") == 0o600
    assert not modes  # one file: nothing that a copy could miss
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match="mode 0640 lets others read it; run chmod 600"):
        open_ledger(path)


def test_create_never_overwrites_and_leaves_no_draft(location, tmp_path):
    create_ledger(location).close()
    with pytest.raises(InvalidInput, match="exists already"):
        create_ledger(location)
    (tmp_path / "x").mkdir()
    with pytest.raises(InvalidInput, match="exists already"):
        create_ledger(tmp_path / "x")
    with pytest.raises(InvalidInput, match="its folder does not exist"):
        create_ledger(tmp_path / "no" / "ledger.db")
    assert not list(tmp_path.glob(".*"))


def test_open_what_is_not_there(location, tmp_path):
    with pytest.raises(InvalidInput, match=r"no such file|not a ledger"):
        open_ledger(location)
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").chmod(0o600)
    with pytest.raises(InvalidInput, match="is not a ledger"):
        open_ledger(tmp_path / "empty.db")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    (tmp_path / "other.db").chmod(0o600)
    with pytest.raises(InvalidInput, match="not a ledger; make one"):
        open_ledger(tmp_path / "other.db")
    (tmp_path / "text.db").write_text(
        "this is not a database, and long enough to be looked at as one" * 20
    )
    (tmp_path / "text.db").chmod(0o644)  # and nobody is told to change it
    with pytest.raises(InvalidInput, match="is not a ledger; name the file that `ledger init` made"):
        open_ledger(tmp_path / "text.db")


def test_a_ledger_that_cannot_be_read_is_said_to_be_so(tmp_path, monkeypatch):
    create_ledger(tmp_path / "ledger.db").close()

    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInput, match=r"ledger.db: cannot be read \(Permission denied\)"):
        open_ledger(tmp_path / "ledger.db")


def test_another_format_is_refused(ledger, location):
    with ledger._store.write() as connection:
        table = keys.name
        where = f" ON {table}" if connection.dialect.name == "postgresql" else ""
        connection.execute(sql(f"DROP TRIGGER {table}_update{where}"))
        connection.execute(update(keys).where(keys.c.name == "format").values(value="adumbra-ledger/9"))
    with pytest.raises(LedgerError, match="its format is not adumbra-ledger/1"):
        open_ledger(location)


@pytest.mark.parametrize("place", ["mysql://x/y", "nonsense://", "://", "sqlite://"])
def test_other_places_are_refused(place):
    with pytest.raises(InvalidInput, match="ledger"):
        open_ledger(place)


def test_a_sqlite_address_is_a_path(tmp_path):
    create_ledger(tmp_path / "ledger.db").close()
    with open_ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.verify()


def test_without_psycopg_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInput, match=r"install adumbra\[postgres\]"):
        open_ledger("postgresql://nowhere/x")


def test_a_password_is_never_shown(tmp_path):
    with pytest.raises(LedgerError) as failed:
        open_ledger(f"postgresql://adumbra:hunter2@/x?host={tmp_path}")
    assert "hunter2" not in str(failed.value)
    assert "busy or unreachable" in str(failed.value)


def test_sqlite_is_as_durable_as_it_can_be(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as ledger, ledger._store.read() as connection:
        read = {
            name: connection.execute(sql(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous")
        }
        assert read == {"journal_mode": "delete", "synchronous": 3}
        assert connection.execute(sql("PRAGMA foreign_keys")).scalar() == 1


def test_a_file_system_that_cannot_share_memory_is_refused(tmp_path, monkeypatch):
    connect = sqlite3.connect  # a database in memory has no write-ahead log either
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda _, **more: connect(":memory:", **more))
        with pytest.raises(LedgerError, match="this file system cannot hold a ledger"):
            create_ledger(tmp_path / "ledger.db")
    assert not list(tmp_path.iterdir())


def test_a_connection_with_another_journal_is_refused_and_closed():
    memory = sqlite3.connect(":memory:")
    with pytest.raises(LedgerError, match="this file system cannot hold a ledger"):
        store._require_one_file(memory, None)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        memory.execute("SELECT 1")


@pytest.mark.parametrize("database", [name for name in DATABASES if name == "postgresql"])
def test_a_server_that_does_not_flush_is_refused(database, tmp_path):
    location = new_location(database, tmp_path)
    create_ledger(location).close()
    server().set("fsync = off")
    with pytest.raises(LedgerError, match="fsync=off and could forget a charge"):
        open_ledger(location)
    server().set("fsync = on")
    open_ledger(location).close()


@pytest.mark.parametrize("database", DATABASES)
def test_a_writer_holds_the_lock_from_its_first_statement(database, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    location = new_location(database, tmp_path)
    with create_ledger(location) as one, open_ledger(location) as two:
        register(one)
        with one._acts():
            assert two.show("people")[0].spent == 0  # readers do not wait
            with pytest.raises(LedgerError, match="busy or unreachable; try again"):
                reserve(two)
        reserve(two)


def test_sqlite_begins_immediately(tmp_path):
    with create_ledger(tmp_path / "ledger.db") as ledger:
        other = sqlite3.connect(tmp_path / "ledger.db", timeout=0, isolation_level=None)
        with ledger._store.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        with ledger._store.read():
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_threads_share_one_ledger(ledger):
    register(ledger, epsilon=1.0)

    def spend(_):
        try:
            return bool(reserve(ledger, epsilon=0.05))
        except BudgetRefused:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(60))) == 20
    ledger.verify()


def in_child(act) -> int:
    """Run `act` in a forked child; its exit code is what it returns."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_its_own_connections(ledger):
    register(ledger)
    reserve(ledger)
    assert in_child(lambda: reserve(ledger) == "" or ledger.verify().entries) == 2
    reserve(ledger)
    assert ledger.show("people")[0].spent == 0.3
    ledger.verify()


def test_another_process_id_means_another_engine(ledger, monkeypatch):
    register(ledger)
    ours = ledger._store._engine
    monkeypatch.setattr(os, "getpid", lambda: -1)
    reserve(ledger)
    assert ledger._store._engine is not ours
    ledger._store.close()
    monkeypatch.undo()
    reserve(ledger)
    ours.dispose()
    memory = memory_ledger()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="made in another process; use a ledger file"):
        memory.verify()
    monkeypatch.undo()
    memory.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_ledger_in_memory_is_not_shared_with_a_fork():
    ledger = memory_ledger()
    register(ledger)

    def act():
        try:
            reserve(ledger)
        except LedgerError as error:
            return 7 if "made in another process" in str(error) else 8
        return 0

    assert in_child(act) == 7
    assert ledger.show("people")[0].spent == 0
    ledger.close()


def test_a_ledger_in_memory_is_a_ledger(tmp_path):
    ledger = memory_ledger()
    register(ledger)
    results = []
    thread = threading.Thread(target=lambda: results.append(reserve(ledger)))
    thread.start()
    thread.join()
    ledger.draw(results[0], ("rows",))
    assert ledger.verify().entries == 1
    assert ledger._store.name == "memory"
    assert memory_ledger().populations() == ()


def test_a_user_without_a_name_is_a_number(monkeypatch):
    def nameless(_number):
        raise KeyError

    monkeypatch.setattr(chain.pwd, "getpwuid", nameless)
    chain._user.cache_clear()
    assert chain._user() == f"uid {os.getuid()}"
    chain._user.cache_clear()


def test_no_variable_of_the_environment_names_who_acts(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    chain._user.cache_clear()
    assert chain._user() != "somebody-else"


@pytest.mark.parametrize("database", [name for name in DATABASES if name == "postgresql"])
def test_what_was_committed_survives_a_crash_of_the_server(database, tmp_path):
    location = new_location(database, tmp_path)
    with create_ledger(location) as ledger:
        register(ledger)
        entry = reserve(ledger)
        server().crash()
        with pytest.raises(LedgerError):
            reserve(ledger)
        server().start()
        assert ledger.show("people")[0].stranded[0].id == entry
        ledger.verify()


def test_damaged_keys_are_said_to_be_so(tmp_path):
    path = tmp_path / "ledger.db"
    with create_ledger(path) as ledger, ledger._store.write() as connection:
        connection.execute(sql(f"DROP TRIGGER {keys.name}_update"))
        connection.execute(update(keys).where(keys.c.name == "fingerprint_key").values(value="no"))
    with pytest.raises(VerificationFailed, match="its keys are damaged"):
        open_ledger(path)


def test_a_full_disk_is_seen_before_a_charge(tmp_path, monkeypatch):
    with create_ledger(tmp_path / "ledger.db") as ledger:
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1, f_frsize=512))
        with pytest.raises(LedgerNotWritable, match="its disk is full; make room"):
            ledger._store.require_writable()


def test_a_file_that_cannot_be_opened_for_writing_says_why(tmp_path):
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    assert "its folder must be writable" in str(store._fault("x", error))


def test_a_damaged_name_is_damage(tmp_path):
    """sqlite3 itself raises UnicodeDecodeError for text that is no UTF-8."""
    damaged = pytest.raises(VerificationFailed, match="the file is damaged")
    with create_ledger(tmp_path / "ledger.db") as ledger, damaged, ledger._store.read():
        b"\xff".decode("utf-8")
