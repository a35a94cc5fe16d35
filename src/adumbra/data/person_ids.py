"""Whose row it is: ids of any type as two 64-bit words; ids that may be one person's are one id.

    truth, number, text that says one    its float64 value: `7`, `7.0`, `"07"` and `" 7 "` are one id
    any other text                       trimmed, in small letters and one Unicode form (NFKC), hashed
    null, NaN, blank text                none: the row has no person

Each cell is read on its own. The person of the promise is the id as read here. To split one would break
it, so types that say one value in several ways (float32, decimals, dates, bytes) hold no ids. Two people
whose ids are one here (whole numbers beyond 2^53, texts such as 0e1 and 0e2, or that differ in case) are
one person: a change of one may exchange rows of the other, which costs up to twice the budget.

Proof       persons.proof.md, of `read_ids`.
"""

import hashlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adumbra.data.cells import CELLS
from adumbra.data.columns import _as_bytes, _plain, parse_numbers, read_numbers
from adumbra.schema.writing import is_text, value_type

Words = NDArray[np.uint64]
_NAMED = np.uint64(1)  # second words: 0 of a number, odd of a text
_PERSON = b"adumbra-person/1"


@dataclass(frozen=True, slots=True)
class Ids:
    """Two words a row, and which rows have an id at all."""

    words: Words = field(repr=False)
    is_there: NDArray[np.bool_] = field(repr=False)


def is_id_type(storage: pa.DataType) -> bool:
    """Whether ids can be stored so: text, truths, whole numbers, float64: one form per value."""
    kind = value_type(storage)
    exact = pa.types.is_integer(kind) or pa.types.is_float64(kind) or pa.types.is_boolean(kind)
    is_word = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    return bool(kind == CELLS or exact or is_word or pa.types.is_null(kind))


def read_ids(array: pa.Array) -> Ids:
    """The ids of one piece of rows; never raises on a cell."""
    plain = _plain(array)
    if plain.type == CELLS:
        texts, numbers = plain.flatten()
        is_word = texts.is_valid().to_numpy(zero_copy_only=False)
        named, valued = read_ids(texts), read_ids(numbers)
        words = np.where(is_word[:, None], named.words, valued.words)
        return Ids(words, np.where(is_word, named.is_there, valued.is_there))
    if is_text(plain.type):
        return _text_ids(_as_bytes(plain))
    numbers = read_numbers(plain)
    infinite = np.isinf(numbers)
    if infinite.any():  # no number, but the same id as the text that says it
        said = [
            str(value) if is_infinite else None
            for value, is_infinite in zip(numbers, infinite, strict=True)
        ]
        named = _text_ids(pa.array(said, pa.large_string()).cast(pa.large_binary()))
        words = np.where(infinite[:, None], named.words, _number_words(numbers))
        return Ids(words, ~np.isnan(numbers))
    return Ids(_number_words(numbers), ~np.isnan(numbers))


def _number_words(numbers: NDArray[np.float64]) -> Words:
    """The value's bits, and 0; minus zero is zero."""
    words = np.zeros((len(numbers), 2), np.uint64)
    words[:, 0] = (numbers + 0.0).view(np.uint64)
    return words


def _text_ids(array: pa.Array) -> Ids:
    """Ids of texts, as bytes."""
    text = _normalised(array)
    is_there = pc.fill_null(pc.greater(pc.binary_length(text), 0), False)
    numbers = read_numbers(parse_numbers(pc.cast(text, pa.large_binary())))
    is_number = np.isfinite(numbers)
    encoded = pc.if_else(pa.array(is_number), pa.scalar(None, text.type), text).dictionary_encode()
    hashes = [_hash(word) for word in pc.cast(encoded.dictionary, pa.large_binary()).to_pylist()]
    table = np.frombuffer(b"".join(hashes) or bytes(16), "<u8").reshape(-1, 2)
    places = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    words = table[places].astype(np.uint64)
    words[:, 1] |= _NAMED
    words = np.where(is_number[:, None], _number_words(numbers), words)
    return Ids(words, is_there.to_numpy(zero_copy_only=False).astype(np.bool_))


def _hash(word: bytes) -> bytes:
    return hashlib.blake2b(word, digest_size=16, person=_PERSON).digest()


def _normalised(array: pa.Array) -> pa.Array:
    """Texts in one form: what is not UTF-8 is replaced, blanks around go, letters are small."""
    try:
        text = pc.cast(array, pa.large_string())
    except pa.ArrowInvalid:  # some cell is no UTF-8; the others decode to the same text either way
        decoded = [
            None if cell is None else cell.decode("utf-8", "replace") for cell in array.to_pylist()
        ]
        text = pa.array(decoded, pa.large_string())
    return pc.utf8_trim_whitespace(pc.utf8_lower(pc.utf8_normalize(text, form="NFKC")))
