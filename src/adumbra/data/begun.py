"""Rows that are decoded before anybody asks for them: the first pieces of the first pass.

A thread decodes them while a release is settled, checked and paid. Nothing looks at a value before a
pass does, and a pass is paid; an error waits for its place in the pass. What nobody takes is dropped.
"""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread

import pyarrow as pa

from adumbra.data.files import PieceSource


class BegunSource(PieceSource):
    """The rows of a source; whoever first reads them from the start gets what was read ahead."""

    def __init__(self, source: PieceSource, rows: int, most: int) -> None:
        self.schema, self._source = source.schema, source
        self._coming: Iterator[pa.RecordBatch] | None = iter(source.pieces(rows, 0))
        self._held: deque[pa.RecordBatch] = deque()
        self._fault: BaseException | None = None
        self._enough = Event()
        self._process = os.getpid()  # a fork has these rows, but not the thread
        # Not a daemon, which Python may stop inside Arrow; it ends by itself after `most` bytes.
        self._thread = Thread(target=self._read, args=(self._coming, most), name="adumbra-begun")
        with suppress(RuntimeError):  # no thread to be had: all is read later
            self._thread.start()

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """What was read ahead and all that follows it, once; then the source's own."""
        coming = self._coming if os.getpid() == self._process else None
        if start != 0 or coming is None:
            return iter(self._source.pieces(rows, start))
        self._coming = None
        self._enough.set()
        return self._taken(coming)

    def end(self) -> None:
        """Stop the thread and drop what nobody took; what a pass has taken is the pass's."""
        if os.getpid() != self._process:
            return
        self._halt()
        if self._coming is not None:
            self._coming = None
            self._drop()

    def _drop(self) -> None:
        self._held.clear()
        self._fault = None

    def _read(self, coming: Iterator[pa.RecordBatch], most: int) -> None:
        """Decode pieces until they are enough, they end or one cannot be read; of texts the first."""
        size = 0
        try:
            while size < most and not self._enough.is_set():
                piece = next(coming, None)
                if piece is None:
                    return
                self._held.append(piece)
                size += piece.get_total_buffer_size()
                if not all(map(pa.types.is_primitive, piece.schema.types)):
                    return  # texts take more memory than a plan can know
        except BaseException as fault:  # noqa: BLE001 - raised in the pass, where it would have been
            self._fault = fault

    def _halt(self) -> None:
        """Wait until the thread has ended: it decodes at most one piece more."""
        self._enough.set()
        if self._thread.ident is not None:  # else it was never started
            self._thread.join()

    def _taken(self, coming: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The pieces that are there, each let go once it was taken, then those that are not."""
        try:
            while self._held:  # whoever takes them need not wait for the thread's last one
                yield self._held.popleft()
            self._halt()
            while self._held:
                yield self._held.popleft()
            if self._fault is not None:
                raise self._fault
            yield from coming
        finally:
            self._halt()
            self._drop()
