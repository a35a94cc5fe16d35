"""Digests and flushes of folders."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adumbra.errors import VerificationFailed
from adumbra.privacy.ledger import tree_digest
from adumbra.privacy.ledger.files import convert, flush_move, flush_tree, is_database
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
