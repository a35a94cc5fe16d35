"""Divide a source among processes: ranges of its rows that each reads by itself.

A range names files, a schema and row numbers, so it can be sent; no row is in it. Ranges begin where row
groups do, as far as whole blocks allow, for a group is decoded from its first row on; those of CSV text
begin where a first pass saw records begin, and a file whose only known place is its start, as of a
packed one, is not cut. How many there are is asked for by the caller, never a
function of the data: ranges may be empty.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.csv import CsvSource, Marks, csv_pieces, file_marks
from adumbra.data.files import MEMORY_PIN, PieceSource, pin_files, rechunk
from adumbra.data.parquet import ParquetSource, group_rows, parquet_pieces
from adumbra.data.sets import ParquetReader, SetSource
from adumbra.data.sources import SeenRows, SetBatch, Source, WatchedSource
from adumbra.errors import Unsupported
from adumbra.schema.schema import Schema

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

    from adumbra.data.datasets import DatasetSource

WORKS = "write Parquet or CSV files that every worker reads by one path, or use the local engine"
Words = NDArray[np.uint64]


class Watcher(Protocol):
    """What looks at rows during a pass, and can do so in parts."""

    def update(self, rows: SeenRows) -> None:
        """Look at a block."""

    def blank(self) -> "Watcher":
        """One like it that has seen nothing; it can be sent."""

    def seen(self) -> list[Words]:
        """What it has seen so far."""

    def merge(self, seen: Sequence[Words]) -> None:
        """Take in what a blank one has seen."""


@dataclass(frozen=True, slots=True)
class Split:
    """Sources that together hold the rows of one, each once, in row order."""

    parts: tuple[Source, ...]
    spans: tuple[tuple[int, int], ...] = field(repr=False)  # first row and end of each
    watched: Callable[[Sequence[Sequence[Words]]], None] | None = field(default=None, repr=False)
    # ... takes what the watcher of each part has seen, once all parts were read


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows `start` to `stop` of files of which the first is read from row `offset` on."""

    paths: tuple[Path, ...]
    offset: int = field(repr=False)
    start: int = field(repr=False)
    stop: int = field(repr=False)

    def pin(self) -> str:
        """A digest of names, sizes and modification times of these files."""
        return pin_files(self.paths)


@dataclass(frozen=True, slots=True)
class FileRange(PieceSource):
    """A range of files that every worker reads by one path."""

    schema: Schema
    rows: RowRange

    def public_rows(self) -> int | None:
        """Nobody asks a range."""
        return None

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
class TableRange(FileRange):
    """A range of Parquet files."""

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """The declared columns from global row `start` on."""
        held = self.rows
        return parquet_pieces(held.paths, list(self.schema.names), rows, start - held.offset)


@dataclass(frozen=True, slots=True)
class CsvRange(FileRange):
    """A range of CSV files; a record begins at byte `byte` of the first of them."""

    byte: int = field(repr=False)

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - as they are read
        """The declared columns from global row `start` on."""
        held = self.rows
        return csv_pieces(held.paths, self.schema, self.schema.names, start - held.offset, self.byte)


@dataclass(frozen=True, slots=True)
class StoreRange(FileRange):
    """A range of Parquet files in an object store; whoever reads it opens that with its own settings."""

    address: str = field(repr=False)
    files: tuple[str, ...]
    types: pa.Schema = field(repr=False)  # of all files

    def pieces(self, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """The declared columns from global row `start` on."""
        from adumbra.data.datasets import pieces_from  # noqa: PLC0415  (only stores need it)

        if not self.files:
            return iter(())
        return pieces_from(self._opened(), list(self.schema.names), rows, start - self.rows.offset)

    def pin(self) -> str:
        """Of the files of this range, as the store tells them."""
        from adumbra.data.datasets import pin_dataset  # noqa: PLC0415

        return pin_dataset(self._opened()) if self.files else pin_files(())

    def _opened(self) -> "Dataset":
        from adumbra.data.stores import files_of  # noqa: PLC0415

        return files_of(self.address, self.files, self.types)


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
    if isinstance(source, CsvSource):
        texts = list(_csv_ranges(source, rows, count, shares))
        return Split(tuple(texts), _spans([one.rows for one in texts]))
    if getattr(source, "address", ""):
        stored = list(_store_ranges(cast("DatasetSource", source), rows, count, shares))
        return Split(tuple(stored), _spans([one.rows for one in stored]))
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
    if source.pin() == MEMORY_PIN or hasattr(source, "address"):
        return "data in memory"
    return "a file that is neither Parquet nor CSV"


def _ranges(
    paths: tuple[Path, ...], most: int, rows: int, count: int, shares: int
) -> Iterator[RowRange]:
    """The ranges, each with the files that it reads."""
    groups = _groups(paths, pin_files(paths))
    for start, stop, first, last, offset in _spread(groups, most, rows, count, shares):
        yield RowRange(paths=paths[first:last], offset=offset, start=start, stop=stop)


def _spread(
    groups: Sequence[Sequence[int]], most: int, rows: int, count: int, shares: int
) -> Iterator[tuple[int, int, int, int, int]]:
    """Of every range: first row, end, first file, end of files, and the row that begins the first."""
    files = [0, *accumulate(sum(sizes) for sizes in groups)]
    total = min(files[-1], most)
    starts = [0, *accumulate(size for sizes in groups for size in sizes)]
    for start, stop in pairwise(cuts(starts, total, rows, count, shares)):
        first = next((i for i in range(len(groups)) if files[i + 1] > start), len(groups))
        last = next((i for i in range(first, len(groups)) if files[i] >= stop), len(groups))
        yield start, stop, first, last if stop > start else first, files[first]


def _store_ranges(source: "DatasetSource", rows: int, count: int, shares: int) -> Iterator[StoreRange]:
    """The ranges of a dataset that was opened by its address."""
    from adumbra.data.datasets import row_groups  # noqa: PLC0415

    data, schema = source.data, source.schema
    for start, stop, first, last, offset in _spread(
        row_groups(data), schema.max_rows, rows, count, shares
    ):
        held = RowRange(paths=(), offset=offset, start=start, stop=stop)  # no local file
        yield StoreRange(schema, held, source.address, tuple(data.files[first:last]), data.schema)


def _csv_ranges(source: CsvSource, rows: int, count: int, shares: int) -> Iterator[CsvRange]:
    """The ranges, each from the last mark before its first row on."""
    paths, schema = source.paths, source.schema
    marks = _marks(paths, schema, pin_files(paths))
    files = [0, *accumulate(one.count for one in marks)]
    known = [  # of every mark, in row order: its row, its file and its byte
        (files[at] + row, at, byte)
        for at, one in enumerate(marks)
        for row, byte in zip(one.rows, one.offsets, strict=True)
    ]
    starts, total = [row for row, _, _ in known], min(files[-1], schema.max_rows)
    whole = [(files[at], files[at + 1]) for at, one in enumerate(marks) if len(one.rows) == 1]
    for start, stop in pairwise(cuts(starts, total, rows, count, shares, whole)):
        first, at, byte = known[bisect_right(starts, start) - 1]
        last = next((i for i in range(at, len(paths)) if files[i] >= stop), len(paths))
        named = paths[at:last] if stop > start else ()
        yield CsvRange(schema, RowRange(paths=named, offset=first, start=start, stop=stop), byte)


@lru_cache(maxsize=2)
def _marks(paths: tuple[Path, ...], schema: Schema, pin: str) -> tuple[Marks, ...]:  # noqa: ARG001 - the key
    """Where records begin in every file: one pass that every other asks for."""
    return tuple(file_marks(path, schema) for path in paths)


@lru_cache(maxsize=2)
def _groups(paths: tuple[Path, ...], pin: str) -> tuple[tuple[int, ...], ...]:  # noqa: ARG001 - the key
    """Rows of every row group of every file; every pass asks for the same ones."""
    return tuple(map(group_rows, paths))


def cuts(  # noqa: PLR0913, PLR0917 - where a source may be cut, and how often
    starts: Sequence[int],
    total: int,
    rows: int,
    count: int,
    shares: int,
    whole: Sequence[tuple[int, int]] = (),
) -> list[int]:
    """Where ranges begin, and the end: count + 1 rising numbers, each a multiple of `rows` or the end.

    A cut goes to the nearest start of a row group. Where that is farther away than half a range it is
    left out, or, between two workers, made inside the group, unless that is one of the `whole` ones,
    given by their first row and end: whoever reads a part of these decodes all that is before it.
    """
    places = sorted({min(-(-start // rows) * rows, total) for start in starts if start <= total})
    found = [0]
    for index in range(1, count):
        ideal = index * total // count
        nearest = min(places, key=lambda place: abs(place - ideal), default=0)
        if 2 * count * abs(nearest - ideal) > total:
            inside = min(-(-ideal // rows) * rows, total)
            is_between = index * shares % count == 0
            is_whole = any(first < ideal < end for first, end in whole)
            nearest = inside if is_between and not is_whole else found[-1]
        found.append(max(nearest, found[-1]))
    return [*found, total]
