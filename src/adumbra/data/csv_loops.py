"""Plain numbers out of CSV text as one loop, for numba; `csv_numbers` says what is plain.

All of it stands in this file, for numba's cache on disk looks at that of the outermost loop only.
"""

import numpy as np
from numpy.typing import NDArray

from adumbra.numerics import Ints

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

_TOP = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIX = np.uint64(0x0606060606060606)
_THREES = np.uint64(0x3333333333333333)
_ZEROS = np.uint64(0x3030303030303030)
_PAIRS = np.uint64(0x000000FF000000FF)
_HIGH = np.uint64(0x000F424000000064)
_LOW = np.uint64(0x0000271000000001)
_HALF = np.uint64(0xFFFFFFFF)
_LAST = np.uint64(0x1FF)  # bits of a product below those that a float and its rounding need
_0, _1, _2, _3, _4, _8, _9, _10, _16, _19, _24, _32, _40, _48, _52, _53, _56, _63 = (
    np.uint64(number) for number in (0, 1, 2, 3, 4, 8, 9, 10, 16, 19, 24, 32, 40, 48, 52, 53, 56, 63)
)
_EIGHT_DIGITS = np.uint64(10**8)


def eight_bytes(data: Bytes, i: np.uint64) -> np.uint64:
    """The bytes from i on as one word, the first one lowest; compiled, this is one load."""
    return (
        np.uint64(data[i])
        | np.uint64(data[i + _1]) << _8
        | np.uint64(data[i + _2]) << _16
        | np.uint64(data[i + _3]) << _24
        | np.uint64(data[i + _4]) << _32
        | np.uint64(data[i + np.uint64(5)]) << _40
        | np.uint64(data[i + np.uint64(6)]) << _48
        | np.uint64(data[i + np.uint64(7)]) << _56
    )


def product(one: np.uint64, other: np.uint64) -> tuple[np.uint64, np.uint64]:
    """All 128 bits: the high word and the low one."""
    a, b, c, d = one >> _32, one & _HALF, other >> _32, other & _HALF
    low, left, right = b * d, a * d, b * c
    middle = (low >> _32) + (left & _HALF) + (right & _HALF)
    return a * c + (left >> _32) + (right >> _32) + (middle >> _32), one * other


def nearest(w: np.uint64, q: np.int64, powers: Words, least: int) -> np.uint64:
    """The bits of the float64 nearest to w 10^q, for w above 0 and an exponent within the table."""
    # Leading zeros by a float's exponent, which rounding may have made one too large.
    zeros = np.uint64(1086 - (np.float64(w).view(np.int64) >> 52))
    zeros += _1 - ((w << zeros) >> _63)
    w <<= zeros
    high, low = product(w, powers[q - least, 0])
    if high & _LAST == _LAST:
        more, _ = product(w, powers[q - least, 1])
        low += more
        if low < more:
            high += _1
    upper = high >> _63
    shift = upper + _9
    mantissa = high >> shift
    power = ((217706 * q) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if low <= _1 and -4 <= q <= 23 and mantissa & _3 == _1 and mantissa << shift == high:
        mantissa &= ~_1  # a tie goes to the even one
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >> _53 != _0:
        mantissa >>= _1
        power += 1
    return (mantissa & ~(_1 << _52)) | np.uint64(power) << _52


def parse_loop(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0915, PLR0917 - one loop over plain arrays
    data: Bytes, delimiter: int, wanted: Ints, out: Words, powers: Words, least: int
) -> int:
    """Write the chosen fields of all records as floats, one line of `out` per column.

    `wanted` has the line of each field, or -1; the text ends with a line end. Gives the number of
    records, or -1 at the first that is not plain.
    """
    size, i, row = np.uint64(data.size), _0, 0
    fields = wanted.size
    while i < size:
        if row == out.shape[1]:
            return -1
        for field in range(fields):
            place = wanted[field]
            if place < 0:
                while data[i] != delimiter and data[i] != 10:
                    i += _1
            else:
                is_negative = data[i] == 45
                if is_negative:
                    i += _1
                start, w = i, _0
                while data[i] - np.uint8(48) <= np.uint8(9):
                    w = w * _10 + np.uint64(data[i] - np.uint8(48))
                    i += _1
                digits = i - start
                if digits == _0:
                    return -1
                q = np.int64(0)
                if data[i] == 46:
                    i += _1
                    first = i
                    while i + _8 <= size:
                        word = eight_bytes(data, i)
                        if (word & _TOP) | (((word + _SIX) & _TOP) >> _4) != _THREES:
                            break  # not eight digits
                        word -= _ZEROS
                        word = word * _10 + (word >> _8)
                        word = ((word & _PAIRS) * _HIGH + ((word >> _16) & _PAIRS) * _LOW) >> _32
                        w = w * _EIGHT_DIGITS + word
                        i += _8
                    while data[i] - np.uint8(48) <= np.uint8(9):
                        w = w * _10 + np.uint64(data[i] - np.uint8(48))
                        i += _1
                    digits += i - first
                    q -= np.int64(i - first)
                    if q == 0:
                        return -1
                if digits > _19:  # unless zeros come first
                    j = start
                    while data[j] == 48 or data[j] == 46:
                        digits -= _1 if data[j] == 48 else _0
                        j += _1
                    if digits > _19:
                        return -1
                if data[i] == 101 or data[i] == 69:
                    i += _1
                    is_small = data[i] == 45
                    if is_small or data[i] == 43:
                        i += _1
                    first, exponent = i, np.int64(0)
                    while data[i] - np.uint8(48) <= np.uint8(9) and i - first < _4:
                        exponent = exponent * 10 + np.int64(data[i] - np.uint8(48))
                        i += _1
                    if i == first:
                        return -1
                    q += -exponent if is_small else exponent
                if q < least or q - least >= powers.shape[0]:
                    return -1
                bits = nearest(w, q, powers, least) if w != _0 else _0
                out[place, row] = bits | _1 << _63 if is_negative else bits
            if data[i] != (delimiter if field + 1 < fields else 10):
                return -1
            i += _1
        row += 1
    return row


SHARED = (eight_bytes, product, nearest)
