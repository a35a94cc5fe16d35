"""Open private rows: files, Arrow objects, arrays; always in blocks of fixed global row ranges.

Opening looks at file names, column names and storage types (and row counts where those are public).
Whatever is wrong with these is said here; past it no value raises and none is shown. A view reads a
source in another way: kept in memory for further passes, or watched.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_array

from adumbra.data.batch import Batch, Part, SetBatch
from adumbra.data.files import Located, has_arrow, is_dataset, locate
from adumbra.errors import AdumbraError, InvalidInput, require, unreadable
from adumbra.numerics import NOISE_BLOCK, ROW_BITS, Array, few_columns
from adumbra.schema.schema import Schema

if TYPE_CHECKING:
    from adumbra.data.split import Split, Watcher

_READABLE = (
    "give a path, a pandas, polars or pyarrow table, an Arrow dataset, a SqlQuery, a numpy array or a "
    "scipy.sparse matrix"
)


@runtime_checkable
class Source(Protocol):
    """Private rows in schema order, readable as often as needed."""

    @property
    def schema(self) -> Schema:
        """The schema with every pattern expanded."""
        ...

    @property
    def width(self) -> int:
        """Values a row: schema columns, or items of the universe."""
        ...

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """Blocks of exactly `rows` rows (the last one shorter) of the rows from `start` to `stop`.

        Both are multiples of `rows`, or `stop` is the end. Block boundaries depend on nothing else.
        """
        ...

    def public_rows(self) -> int | None:
        """The number of rows where it is public, else None."""
        ...

    def pin(self) -> str:
        """A digest of names, sizes and modification times; changes when the files do."""
        ...


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


def open_source(data: object, schema: Schema) -> Source:
    """Open a path, folder, glob, Arrow C stream object, numpy array or scipy.sparse matrix."""
    kind = type(schema).__name__
    remedy = "give a Schema, for a file Schema.read(path)"
    require(isinstance(schema, Schema), f"schema of type {kind}: cannot be used; {remedy}")
    source = _opened(data, schema)
    if schema.person is None:
        return source
    from adumbra.data.persons import bounded_source  # noqa: PLC0415  (only this unit needs it)

    return bounded_source(source)


def _opened(data: object, schema: Schema) -> Source:
    """The rows as they are."""
    found, address = locate(data), ""
    if found.kind == "sql" or type(data).__name__ == "SqlQuery":
        from adumbra.data.sql import open_sql, query_of  # noqa: PLC0415

        query = query_of(data)
        if query is not None:
            return open_sql(query, schema)
    if found.kind == "store":
        from adumbra.data.stores import dataset_of  # noqa: PLC0415

        data, address = dataset_of(data), str(data)
    if found.paths:
        return _open_files(found, schema)
    from adumbra.data import arrays  # noqa: PLC0415  (each kind of data loads only what it needs)

    if isinstance(data, np.ndarray):
        return arrays.open_array(data, schema)
    if hasattr(data, "tocsr"):
        return arrays.open_sparse(data, schema)
    if is_dataset(data):
        from adumbra.data.datasets import open_dataset  # noqa: PLC0415

        return open_dataset(data, schema, address)
    if has_arrow(data):
        return arrays.open_arrow(data, schema)
    raise InvalidInput(f"data of type {type(data).__name__}: cannot be read; {_READABLE}")


def _open_files(found: Located, schema: Schema) -> Source:
    """Open files of one kind, as a table or as item sets."""
    kind, paths = found.kind, found.paths
    if kind in ("csv", "jsonl"):
        from adumbra.data.csv import open_csv  # noqa: PLC0415
        from adumbra.data.jsonl import open_jsonl  # noqa: PLC0415

        words = "CSV files" if kind == "csv" else "JSON lines"
        require(schema.items is None, f"items: {words} hold no item sets; use Parquet list<int> or .dat")
        return (open_csv if kind == "csv" else open_jsonl)(paths, schema)
    from adumbra.data import parquet, sets  # noqa: PLC0415

    if kind == "dat":
        remedy = "declare [items] in the schema, or give a table"
        require(schema.items is not None, f"data={paths[0].name!r}: .dat files hold item sets; {remedy}")
        return sets.open_sets(sets.DatReader(paths), schema)
    if schema.items is None:
        return parquet.open_parquet(paths, schema)
    for path in paths:
        person = schema.person.column if schema.person is not None else None
        sets.require_lists(schema.items, parquet.parquet_schema(path), f"data={path.name!r}", person)
    return sets.open_sets(sets.ParquetReader(paths, schema.items.column), schema)


# A source that shows its quantised rows to a watcher during the first whole pass.
#
# The ledger's tripwire watches the paid pass this way; what it sees goes to the private log only.
SET_COLUMNS = 2**16  # wider item sets are folded to this many columns before they are hashed

SeenRows = Array | csr_array  # a table's rows in float64, or the sparse rows of item sets in uint64


class WatchedSource(SourceView):
    """The rows of a source; `see` gets each block of rows once, as whole numbers from 0 on."""

    def __init__(self, source: Source, see: Callable[[SeenRows], None] = lambda _: None) -> None:
        super().__init__(source)
        _require_bounded(source)
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

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """The source's blocks; the first pass over all rows is watched."""
        return (part.read() for part in self.parts(rows, start, stop))

    def parts(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """The same blocks; each is shown by whoever reads it, in any order."""
        watching = not self.is_seen and start == 0 and stop is None
        for part in _readable(parts(self._source, rows, start, stop)):
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
            see(self._quantised(batch.slice(first, first + NOISE_BLOCK)))
        return batch

    def _quantised(self, piece: Batch | SetBatch) -> SeenRows:
        """Table rows as integers of 0 to 2^15; item sets as rows of 0 and 1, or folded with weights.

        Items that fold onto one column add their weights, so a cell of a long set may be far larger.
        """
        if isinstance(piece, Batch):
            return self._quantised_table(piece.values)
        weights = (1 + piece.indices // SET_COLUMNS).astype(np.uint64)
        entries = (weights, piece.indices % SET_COLUMNS, piece.indptr)
        return csr_array(entries, shape=(len(piece), self.watched_columns))

    def _quantised_table(self, values: Array) -> Array:
        table: Array = np.empty(values.shape, order="F")
        for few in few_columns(*values.shape):
            np.subtract(values[:, few], self._lower[few], out=table[:, few])
            table[:, few] *= self._scale[few]
            np.rint(table[:, few], out=table[:, few])
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
