"""Plain decimal numbers out of CSV text in one loop, for numba: tokens and values together.

A text is plain if every record has the right number of fields and every chosen field is
`-?digits[.digits][e[+-]digits]` of at most 19 significant digits. Of such a text every reader says the
same, for the value is the float64 nearest to the decimal (Eisel and Lemire, with 128 bits of a power of
five); anything else is left, whole, to the usual way.

Reference   Lemire: Number parsing at a gigabyte per second, SPE 51(8), 2021; Mushtak, Lemire: Fast
            number parsing without fallback, SPE 53(6), 2023 (why no case is left in doubt).
"""

import importlib.util
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from adumbra.compiled import machine_code
from adumbra.data import csv_loops
from adumbra.data.csv_loops import Bytes, Words
from adumbra.data.csv_records import Layout, Records
from adumbra.errors import Unsupported
from adumbra.numerics import Ints

WORTH_BYTES: Final = 192 * 2**20  # of text from which loading the compiled loop has paid
LEAST_POWER, MOST_POWER = -60, 60  # decimal exponents that are plain; every such number is normal

Parser = Callable[[Bytes, int, Ints, Words, Words, int], int]


def uses_loop(size: int) -> bool:
    """Whether so many bytes of text are read by the loop; values are the same either way.

    As for noise, ADUMBRA_NOISE=numpy or =numba forces one way.
    """
    forced = os.environ.get("ADUMBRA_NOISE", "")
    return forced == "numba" or (not forced and size >= WORTH_BYTES and _has_numba())


def ready_loop(size: int) -> None:
    """Load and compile the loop if it will read so much text: what fails then is not paid for yet."""
    if not uses_loop(size):
        return
    line = Records(memoryview(bytearray(b"0\n")), 1, np.empty(0, np.int64), is_checked=False)
    try:
        plain_table(line, Layout(b",", 1), {0: True})
    except ImportError:
        pass
    else:
        return
    remedy = "install it again, or set ADUMBRA_NOISE=numpy"
    raise Unsupported(f"numba: it is installed and cannot be loaded; {remedy}")


@lru_cache(maxsize=1)
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def plain_table(records: Records, layout: Layout, places: Mapping[int, bool]) -> pa.Table | None:
    """Chosen fields (by place; is it a number) as float64; None unless all is plain."""
    if records.is_checked or not all(places.values()):  # quotes, or words
        return None
    wanted = np.full(layout.fields, -1, np.int64)
    wanted[list(places)] = np.arange(len(places))
    values = np.empty((len(places), records.count), np.uint64)
    text = np.frombuffer(records.data, np.uint8)
    sign = layout.delimiter[0]
    found = compiled_parser()(text, sign, wanted, values, powers_of_five(), LEAST_POWER)
    if found != records.count:
        return None
    columns = [pa.Array.from_buffers(pa.float64(), found, [None, pa.py_buffer(line)]) for line in values]
    return pa.Table.from_arrays(columns, names=[str(place) for place in places])


@lru_cache(maxsize=1)
def powers_of_five() -> Words:
    """128 leading bits of 5^q in two words; reciprocals down to q = -27 are rounded up, as proven."""
    found = []
    for q in range(LEAST_POWER, MOST_POWER + 1):
        power = 5 ** abs(q)
        bits = (power - 1).bit_length()
        if q >= 0:
            value = power << 128
        else:
            value = 2 ** (bits + 127 if q >= -27 else 2 * bits + 128) // power + 1
        value >>= value.bit_length() - 128
        found.append((value >> 64, value & (2**64 - 1)))
    return np.array(found, np.uint64)


@lru_cache(maxsize=1)
def compiled_parser() -> Parser:
    """The loop as machine code, cached on disk where there is a writable place."""
    return machine_code(csv_loops.parse_loop, csv_loops.SHARED)
