"""Items that a public file lists, where their ids are few in a wide range."""

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.numerics import Ints

HEADER = "item"  # a first line that starts with this word is a heading
LARGEST = 2**31  # ids lie below it
REMEDY = "give a public file with one id per line (a name may follow after a comma or tab)"


def read_ids(path: str) -> tuple[tuple[int, ...], str]:
    """The ids of a public file in rising order, and their digest; doubles and other words are faults."""
    file = Path(path)
    require(file.is_file(), f"ids={path}: no such file; {REMEDY}")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"ids={path}: cannot be read as UTF-8; {REMEDY}") from fault
    found: set[int] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.partition("\t" if "\t" in line else ",")[0].strip()
        if not line.strip() or (number == 1 and word.lower() == HEADER):
            continue
        is_id = word.isascii() and word.isdecimal() and len(word) <= 10 and int(word) < LARGEST
        require(is_id, f"ids={path}, line {number}: must start with a whole number below 2^31")
        require(int(word) not in found, f"ids={path}, line {number}: {int(word)} is listed twice")
        found.add(int(word))
    require(bool(found), f"ids={path}: lists no item; {REMEDY}")
    ordered = tuple(sorted(found))
    return ordered, digest_of(ordered)


def digest_of(ids: tuple[int, ...]) -> str:
    """SHA-256 of the ids as lines of digits."""
    return hashlib.sha256("".join(f"{one}\n" for one in ids).encode()).hexdigest()


@lru_cache(maxsize=8)
def listed_ids(path: str, digest: str) -> Ints:
    """The ids of a file that a schema was declared with; refuses a file that changed since."""
    ids, now = read_ids(path)
    require(now == digest, f"ids={path}: holds other ids than when the schema was read; read it again")
    found: Ints = np.array(ids, dtype=np.int64)
    found.flags.writeable = False
    return found
