"""Whose row it is: ids of any type as two 64-bit words; ids that may be one person's are one id.

    alike         numbers by their exact value in any spelling: `7`, `7.0`, `"07"`, `" 7 "` are one id;
                  any other text trimmed, in small letters and one Unicode form (NFKC)
    as-written    text to the letter, and the whole number 7 is the text `7`
    no id         null, NaN, blank text (as written: empty text)

Where some file holds ids as float64, or a data frame's rows chose their type (pandas), numbers are
rounded to float64 in every file: nobody knows which whole number beyond 2^53 such a value was. That
follows from storage types alone (`reading_of`), so no row decides how another person's id is read. Each
cell is read on its own. To split one person would break the promise, so types that say one value in
several ways (float32, dates, bytes) hold no ids.

Proof       persons.proof.md, of `read_ids`.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adumbra.data.cells import CELLS
from adumbra.data.columns import (
    DECIMAL,
    _as_bytes,
    _plain,
    is_text,
    parse_numbers,
    read_numbers,
    value_type,
)
from adumbra.errors import require
from adumbra.numerics import EXACT
from adumbra.schema.table import PersonIds

Words = NDArray[np.uint64]
# Second words: 0 of a float64, 4 of a whole number of 64 bits that is none, 6 of one from 2^63 on, odd
# of a hash. A whole number up to 2^53 has the words of its float64, rounded or not.
_WHOLE, _ABOVE = np.uint64(4), np.uint64(6)
_ODD = [bytes([byte | 1]) for byte in range(256)]
_TEXT, _NUMBER = b"adumbra-person/1", b"adumbra-number/1"
_SHORT = r"^[-+]?[0-9]{1,18}$"  # fits 64 bits
_WRITTEN = r"^(0|-?[1-9][0-9]*)$"  # as a whole number is written
_DECIMAL = re.compile(rb"([-+]?)([0-9]*)\.?([0-9]*)(?:e([-+]?)0*([0-9]*))?")
_LONG = 600  # digits of an exponent beyond which all are one: no number of any use has more


@dataclass(frozen=True, slots=True)
class Ids:
    """Two words per row, and which rows have an id at all."""

    words: Words = field(repr=False)
    is_there: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """How ids are compared: public facts of the schema and of storage types."""

    as_written: bool = False
    rounded: bool = False


def reading_of(ids: str, storage: Iterable[pa.DataType]) -> Reading:
    """The reading of a source whose files hold ids in these types."""
    kinds = [value_type(kind) for kind in storage]
    rounded = any(kind == CELLS or pa.types.is_floating(kind) for kind in kinds)
    as_written = ids == PersonIds.AS_WRITTEN
    clear = all(is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind) for kind in kinds)
    rule = "needs ids that are stored as text or whole numbers; cast them in a file or an Arrow table"
    require(clear or not as_written, f"ids='as-written': {rule}, or declare ids='alike'")
    return Reading(as_written=as_written, rounded=rounded)


def is_id_type(storage: pa.DataType) -> bool:
    """Whether ids can be stored so: text, truths, whole numbers, decimals, float64."""
    kind = value_type(storage)
    exact = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    is_word = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    return bool(kind == CELLS or exact or pa.types.is_float64(kind) or is_word or pa.types.is_null(kind))


def read_ids(array: pa.Array, reading: Reading) -> Ids:
    """The ids of one piece of rows; never raises on a cell."""
    plain = _plain(array)
    if plain.type == CELLS:
        texts, numbers, _ = plain.flatten()
        is_word = texts.is_valid().to_numpy(zero_copy_only=False)
        named, valued = read_ids(texts, reading), read_ids(numbers, reading)
        words = np.where(is_word[:, None], named.words, valued.words)
        return Ids(words, np.where(is_word, named.is_there, valued.is_there))
    if is_text(plain.type):
        return _text_ids(_as_bytes(plain), reading)
    if reading.rounded or pa.types.is_null(plain.type):
        return _float_ids(read_numbers(plain))
    if not pa.types.is_integer(plain.type) and not pa.types.is_boolean(plain.type):  # decimals
        return _text_ids(pc.cast(pc.cast(plain, pa.large_string()), pa.large_binary()), reading)
    return _integer_ids(plain)


def _integer_ids(array: pa.Array) -> Ids:
    """Ids of whole numbers and truths."""
    is_there = pc.is_valid(array).to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(array.type):
        array = pc.cast(array, pa.int8())
    filled = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    words = _number_words(filled.astype(np.float64))
    beyond = (
        (filled > EXACT) | (filled < -EXACT) if filled.dtype.itemsize == 8 else np.zeros(0, np.bool_)
    )
    if beyond.any():
        words[beyond, 0] = filled[beyond].astype(np.uint64)  # modulo 2^64
        words[beyond, 1] = np.where(filled[beyond] >= 2**63, _ABOVE, _WHOLE)
    return Ids(words, is_there)


def _float_ids(numbers: NDArray[np.float64]) -> Ids:
    """Ids of float64: by value, which all other numbers are rounded to."""
    is_there = ~np.isnan(numbers)
    infinite = np.isinf(numbers)
    words = _number_words(numbers)
    if infinite.any():  # no number, but the same id as the text that says it
        said = [
            str(value) if is_infinite else None
            for value, is_infinite in zip(numbers, infinite, strict=True)
        ]
        named = _hashed(pa.array(said, pa.large_string()), numbers=False)
        words = np.where(infinite[:, None], named, words)
    return Ids(words, is_there)


def _number_words(numbers: NDArray[np.float64]) -> Words:
    """The value's bits, and 0; minus zero is zero."""
    words = np.zeros((len(numbers), 2), np.uint64)
    words[:, 0] = (numbers + 0.0).view(np.uint64)
    return words


def _text_ids(array: pa.Array, reading: Reading) -> Ids:
    """Ids of texts, as bytes."""
    if reading.as_written:
        text = _decoded(array)
        return _exact_ids(text, is_number=pc.match_substring_regex(text, _WRITTEN))
    text = _normalised(array)
    if not reading.rounded:
        for word, digit in (("true", "1"), ("false", "0")):
            text = pc.if_else(pc.equal(text, word), digit, text)
        return _exact_ids(text, is_number=pc.match_substring_regex(text, DECIMAL))
    numbers = read_numbers(parse_numbers(pc.cast(text, pa.large_binary())))
    is_there = pc.fill_null(pc.greater(pc.binary_length(text), 0), False)
    finite = np.isfinite(numbers)
    named = _hashed(pc.if_else(pa.array(finite), pa.scalar(None, text.type), text), numbers=False)
    words = np.where(finite[:, None], _number_words(numbers), named)
    return Ids(words, is_there.to_numpy(zero_copy_only=False).astype(np.bool_))


def _exact_ids(text: pa.Array, *, is_number: pa.Array) -> Ids:
    """Ids of texts in one form: a number by its exact value, any other by a hash of its letters."""
    is_there = pc.fill_null(pc.greater(pc.binary_length(text), 0), False)
    is_number = pc.fill_null(is_number, False)
    short = pc.and_(is_number, pc.fill_null(pc.match_substring_regex(text, _SHORT), False))
    nothing = pa.scalar(None, text.type)
    digits = pc.replace_substring_regex(pc.if_else(short, text, nothing), r"^\+", "")
    whole = _integer_ids(pc.cast(digits, pa.int64())).words
    is_short, is_value = (one.to_numpy(zero_copy_only=False) for one in (short, is_number))
    words = np.where(
        is_short[:, None], whole, _hashed(pc.if_else(is_number, nothing, text), numbers=False)
    )
    rest = is_value & ~is_short
    if rest.any():
        valued = _hashed(pc.if_else(pa.array(rest), text, nothing), numbers=True)
        words = np.where(rest[:, None], valued, words)
    return Ids(words, is_there.to_numpy(zero_copy_only=False).astype(np.bool_))


def _hashed(text: pa.Array, *, numbers: bool) -> Words:
    """The words of texts, each different one once; nothing of use where there is none."""
    encoded = text.dictionary_encode()
    listed = pc.cast(encoded.dictionary, pa.large_binary()).to_pylist()
    found = [_value_bytes(word) if numbers else _hash(word, _TEXT) for word in listed]
    table = np.frombuffer(b"".join(found) or bytes(16), "<u8").reshape(-1, 2)
    places = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    words: Words = table[places].astype(np.uint64)
    return words


def _hash(word: bytes, kind: bytes) -> bytes:
    """128 bits; the second word is odd, as that of no whole number."""
    digest = hashlib.blake2b(word, digest_size=16, person=kind).digest()
    return digest[:8] + _ODD[digest[8]] + digest[9:]  # words are little-endian


def _value_bytes(word: bytes) -> bytes:
    """The two words of a decimal number: equal if and only if the values are, but for huge exponents."""
    sign, digits, exponent = _decimal(word)
    if exponent >= 0 and len(digits) + exponent <= 20:  # 2^64 has 20 digits
        value = int(digits or b"0") * 10**exponent * (-1 if sign else 1)
        if -(2**63) <= value < 2**64:
            kind = np.int64 if value < 2**63 else np.uint64
            return bytes(_integer_ids(pa.array(np.array([value], kind))).words.tobytes())
    return _hash(b"%b%be%d" % (sign, digits, exponent), _NUMBER)


def _decimal(word: bytes) -> tuple[bytes, bytes, int]:
    """Sign, digits without zeros around, and the power of ten; no digits for zero."""
    match = _DECIMAL.fullmatch(word)
    assert match is not None  # noqa: S101  (for mypy: only decimal numbers come here)
    sign, whole, part, below, power = match.groups(b"")
    digits = (whole + part).lstrip(b"0")
    kept = digits.rstrip(b"0")
    if not kept:
        return b"", b"", 0
    if len(power) > _LONG:
        return sign.strip(b"+"), b"1", (-1 if below == b"-" else 1) * 10**_LONG
    exponent = int(below + power) if power else 0
    return sign.strip(b"+"), kept, exponent - len(part) + len(digits) - len(kept)


def _decoded(array: pa.Array) -> pa.Array:
    """Bytes as text; each byte that is no UTF-8 by its number."""
    try:
        return pc.cast(array, pa.large_string())
    except pa.ArrowInvalid:  # some cell is no UTF-8; the others decode to the same text either way
        decoded = [
            None if cell is None else cell.decode("utf-8", "backslashreplace")
            for cell in array.to_pylist()
        ]
        return pa.array(decoded, pa.large_string())


def _normalised(array: pa.Array) -> pa.Array:
    """Texts in one form: blanks around go, letters are small."""
    return pc.utf8_trim_whitespace(pc.utf8_lower(pc.utf8_normalize(_decoded(array), form="NFKC")))
