"""Divide a source among processes: ranges of its rows that each reads by itself.

A range names files, a schema and row numbers, so it can be sent; no row is in it. Ranges begin where row
groups do, as far as whole blocks allow, for a group is decoded from its first row on. How many there are
is asked for by the caller, never a function of the data: ranges may be empty.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.batch import SetBatch
from adumbra.data.files import MEMORY_PIN, PieceSource, pin_files, rechunk
from adumbra.data.parquet import ParquetSource, group_rows, parquet_pieces
from adumbra.data.sets import ParquetReader, SetSource
from adumbra.data.sources import SeenRows, Source, WatchedSource
from adumbra.errors import Unsupported
from adumbra.schema.schema import Schema

WORKS = "write Parquet files that every worker reads by the same path, or use the local engine"
Words = NDArray[np.uint64]


class Watcher(Protocol):
    """What looks at rows during a pass, and can do so in parts."""

    def update(self, rows: SeenRows) -> None:
        """Look at a block."""
        ...

    def blank(self) -> "Watcher":
        """One like it that has seen nothing; it can be sent."""
        ...

    def seen(self) -> list[Words]:
        """What it has seen so far."""
        ...

    def merge(self, seen: Sequence[Words]) -> None:
        """Take in what a blank one has seen."""
        ...


@dataclass(frozen=True, slots=True)
class Split:
    """Sources that together hold the rows of one, each once, in row order."""

    parts: tuple[Source, ...]
    spans: tuple[tuple[int, int], ...] = field(repr=False)  # first row and end of each
    watched: Callable[[Sequence[Sequence[Words]]], None] | None = field(default=None, repr=False)
    # ... takes what the watcher of each part has seen, once all parts were read


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows `start` to `stop` of Parquet files of which the first begins at row `offset`."""

    paths: tuple[Path, ...]
    offset: int = field(repr=False)
    start: int = field(repr=False)
    stop: int = field(repr=False)

    def pin(self) -> str:
        """A digest of names, sizes and modification times of these files."""
        return pin_files(self.paths)


@dataclass(frozen=True, slots=True)
class TableRange(PieceSource):
    """A range of a table."""

    schema: Schema
    rows: RowRange

    def public_rows(self) -> int | None:
        """Nobody asks a range."""
        return None

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """The declared columns from global row `start` on."""
        held = self.rows
        return parquet_pieces(held.paths, list(self.schema.names), rows, start - held.offset)

    def _blocks(
        self, rows: int, start: int, stop: int | None
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Blocks of the whole range, numbered as in the whole table."""
        require_whole(start, stop)
        held = self.rows
        return rechunk(self.pieces(rows, held.start), rows, held.start, held.stop - held.start)

    def pin(self) -> str:
        """Of the files of this range."""
        return self.rows.pin()


@dataclass(frozen=True, slots=True)
class SetRange:
    """A range of item sets."""

    source: SetSource = field(repr=False)  # of the files of this range alone
    rows: RowRange

    @property
    def schema(self) -> Schema:
        """The source's own."""
        return self.source.schema

    @property
    def width(self) -> int:
        """The source's own."""
        return self.source.width

    def public_rows(self) -> int | None:
        """Nobody asks a range."""
        return None

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[SetBatch]:
        """Blocks of the whole range, numbered as in the whole table."""
        require_whole(start, stop)
        held = self.rows
        return self.source.numbered(rows, held.start, held.stop, held.offset)

    def pin(self) -> str:
        """Of the files of this range."""
        return self.rows.pin()


def require_whole(start: int, stop: int | None) -> None:
    """A range is read whole."""
    if start or stop is not None:
        raise Unsupported(f"start={start}, stop={stop}: a range of rows is read whole")


def split(source: Source, rows: int, count: int, shares: int) -> Split:
    """The source as `count` ranges of whole blocks of `rows` rows, or a refusal that says what works.

    Where row groups are larger than a range, they are cut between `shares` workers only.
    """
    own = getattr(source, "split", None)  # a view splits what it looks at
    if own is not None:
        found: Split = own(rows, count, shares)
        return found
    if isinstance(source, ParquetSource):
        ranges = list(_ranges(source.paths, source.schema.max_rows, rows, count, shares))
        return Split(tuple(TableRange(source.schema, one) for one in ranges), _spans(ranges))
    if isinstance(source, SetSource) and isinstance(source.reader, ParquetReader):
        reader = source.reader
        ranges = list(_ranges(reader.paths, source.schema.max_rows, rows, count, shares))
        parts = (
            SetRange(replace(source, reader=replace(reader, paths=one.paths), counted=None), one)
            for one in ranges
        )
        return Split(tuple(parts), _spans(ranges))
    raise Unsupported(f"engine=dask: {_what(source)} cannot be divided among workers; {WORKS}")


def split_watched(  # noqa: PLR0913, PLR0917 - a source, who watches it, and how to divide it
    source: Source, whole: Watcher, done: Callable[[], None], rows: int, count: int, shares: int
) -> Split:
    """Ranges that each show their rows to a blank watcher; `whole` gets what all of them saw."""
    found, parts = split(source, rows, count, shares), []
    for part in found.parts:
        own = whole.blank()
        parts.append(WatchedSource(part))
        parts[-1].watch(own.update, own)

    def merge(seen: Sequence[Sequence[Words]]) -> None:
        for one in seen:
            whole.merge(one)
        done()

    return Split(tuple(parts), found.spans, merge)


def _spans(ranges: Sequence[RowRange]) -> tuple[tuple[int, int], ...]:
    return tuple((one.start, one.stop) for one in ranges)


def _what(source: Source) -> str:
    """A source in words."""
    if source.schema.person is not None:
        return "rows of persons (their bound is kept by one process)"
    if source.pin() == MEMORY_PIN:
        return "data in memory"
    return "a file that is not Parquet"


def _ranges(
    paths: tuple[Path, ...], most: int, rows: int, count: int, shares: int
) -> Iterator[RowRange]:
    """The ranges, each with the files that it reads."""
    groups = _groups(paths, pin_files(paths))
    files = [0, *accumulate(sum(sizes) for sizes in groups)]
    total = min(files[-1], most)
    starts = [0, *accumulate(size for sizes in groups for size in sizes)]
    for start, stop in pairwise(cuts(starts, total, rows, count, shares)):
        first = next((i for i in range(len(paths)) if files[i + 1] > start), len(paths))
        last = next((i for i in range(first, len(paths)) if files[i] >= stop), len(paths))
        named = paths[first:last] if stop > start else ()
        yield RowRange(paths=named, offset=files[first], start=start, stop=stop)


@lru_cache(maxsize=2)
def _groups(paths: tuple[Path, ...], pin: str) -> tuple[tuple[int, ...], ...]:  # noqa: ARG001 - the key
    """Rows of every row group of every file; every pass asks for the same ones."""
    return tuple(map(group_rows, paths))


def cuts(starts: Sequence[int], total: int, rows: int, count: int, shares: int) -> list[int]:
    """Where ranges begin, and the end: count + 1 rising numbers, each a multiple of `rows` or the end.

    A cut goes to the nearest start of a row group. Where that is farther away than half a range it is
    left out, or, between two workers, made inside the group.
    """
    places = sorted({min(-(-start // rows) * rows, total) for start in starts if start <= total})
    found = [0]
    for index in range(1, count):
        ideal = index * total // count
        nearest = min(places, key=lambda place: abs(place - ideal), default=0)
        if 2 * count * abs(nearest - ideal) > total:
            inside = min(-(-ideal // rows) * rows, total)
            is_between = index * shares % count == 0
            nearest = inside if is_between else found[-1]
        found.append(max(nearest, found[-1]))
    return [*found, total]
