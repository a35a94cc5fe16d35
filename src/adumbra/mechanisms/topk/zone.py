"""Rows as sets of columns: of a table of truths, and of a few public columns.

Those of a few columns are cut out once, and held for the passes over them if they are small.

Proof       counting.proof.md, of `TrueColumns`, `ZoneSource` and `zone_source`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from adumbra.data.sources import Batch, KeptSource, SetBatch, Source, SourceView
from adumbra.data.split import Split, split
from adumbra.numerics import Ints


class TrueColumns(SourceView):
    """A table of truths as item sets: the items of a row are its columns that are 1."""

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[SetBatch]:
        """The source's blocks."""
        for batch in cast("Iterator[Batch]", self._source.batches(rows, start, stop)):
            held = np.ascontiguousarray(batch.values == 1.0)
            pointers = np.concatenate(([0], np.cumsum(held.sum(axis=1, dtype=np.int64))))
            items = np.nonzero(held)[1].astype(np.int32)
            yield SetBatch(batch.start, pointers, items, self.width, batch.weight)

    @property
    def watcher(self) -> object:
        """Who watches the table, if somebody does."""
        return getattr(self._source, "watcher", None)

    def split(self, rows: int, count: int, shares: int) -> Split:
        """Ranges of the table, each read as sets."""
        found = split(self._source, rows, count, shares)
        return replace(found, parts=tuple(TrueColumns(part) for part in found.parts))


def as_sets(source: Source) -> Source:
    """Item sets as they are, tables of truths as the sets of their true columns."""
    return source if source.schema.items is not None else TrueColumns(source)


class ZoneSource(SourceView):
    """Item sets of a source: these columns only, numbered as they rise."""

    def __init__(self, source: Source, columns: Ints) -> None:
        super().__init__(source)
        self._width, self._columns = len(columns), columns
        self._is_kept = np.zeros(source.width + 1, np.bool_)  # the last: whatever is above the universe
        self._is_kept[columns] = True
        self._place = np.cumsum(self._is_kept, dtype=np.int32) - 1

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[SetBatch]:
        """The source's blocks, cut."""
        for batch in cast("Iterator[SetBatch]", self._source.batches(rows, start, stop)):
            yield self._cut(batch)

    def split(self, rows: int, count: int, shares: int) -> Split:
        """Ranges of the source, each cut where it is read."""
        found = split(self._source, rows, count, shares)
        return replace(found, parts=tuple(ZoneSource(part, self._columns) for part in found.parts))

    def _cut(self, batch: SetBatch) -> SetBatch:
        """Each row's items in these columns, in their order; nothing else is asked of the row."""
        is_kept = self._is_kept.take(batch.indices, mode="clip")
        is_kept &= batch.indices >= 0
        kept = np.flatnonzero(is_kept)
        starts = np.searchsorted(kept, batch.indptr)  # entries kept before each row
        items = self._place.take(batch.indices.take(kept))
        return SetBatch(batch.start, starts, items, self._width, batch.weight)


def zone_source(source: Source, columns: Ints) -> KeptSource:
    """Rows of these columns (public by now), read from the source once if they fit."""
    return KeptSource(ZoneSource(source, columns))
