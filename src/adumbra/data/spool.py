"""Private bytes that are put aside and read again: in memory, or encrypted in a file without a name.

Frames stay in memory up to a fixed size. Beyond it all of them go to a temporary file that was unlinked
when it was made (where the system can), under AES-256-GCM with a key that exists in this process only:
nothing readable is left behind, whatever happens to the process or to the disk.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HELD_BYTES = 192 * 2**20  # of frames in memory
_TAG = 16


class Spool:
    """Frames of bytes by shelf, in the order in which they were put."""

    def __init__(self, held: int = HELD_BYTES) -> None:
        self._most = held
        self._size = 0
        self._held: list[tuple[int, bytes]] = []
        self._shelves: dict[int, list[tuple[int, int, int]]] = {}  # number, offset and length of frames
        self._file: IO[bytes] | None = None
        self._cipher = AESGCM(os.urandom(32))
        self._count = self._end = 0

    @property
    def is_on_disk(self) -> bool:
        """Whether frames left memory."""
        return self._file is not None

    def put(self, frame: bytes, shelf: int = 0) -> None:
        """Put a frame aside."""
        self._size += len(frame)
        if self._file is None and self._size <= self._most:
            self._held.append((shelf, frame))
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the spool is
            weakref.finalize(self, self._file.close)
            for place, kept in self._held:
                self._write(kept, place)
            self._held = []
        self._write(frame, shelf)

    def _write(self, frame: bytes, shelf: int) -> None:
        assert self._file is not None  # noqa: S101  (for mypy)
        self._file.seek(self._end)
        self._file.write(self._cipher.encrypt(self._count.to_bytes(12, "big"), frame, None))
        self._shelves.setdefault(shelf, []).append((self._count, self._end, len(frame) + _TAG))
        self._count, self._end = self._count + 1, self._end + len(frame) + _TAG

    def frames(self, shelf: int = 0) -> Iterator[bytes]:
        """The frames of a shelf, first to last."""
        if self._file is None:
            yield from (frame for place, frame in self._held if place == shelf)
            return
        for number, offset, length in self._shelves.get(shelf, ()):
            self._file.seek(offset)
            yield self._cipher.decrypt(number.to_bytes(12, "big"), self._file.read(length), None)

    def close(self) -> None:
        """Forget everything."""
        self._held, self._shelves = [], {}
        if self._file is not None:
            self._file.close()
