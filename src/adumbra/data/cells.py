"""Python objects as cells: each is a number, a text or nothing, decided by its own type alone.

    bool, int, float, Decimal, Fraction, numpy scalars    a number; true is 1, false is 0
    complex                                               its real part, if the imaginary one is 0
    str, bytes                                            a text
    dates and times of Python, numpy and pandas           an instant, for columns of such kinds alone
    anything else (None, lists, other objects)            nothing

pandas and numpy choose the type of a column by all of its cells: one None makes truths objects, one
complex number makes every number complex, one duration in a numpy array every number a duration. So
that type decides nothing here, neither how another cell is read nor whether the column is refused: a
column in a type of its own reads as its cells do as objects, numpy's durations as the numbers that they
may have been.

Proof       columns.proof.md, of `read_cells`, `pandas_column`, `array_numbers`.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adumbra.data.instants import cell_instant
from adumbra.numerics import Array

# How Arrow holds cells of mixed types: a text, a number, an instant, or else (null and NaN) nothing.
CELLS = pa.struct(
    [("text", pa.large_binary()), ("number", pa.float64()), ("instant", pa.timestamp("us"))]
)
Column = Any  # pa.Array or pa.ChunkedArray: pyarrow has no types

_TEXTS = (str, bytes, bytearray)
_NUMBERS = (bool, int, float, complex, Decimal, Fraction, np.bool_, np.number)
_PLACED = re.compile(r" at 0x[0-9A-Fa-f]+")  # as Python prints objects that have no text of their own
_NUMERIC = "biufc"  # kinds of numpy types that hold truths and numbers


def read_cells(values: Iterable[object]) -> pa.StructArray:
    """Any Python objects, each by itself; never raises."""
    listed = list(values)
    numbers = np.fromiter(map(_number, listed), np.float64, len(listed))
    texts = pa.array(map(_text, listed), type=pa.large_binary(), size=len(listed))
    instants = pa.array(map(cell_instant, listed), type=pa.int64(), size=len(listed))
    parts = [texts, pa.array(numbers), instants.view(pa.timestamp("us"))]
    return pa.StructArray.from_arrays(parts, fields=list(CELLS))


def _text(value: object) -> bytes | None:
    """The text of a cell, as bytes."""
    kind = type(value)  # not isinstance: an object may lie about its class, or raise when asked
    if issubclass(kind, str):
        return str.encode(value, "utf-8", "surrogatepass")  # type: ignore[arg-type]
    return bytes(memoryview(value)) if issubclass(kind, bytes | bytearray) else None  # type: ignore[arg-type]


def _number(value: object) -> float:
    """The number of a cell; NaN if it has none."""
    kind = type(value)
    if issubclass(kind, float):
        return float.__float__(value)  # type: ignore[arg-type]  # not a __float__ of its own
    if not issubclass(kind, _NUMBERS) or issubclass(kind, np.timedelta64):
        return np.nan
    try:
        if issubclass(kind, complex | np.complexfloating):
            pair = complex(value)  # type: ignore[call-overload]
            return pair.real if pair.imag == 0 else np.nan
        return float(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001  (too large, a signalling NaN, a foreign __float__)
        return np.nan


def read_lists(rows: Iterable[object]) -> pa.LargeListArray:
    """Rows of items as lists of cells; whatever is no collection of items is an empty row."""
    listed = [_items(row) for row in rows]
    offsets = np.zeros(len(listed) + 1, np.int64)
    np.cumsum([len(row) for row in listed], out=offsets[1:])
    items = read_cells(item for row in listed for item in row)
    return pa.LargeListArray.from_arrays(pa.array(offsets), items)


def _items(row: object) -> list[object]:
    """The items of one row."""
    if issubclass(type(row), _TEXTS):
        return []
    with suppress(Exception):  # nothing to iterate over, or a foreign __iter__
        return list(row)  # type: ignore[call-overload, no-any-return]
    return []


def array_numbers(data: NDArray[Any]) -> Array:
    """A numpy array of truths, numbers, durations or dates as float64, NaN where a cell is no number."""
    if isinstance(data, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(data)
        return np.where(hidden, np.nan, array_numbers(np.ma.getdata(data)))
    if data.dtype.kind == "m":  # numpy made durations of numbers, for the sake of one among them
        return np.where(np.isnat(data), np.nan, data.astype(np.int64).astype(np.float64))
    if data.dtype.kind not in _NUMERIC:
        return np.full(data.shape, np.nan)
    with np.errstate(all="ignore"):
        values = np.where(data.imag == 0, data.real, np.nan) if data.dtype.kind == "c" else data
        return values.astype(np.float64, copy=False)


def array_column(data: NDArray[Any]) -> Column:
    """One column of a numpy array of any type."""
    if data.dtype.kind not in "OSUT":
        return pa.array(array_numbers(data))
    hidden = np.ma.getmaskarray(data) if isinstance(data, np.ma.MaskedArray) else None
    cells = np.ma.getdata(data).tolist() if hidden is not None else data.tolist()
    if hidden is not None:
        cells = [None if is_hidden else cell for cell, is_hidden in zip(cells, hidden, strict=True)]
    return read_cells(cells)


def pandas_column(values: Any) -> Column:  # noqa: ANN401  (pandas is not a dependency)
    """A pandas column (Series or Index) of any type."""
    storage = values.dtype
    kind = getattr(storage, "kind", "O")
    if type(storage).__name__ == "CategoricalDtype":
        held = getattr(values, "cat", values)
        codes = np.asarray(held.codes)
        return pandas_column(held.categories).take(pa.array(codes, mask=codes < 0))
    if kind == "m":  # durations hold nothing that we read
        return pa.nulls(len(values))
    if kind == "M":
        with suppress(Exception):
            unit = getattr(storage, "unit", None) or np.datetime_data(storage)[0]
            return pa.array(values.to_numpy(dtype=f"datetime64[{unit}]"))
    if kind in _NUMERIC:
        plain = isinstance(storage, np.dtype)
        numbers = np.asarray(values) if plain else values.to_numpy(dtype=np.float64, na_value=np.nan)
        return pa.array(array_numbers(numbers))
    if type(storage).__name__ == "StringDtype":
        with suppress(Exception):  # a text that is no UTF-8
            return pa.Array.from_pandas(values)
    return read_cells(_each(values))


def id_column(values: Any) -> Column:  # noqa: ANN401  (as above)
    """A pandas column of ids: what is neither number nor text, such as a date, is the text it prints."""
    return read_cells(map(_printed, _each(values)))


def printed_cells(values: Iterable[object]) -> pa.StructArray:
    """The same of any Python objects."""
    return read_cells(map(_printed, values))


def _printed(value: object) -> object:
    """A number or a text as it is; another object as text; None for what equals nothing, as NaT.

    What prints its place in memory says no value: each row of one person would be another's.
    """
    if value is None or issubclass(type(value), (*_TEXTS, *_NUMBERS)):
        return value
    with suppress(Exception):  # a foreign __eq__ or __str__, a view that was released
        if type(value) is memoryview:  # how some drivers hand out bytes
            return bytes(value)
        text = str(value) if value == value else None  # noqa: PLR0124  (NaT differs from itself)
        return None if text is not None and _PLACED.search(text) else text
    return None


def _each(values: Any) -> Sequence[object]:  # noqa: ANN401  (as above)
    """The cells of a pandas column one by one."""
    with suppress(Exception):
        cells: list[object] = values.astype(object).tolist()
        return cells
    found: list[object] = []  # some cell has no Python object: leave out that one alone
    for place in range(len(values)):
        found.append(None)
        with suppress(Exception):
            found[place] = values.array[place]
    return found
