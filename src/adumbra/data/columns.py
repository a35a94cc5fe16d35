"""One Arrow column to float64 by its declaration: total, silent, within bounds.

Unreadable is whatever is null, NaN, infinite, not a number, or no declared category; it becomes
`Column.fill`. Each cell is read on its own: no cell's reading depends on another cell.
"""

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adumbra.data.schema import Column, Kind
from adumbra.numerics import Array

# Spellings of truth in text, after trimming and lower-casing.
TRUE_TEXT = ("true", "t", "yes", "y", "1", "1.0")
FALSE_TEXT = ("false", "f", "no", "n", "0", "0.0")
# A decimal number as we accept it in text. pyarrow's own parser also takes "nan" and "inf" (not finite,
# so missing all the same) and nothing else: a test compares the two cell by cell.
DECIMAL = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"


def is_readable(column: Column, storage: pa.DataType) -> bool:
    """Whether values of this storage type can be read as the column's kind at all."""
    plain = value_type(storage)
    if is_text(plain) or pa.types.is_null(plain):
        return True
    if pa.types.is_boolean(plain) or pa.types.is_integer(plain) or pa.types.is_floating(plain):
        return True
    return pa.types.is_decimal(plain) and column.kind is not Kind.ITEMS


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


def fill_column(column: Column, array: pa.Array, out: Array) -> None:
    """Write the column's values for one piece of rows into `out` (finite, filled, within bounds)."""
    plain = _plain(array)
    if column.is_numeric:
        _write_numbers(column, _numbers(plain), out)
    else:
        out[:] = _codes(column, plain)


def fill_values(column: Column, values: Array, out: Array) -> None:
    """Write the column's values from float64 numbers, as `fill_column` does; `out` may be `values`."""
    if column.is_numeric:
        _write_numbers(column, values, out)
    else:
        out[:] = _number_codes(column, values)


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


def _numbers(array: pa.Array) -> Array:
    """Float64 values, NaN where there is none."""
    storage = array.type
    if storage == pa.float64():
        pass
    elif is_text(storage):
        array = parse_decimals(_as_bytes(array))
    elif pa.types.is_boolean(storage):
        array = pc.cast(array, pa.int8())
    elif not (
        pa.types.is_integer(storage) or pa.types.is_floating(storage) or pa.types.is_decimal(storage)
    ):
        return np.full(len(array), math.nan)
    if array.type != pa.float64():
        array = pc.cast(array, pa.float64(), safe=False)
    if array.null_count:
        array = pc.fill_null(array, math.nan)
    values: Array = array.to_numpy(zero_copy_only=False)
    return values


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
    if column.kind is Kind.INTEGER:
        np.rint(out, out=out)


def _as_bytes(array: pa.Array) -> pa.Array:
    """Text as plain bytes: nothing here asks whether bytes are valid UTF-8."""
    if array.type == pa.binary() or array.type == pa.large_binary():
        return array
    return pc.cast(array, pa.large_binary())


def parse_decimals(array: pa.Array) -> pa.Array:
    """Bytes to float64, null where the text is no decimal number; ASCII blanks around are ignored."""
    text = pc.cast(array, pa.large_string(), safe=False)
    try:
        return pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        pass  # some cell is no number, or has blanks around it; the message would show it
    text = pc.ascii_trim_whitespace(text)
    is_decimal = pc.match_substring_regex(text, DECIMAL)
    # pyarrow's parser refuses a leading plus sign.
    text = pc.replace_substring_regex(text, r"^\+", "")
    return pc.cast(pc.if_else(is_decimal, text, None), pa.float64())


def _codes(column: Column, array: pa.Array) -> Array:
    """Category or boolean codes as float64."""
    storage = array.type
    if is_text(storage):
        codes = _text_codes(column, _as_bytes(array))
    elif pa.types.is_boolean(storage):
        codes = _boolean_codes(column, array)
    else:
        return _number_codes(column, _numbers(array))
    return np.where(codes < 0, column.fill, codes)


def _boolean_codes(column: Column, array: pa.Array) -> Array:
    """Codes of stored booleans; -1 is unreadable."""
    stored = pc.fill_null(pc.cast(array, pa.int8()), -1).to_numpy(zero_copy_only=False)
    if column.kind is Kind.BOOLEAN:
        return np.asarray(stored, dtype=np.float64)
    names = [name.lower() for name in column.categories]
    code = [float(names.index(word)) if word in names else -1.0 for word in ("false", "true")]
    codes: Array = np.array([*code, -1.0])[stored]
    return codes


def _text_codes(column: Column, array: pa.Array) -> Array:
    """Codes of text; -1 is unreadable. Categories match to the letter, then without blanks around."""
    if column.kind is Kind.BOOLEAN:
        words = FALSE_TEXT + TRUE_TEXT
        text = pc.ascii_lower(pc.ascii_trim_whitespace(pc.cast(array, pa.large_string(), safe=False)))
        found = _index_in(pc.cast(text, array.type), words)
        return np.where(found < 0, -1.0, np.asarray(found >= len(FALSE_TEXT), dtype=np.float64))
    return _index_in(array, column.categories)


def _index_in(array: pa.Array, words: tuple[str, ...]) -> Array:
    """The place of each value among the words; -1 if it is none of them."""
    value_set = pa.array([word.encode() for word in words], type=array.type)
    places = pc.fill_null(pc.index_in(array, value_set=value_set, skip_nulls=True), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.float64)


def _number_codes(column: Column, values: Array) -> Array:
    """Codes of stored numbers: 0 and 1 for booleans, else the category that reads as the number."""
    words = ("0", "1") if column.kind is Kind.BOOLEAN else column.categories
    parsed = _numbers(pa.array([word.encode() for word in words], type=pa.large_binary()))
    known, first = np.unique(parsed, return_index=True)  # NaN sorts last and equals nothing
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[places] == values, first[places], column.fill)
