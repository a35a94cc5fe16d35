"""Text files as blocks of whole lines. Any bytes at all give lines, and nothing raises.

A line ends with LF, CR LF or CR; the last one may lack it. What a line is depends on the file alone,
never on the sizes of reads. `open_text` unpacks a file whose name ends in `.gz`, and turns other
encodings to UTF-8 as it reads; only a packed file that is damaged is refused.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from adumbra.errors import InvalidInput

READ_BYTES = 8 * 2**20
LONGEST_LINE = 64 * 2**20  # a longer line becomes one unreadable line; reads must not be larger
MARK = b"\xef\xbb\xbf"  # UTF-8 byte order mark


class TextFile(Protocol):
    """What readers of text need of a file."""

    def read(self, size: int, /) -> bytes:
        """The next bytes: as many as asked, unless the file ends."""

    def seek(self, offset: int, /) -> object:
        """Go to a byte."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def is_utf8(path: Path, encoding: str | None) -> bool:
    """Whether the bytes of a file are the text."""
    return path.suffix.lower() != ".gz" and encoding in (None, "utf-8")


def open_text(path: Path, encoding: str | None = None) -> TextFile:
    """The file as UTF-8 bytes, unpacked."""
    if is_utf8(path, encoding):
        return path.open("rb")
    is_packed = path.suffix.lower() == ".gz"
    return _Recoded(path, None if encoding == "utf-8" else encoding, is_packed=is_packed)


class _Recoded:
    """A file that is unpacked or turned to UTF-8 as it is read; what no letter is becomes one sign."""

    def __init__(self, path: Path, encoding: str | None, *, is_packed: bool) -> None:
        self._path, self._encoding, self._is_packed = path, encoding, is_packed
        self._begin()

    def _begin(self) -> None:
        opened = gzip.open(self._path) if self._is_packed else self._path.open("rb")  # noqa: SIM115
        self._file: BinaryIO = opened  # type: ignore[assignment]
        self._decoder, self._held, self._ended = None, b"", False
        if self._encoding is None:
            return
        encoding, first = self._encoding, b""
        if encoding == "utf-16":  # the order of bytes stands first, or is that of most machines
            first = self._raw(len(codecs.BOM_UTF16_LE))
            encoding = "utf-16-be" if first == codecs.BOM_UTF16_BE else "utf-16-le"
            first = b"" if first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else first
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._held = self._decoder.decode(first).encode("utf-8", "replace")

    def read(self, size: int) -> bytes:
        """The next bytes: as many as asked, unless the file ends."""
        while len(self._held) < size and not self._ended:
            raw = self._raw(size)
            self._ended = not raw
            if self._decoder is not None:
                raw = self._decoder.decode(raw, final=not raw).encode("utf-8", "replace")
            self._held += raw
        found, self._held = self._held[:size], self._held[size:]
        return found

    def _raw(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            pass
        raise InvalidInput(f"data={self._path.name!r}: cannot be unpacked; check that the file is whole")

    def seek(self, offset: int) -> None:
        """Go to a byte, from the beginning on."""
        self._file.close()
        self._begin()
        while offset > 0 and (found := self.read(min(offset, READ_BYTES))):
            offset -= len(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._file.close()


def read_chunks(path: Path, size: int) -> Iterator[bytes]:
    """The file with every line end as LF, with a final one, and without a byte order mark."""
    held, last = b"", b"\n"
    with open_text(path) as file:
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
