"""Where a CSV record ends and what its fields are: for any bytes, in bounded memory, and by RFC 4180.

A field that starts with a quote goes on to the quote that closes it, however far that is; a record ends
with the first line end outside of quotes. So a cell, whatever it says and however long it is, ends no
record of a file that its writer quoted. A field longer than the limit reads as no value, by itself; its
bytes are not held. What comes out does not depend on the sizes of reads.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np

from adumbra.numerics import Ints

LONGEST_FIELD = 2**20  # bytes, quotes included
LONGEST_RECORD = 2**27  # of all fields together, so that a table of many columns has shorter ones
UNREAD = b"\xff"  # in the place of a longer field: no UTF-8, so it is no number and no category
_NEWLINE = 10
_SLICE = 2**18  # bytes that are looked through at once: what is found of them stays in the cache


@dataclass(frozen=True, slots=True)
class Layout:
    """How one CSV file is cut: its delimiter and its number of fields."""

    delimiter: bytes
    fields: int

    @property
    def longest(self) -> int:
        """The most bytes of a field that is read."""
        return min(LONGEST_FIELD, LONGEST_RECORD // self.fields)

    @property
    def unreadable(self) -> bytes:
        """A record with one field too many."""
        return self.delimiter * self.fields + b"\n"

    @property
    def blank(self) -> bytes:
        """A well-formed record of empty fields."""
        return self.delimiter * (self.fields - 1) + b"\n"


class _Patterns:
    """Regular expressions of one layout; possessive, so that no input makes them slow."""

    def __init__(self, layout: Layout) -> None:
        sign = re.escape(layout.delimiter)
        field = rb'(?:"(?:[^"]++|"")*+"[^%b\n]*+|[^"%b\n][^%b\n]*+|)' % (sign, sign, sign)
        rest = rb"(?:%b%b)" % (sign, field)
        self.record = re.compile(field + rest + rb"*+\n")
        self.right = re.compile(field + rest + rb"{%d}\n" % (layout.fields - 1))
        self.ended = re.compile(rb"(?:%b%b)*+" % (field, sign))  # all fields that are ended for certain
        self.over = re.compile(rb"(?:%b%b){%d}" % (field, sign, layout.fields))  # and more is to come
        self.field = re.compile(rb"%b[%b\n]" % (field, sign))  # with the sign that ends it
        self.open = re.compile(rb'"(?:[^"]++|"")*+')  # the beginning of a quoted field


@dataclass(frozen=True, slots=True)
class Records:
    """Whole, well-formed records, and the places of those that stand in for malformed ones.

    Records without a quote need not be `checked` yet: each may have any number of fields, which whoever
    parses them sees for nothing.
    """

    data: bytes | memoryview = field(repr=False)
    count: int
    malformed: Ints = field(repr=False)
    is_checked: bool = True
    left: int | None = field(default=None, repr=False)  # bytes read behind them; None: who knows


def split_records(
    chunks: Iterable[bytes], layout: Layout, *, longest: int | None = None
) -> Iterator[Records]:
    """Cut text, in pieces of any size whose line ends are LF, into records."""
    limit = layout.longest if longest is None else longest
    patterns = _Patterns(layout)
    held = b""
    for chunk in chunks:
        data = held + chunk
        used, quoted = _whole_records(data, patterns)
        held = data[used:]
        if used:  # what is left holds the bytes of the file, unless a CR LF in quotes became LF
            left = None if b"\n" in held else len(held)
            yield replace(_records(data, used, quoted, patterns, layout, limit), left=left)
        if len(held) > limit:
            held = _shortened(held, patterns, layout, limit)
    if held:
        data = held + b"\n"  # the last record may lack its line end
        used, quoted = _whole_records(data, patterns)
        if used < len(data):  # a quote that nothing closes: all that is left is its record
            data = data[:used] + layout.unreadable
        yield _records(data, len(data), quoted, patterns, layout, limit)


def plain_records(
    file: BinaryIO, layout: Layout, size: int, rest: Callable[[bytes], Iterable[bytes]]
) -> Iterator[Records]:
    """The records of a file, as `split_records` cuts them, read into one piece of memory.

    What is handed out is overwritten by the next step. From the first block on in which there is a
    quote, a CR, a blank line or a long record, all is cut by `split_records`: of `rest`, which gets what
    was read and not cut yet.
    """
    limit = layout.longest
    block = bytearray(size + limit)
    view, held = memoryview(block), 0
    while layout.fields > 1 and (found := file.readinto(view[held : held + size])):  # type: ignore[attr-defined]
        end = held + found
        if block.find(b'"', held, end) >= 0 or block.find(b"\r", held, end) >= 0:
            held = end
            break
        last = block.rfind(b"\n", held, end) + 1
        sizes = np.diff(_line_ends(view[:last]), prepend=0)
        if not len(sizes) or int(sizes.min()) == 1 or max(int(sizes.max()) - 1, end - last) > limit:
            held = end
            break
        held = end - last
        yield Records(view[:last], len(sizes), np.empty(0, np.int64), is_checked=False, left=held)
        view[:held] = view[last:end]
    yield from split_records(rest(bytes(view[:held])), layout)


def _whole_records(data: bytes, patterns: _Patterns) -> tuple[int, list[tuple[int, int]]]:
    """How many bytes are whole records, and the ranges of those that hold a quote."""
    quoted: list[tuple[int, int]] = []
    end = 0
    while (quote := data.find(b'"', end)) >= 0:
        begin = data.rfind(b"\n", end, quote) + 1 or end
        found = patterns.record.match(data, begin)
        if found is None:
            return begin, quoted  # more is to come
        end = found.end()
        quoted.append((begin, end))
    return data.rfind(b"\n", end) + 1 or end, quoted


def _shortened(part: bytes, patterns: _Patterns, layout: Layout, limit: int) -> bytes:
    """The beginning of a record without what cannot matter: any end makes the same record of both."""
    found = patterns.ended.match(part)
    size = found.end() if found else 0
    last = part[size:]
    if patterns.over.match(part):  # too many fields, whatever comes
        head = layout.delimiter * layout.fields
    else:
        head = b"".join(_readable(patterns.field.findall(part[:size]), limit))
    if len(last) <= limit:
        return head + last
    if not last.startswith(b'"'):
        return head + b"x" * (limit + 1)
    body = b'"' + last[1:].rstrip(b'"')
    if not patterns.open.fullmatch(body):  # the quote is closed, and something follows
        return head + b'"' + b"x" * limit + b'"x'
    # An odd number of quotes at the end closes the field, unless the next byte is one more.
    return head + b'"' + b"x" * limit + b'"' * ((len(last) - len(body)) % 2)


def _readable(fields: list[bytes], limit: int) -> list[bytes]:
    """Fields with the sign that ends each; a longer one than the limit is replaced."""
    return [one if len(one) <= limit + 1 else UNREAD + one[-1:] for one in fields]


def checked(records: Records, layout: Layout) -> Records:
    """The same records, those with too few or too many fields replaced."""
    if records.is_checked:
        return records
    return _counted(bytes(records.data), [], _Patterns(layout), layout, len(records.data))


def _records(  # noqa: PLR0913, PLR0917 - a text, how much of it, and how it is cut
    data: bytes,
    used: int,
    quoted: list[tuple[int, int]],
    patterns: _Patterns,
    layout: Layout,
    limit: int,
) -> Records:
    """Records as they are where only their numbers of fields are open; else what `_counted` gives."""
    if not quoted and layout.fields > 1:
        text = memoryview(data)[:used]  # no copy
        sizes = np.diff(_line_ends(text), prepend=0)
        if len(sizes) and int(sizes.min()) > 1 and int(sizes.max()) <= limit + 1:
            return Records(text, len(sizes), np.empty(0, np.int64), is_checked=False)
    return _counted(data[:used], quoted, patterns, layout, limit)


def _line_ends(data: bytes | memoryview) -> Ints:
    """Where each line ends: the place after its LF."""
    view = np.frombuffer(data, np.uint8)
    starts = range(0, len(view), _SLICE)
    found = [np.flatnonzero(view[start : start + _SLICE] == _NEWLINE) + (start + 1) for start in starts]
    return np.concatenate([np.empty(0, np.int64), *found])


def _counted(
    data: bytes, quoted: list[tuple[int, int]], patterns: _Patterns, layout: Layout, limit: int
) -> Records:
    """Drop blank lines that are no records; put a blank record in the place of every malformed one."""
    view = np.frombuffer(data, np.uint8)
    ends = _line_ends(data)
    signs = np.flatnonzero(view == layout.delimiter[0])
    commas = np.searchsorted(signs, ends)
    if quoted:
        spans = np.array(quoted, np.int64)
        # A line end inside a quoted record ends none; the field counts of these come from the pattern.
        after = np.searchsorted(spans[:, 0], ends, side="left") - 1
        inside = (after >= 0) & (ends < spans[np.maximum(after, 0), 1])
        ends, commas = ends[~inside], commas[~inside]
    is_right = np.diff(commas, prepend=0) == layout.fields - 1
    sizes = np.diff(ends, prepend=0)
    if quoted:
        wrong = [patterns.right.fullmatch(data, begin, end) is None for begin, end in quoted]
        is_right[np.searchsorted(ends, spans[:, 1])] = ~np.array(wrong)
    is_blank = (sizes == 1) & (layout.fields > 1)
    is_long = sizes > limit + 1
    if is_long.any() and not quoted and int(np.diff(signs, prepend=-1, append=len(data)).max()) <= limit:
        is_long[:] = False  # between two delimiters there is at most one field and a part of another
    if not bool(np.any(~is_right | is_blank | is_long)):
        return Records(data, len(ends), np.empty(0, np.int64))
    pieces = []
    kept = 0
    for index in np.flatnonzero(~is_right | is_blank | is_long):
        start, end = int(ends[index - 1]) if index else 0, int(ends[index])
        pieces.append(data[kept:start])
        kept = end
        if is_right[index] and not is_blank[index]:
            pieces += _readable(patterns.field.findall(data[start:end]), limit)
        elif not is_blank[index]:
            pieces.append(layout.blank)
    malformed = np.flatnonzero(~is_right[~is_blank])
    return Records(b"".join([*pieces, data[kept:]]), int(np.sum(~is_blank)), malformed)
