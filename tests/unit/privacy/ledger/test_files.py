"""Digests and flushes of folders."""

import os
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from adumbra.errors import VerificationFailed
from adumbra.privacy.ledger import files, tree_digest
from adumbra.privacy.ledger.files import convert, flush_move, flush_tree, is_database, replace_file
from support.ledger import stage


def test_digest_sees_names_contents_and_nothing_else(tmp_path):
    one, two = stage(tmp_path), stage(tmp_path)
    assert tree_digest(one) == tree_digest(two)
    (two / "data" / "rows.bin").rename(two / "data" / "rows.bim")
    assert tree_digest(one) != tree_digest(two)
    os.utime(one / "card.json", (0, 0))
    assert tree_digest(one) == tree_digest(stage(tmp_path))


def test_digest_cannot_be_split_differently(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, parts in ((one, {"a": b"bc"}), (two, {"ab": b"c"})):
        folder.mkdir()
        for name, content in parts.items():
            (folder / name).write_bytes(content)
    assert tree_digest(one) != tree_digest(two)


def test_links_and_special_files_are_refused(tmp_path):
    staged = stage(tmp_path)
    (staged / "link").symlink_to(tmp_path)
    with pytest.raises(VerificationFailed, match="link or a special file"):
        tree_digest(staged)
    (staged / "link").unlink()
    os.mkfifo(staged / "pipe")
    with pytest.raises(VerificationFailed, match="link or a special file"):
        flush_tree(staged)
    (tmp_path / "alias").symlink_to(stage(tmp_path))
    with pytest.raises(VerificationFailed, match="must be a folder"):
        tree_digest(tmp_path / "alias")


def test_every_file_and_folder_is_flushed(tmp_path, monkeypatch):
    staged = stage(tmp_path)
    flushed = []
    monkeypatch.setattr(
        os,
        "fsync",
        lambda descriptor: flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink())),
    )
    flush_tree(staged)
    expected = [staged / "card.json", staged / "data" / "rows.bin", staged / "data", staged, tmp_path]
    assert flushed == [str(path) for path in expected]
    flushed.clear()
    flush_move(tmp_path / "gone" / "staged", staged)
    assert flushed == [str(tmp_path)]
    flush_move(staged, tmp_path / "data")
    assert flushed[1:] == [str(tmp_path), str(tmp_path)]


def test_text_is_no_database_and_a_locked_one_is_one(tmp_path):
    text, locked = tmp_path / "text.db", tmp_path / "locked.db"
    text.write_text("no database, but longer than a header of one " * 20)
    with pytest.raises(VerificationFailed, match="the file is damaged"):
        convert(text, 0.0)
    assert not is_database(text)
    with closing(sqlite3.connect(locked, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("BEGIN EXCLUSIVE")
        assert is_database(locked)


def test_a_damaged_database_is_named_and_never_taken_for_text(tmp_path):
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0" + b"\xff" * 984)
    with pytest.raises(VerificationFailed, match="the file is damaged"):
        is_database(damaged)


def test_what_sqlite_may_not_read_now_counts_as_a_database(tmp_path, monkeypatch):
    """Else its file would be opened beside SQLite, which drops this process's locks on it."""

    class Refusing:
        def execute(self, _):
            error = sqlite3.DatabaseError("disk image is malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

    monkeypatch.setattr(files, "_connected", lambda _: nullcontext(Refusing()))
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("opened beside SQLite"))
    assert is_database(tmp_path / "some.db")


def test_a_replaced_file_is_whole_and_leaves_no_draft(tmp_path, monkeypatch):
    place = tmp_path / "head.json"
    for content in (b"one", b"two, and longer"):
        replace_file(place, content)
        assert place.read_bytes() == content
        assert [one.name for one in tmp_path.iterdir()] == ["head.json"]
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        replace_file(place, b"three")
    assert place.read_bytes() == b"two, and longer"  # the old one stays whole
