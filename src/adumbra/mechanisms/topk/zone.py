"""Rows of a few public columns: cut out once, and held for the passes over them if they are small.

Proof       counting.proof.md, of `ZoneSource` and `zone_source`.
"""

from collections.abc import Iterator
from typing import cast

import numpy as np

from adumbra.data.batch import SetBatch
from adumbra.data.sources import KeptSource, Source, SourceView
from adumbra.numerics import Ints


class ZoneSource(SourceView):
    """Item sets of a source: these columns only, numbered as they rise."""

    def __init__(self, source: Source, columns: Ints) -> None:
        super().__init__(source)
        self._width = len(columns)
        self._is_kept = np.zeros(source.width + 1, np.bool_)  # the last: whatever is above the universe
        self._is_kept[columns] = True
        self._place = np.cumsum(self._is_kept, dtype=np.int32) - 1

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[SetBatch]:
        """The source's blocks, cut."""
        for batch in cast("Iterator[SetBatch]", self._source.batches(rows, start, stop)):
            yield self._cut(batch)

    def _cut(self, batch: SetBatch) -> SetBatch:
        """Each row's items in these columns, in their order; nothing else is asked of the row."""
        is_kept = self._is_kept.take(batch.indices, mode="clip")
        is_kept &= batch.indices >= 0
        kept = np.flatnonzero(is_kept)
        starts = np.searchsorted(kept, batch.indptr)  # entries kept before each row
        return SetBatch(batch.start, starts, self._place.take(batch.indices.take(kept)), self._width)


def zone_source(source: Source, columns: Ints) -> KeptSource:
    """Rows of these columns (public by now), read from the source once if they fit."""
    return KeptSource(ZoneSource(source, columns))
