"""Text files as blocks of whole lines. Any bytes at all give lines, and nothing raises.

A line ends with LF, CR LF or CR; the last one may lack it. What a line is depends on the file alone,
never on the sizes of reads.
"""

from collections.abc import Iterator
from pathlib import Path

READ_BYTES = 8 * 2**20
LONGEST_LINE = 64 * 2**20  # a longer line becomes one unreadable line; reads must not be larger
MARK = b"\xef\xbb\xbf"  # UTF-8 byte order mark


def read_chunks(path: Path, size: int) -> Iterator[bytes]:
    """The file with every line end as LF, with a final one, and without a byte order mark."""
    held, last = b"", b"\n"
    with path.open("rb") as file:
        if file.read(len(MARK)) != MARK:
            file.seek(0)
        while piece := file.read(size):
            chunk = held + piece
            held = b"\r" if chunk.endswith(b"\r") else b""  # it waits for its LF
            chunk = chunk.removesuffix(b"\r")
            if b"\r" in chunk:
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            last = chunk[-1:] or last
            yield chunk
    if held or last != b"\n":
        yield b"\n"


def read_lines(
    path: Path, unreadable: bytes, *, size: int = READ_BYTES, longest: int = LONGEST_LINE
) -> Iterator[bytes]:
    """Blocks of whole lines; each line longer than `longest` is replaced by the line `unreadable`."""
    held = b""
    is_skipping = False
    for piece in read_chunks(path, size):
        chunk = piece
        first = chunk.find(b"\n") + 1
        if first and (is_skipping or len(held) + first > longest):
            chunk, held, is_skipping = unreadable + chunk[first:], b"", False
        elif is_skipping:
            continue
        end = chunk.rfind(b"\n") + 1
        if end:
            yield held + chunk[:end]
            held = chunk[end:]
        else:
            held += chunk
        if len(held) > longest:
            held, is_skipping = b"", True
