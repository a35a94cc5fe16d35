"""One Arrow column to float64 by its declaration: total, silent, finite.

Unreadable is whatever is null, NaN, infinite, not a number, or no declared category; it becomes
`Column.fill`, which alone may lie above the bounds (`missing = "null"`). Each cell is read on its own:
no cell's reading depends on another cell, nor on the type that all cells of a column share. A truth, a
number and a text that says one have the same value (`true`, `1`, `1.0`, `"True"` and `"1.0"` are 1), so
a wider type, chosen for the sake of one cell, changes none.

Proof       columns.proof.md, of `fill_column`, `fill_numbers`, `fill_values`, `read_numbers`.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from adumbra.data.cells import CELLS
from adumbra.data.compute import pc
from adumbra.data.instants import is_instants, parse_instants, read_instants
from adumbra.numerics import EXACT, Array, Ints
from adumbra.schema.schema import Column, Kind

# Spellings of truth in text, after trimming and lower-casing.
TRUE_TEXT = ("true", "t", "yes", "y", "1", "1.0")
FALSE_TEXT = ("false", "f", "no", "n", "0", "0.0")
# A decimal number as we accept it in text. pyarrow's own parser also takes "nan" and "inf" (not finite,
# so missing all the same) and nothing else: a test compares the two cell by cell.
DECIMAL = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"


def value_type(storage: pa.DataType) -> pa.DataType:
    """The type of the values behind dictionaries, run ends and extensions."""
    while True:
        if isinstance(storage, pa.BaseExtensionType):
            storage = storage.storage_type
        elif pa.types.is_dictionary(storage) or pa.types.is_run_end_encoded(storage):
            storage = storage.value_type
        else:
            return storage


def is_text(storage: pa.DataType) -> bool:
    """Strings and bytes in all their layouts."""
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(test(storage) for test in tests)


def is_readable(storage: pa.DataType) -> bool:
    """Whether a storage type holds truths, numbers or text at all."""
    if not _is_decodable(storage):
        return False
    plain = value_type(storage)
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        is_text,
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        CELLS.equals,
    )
    return any(test(plain) for test in tests)


def can_hold(column: Column, storage: pa.DataType) -> bool:
    """Whether a storage type can hold values of the column's kind at all."""
    if not column.kind.is_time:
        return is_readable(storage)
    plain = value_type(storage)
    is_unknown = pa.types.is_null(plain) or plain == CELLS
    return _is_decodable(storage) and (is_instants(plain) or is_text(plain) or is_unknown)


def fits_kind(column: Column, storage: pa.DataType) -> bool:
    """Whether cells of a stored type can have the declared kind; null: nobody knows their type.

    Text fits categories, dates fit dates and times, and numbers and truths fit every kind but these and
    categories that are words only.
    """
    plain = value_type(storage)
    if column.cast or pa.types.is_null(plain) or plain == CELLS:
        return True
    if is_text(plain):
        return column.kind.lists_levels
    return not column.kind.lists_levels or len(_word_values(column.categories)[0]) > 0


def type_faults(column: Column, storage: pa.DataType) -> list[str]:
    """What does not fit between a declared kind and a stored type."""
    what = f"column {column.name!r} of type {storage}"
    if not can_hold(column, storage):
        remedy = "cast it in the data or leave the column out"
        return [f"{what} cannot be read as {column.kind}; {remedy}"]
    if fits_kind(column, storage):
        return []
    remedy = "correct the kind"
    if is_text(value_type(storage)):
        remedy += ", or declare cast = true to read its texts"
        return [f"{what} is declared {column.kind}, and text that says none is missing; {remedy}"]
    remedy += " or the categories, or declare cast = true"
    return [f"{what} is declared category, and no category is a number; {remedy}"]


def _is_decodable(storage: pa.DataType) -> bool:
    """Whether pyarrow can undo the run ends of a type; it cannot for those of dictionaries and views."""
    if not pa.types.is_run_end_encoded(storage):
        return True
    one = pa.nulls(1, storage.value_type)
    try:
        pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array([1], storage.run_end_type), one))
    except pa.ArrowNotImplementedError:
        return False
    return True


def fill_column(column: Column, array: pa.Array, out: Array) -> None:
    """Write the column's values for one piece of rows into `out`: within bounds, or its fill."""
    plain = _plain(array)
    if column.kind.has_bounds:
        read = _times(column, plain) if column.kind.is_time else read_numbers(plain)
        _write_numbers(column, read, out)
        return
    codes = _codes(column, plain)
    out[:] = np.where(codes < 0, column.fill, codes)


def fill_numbers(columns: Sequence[Column], cells: Array) -> None:
    """Bring float64 cells of columns with bounds in place to what `fill_column` writes; NaN for null.

    The least and the greatest cell tell whether a column has anything to change: either is NaN if any
    cell is. So a call is spared for every other column.
    """
    if len(cells) == 0:
        return
    lower, upper = np.array([column.limits for column in columns]).reshape(-1, 2).T
    with np.errstate(all="ignore"):
        fits = (cells.min(axis=0) >= lower) & (cells.max(axis=0) <= upper)
    for index, (column, is_done) in enumerate(zip(columns, fits.tolist(), strict=True)):
        if column.is_whole or not is_done:
            _write_numbers(column, cells[:, index], cells[:, index])


def is_number(column: Column) -> bool:
    """Whether `fill_numbers` can read a column that is stored as float64."""
    return column.kind.has_bounds and not column.kind.is_time


def fill_values(column: Column, values: Array, out: Array) -> None:
    """Write the column's values from float64 numbers, as `fill_column` does; `out` may be `values`."""
    if column.kind.is_time:
        out[:] = column.fill  # a number is no date
    elif column.kind.has_bounds:
        _write_numbers(column, values, out)
    else:
        codes = _value_codes(_words(column), values)
        out[:] = np.where(codes < 0, column.fill, codes)


def _times(column: Column, array: pa.Array) -> Array:
    """Days or microseconds since 1970-01-01, NaN where a cell has none."""
    if array.type == CELLS:
        texts, _, instants = array.flatten()
        is_word = texts.is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_word, _times(column, texts), _times(column, instants))
    if is_text(array.type):
        return parse_instants(_as_bytes(array), column.kind)
    return read_instants(array, column.kind)


def _plain(array: pa.Array) -> pa.Array:
    """The same values without dictionary, run ends or extension."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        elif isinstance(array, pa.RunEndEncodedArray):
            array = pc.run_end_decode(array)
        else:
            return array


def read_numbers(array: pa.Array) -> Array:
    """The value of each cell as float64, NaN where it has none."""
    array = _plain(array)
    storage = array.type
    if storage == pa.float64():
        pass
    elif storage == CELLS:
        texts, numbers, _ = array.flatten()
        if texts.null_count == len(texts):
            return read_numbers(numbers)
        is_word = texts.is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_word, read_numbers(texts), read_numbers(numbers))
    elif is_text(storage):
        array = parse_numbers(_as_bytes(array))
    elif pa.types.is_boolean(storage):
        array = pc.cast(array, pa.int8())
    elif not is_readable(storage) or pa.types.is_null(storage):
        return np.full(len(array), math.nan)
    if array.type != pa.float64():
        array = pc.cast(array, pa.float64(), safe=False)
    if array.null_count:
        array = pc.fill_null(array, math.nan)
    # By its buffer: `to_numpy` would load pandas, a fifth of a second in every process.
    if len(array) == 0:
        return np.empty(0)
    return np.frombuffer(array.buffers()[1], np.float64, len(array), 8 * array.offset)


def _write_numbers(column: Column, values: Array, out: Array) -> None:
    """Clamp, round integers, and fill in what is not finite."""
    lower, upper = column.limits
    with np.errstate(all="ignore"):
        # One sum tells in most blocks that everything is finite; overflow only costs the second look.
        is_finite = math.isfinite(float(values.sum()))
        unreadable = (
            None if is_finite else ~np.isfinite(values)
        )  # before the clip: `out` may be `values`
        np.clip(values, lower, upper, out=out)
    if unreadable is not None:
        out[unreadable] = column.fill
    if column.is_whole:
        np.rint(out, out=out)


def _as_bytes(array: pa.Array) -> pa.Array:
    """Text as plain bytes: nothing here asks whether bytes are valid UTF-8."""
    if array.type == pa.binary() or array.type == pa.large_binary():
        return array
    return pc.cast(array, pa.large_binary())


def parse_numbers(array: pa.Array) -> pa.Array:
    """Bytes to float64; null where the text is no decimal number, `true` (1) or `false` (0).

    ASCII blanks around and, in the two words, case are ignored.
    """
    text = pc.cast(array, pa.large_string(), safe=False)
    try:
        return pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        pass  # some cell is no number, or has blanks around it; the message would show it
    text = pc.ascii_trim_whitespace(text)
    lowered = pc.ascii_lower(text)
    for word, value in (("true", "1"), ("false", "0")):
        text = pc.if_else(pc.equal(lowered, word), value, text)
    is_decimal = pc.match_substring_regex(text, DECIMAL)
    # pyarrow's parser refuses a leading plus sign.
    text = pc.replace_substring_regex(text, r"^\+", "")
    return pc.cast(pc.if_else(is_decimal, text, None), pa.float64())


def _words(column: Column) -> tuple[str, ...]:
    """What the codes 0, 1, ... of a column with levels stand for."""
    return ("0", "1") if column.kind is Kind.BOOLEAN else column.categories


def _codes(column: Column, array: pa.Array) -> Array:
    """Category or boolean codes as float64; -1 is unreadable."""
    storage = array.type
    if storage == CELLS:
        texts, numbers, _ = array.flatten()
        is_word = texts.is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_word, _codes(column, texts), _codes(column, numbers))
    if is_text(storage):
        return _text_codes(column, _as_bytes(array))
    return _value_codes(_words(column), read_numbers(array))


def _text_codes(column: Column, array: pa.Array) -> Array:
    """Codes of text; -1 is unreadable. A category matches to the letter, else by its value."""
    if column.kind is Kind.BOOLEAN:
        words = FALSE_TEXT + TRUE_TEXT
        text = pc.ascii_lower(pc.ascii_trim_whitespace(pc.cast(array, pa.large_string(), safe=False)))
        found = _index_in(pc.cast(text, array.type), words)
        return np.where(found < 0, -1.0, np.asarray(found >= len(FALSE_TEXT), dtype=np.float64))
    codes = _index_in(array, column.categories)
    rest = codes < 0
    if len(_word_values(column.categories)[0]) and rest.any():
        codes[rest] = _value_codes(column.categories, read_numbers(array.filter(pa.array(rest))))
    return codes


def _index_in(array: pa.Array, words: tuple[str, ...]) -> Array:
    """The place of each value among the words; -1 if it is none of them."""
    value_set = pa.array([word.encode() for word in words], type=array.type)
    places = pc.fill_null(pc.index_in(array, value_set=value_set, skip_nulls=True), -1)
    return np.array(places.to_numpy(zero_copy_only=False), dtype=np.float64)


def _value_codes(words: tuple[str, ...], values: Array) -> Array:
    """The place of the word that has each value; -1 if none has."""
    known, places = _word_values(words)
    if not len(known):
        return np.full(len(values), -1.0)
    nearest = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[nearest] == values, places[nearest], -1.0)


@lru_cache(maxsize=1024)
def _word_values(words: tuple[str, ...]) -> tuple[Array, Ints]:
    """The finite values of words, rising, and the word that has each: `1` before `01` and `1.0`."""
    parsed = read_numbers(pa.array([word.encode() for word in words], type=pa.large_binary()))
    found: dict[float, int] = {}
    for place in np.flatnonzero(np.isfinite(parsed)).tolist():
        value = float(parsed[place])
        if value not in found or words[place] == number_text(value):
            found[value] = place
    known = sorted(found)
    return np.array(known), np.array([found[value] for value in known], np.int64)


def number_text(value: float) -> str:
    """The one text of a finite number: whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < EXACT else repr(value)
