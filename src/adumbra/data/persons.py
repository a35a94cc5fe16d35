"""Rows by person: at most m rows of each are used, chosen by this person's rows alone.

    mark(row) = 64-bit hash of (id, the row as the schema reads it)
    kept      = the m rows of a person with the smallest marks

Whole table or part of it, in any order and in any number of files, the same rows are kept: equal marks
stand for equal rows. `BoundedPersons` are made by `keep_rows` alone, and a `PersonSource` hands out
nothing else. It reads the data once. Small tables stay in memory; larger ones go through an encrypted
spool on shelves by a keyed hash of the id, each piece cut to m rows of a person first, so that one giant
person needs no more than many small ones do.

Proof       persons.proof.md, of `marks_of`, `keep_rows`, `PersonSource`.
"""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.columns import fill_column
from adumbra.data.files import require_range
from adumbra.data.person_ids import Words, read_ids, reading_of
from adumbra.data.sets import arrow_lists, make_sets
from adumbra.data.sources import Batch, SetBatch
from adumbra.data.spool import HELD_BYTES, Spool
from adumbra.errors import InvalidInput
from adumbra.numerics import Array, Ints
from adumbra.schema.schema import Schema
from adumbra.schema.table import NoPerson, PersonSpec

SHELVES = 256
FRAME_ROWS = 65_536
_NOBODY = (np.uint64(0), np.uint64(2))  # the id of all rows without one, where those are one person's
_START = np.uint64(0x61_64_75_6D_62_72_61_31)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class NamedPieces(Protocol):
    """A source whose columns can be read by name, in pieces of any length."""

    @property
    def schema(self) -> Schema:
        """The schema with every pattern expanded."""

    def named_pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows."""

    def storage(self, name: str) -> list[pa.DataType]:
        """The types in which the files store a column."""

    def pin(self) -> str:
        """What tells that the rows changed."""


@dataclass(frozen=True, slots=True)
class PersonRows:
    """Rows with whose they are; nothing is bounded yet."""

    words: Words = field(repr=False)  # rows x 2: the id
    marks: Words = field(repr=False)
    lengths: Ints = field(repr=False)  # values of each row
    values: Array | Ints = field(repr=False)  # all of them, row by row

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def nbytes(self) -> int:
        """The size of the rows."""
        return self.words.nbytes + self.marks.nbytes + self.lengths.nbytes + self.values.nbytes

    def take(self, places: Ints) -> "PersonRows":
        """Some of the rows, in this order."""
        lengths = self.lengths[places]
        if len(self.lengths) and (self.lengths == self.lengths[0]).all():  # a table
            values = self.values.reshape(len(self), -1)[places].reshape(-1)
        else:
            starts = (np.cumsum(self.lengths) - self.lengths)[places]
            shifts = starts - (np.cumsum(lengths) - lengths)
            values = self.values[np.repeat(shifts, lengths) + np.arange(int(lengths.sum()))]
        return PersonRows(self.words[places], self.marks[places], lengths, values)

    def part(self, first: int, last: int) -> "PersonRows":
        """Rows `first` to `last`, without a copy."""
        start = int(self.lengths[:first].sum())
        stop = start + int(self.lengths[first:last].sum())
        return PersonRows(
            words=self.words[first:last],
            marks=self.marks[first:last],
            lengths=self.lengths[first:last],
            values=self.values[start:stop],
        )

    def pack(self) -> bytes:
        """As bytes."""
        parts = (np.array([len(self)], np.int64), self.words, self.marks, self.lengths, self.values)
        return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)

    @staticmethod
    def unpack(frame: bytes, kind: type[np.float64 | np.int64]) -> "PersonRows":
        """The inverse of `pack`."""
        count, start = int(np.frombuffer(frame, np.int64, 1)[0]), 8
        words = np.frombuffer(frame, np.uint64, 2 * count, start).reshape(count, 2)
        marks = np.frombuffer(frame, np.uint64, count, start + 16 * count)
        lengths = np.frombuffer(frame, np.int64, count, start + 24 * count)
        values = np.frombuffer(memoryview(frame)[start + 32 * count :], kind)
        return PersonRows(words, marks, lengths, cast("Array | Ints", values))


@dataclass(frozen=True, slots=True)
class BoundedPersons:
    """Rows of which no person has more than `most`, person by person; made by `keep_rows` alone."""

    rows: PersonRows
    most: int


def joined(parts: list[PersonRows]) -> PersonRows:
    """All rows of some parts, in order."""
    if len(parts) == 1:
        return parts[0]
    columns = ("words", "marks", "lengths", "values")
    return PersonRows(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def marks_of(words: Words, lengths: Ints, values: Array | Ints) -> Words:
    """A hash of id and content for each row; equal for equal rows of one person, whatever stands by."""
    marks = _mixed(_mixed(words[:, 0] ^ _START) ^ words[:, 1])
    if values.dtype == np.float64:
        table = values.reshape(len(marks), int(lengths[0]) if len(lengths) else 0)
        for column in table.T:
            marks = _mixed(marks ^ (column + 0.0).view(np.uint64))  # minus zero is zero
        return marks
    owners = np.repeat(np.arange(len(marks)), lengths)
    sums = np.zeros(len(marks), np.uint64)
    np.add.at(sums, owners, _mixed(values.astype(np.uint64) ^ _START))  # a set has no order
    return _mixed(marks ^ sums)


def _mixed(words: Words) -> Words:
    """The finaliser of splitmix64: a bijection of 64-bit words."""
    mixed = words ^ (words >> np.uint64(30))
    mixed *= _FACTORS[0]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _FACTORS[1]
    mixed ^= mixed >> np.uint64(31)
    return mixed


def keep_rows(rows: PersonRows, most: int, secret: np.uint64 | None = None) -> BoundedPersons:
    """The `most` rows of each person with the smallest marks; with a secret, in the order of shelves."""
    if not len(rows):
        return BoundedPersons(rows, most)
    keys = [rows.marks, rows.words[:, 0], rows.words[:, 1]]
    order = np.lexsort(keys if secret is None else [*keys, _shelves(rows.words, secret)])
    starts = run_starts(rows.words[order])
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return BoundedPersons(rows.take(order[ranks < most]), most)


def run_starts(words: Words) -> Ints:
    """Where the rows of each person begin, of rows in the order of their ids."""
    is_first = np.ones(len(words), np.bool_)
    is_first[1:] = (words[1:] != words[:-1]).any(axis=1)
    return np.flatnonzero(is_first)


def weigh_rows(bounded: BoundedPersons, bits: int) -> Ints:
    """For each row how many bits it weighs less than a whole one; 0 to `bits`.

    A person has `most` units of 2^-bits to share out, and at most so many rows. Who has n rows gives
    each of them 2^j units, the largest j that suffices, and 2^j more to as many as possible, by their
    marks: powers of two, `most` units in all. Whoever has too few rows for that gives each a whole one.
    """
    words = bounded.rows.words
    starts = run_starts(words)
    counts = np.diff(np.append(starts, len(words)))
    level = sum(((counts << step) <= bounded.most for step in range(1, bits + 1)), np.zeros_like(counts))
    more = np.where(level < bits, (bounded.most >> level) - counts, 0)  # rows at twice the weight
    ranks = np.arange(len(words)) - np.repeat(starts, counts)
    return np.repeat(bits - level, counts) - (ranks < np.repeat(more, counts))


class PersonSource:
    """The rows of a source, bounded by person; the data is read once, at the first pass."""

    def __init__(self, source: NamedPieces, held: int = HELD_BYTES) -> None:
        self._source, self._held = source, held
        self._kept: Spool | None = None
        spec = _spec(source.schema)
        self._reading = reading_of(spec.ids, source.storage(spec.column))

    @property
    def schema(self) -> Schema:
        """The source's own."""
        return self._source.schema

    @property
    def width(self) -> int:
        """Values a row, or items of the universe."""
        return self.schema.width

    @property
    def most_of_a_person(self) -> int:
        """No person has more rows than this, or rows that weigh more."""
        return _spec(self.schema).max_rows

    @property
    def _most_rows(self) -> int:
        """Rows of a person that are looked at: m, or of the least weight so many as weigh m."""
        return self.most_of_a_person << self.schema.weight_bits

    def public_rows(self) -> None:
        """The number of rows is private."""

    def pin(self) -> str:
        """The source's own."""
        return self._source.pin()

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Batch | SetBatch]:
        """Blocks of exactly `rows` bounded rows; at most the schema's `max_rows` in all.

        Their order is that of shelf, id and mark, from memory and from the spool alike: which rows such
        a limit leaves out follows from the rows before them, never from where they were held.
        """
        require_range(rows, start, stop)
        if self._kept is None:
            self._kept = self._bounded()
        bits = self.schema.weight_bits
        place, left = (
            0,
            self.schema.max_rows >> bits,
        )  # so that all weights together are at most max_rows
        for lighter in range(bits + 1):
            place = -(-place // rows) * rows
            for block in _blocks(self._unpacked(self._kept.frames(lighter)), rows):
                used = block.part(0, min(len(block), left))
                if len(used) and start <= place and (stop is None or place < stop):
                    yield self._batch(place, used, 1 << (bits - lighter))
                place, left = place + len(used), left - len(used)

    def _bounded(self) -> Spool:
        """All rows that are used, in frames."""
        most = self._most_rows
        kept, raw, held, size = Spool(self._held), Spool(0), list[PersonRows](), 0
        secret = np.frombuffer(secrets.token_bytes(8), np.uint64)[0]
        for piece in self._pieces():
            part = keep_rows(piece, most).rows
            held, size = [*held, part], size + part.nbytes
            if size > self._held or raw.is_on_disk:
                for one in held:
                    _shelve(raw, one, secret)
                held = []
        if not raw.is_on_disk:
            self._put(kept, keep_rows(joined(held), most, secret) if held else None)
            return kept
        for shelf in range(SHELVES):
            self._put(kept, self._merged(raw, shelf))
        raw.close()
        return kept

    def _merged(self, raw: Spool, shelf: int) -> BoundedPersons | None:
        """The bounded rows of one shelf: all persons on it are on no other."""
        most, parts, size, limit = self._most_rows, list[PersonRows](), 0, self._held
        for part in self._unpacked(raw.frames(shelf)):
            parts, size = [*parts, part], size + part.nbytes
            if size > limit:  # a giant, or very many persons: cut as soon as it is worth it
                parts = [keep_rows(joined(parts), most).rows]
                size = parts[0].nbytes
                limit = max(self._held, 2 * size)
        return keep_rows(joined(parts), most) if parts else None

    def _put(self, kept: Spool, bounded: BoundedPersons | None) -> None:
        """Bounded rows, and no others, are what passes read; each on the shelf of its weight."""
        if bounded is None:
            return
        bits = self.schema.weight_bits
        lighter = weigh_rows(bounded, bits) if bits else np.zeros(len(bounded.rows), np.int64)
        for shelf in range(bits + 1):
            rows = bounded.rows.take(np.flatnonzero(lighter == shelf)) if bits else bounded.rows
            for first in range(0, len(rows), FRAME_ROWS):
                kept.put(rows.part(first, first + FRAME_ROWS).pack(), shelf)

    def _unpacked(self, frames: Iterable[bytes]) -> Iterator[PersonRows]:
        kind = np.float64 if self.schema.items is None else np.int64
        return (PersonRows.unpack(frame, kind) for frame in frames)

    def _pieces(self) -> Iterator[PersonRows]:
        """All rows of the source as the schema reads them, with their ids and marks."""
        spec, schema = _spec(self.schema), self.schema
        columns = list(schema.names) if schema.items is None else [schema.items.column]
        for piece in self._source.named_pieces([*columns, spec.column]):
            words, is_used = self._owned(piece)
            lengths, values = _content(piece, schema)
            rows = PersonRows(words, marks_of(words, lengths, values), lengths, values)
            yield rows if is_used.all() else rows.take(np.flatnonzero(is_used))

    def owners(self) -> Iterator[Words]:
        """The ids of all rows, piece by piece, without those that the schema drops."""
        spec, items = _spec(self.schema), self.schema.items
        names = [spec.column] if items is None else [items.column, spec.column]
        for piece in self._source.named_pieces(names):
            words, is_used = self._owned(piece)
            yield words[is_used]

    def _owned(self, piece: pa.RecordBatch) -> tuple[Words, NDArray[np.bool_]]:
        """Whose rows these are, and which of them count."""
        spec = _spec(self.schema)
        ids = read_ids(piece.column(spec.column), self._reading)
        words = np.where(ids.is_there[:, None], ids.words, np.array(_NOBODY))
        return words, ids.is_there | (spec.no_person != NoPerson.DROP)

    def _batch(self, place: int, rows: PersonRows, weight: int) -> Batch | SetBatch:
        """A block without its ids."""
        if self.schema.items is None:
            return Batch(place, np.asfortranarray(rows.values.reshape(len(rows), -1)), weight)
        pointers = np.concatenate(([0], np.cumsum(rows.lengths)))
        return SetBatch(place, pointers, cast("Ints", rows.values), self.width, weight)


def bounded_source(source: object) -> PersonSource:
    """The rows of a source by person; one whose columns have no names is refused."""
    reader = getattr(source, "reader", source)
    if not hasattr(reader, "named_pieces"):
        rule = "this data has no column names"
        raise InvalidInput(f"person: {rule}; give a table, CSV or Parquet with a column of ids")
    return PersonSource(cast("NamedPieces", source))


def _content(piece: pa.RecordBatch, schema: Schema) -> tuple[Ints, Array | Ints]:
    """Values of each row, and all of them row by row, as the schema reads them."""
    if schema.items is None:
        table = np.empty((len(piece), schema.width))
        for index, column in enumerate(schema.columns):
            fill_column(column, piece.column(column.name), table[:, index])
        return np.full(len(piece), schema.width, np.int64), table.reshape(-1)
    sets = make_sets(arrow_lists(piece.column(schema.items.column)), schema.items, 0)
    return sets.lengths, sets.indices.astype(np.int64)


def _shelves(words: Words, secret: np.uint64) -> Ints:
    """The shelf of each row by a keyed hash of its id: nobody can choose ids that crowd one of them."""
    mixed = _mixed(_mixed(words[:, 0] ^ secret) ^ words[:, 1])
    return (mixed % np.uint64(SHELVES)).astype(np.int64)


def _shelve(raw: Spool, rows: PersonRows, secret: np.uint64) -> None:
    """Rows onto their shelves."""
    shelf = _shelves(rows.words, secret)
    order = np.argsort(shelf, kind="stable")
    ordered = rows.take(order)
    ends = np.searchsorted(shelf[order], np.arange(SHELVES + 1))
    for number in range(SHELVES):
        first, last = int(ends[number]), int(ends[number + 1])
        if first < last:
            raw.put(ordered.part(first, last).pack(), number)


def _blocks(parts: Iterable[PersonRows], rows: int) -> Iterator[PersonRows]:
    """Blocks of exactly `rows` rows (the last one shorter)."""
    waiting, count = list[PersonRows](), 0
    for part in parts:
        first = 0
        while first < len(part):
            taken = min(rows - count, len(part) - first)
            waiting.append(part.part(first, first + taken))
            first, count = first + taken, count + taken
            if count == rows:
                yield joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield joined(waiting)


def _spec(schema: Schema) -> PersonSpec:
    if schema.person is None:
        raise InvalidInput("person is absent: declare the column of ids in the schema's [table]")
    return schema.person
