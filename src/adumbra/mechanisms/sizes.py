"""What a release takes of the machine, from public numbers: peak memory, the folder, its card.

`settle` says it, the plan prints it, and what the machine does not have is refused before the charge.
Each method counts the arrays that it holds at its peak. The shared terms are here; how many copies of
each array there are was fitted to the peaks that benchmarks/peaks.py measures.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from adumbra.engine.base import block_rows
from adumbra.numerics import NOISE_BLOCK
from adumbra.release.formats import GROUP_CELLS, GROUP_ROWS
from adumbra.release.place import in_words
from adumbra.schema.rules import MAX_ROWS
from adumbra.schema.schema import Column, Schema

FLOAT = 8  # bytes of a number
PROCESS = 264 * 2**20  # Python, its libraries and compiled loops: the peak of the smallest release
KEPT = 128 * 2**20  # of rows that are held for further passes (data.sources.KEPT_BYTES)
SETS = 64 * 2**20  # item sets on their way through the engine: blocks are cut at so many bytes
PAGE = 400 * 2**10  # card.html with its pictures, and proof.json
CARD_WORDS = 64 * 2**10  # what a card says besides names
ROWS_GUESS = 10_000  # where the number of rows is private and nobody guessed it
MOST_ROWS = 10_000_000  # synthetic rows that a noisy count may ask for by itself
CHUNK_BYTES = 400  # of a column in a Parquet row group and in its footer


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes that a release takes, on the safe side."""

    memory: int  # of the whole process at its peak
    output: int  # of the release's folder
    card: int  # of card.json beyond what the plan's card holds: facts, contents, files
    rows: int | None  # released rows that were assumed; None: the method releases no rows

    def to_dict(self) -> dict[str, object]:
        """For scripts."""
        return {
            "peak_memory_bytes": self.memory,
            "output_bytes": self.output,
            "assumed_rows": self.rows,
        }

    def sentence(self) -> str:
        """For people."""
        rows = "" if self.rows is None else f" ({self.rows:,} released rows)"
        memory, disk = in_words(self.memory), in_words(self.output)
        return f"needs up to {memory} of memory and {disk} of disk{rows}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The shared terms of a method that sums rows and then draws others, from one schema."""

    rows: int  # drawn
    summing: int  # memory of the pass over private rows
    kept: int  # of it, rows held for further passes
    writing: int  # memory of the table of drawn rows, and of a row group on its way to the file
    output: int  # the folder: rows, card and page
    card: int

    def size(self, *, drawing: int, arrays: int) -> Size:
        """The release's size: at its peak it sums, or holds `drawing` bytes and draws."""
        memory = PROCESS + self.kept + max(self.summing, drawing + self.writing)
        return Size(memory=memory, output=self.output + arrays, card=self.card, rows=self.rows)


def synthetic_room(
    schema: Schema, *, asked: int | None, expected: int | None, encoded: int, entries: int
) -> Room:
    """The room of synthetic rows: `asked` of them, from sums of `entries` numbers over encoded rows."""
    rows, read = rows_drawn(schema, asked, expected), rows_read(schema, expected)
    return Room(
        rows=rows,
        summing=reading(schema.width, read, encoded) + totals(entries),
        kept=kept(schema.width, read),
        writing=FLOAT * rows * schema.width + written(schema.width, rows),
        output=table_bytes(schema.columns, rows) + folder_words(schema),
        card=card_bytes(released_names(schema)),
    )


def projected_size(  # noqa: PLR0913 - each is one public number of the projection
    schema: Schema, names: Sequence[str], *, encoded: int, matrix: int, released: bool, copies: int
) -> Size:
    """The size of rows that a matrix projects: it, blocks on their way, a row group of the file."""
    rows, columns = rows_drawn(schema, schema.rows), len(names)
    noisy = FLOAT * 6 * columns * min(rows, NOISE_BLOCK) * workers()
    noisy += results(schema.width, rows, columns) + written(columns, rows)
    blocks = reading(schema.width, rows, encoded) + noisy
    return Size(
        memory=PROCESS + FLOAT * copies * matrix + blocks,
        output=FLOAT * (rows * columns + matrix * released)
        + CHUNK_BYTES * columns * (1 + rows // 1024)
        + folder_words(schema),
        card=card_bytes(names),
        rows=rows,
    )


def workers() -> int:
    """Threads of the local engine, each with its own block and total."""
    return os.cpu_count() or 1


def reading(width: int, rows: int, encoded: int) -> int:
    """Blocks as they were read and, in each thread, as numbers; and encoded pieces of them."""
    block = min(rows, block_rows(width))
    piece = min(rows, NOISE_BLOCK)
    return FLOAT * (width * block * 2 * (workers() + 1) + 4 * encoded * piece * workers())


def results(width: int, rows: int, columns: int) -> int:
    """Released rows of blocks that wait for their turn to be written."""
    return FLOAT * columns * min(rows, block_rows(width)) * (workers() + 2)


def kept(width: int, rows: int) -> int:
    """Rows that are held in memory for a second pass, if they fit."""
    held = FLOAT * width * rows
    return held if held <= KEPT else 0


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
    return FLOAT * rows * (2 * encoded + 2 * columns) + written(columns, rows)


def written(columns: int, rows: int) -> int:
    """Copies of a row group on its way to the file."""
    return 3 * FLOAT * min(rows * columns, GROUP_CELLS)


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
