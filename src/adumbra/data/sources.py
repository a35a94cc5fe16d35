"""Private rows on their way: blocks of fixed global row ranges in schema order, and what reads them.

A `Source` gives the blocks (`opening.py` makes one of any data). A view reads a source in another way:
kept in memory for further passes, or watched.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import AdumbraError, require, unreadable
from adumbra.numerics import NOISE_BLOCK, ROW_BITS, Array, Ints, few_columns
from adumbra.schema.schema import Schema

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from adumbra.data.begun import BegunSource
    from adumbra.data.split import Split, Watcher


SLICE_VALUES = 2**21  # of a table that what goes row by row takes at once: a noise block of 512 columns
Items = NDArray[np.signedinteger]  # int32 where a source made them, which halves what is moved about


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows `start` to `start + len`: finite, within bounds, missing values filled in.

    `values` is rows x columns in schema order, float64; categories and booleans are codes 0, 1, ... A
    missing number of a column with `missing = "null"` is the next value above the column's bounds.
    """

    start: int
    values: Array = field(repr=False)  # private: no repr may show it
    weight: int = 1  # of each row in a sum, in units of 2^-weight_bits of the schema

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """The size of the values."""
        return self.values.nbytes

    @property
    def noise_block(self) -> int:
        """The number of the first noise block (4,096 rows by global row number) of this batch."""
        return self.start // NOISE_BLOCK

    def slice(self, first: int, last: int) -> "Batch":
        """Rows `first` to `last` of this batch, without a copy."""
        return Batch(self.start + first, self.values[first:last], self.weight)


@dataclass(frozen=True, slots=True)
class SetBatch:
    """Item sets of rows `start` to `start + len`, in compressed rows.

    Row i holds `indices[indptr[i]:indptr[i + 1]]`: sorted, without doubles, from 0 to width - 1.
    """

    start: int
    indptr: Ints = field(repr=False)
    indices: Items = field(repr=False)
    width: int
    weight: int = 1  # as above

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        """The size of the rows."""
        return self.indptr.nbytes + self.indices.nbytes

    @property
    def noise_block(self) -> int:
        """The number of the first noise block of this batch."""
        return self.start // NOISE_BLOCK

    def slice(self, first: int, last: int) -> "SetBatch":
        """Rows `first` to `last` of this batch."""
        pointers = self.indptr[first : last + 1]
        indices = self.indices[pointers[0] : pointers[-1]]
        return SetBatch(self.start + first, pointers - pointers[0], indices, self.width, self.weight)

    @property
    def lengths(self) -> Ints:
        """Items in each row."""
        return self.indptr[1:] - self.indptr[:-1]


def few_rows(batch: Batch, width: int) -> list[Batch]:
    """The batch in slices of at most `SLICE_VALUES`, if a row has `width` values; one row at least.

    For what goes row by row, where a noise block of a wide table would be copied whole.
    """
    step = max(1, SLICE_VALUES // max(width, 1))
    if len(batch) <= step:
        return [batch]
    return [batch.slice(at, min(at + step, len(batch))) for at in range(0, len(batch), step)]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that were read but are no batch yet; whoever works on them makes it, once."""

    rows: int
    nbytes: int  # of the batch
    read: Callable[[], Batch | SetBatch] = field(repr=False)

    def __len__(self) -> int:
        return self.rows


def join_sets(batches: Sequence[SetBatch]) -> SetBatch:
    """One batch of neighbouring ones of one weight, in row order."""
    first = batches[0]
    if len(batches) == 1:
        return first
    ends = np.cumsum([0, *(len(batch.indices) for batch in batches)])
    pointers = [batch.indptr[:-1] + end for batch, end in zip(batches, ends[:-1], strict=True)]
    indices = np.concatenate([batch.indices for batch in batches])
    joined = np.concatenate([*pointers, ends[-1:]])
    return SetBatch(first.start, joined, indices, first.width, first.weight)


@runtime_checkable
class Source(Protocol):
    """Private rows in schema order, readable as often as needed."""

    @property
    def schema(self) -> Schema:
        """The schema with every pattern expanded."""

    @property
    def width(self) -> int:
        """Values per row: schema columns, or items of the universe."""

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """Blocks of exactly `rows` rows (the last one shorter) of the rows from `start` to `stop`.

        Both are multiples of `rows`, or `stop` is the end. Block boundaries depend on nothing else.
        """

    def public_rows(self) -> int | None:
        """The number of rows where it is public, else None."""

    def pin(self) -> str:
        """A digest of names, sizes and modification times; changes when the files do."""


def held_part(batch: Batch | SetBatch) -> Part:
    """A batch that is there already."""
    return Part(len(batch), batch.nbytes, lambda: batch)


def parts(source: Source, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Part]:
    """The blocks of `batches`, converted when they are read: a source may leave that to workers."""
    own = getattr(source, "parts", None)
    if own is None:
        return map(held_part, source.batches(rows, start, stop))
    found: Iterator[Part] = own(rows, start, stop)
    return found


class SourceView:
    """Another way to read the rows of a source: all but `batches` is the source's own."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.schema, self.width = source.schema, source.width

    def public_rows(self) -> int | None:
        """The source's own."""
        return self._source.public_rows()

    def pin(self) -> str:
        """The source's own."""
        return self._source.pin()


# A source that shows its quantised rows to a watcher during the first whole pass.
#
# The ledger's tripwire watches the paid pass this way; what it sees goes to the private log only.
SET_COLUMNS = 2**16  # wider item sets are folded to this many columns before they are hashed

SeenRows: TypeAlias = (
    "Array | csr_array"  # a table's rows in float64, or the sparse rows of item sets in uint64
)


class WatchedSource(SourceView):
    """The rows of a source; `see` gets each block of rows once, as whole numbers from 0 on."""

    def __init__(self, source: Source, see: Callable[[SeenRows], None] = lambda _: None) -> None:
        super().__init__(source)
        _require_bounded(source)
        self._begun: BegunSource | None = None
        self.watch(see)
        public = source.public_rows() if self.schema.rows is None else None
        if public is not None:  # the number of rows is part of what is known
            self.schema = replace(self.schema, rows=public)
        columns = self.schema.columns
        # Columns of what the watcher sees
        self.watched_columns = (
            min(self.width, SET_COLUMNS) if self.schema.items else max(len(columns), 1)
        )
        limits = np.array([(c.limits[0], max(c.limits[1], c.fill)) for c in columns]).reshape(-1, 2)
        self._lower = limits[:, 0]
        widths = limits[:, 1] - limits[:, 0]
        with np.errstate(all="ignore"):
            scale = np.divide(2.0**ROW_BITS, widths, out=np.zeros(len(widths)), where=widths > 0)
        self._scale = np.where(np.isfinite(scale), scale, 0.0)  # of bounds that are nearly one number

    def watch(self, see: Callable[[SeenRows], None], watcher: "Watcher | None" = None) -> None:
        """Show the next whole pass to `see`, whatever was seen before; in parts to blank watchers."""
        self._see, self.watcher = see, watcher
        self.is_seen = False  # whether a whole pass was watched

    def begin(self, rows: int, most: int) -> None:
        """Decode the first rows of the first pass from now on, if the source can; then call `end`."""
        begun = getattr(self._source, "begun", None)
        self._begun = None if begun is None else begun(rows, most)

    def end(self) -> None:
        """Drop what was read ahead and no pass has taken."""
        if self._begun is not None:
            self._begun.end()

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """The source's blocks; the first pass over all rows is watched."""
        return (part.read() for part in self.parts(rows, start, stop))

    def parts(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """The same blocks; each is shown by whoever reads it, in any order."""
        watching = not self.is_seen and start == 0 and stop is None
        read = partial(parts, self._source) if self._begun is None else self._begun.parts
        for part in _readable(read(rows, start, stop)):
            yield replace(part, read=partial(self._shown, part, self._see)) if watching else part
        self.is_seen = self.is_seen or watching

    def split(self, rows: int, count: int, shares: int) -> "Split":
        """Ranges of the source; each shows its rows to a watcher of its own if this pass is watched."""
        from adumbra.data.split import split, split_watched  # noqa: PLC0415  (few engines divide rows)

        if self.is_seen or self.watcher is None:
            return split(self._source, rows, count, shares)
        return split_watched(self._source, self.watcher, self._saw_all, rows, count, shares)

    def _saw_all(self) -> None:
        """A whole pass was watched, in parts."""
        self.is_seen = True

    def _shown(self, part: Part, see: Callable[[SeenRows], None]) -> Batch | SetBatch:
        """Read a block and show it."""
        batch = part.read()
        for first in range(0, len(batch), NOISE_BLOCK):  # small pieces stay in the cache
            piece = batch.slice(first, min(first + NOISE_BLOCK, len(batch)))
            for few in [piece] if isinstance(piece, SetBatch) else few_rows(piece, self.width):
                see(self._quantised(few))
        return batch

    def _quantised(self, piece: Batch | SetBatch) -> SeenRows:
        """Table rows as integers of 0 to 2^15; item sets as rows of 0 and 1, or folded with weights.

        Items that fold onto one column add their weights, so a cell of a long set may be far larger.
        """
        if isinstance(piece, Batch):
            return self._quantised_table(piece.values)
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and tables need none

        weights = (1 + piece.indices // SET_COLUMNS).astype(np.uint64)
        entries = (weights, piece.indices % SET_COLUMNS, piece.indptr)
        return csr_array(entries, shape=(len(piece), self.watched_columns))

    def _quantised_table(self, values: Array) -> Array:
        table: Array = np.empty(values.shape, order="F")
        for few in few_columns(*values.shape):
            part = np.subtract(values[:, few], self._lower[few], out=table[:, few])
            part *= self._scale[few]
            np.rint(part, out=part)
        return table


def _readable(blocks: Iterator[Part]) -> Iterator[Part]:
    """The same blocks; a file that can no longer be read is named as the data, not as the release."""
    while True:
        try:
            block = next(blocks, None)
        except OSError as error:
            if isinstance(error, AdumbraError):
                raise
            fault = unreadable(error)
            break
        if block is None:
            return
        yield block
    raise fault  # outside the handler: its text stays behind


def _require_bounded(source: Source) -> None:
    """Under unit=person every source has bounded its persons; one that has not goes no further."""
    person = source.schema.person
    most = getattr(source, "most_of_a_person", None)
    require(person is None or most == person.max_rows, "person: rows are not bounded; use open_source")


# Rows that are read once and held in memory for further passes, if they fit a fixed budget.
#
# Larger data are read again on every pass. Either way a pass gives the same blocks, bit for bit.
KEPT_BYTES = 128 * 2**20  # 16 million numbers, or about 30 million items of sets


class KeptSource(SourceView):
    """The rows of a source; blocks of a whole pass serve the next one of the same block size."""

    def __init__(self, source: Source, most: int = KEPT_BYTES) -> None:
        super().__init__(source)
        self._most = most
        self._kept: dict[int, Batch | SetBatch] = {}  # by place, of the last whole pass ...
        self._asked = (0, 0)  # ... which had so many rows per block, and so many blocks

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """The source's blocks, from memory where a whole pass was kept."""
        return (part.read() for part in self.parts(rows, start, stop))

    def parts(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """The same blocks; each is kept by whoever reads it, and all of them or none serve again."""
        is_whole = start == 0 and stop is None
        if is_whole and self._asked == (rows, len(self._kept)):
            yield from [held_part(self._kept[place]) for place in range(len(self._kept))]
            return
        kept: dict[int, Batch | SetBatch] = {}
        room, count = (self._most if is_whole and self._may_fit() else -1), 0
        for part in parts(self._source, rows, start, stop):
            room -= part.nbytes
            yield part if room < 0 else replace(part, read=partial(_keep, part, kept, count))
            count += 1
            if room < 0:
                kept = {}  # blocks that are read from now on keep the old one, which goes with them
        if room >= 0:
            self._kept, self._asked = kept, (rows, count)

    def _may_fit(self) -> bool:
        """Whether all rows might be kept; of a table with a public number of rows, whether they can."""
        rows = self.public_rows()
        return rows is None or self.schema.items is not None or 8 * rows * self.width <= self._most

    def split(self, rows: int, count: int, shares: int) -> "Split":
        """Ranges of the source; whoever reads them keeps nothing."""
        from adumbra.data.split import split  # noqa: PLC0415

        return split(self._source, rows, count, shares)


def _keep(part: Part, kept: dict[int, Batch | SetBatch], place: int) -> Batch | SetBatch:
    """Read a block and keep it."""
    kept[place] = part.read()
    return kept[place]
