"""List columns are measured by their pages' own headers: a footer may lie, 300 bytes be gigabytes."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adumbra.errors import VerificationFailed
from adumbra.release import formats
from adumbra.release.parquet_pages import Reader, list_bytes

SETS = pa.list_(pa.int32())


def varint(value, length=0):
    """A zigzag varint of at least this many bytes."""
    parts, value = [], 2 * value
    while value or not parts or len(parts) < length:
        parts.append(value & 127)
        value >>= 7
    return bytes([part | 128 for part in parts[:-1]] + parts[-1:])


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("plain", [True, False])
def test_values_are_counted_as_they_are_whatever_the_pages(tmp_path, version, plain):
    sets = pa.array([[1, 2], [], [3], None, list(range(30_000))], SETS)
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"x": np.arange(5.0), "s": sets, "t": sets}),
        path,
        data_page_version=version,
        use_dictionary=not plain,
        write_statistics=not plain,
        write_page_checksum=plain,
        row_group_size=2,
        data_page_size=1000,
    )
    footer = pq.read_metadata(path)
    values = sum(footer.row_group(i).column(1).num_values for i in range(3))
    assert values == 30_005
    # Pages of a dictionary count by their own bytes, four an item.
    assert 2 * 16 * values <= list_bytes(path, footer) <= 2 * (16 * values + 4 * 30_005)


def test_flat_columns_are_not_looked_at(tmp_path):
    pq.write_table(pa.table({"a.list.element": [1, 2]}), tmp_path / "t.parquet")
    assert list_bytes(tmp_path / "t.parquet", pq.read_metadata(tmp_path / "t.parquet")) == 0


def test_a_footer_that_lies_does_not_help_a_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "READ_FLOOR", 2**22)
    count, path = 2_000_000, tmp_path / "bomb.parquet"
    flat = pa.array(np.full(count, 7, np.int32))
    bomb = pa.table({"s": pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), flat)})
    pq.write_table(bomb, path, store_schema=False, write_statistics=False)
    raw = path.read_bytes()
    length = int.from_bytes(raw[-8:-4], "little")
    pages, footer = raw[: -8 - length], raw[-8 - length :]
    assert varint(count) in footer
    path.write_bytes(pages + footer.replace(varint(count), varint(1, len(varint(count)))))
    assert pq.read_metadata(path).row_group(0).column(0).num_values == 1
    assert path.stat().st_size < 1000
    with pytest.raises(VerificationFailed, match=f"asks for {16 * count + 4} bytes of memory"):
        formats.read_table(path)
    assert formats.read_table(path, 2**30)["s"].combine_chunks().values.equals(flat)


def test_broken_headers_are_unreadable_and_never_loop(tmp_path):
    path = tmp_path / "t.parquet"
    formats.write_table(path, pa.table({"s": pa.array([[1, 2], [3]] * 50, SETS)}))
    raw = path.read_bytes()
    assert formats.read_table(path).num_rows == 100
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(raw)
        for place in rng.integers(4, 4 + min(size, 40), 3):
            broken[place] = rng.integers(256)
        path.write_bytes(bytes(broken))
        with suppress(VerificationFailed):  # and nothing else
            formats.read_table(path)


@pytest.mark.parametrize(
    "raw",
    [
        b"",  # it ends
        b"\x15",  # a number is missing
        b"\x19\x00\x00",  # a list, which no page header of a release has
        b"\x1c\x1c\x1c\x1c\x1c\x1c\x00\x00\x00\x00\x00\x00",  # nested for ever
    ],
)
def test_what_is_no_header(raw):
    with pytest.raises((ValueError, IndexError)):
        Reader(raw).struct()


def test_a_header_by_hand():
    raw = b"\x15\x04\x15\x10\x11\x12\x18\x03abc\x5c\x15\x0a\x00\x05\x28\x01\x00"
    assert Reader(raw).struct() == {1: 2, 2: 8, 3: True, 4: False, 5: None, 10: {1: 5}, 20: -1}
