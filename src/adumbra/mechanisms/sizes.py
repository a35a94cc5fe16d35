"""What a release takes of the machine, from public numbers: peak memory, the folder, its card.

`settle` says it, the plan prints it, and what the machine does not have is refused before the charge.
Each method counts the arrays that it holds at its peak. The shared terms are here; how many copies of
each array there are was fitted to the peaks that benchmarks/peaks.py measures.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from adumbra.data.parquet import COLUMNS_AT_ONCE, GROUP_BYTES
from adumbra.data.sources import SLICE_VALUES
from adumbra.engine.local import (
    AHEAD_BYTES,
    BLOCK_ROWS,
    SHORT_BYTES,
    block_rows,
    blocks_ahead,
    fold_rows,
)
from adumbra.numerics import NOISE_BLOCK
from adumbra.postprocess.decode import block_sizes
from adumbra.release.formats import GROUP_CELLS, GROUP_ROWS
from adumbra.release.storage import in_words
from adumbra.schema.schema import Column, Schema
from adumbra.schema.table import MAX_ROWS

FLOAT = 8  # bytes of a number
PROCESS = 264 * 2**20  # Python, its libraries and compiled loops: the peak of the smallest release
KEPT = 128 * 2**20  # of rows that are held for further passes (data.sources.KEPT_BYTES)
READER = 192 * 2**20  # of the row groups of a Parquet file that is being read
HELD = 400 * 2**20  # the same of tables, whose text would be parsed in every pass
PAGE = 400 * 2**10  # card.html with its pictures, and proof.json
CARD_WORDS = 64 * 2**10  # what a card says besides names
ROWS_GUESS = 10_000  # where the number of rows is private and nobody guessed it
MOST_ROWS = 10_000_000  # synthetic rows that a noisy count may ask for by itself
CHUNK_BYTES = 400  # of a column in a Parquet row group and in its footer
FOOTER = 1200  # bytes of memory for a column of a row group, as long as its file is read, ...
SMALL_GROUP = 64 * 2**20  # ... of row groups that are no smaller than this: as writers make them, ...
MOST_GROUPS = 32  # ... and no more of them in a file: a larger table is taken to be in several files
DECLARED = 7200  # of a declared column: schema, names, the file's own schema, card and page

# Seconds of one core, from the lines of benchmarks/scale.py; its page shows them beside the truth.
START = 1.0  # a release of a few rows
READ = 13e-9  # a cell, read, converted, bounded and summed, in each pass
PRODUCT = 0.08e-9  # a multiplication and an addition of a matrix product
NOISY = 50e-9  # a released cell with noise of its own, written
DRAWN = 100e-9  # a synthetic cell, drawn, decoded and written
COUNTED = 45e-9  # a cell that is looked up on a public grid of many (`bounds`)
PLACED = 4.5e-6  # a row of the greedy sampler, for its class ...
GREEDY = 2.2e-9  # ... and for each product of two of its encoded columns, by compiled loops


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes that a release takes, on the safe side."""

    memory: int  # of the whole process at its peak
    output: int  # of the release's folder
    card: int  # of card.json beyond what the plan's card holds: facts, contents, files
    rows: int | None  # released rows that were assumed; None: the method releases no rows
    seconds: float | None = None  # of one core, about; None: the rows to read are not known

    def to_dict(self) -> dict[str, object]:
        """For scripts."""
        return {
            "peak_memory_bytes": self.memory,
            "output_bytes": self.output,
            "assumed_rows": self.rows,
            "cpu_seconds": None if self.seconds is None else float(f"{self.seconds:.2g}"),
        }

    def sentence(self) -> str:
        """For people."""
        rows = "" if self.rows is None else f" ({self.rows:,} released rows)"
        memory, disk = in_words(self.memory), in_words(self.output)
        time = "" if self.seconds is None else f", and about {duration(self.seconds)} of one core"
        return f"needs up to {memory} of memory and {disk} of disk{rows}{time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What takes time, by row and in all.

    Item sets are read by their items, and how many those are is private: their time is not known.
    """

    passes: int
    products: int = 0  # multiplications per row
    noisy: int = 0  # released cells per row
    counted: int = 0  # cells per row that are looked up on a fine grid
    drawn: int = 0  # synthetic cells in all
    solved: int = 0  # multiplications after the noise
    greedy: tuple[int, int] = (0, 0)  # rows of the greedy sampler, and encoded columns

    def seconds(self, schema: Schema, expected: int | None = None) -> float | None:
        """About, by measured rates; None where nobody said how many rows there are."""
        rows = schema.rows or expected
        if rows is None or schema.items is not None:
            return None
        each = READ * self.passes * schema.width + PRODUCT * self.products + NOISY * self.noisy
        each += COUNTED * self.counted
        placed, width = self.greedy
        after = DRAWN * self.drawn + PRODUCT * self.solved + placed * (PLACED + GREEDY * width**2)
        return START + rows * each + after


def duration(seconds: float) -> str:
    """For people: two digits at most."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{float(f'{seconds / size:.2g}'):,g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The shared terms of a method that sums rows and then draws others, from one schema."""

    rows: int  # drawn
    summing: int  # memory of the pass over private rows
    kept: int  # of it, rows held for further passes
    writing: int  # memory of the table of drawn rows, and of a row group on its way to the file
    output: int  # the folder: rows, card and page
    card: int

    def size(self, *, drawing: int, arrays: int, seconds: float | None) -> Size:
        """The release's size: at its peak it sums, or holds `drawing` bytes and draws."""
        memory = PROCESS + self.kept + max(self.summing, drawing + self.writing)
        output = self.output + arrays
        return Size(memory=memory, output=output, card=self.card, rows=self.rows, seconds=seconds)


def synthetic_room(
    schema: Schema, *, asked: int | None, expected: int | None, encoded: int, entries: int
) -> Room:
    """The room of synthetic rows: `asked` of them, from sums of `entries` numbers over encoded rows."""
    rows, read = rows_drawn(schema, asked, expected), rows_read(schema, expected)
    return Room(
        rows=rows,
        summing=reading(schema.width, read, encoded, is_fold=schema.items is None) + totals(entries),
        kept=kept(schema, read),
        writing=FLOAT * at_once(rows, encoded) * schema.width + written(schema.width, rows),
        output=table_bytes(schema.columns, rows) + folder_words(schema),
        card=card_bytes(released_names(schema)),
    )


def projected_size(  # noqa: PLR0913 - each is one public number of the projection
    schema: Schema, names: Sequence[str], *, encoded: int, matrix: int, released: bool, copies: int
) -> Size:
    """The size of rows that a matrix projects: it, blocks on their way, a row group of the file."""
    rows, columns = rows_drawn(schema, schema.rows), len(names)
    noisy = FLOAT * 6 * columns * min(rows, NOISE_BLOCK) * workers() + written(columns, rows)
    if schema.items is None:
        blocks = reading(schema.width, rows, encoded, is_sliced=True)
        blocks += results(rows, columns, block_rows(schema.width))
    else:  # short sets are taken many rows at a time; each thread looks at the matrix
        blocks = reading_sets(schema.width, rows) + results(rows, columns, BLOCK_ROWS)
        copies += 2 * workers()
    return Size(
        memory=PROCESS + FLOAT * copies * matrix + blocks + noisy,
        output=FLOAT * (rows * columns + matrix * released)
        + CHUNK_BYTES * columns * (1 + rows // 1024)
        + folder_words(schema),
        card=card_bytes(names),
        rows=rows,
        seconds=Work(passes=1, products=matrix, noisy=columns).seconds(schema),
    )


_threads: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Plans inside are for an engine of so many threads; None: of as many as there are cores.

    A setting and no argument: methods settle what is released, and threads change nothing of that.
    """
    token = _threads.set(count)
    try:
        yield
    finally:
        _threads.reset(token)


def workers() -> int:
    """Threads of the local engine, each with its own block and total."""
    return _threads.get() or os.cpu_count() or 1


def reading(  # noqa: PLR0913 - each is one public number of a pass
    width: int,
    rows: int,
    encoded: int,
    *,
    copies: int = 4,
    is_fold: bool = False,
    is_sliced: bool = False,
) -> int:
    """What a reader holds; blocks as they were read and, in each thread, as numbers and encoded.

    No more blocks are worked on at once than may be read and not finished. `is_sliced`: rows are encoded
    a few at a time (`few_rows`), so that a noise block of a wide table is never copied whole.
    """
    block = min(rows, fold_rows(width) if is_fold else block_rows(width))
    table, size = FLOAT * width * rows, FLOAT * width * block
    ahead = min(blocks_ahead(workers()) * size, max(AHEAD_BYTES, size))
    busy = min(workers(), max(1, AHEAD_BYTES // max(size, 1)))
    if width > COLUMNS_AT_ONCE:
        held = _wide_reading(width, table, ahead, size)
    else:
        held = max(ahead, min(table, AHEAD_BYTES // 2)) + size  # decoded before the first pass
    copied = encoded * min(block, NOISE_BLOCK)
    copied = min(copied, max(SLICE_VALUES, encoded)) if is_sliced else copied
    return min(2 * table, READER) + held + busy * (size + FLOAT * copies * copied)


def _wide_reading(width: int, table: int, ahead: int, size: int) -> int:
    """Rows of a wide table as they were read: a group beside blocks that wait, or many small groups.

    Groups are large, or there are many, each with its footer; files are read one after another. No row
    is there twice.
    """
    large = min(table, GROUP_BYTES + ahead + size)
    footers = FOOTER * width * min(-(-table // SMALL_GROUP), MOST_GROUPS)
    return DECLARED * width + max(large, min(table, ahead + size) + footers)


def reading_sets(width: int, rows: int) -> int:
    """What a reader of item sets holds, if rows have up to 1,024 items on average: never a dense row.

    Blocks are cut at so many bytes; each that is worked on is there as read, as sets and as numbers.
    """
    dense = FLOAT * width * rows
    block = min(dense, SHORT_BYTES)
    ahead = min(blocks_ahead(workers()) * block, AHEAD_BYTES)
    return min(2 * dense, READER) + ahead + 3 * (workers() + 1) * block


def results(rows: int, columns: int, block: int) -> int:
    """Released rows of blocks that wait for their turn to be written."""
    return FLOAT * columns * min(rows, block) * (blocks_ahead(workers()) + 1)


def kept(schema: Schema, rows: int) -> int:
    """Rows that are held in memory for a second pass: none where it is public that they do not fit."""
    held = FLOAT * schema.width * rows
    return held if held <= HELD else 0 if schema.rows is not None else HELD


def totals(entries: int) -> int:
    """Sums of this many numbers: one per thread and block on its way, then noise and its integers."""
    return FLOAT * entries * max(workers() + 3, 8)


def rows_read(schema: Schema, expected: int | None = None) -> int:
    """Rows that are read: the public number, a declared guess, or the declared maximum; never n."""
    return schema.rows or expected or schema.max_rows


def rows_drawn(schema: Schema, *declared: int | None) -> int:
    """Rows that are released: what was asked or declared, the public number, or a guess; never n."""
    maximum = schema.max_rows if schema.max_rows < MAX_ROWS else None
    known = next((one for one in (*declared, schema.rows, maximum) if one is not None), ROWS_GUESS)
    return min(known, MOST_ROWS) if known is not declared[0] else known


def decoded(encoded: int, columns: int, rows: int) -> int:
    """Drawn rows in encoded columns, the table of them, and a row group while it is written."""
    return FLOAT * rows * (4 * encoded + 2 * columns) + written(columns, rows)


def at_once(rows: int, width: int) -> int:
    """Synthetic rows that are drawn together; more are drawn block by block while they are written."""
    return min(rows, next(block_sizes(rows, width)))


def written(columns: int, rows: int) -> int:
    """Copies of a row group on its way to the file, and the next one."""
    return 4 * FLOAT * min(rows * columns, GROUP_CELLS)


def table_bytes(columns: Sequence[Column], rows: int) -> int:
    """Rows in Parquet: numbers do not compress, codes take their bits."""
    bits = [64 if column.is_numeric else max(column.levels - 1, 1).bit_length() for column in columns]
    groups = -(-rows // min(GROUP_ROWS, max(1024, GROUP_CELLS // max(len(bits), 1))))
    return rows * sum(bits) // 8 + CHUNK_BYTES * len(bits) * groups


def card_bytes(released: Sequence[str], encoded: Sequence[str] = ()) -> int:
    """What the names of released and of encoded columns add to card.json, which is indented."""
    return CARD_WORDS + sum(map(_quoted, released)) + 70 * len(released) + sum(map(_quoted, encoded))


def _quoted(name: str) -> int:
    """Bytes of a name on a line of its own; what is no text is refused elsewhere."""
    return len(json.dumps(name, ensure_ascii=False).encode(errors="replace")) + 16


def folder_words(schema: Schema) -> int:
    """Card and page of a schema, with what a card says of each declared column."""
    levels = sum(_quoted(level) for column in schema.columns for level in column.categories)
    return PAGE + 2 * card_bytes(schema.names) + 250 * len(schema.columns) + levels


def released_names(schema: Schema) -> tuple[str, ...]:
    """The columns of synthetic rows."""
    return (*schema.names, *(one.name for one in schema.derived))
