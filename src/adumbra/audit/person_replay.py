"""Releases of persons that are replayed: whole persons come, go and change, scattered over files.

A table is a folder of two CSV files (item sets: one Parquet file, for `.dat` has no ids). A neighbour
gets, loses or changes one person with all rows: more than are used, in both files, under ids in several
spellings and types, that of somebody else, or none.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adumbra.audit.person_cases import IDS, MORE, STRANGE_IDS
from adumbra.relations import Neighbours

CUT = b"\x00next file\x00"  # between the files of one table
PERSONS, MOST_ROWS = 5, 4  # of a usual table: persons, and rows of each
ITEMS = 9
Row = tuple[str | None, tuple[bytes, ...]]  # whose, and what


def split_files(data: bytes) -> list[bytes]:
    """The files of one table."""
    return data.split(CUT)


def person_rows(
    rng: np.random.Generator, who: str | None, count: int, hostile: tuple[bytes, ...]
) -> list[Row]:
    """Rows of one person; with hostile cells, one of them in each."""
    rows = []
    for _ in range(count):
        cells = [
            b"%.3f" % rng.uniform(-1, 1),
            b"%d" % rng.integers(10),
            rng.choice([b"p", b"q", b"r"]),
            rng.choice([b"no", b"yes"]),
        ]
        if hostile:
            cells[int(rng.integers(4))] = hostile[int(rng.integers(len(hostile)))]
        rows.append((who, tuple(bytes(cell) for cell in cells)))
    return rows


def usual_persons(rng: np.random.Generator) -> dict[str, list[Row]]:
    """A few persons, one of them above the bound."""
    counts = [MORE, *rng.integers(1, MOST_ROWS + 1, PERSONS - 1).tolist()]
    return {
        f"r{number}": person_rows(rng, f"r{number}", count, ()) for number, count in enumerate(counts)
    }


def changed_persons(
    rng: np.random.Generator,
    persons: Mapping[str, list[Row]],
    relation: Neighbours,
    hostile: tuple[bytes, ...],
) -> dict[str, list[Row]]:
    """The same persons but for one."""
    who = STRANGE_IDS[int(rng.integers(len(STRANGE_IDS)))] if hostile else "new"
    count = int(rng.integers(0, MORE + 1))
    rows = person_rows(rng, who, count, hostile)
    if count and rng.random() < 0.3:
        rows = [rows[0]] * count  # the same row many times
    if who == "7":  # one id in several spellings
        rows = [(("7", "07", " 7.0", "7e0")[place % 4], row) for place, (_, row) in enumerate(rows)]
    kept = dict(persons)
    if relation is Neighbours.REPLACE_PERSON or rng.random() < 0.5:
        del kept[rng.choice(sorted(kept))]
        if relation is Neighbours.ADD_REMOVE_PERSON:
            return kept
    return {**kept, "changed": rows}


def csv_files(rng: np.random.Generator, header: bytes, persons: Mapping[str, list[Row]]) -> bytes:
    """All rows, in any order, over two files."""
    lines = [_line(row) for rows in persons.values() for row in rows]
    order = rng.permutation(len(lines))
    half = int(rng.integers(len(lines) + 1))
    parts = (order[:half], order[half:])
    head = b"%b,%b\n" % (IDS.encode(), header)
    return CUT.join(head + b"".join(lines[place] for place in part) for part in parts)


def _line(row: Row) -> bytes:
    who, cells = row
    quoted = b"" if who is None else b'"%b"' % who.encode("utf-8", "replace")
    return b",".join((quoted, *cells)) + b"\n"


def parquet_sets(rng: np.random.Generator, persons: Mapping[str, list[Row]]) -> bytes:
    """The same persons with sets of items instead of their cells."""
    rows = [row for each in persons.values() for row in each]
    chosen = [rows[place] for place in rng.permutation(len(rows))]
    items = [_items(cells) for _, cells in chosen]
    table: dict[str, Any] = {
        "items": pa.array(items, pa.list_(pa.int64())),
        IDS: pa.array([who for who, _ in chosen], pa.string()),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink, row_group_size=7)
    return bytes(sink.getvalue())


def _items(cells: tuple[bytes, ...]) -> list[int]:
    """A set that follows from the cells: also empty, full, doubled and outside of the universe."""
    words = b",".join(cells)
    return [byte % (ITEMS + 2) - 1 for byte in words[:: 1 + words[-1] % 3]]
