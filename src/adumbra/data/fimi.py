"""FIMI text: whole lines of words become the lengths of rows, and their items one after the other.

A word of 1 to 10 digits is an item, any other is none (-1). Lines of digits, blanks and line ends alone
are read at once; anything else goes byte by byte through arrays, with the same meaning and no error.
"""

import numpy as np
from numpy.typing import NDArray

from adumbra.numerics import Ints

DIGITS = 10  # the longest readable item; the universe ends below 2^31
PLAIN = b"0123456789 \n"
_BLANK, _LINE_END = 32, 10


def parse_lines(data: bytes) -> tuple[Ints, Ints]:
    """Lengths and items of whole lines, each ended by LF."""
    view = np.frombuffer(data, np.uint8)
    if data.translate(None, PLAIN):
        return parse_bytes(view)
    is_word = view > _BLANK
    if _has_run(is_word, DIGITS + 1):
        return parse_bytes(view)
    starts = np.flatnonzero(is_word[:-1] < is_word[1:]) + 1
    if len(is_word) and is_word[0]:
        starts = np.concatenate(([0], starts))
    lengths = _lengths(view, starts)
    return lengths, np.fromstring(data, np.int64, sep=" ") if len(starts) else np.empty(0, np.int64)


def parse_bytes(view: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """The same for any bytes: white space is what `bytes.split` takes for it."""
    is_break = (view == _BLANK) | ((view >= 9) & (view <= 13))
    edges = np.flatnonzero(np.diff(~is_break, prepend=False, append=False))
    starts, stops = edges[::2], edges[1::2]
    lengths = _lengths(view, starts)
    if not len(starts):
        return lengths, np.empty(0, np.int64)
    size = stops - starts
    power = np.repeat(stops, size) - 1 - np.flatnonzero(~is_break)
    digit = view[~is_break].astype(np.int64) - 48
    is_bad = (digit < 0) | (digit > 9) | (power >= DIGITS)
    weight = 10 ** np.minimum(power, DIGITS)
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    values = np.add.reduceat(np.where(is_bad, 0, digit * weight), first)
    broken = np.add.reduceat(is_bad.astype(np.int64), first) > 0
    return lengths, np.where(broken, -1, values)


def _lengths(view: NDArray[np.uint8], starts: Ints) -> Ints:
    """How many words start in each line."""
    ends = np.flatnonzero(view == _LINE_END)
    return np.diff(np.searchsorted(starts, ends), prepend=0)


def _has_run(flags: NDArray[np.bool_], length: int) -> bool:
    """Whether `length` flags in a row are set: runs of 2, 4, 8, ... by overlaying the flags."""
    reach = 1
    while reach < length:
        step = min(reach, length - reach)
        flags, reach = flags[:-step] & flags[step:], reach + step
    return bool(flags.any())
