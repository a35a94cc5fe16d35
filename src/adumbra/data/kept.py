"""Rows that are read once and held in memory for further passes, if they fit a fixed budget.

Larger data are read again on every pass. Either way a pass gives the same blocks, bit for bit.
"""

from collections.abc import Iterator

from adumbra.data.batch import Batch, SetBatch
from adumbra.data.sources import Source, SourceView

KEPT_BYTES = 128 * 2**20  # 16 million numbers, or about 30 million items of sets


class KeptSource(SourceView):
    """The rows of a source; blocks of a whole pass serve the next one of the same block size."""

    def __init__(self, source: Source, most: int = KEPT_BYTES) -> None:
        super().__init__(source)
        self._most = most
        self._kept: dict[int, list[Batch | SetBatch]] = {}  # by rows a block, of whole passes

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """The source's blocks, from memory where a whole pass was kept."""
        is_whole = start == 0 and stop is None
        if is_whole and rows in self._kept:
            yield from self._kept[rows]
            return
        kept: list[Batch | SetBatch] = []
        room = self._most if is_whole else -1
        for batch in self._source.batches(rows, start, stop):
            room -= batch.nbytes
            if room >= 0:
                kept.append(batch)
            else:
                kept.clear()
            yield batch
        if room >= 0:
            self._kept = {rows: kept}
