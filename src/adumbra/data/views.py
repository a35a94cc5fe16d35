"""Other ways to read the rows of a source: kept in memory for further passes, or watched."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from adumbra.data.batch import Batch, SetBatch
from adumbra.data.sources import Source, SourceView
from adumbra.numerics import NOISE_BLOCK, ROW_BITS, Array
from adumbra.schema.schema import Schema

# A source that shows its quantised rows to a watcher during the first whole pass.
#
# The ledger's tripwire watches the paid pass this way; what it sees goes to the private log only.
SET_COLUMNS = 2**16  # wider item sets are folded to this many columns before they are hashed

SeenRows = Array | csr_array  # a table's rows in float64, or the sparse rows of item sets in uint64


class WatchedSource(SourceView):
    """The rows of a source; `see` gets each block of rows once, as whole numbers from 0 on."""

    def __init__(self, source: Source, see: Callable[[SeenRows], None] = lambda _: None) -> None:
        super().__init__(source)
        self.see = see
        self._seen = False
        self._schema = source.schema
        if self._schema.rows is None and source.public_rows() is not None:
            self._schema = replace(self._schema, rows=source.public_rows())
        columns = source.schema.columns
        limits = np.array([(c.limits[0], max(c.limits[1], c.fill)) for c in columns]).reshape(-1, 2)
        self._lower = limits[:, 0]
        widths = limits[:, 1] - limits[:, 0]
        with np.errstate(all="ignore"):
            scale = np.divide(2.0**ROW_BITS, widths, out=np.zeros(len(widths)), where=widths > 0)
        self._scale = np.where(np.isfinite(scale), scale, 0.0)  # of bounds that are nearly one number

    @property
    def schema(self) -> Schema:
        """The source's own, with the number of rows where that is public."""
        return self._schema

    @property
    def is_seen(self) -> bool:
        """Whether a whole pass was watched."""
        return self._seen

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """The source's blocks; the first pass over all rows is watched."""
        watching = not self._seen and start == 0 and stop is None
        for batch in self._source.batches(rows, start, stop):
            if watching:
                for first in range(0, len(batch), NOISE_BLOCK):  # small pieces stay in the cache
                    self.see(self._quantised(batch.slice(first, first + NOISE_BLOCK)))
            yield batch
        self._seen = self._seen or watching

    def _quantised(self, piece: Batch | SetBatch) -> SeenRows:
        """Table rows as integers of 0 to 2^15; item sets as rows of 0 and 1, or folded with weights.

        Items that fold onto one column add their weights, so a cell of a long set may be far larger.
        """
        if isinstance(piece, Batch):
            table: Array = np.rint((piece.values - self._lower) * self._scale)
            return table
        weights = (1 + piece.indices // SET_COLUMNS).astype(np.uint64)
        entries = (weights, piece.indices % SET_COLUMNS, piece.indptr)
        return csr_array(entries, shape=(len(piece), self.watched_columns))

    @property
    def watched_columns(self) -> int:
        """Columns of what the watcher sees."""
        return min(self.width, SET_COLUMNS) if self._schema.items else max(len(self._schema.columns), 1)


# Rows that are read once and held in memory for further passes, if they fit a fixed budget.
#
# Larger data are read again on every pass. Either way a pass gives the same blocks, bit for bit.
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
