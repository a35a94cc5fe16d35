"""A file that is hashed while it is written, and on disk once it is closed."""

import errno
import hashlib
import os

import numpy as np
import pyarrow as pa
import pytest

from adumbra.release import formats
from adumbra.release.formats import HashingFile


def test_a_long_file_is_brought_to_the_disk_while_it_is_written(tmp_path, monkeypatch):
    synced, right = [], os.fsync

    def sync(handle):
        synced.append(os.fstat(handle).st_size)
        right(handle)

    monkeypatch.setattr(formats, "FLUSHED_BYTES", 1000)
    monkeypatch.setattr(os, "fsync", sync)
    with HashingFile(tmp_path / "long") as sink:
        for written in range(1, 6):
            sink.write(bytes(1000))
            sink._finish_flushing()
            assert synced[-1] == 1000 * written
    assert synced == [1000, 2000, 3000, 4000, 5000, 5000]
    assert sink.written().sha256 == hashlib.sha256(bytes(5000)).hexdigest()


def test_an_error_of_the_disk_while_a_file_is_written_is_raised(tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(formats, "FLUSHED_BYTES", 1000)
    monkeypatch.setattr(os, "fsync", full)
    sink = HashingFile(tmp_path / "long")
    sink.write(bytes(1000))
    with pytest.raises(OSError, match="no space"):
        sink.close()
    assert sink.closed


def test_a_disk_that_is_full_when_a_file_is_closed_leaves_no_handle_and_no_words_of_the_file(tmp_path):
    sink = HashingFile(tmp_path / "full")
    sink.write(b"private")
    handle = sink._file.fileno()
    device = os.open("/dev/full", os.O_WRONLY)
    os.dup2(device, handle)  # what is written from here on finds no space
    os.close(device)
    with pytest.raises(OSError, match="No space left on device") as failed:
        sink.close()
    assert sink.closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)
    assert "private" not in str(failed.value)
    assert failed.value.filename is None
    sink.close()


def test_a_table_is_written_in_a_few_large_pieces(tmp_path, monkeypatch):
    sizes = []
    write = formats.HashingFile.write
    monkeypatch.setattr(
        formats.HashingFile, "write", lambda self, data: sizes.append(len(data)) or write(self, data)
    )
    rows = np.random.default_rng(0).random((2**19, 6))
    table = pa.table({f"c{j}": rows[:, j] for j in range(6)})
    written, _ = formats.write_table(tmp_path / "t.parquet", table)
    assert sum(sizes) == written.bytes == (tmp_path / "t.parquet").stat().st_size
    assert len(sizes) <= 2 + written.bytes // (formats.JOINED_BYTES // 2)
    assert formats.read_table(tmp_path / "t.parquet").equals(table)
