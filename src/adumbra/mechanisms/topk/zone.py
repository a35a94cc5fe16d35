"""Rows of a few public columns: cut out once, and held for the passes over them if they are small.

Proof       counting.proof.md, of `ZoneSource` and `zone_source`.
"""

from collections.abc import Iterator
from typing import cast

import numpy as np

from adumbra.data.batch import SetBatch
from adumbra.data.kept import KeptSource
from adumbra.data.schema import Schema
from adumbra.data.sources import Source
from adumbra.numerics import Ints
from adumbra.statistics.counts import item_rows


class ZoneSource:
    """Delegates to a source of item sets; its rows hold these columns only, numbered as they rise."""

    def __init__(self, source: Source, columns: Ints) -> None:
        self._source = source
        self._columns = np.sort(columns)

    @property
    def schema(self) -> Schema:
        """The source's own."""
        return self._source.schema

    @property
    def width(self) -> int:
        """The source's own, so that its blocks are the source's own."""
        return self._source.width

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[SetBatch]:
        """The source's blocks, cut."""
        for batch in cast("Iterator[SetBatch]", self._source.batches(rows, start, stop)):
            cut = item_rows(batch).restrict(self._columns)
            yield SetBatch(batch.start, cut.indptr, cut.indices, cut.width)

    def public_rows(self) -> int | None:
        """The source's own."""
        return self._source.public_rows()

    def pin(self) -> str:
        """The source's own."""
        return self._source.pin()


def zone_source(source: Source, columns: Ints) -> KeptSource:
    """Rows of these columns (public by now), read from the source once if they fit."""
    return KeptSource(ZoneSource(source, columns))
