"""Kinds of bad input with a canary planted in the private part: values, never names."""

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

WORD = "CANARY7f3a9"
DIGITS = "7319731973"
NUMBER = 7319731973.25
BYTES = WORD.encode()
SIGNS = (WORD, DIGITS, WORD.encode().hex())

COLUMNS = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
declared_by = "test"
[[columns]]
name = "a"
kind = "number"
lower = -10
upper = 10
[[columns]]
name = "i"
kind = "integer"
lower = 0
upper = 7
[[columns]]
name = "b"
kind = "category"
categories = ["x", "y"]
missing = "category"
[[columns]]
name = "c"
kind = "boolean"
"""
PATTERN = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
declared_by = "test"
[[groups]]
match = "*"
kind = "number"
lower = -10
upper = 10
"""
NO_HEADER = COLUMNS.replace("[[columns]]", "header = false\n[[columns]]", 1)
CAST = COLUMNS.replace("[[columns]]", "[[columns]]\ncast = true")
ITEMS = """format = "adumbra-schema/1"
[table]
unit = "row"
neighbours = "replace-one"
declared_by = "test"
[items]
universe = 8
"""
GOOD = b"1.5,2,x,true\n"


def _csv(record: bytes) -> bytes:
    return b"a,i,b,c\n" + GOOD * 3 + record + b"\n" + GOOD * 3


CSV = {
    "text in a number": _csv(b"%b,2,x,1" % BYTES),
    "text in an integer": _csv(b"1,%b,x,1" % BYTES),
    "unseen category": _csv(b"1,2,%b,1" % BYTES),
    "text in a boolean": _csv(b"1,2,x,%b" % BYTES),
    "text everywhere": _csv(b",".join([BYTES] * 4)),
    "too few fields": _csv(b"1,%b" % BYTES),
    "too many fields": _csv(b"1,2,x,1,%b,9" % BYTES),
    "one field": _csv(BYTES),
    "open quote": _csv(b'"%b,2,x,1' % BYTES),
    "open quote at the end": _csv(b'1,2,"%b' % BYTES),
    "quote inside": _csv(b'1,2,%b"x"y,1' % BYTES),
    "text after a quote": _csv(b'1,2,"x"%b,1' % BYTES),
    "doubled quotes": _csv(b'1,2,"""%b""",1' % BYTES),
    "line end in quotes": _csv(b'"%b\n%b",2,x,1' % (BYTES, BYTES)),
    "NUL bytes": _csv(b"\x00%b\x00,2,x\x00,1" % BYTES),
    "not UTF-8": _csv(b"\xff\xfe%b,\xff,%b\xff,\xff" % (BYTES, BYTES)),
    "half a character": _csv(b"1,2,%b\xe2\x82,1" % BYTES),
    "UTF-16": ("a,i,b,c\n1,2," + WORD + ",1\n").encode("utf-16"),
    "byte order mark inside": _csv(b"\xef\xbb\xbf%b,2,x,1" % BYTES),
    "huge number": _csv(b"%be300,2,x,1" % DIGITS.encode()),
    "endless exponent": _csv(b"%be999999999999,2,x,1" % DIGITS.encode()),
    "number out of bounds": _csv(b"%b,%b,x,1" % (DIGITS.encode(), DIGITS.encode())),
    "number as category": _csv(b"1,2,%b,%b" % (DIGITS.encode(), DIGITS.encode())),
    "hexadecimal": _csv(b"0x%b,2,x,1" % DIGITS.encode()),
    "thousand separators": _csv(b'"7,319,731,973 %b",2,x,1' % BYTES),
    "currency": _csv(b"$%b.00,2,x,1" % DIGITS.encode()),
    "date": _csv(b"2026-11-16T%b,2,x,1" % BYTES),
    "nan with a payload": _csv(b"nan(%b),2,x,1" % BYTES),
    "formula": _csv(b'=cmd|%b,2,"=%b",1' % (BYTES, BYTES)),
    "mark-up": _csv(b"<script>%b</script>,2,[red]%b[/red],1" % (BYTES, BYTES)),
    "format fields": _csv(b"{%b},%%s%%n,{0.%b},1" % (BYTES, BYTES)),
    "terminal codes": _csv(b"\x1b[31m%b\x1b[0m,2,\x07%b,1" % (BYTES, BYTES)),
    "JSON": _csv(b'"{""a"": ""%b""}",2,x,1' % BYTES),
    "very long field": _csv(BYTES * 200_000 + b",2,x,1"),
    "very long quoted field": _csv(b'"' + BYTES * 200_000 + b'",2,x,1'),
    "many fields": _csv(b",".join([BYTES] * 5000)),
    "no header": GOOD.replace(b"x", BYTES) * 3,
    "no header, other delimiter": GOOD.replace(b"x", BYTES).replace(b",", b";") * 3,
    "no header, some names": b"a,i,b,%b\n" % BYTES + GOOD * 3,
    "no header, all names and more": b"a,i,b,c,%b,%b\n" % (BYTES, DIGITS.encode()) + GOOD * 3,
    "no header, doubled cells": b"a,a,b,%b,%b\n" % (BYTES, BYTES) + GOOD * 3,
    "no header, open quote": b'1,2,"%b\n' % BYTES + GOOD * 3,
    "other delimiter": b"a;i;b;c\n" + GOOD.replace(b",", b";").replace(b"x", BYTES),
    "header only differs": b"a,i,b,d\n" + GOOD.replace(b"x", BYTES),
    "CR line ends": _csv(b"%b,2,x,1" % BYTES).replace(b"\n", b"\r"),
    "old Mac and DOS mixed": _csv(b"%b,2,x,1\r\r\n" % BYTES),
    "only malformed rows": b"a,i,b,c\n" + BYTES + b"\n" + BYTES + b",\n",
    "compressed": b"a,i,b,c\n\x1f\x8b\x08" + BYTES,
}


# First lines that are rows. Read by a pattern, which must be refused, and as rows by `header = false`.
ROWS = {
    "a person": b"%b,%b,%b,1\n" % (DIGITS.encode(), BYTES, BYTES) + GOOD * 3,
    "numbers": b"%b,3,4,1\n" % DIGITS.encode() + GOOD * 3,
    "one field": BYTES + b"\n1\n2\n",
    "other delimiter": b"%b;2;x;1\n" % BYTES + GOOD.replace(b",", b";"),
    "byte order mark": b"\xef\xbb\xbf%b,2,x,1\n" % BYTES + GOOD * 3,
    "UTF-16": f"{WORD},2,x,1\n".encode("utf-16"),
    "packed": b"PK\x03\x04%b,2,x,1\n" % BYTES + GOOD * 3,
    "NUL bytes": b"\x00%b,2,x,1\n" % BYTES + GOOD * 3,
    "open quote": b'"%b,2,x,1\n' % BYTES + GOOD * 3,
    "CR": b"%b,2,x,1\r" % BYTES + GOOD * 3,
}


def _table(**columns: Any) -> pa.Table:
    good: dict[str, Any] = {"a": [1.5, 2.0], "i": [1, 2], "b": ["x", "y"], "c": [True, False]}
    return pa.table(good | columns)


def _bad_utf8() -> pa.Array:
    data = b"\xff" + BYTES + b"x"
    offsets = struct.pack("<3i", 0, len(data) - 1, len(data))
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


PARQUET = {
    "text for a number": _table(a=["1", WORD]),
    "text for an integer": _table(i=["1", WORD]),
    "bytes for a number": _table(a=[b"1", BYTES]),
    "text for a boolean": _table(c=["yes", WORD]),
    "unseen value": _table(b=["x", WORD]),
    "unseen dictionary value": _table(b=pa.array(["x", WORD]).dictionary_encode()),
    "numbers for a category": _table(b=[NUMBER, 1.0]),
    "whole numbers for a boolean": _table(c=[int(NUMBER), 1]),
    "number out of range": _table(a=[NUMBER, -NUMBER]),
    "decimals": _table(a=[Decimal(str(NUMBER)), Decimal(1)]),
    "infinities": _table(a=[math.inf, -math.inf], i=[int(NUMBER), 1]),
    "text that is not UTF-8": _table(b=_bad_utf8(), a=_bad_utf8()),
    "lists": _table(a=[[NUMBER], [1.0]]),
    "structs": _table(b=[{"q": WORD}, {"q": "x"}]),
    "times": _table(a=pa.array([int(NUMBER), 1], pa.timestamp("s"))),
    "durations": _table(a=pa.array([int(NUMBER), 1], pa.duration("s"))),
    "column absent": _table(b=[WORD, "x"]).drop_columns("a"),
    "column twice": pa.table([[WORD, "x"], [NUMBER, 1.0]], names=["a", "a"]),
    "metadata": _table(b=[WORD, "x"]).replace_schema_metadata({"note": WORD}),
}
SETS = {
    "words": b"1 2\n%b 3\n" % BYTES,
    "large items": b"1 %b\n" % DIGITS.encode(),
    "negative items": b"-%b 2\n" % DIGITS.encode(),
    "decimal items": b"%b.5 2\n" % DIGITS.encode(),
    "one long line": (BYTES + b" ") * 100_000 + b"\n1\n",
    "binary": b"\x00\xff%b\x00\n1 2" % BYTES,
}
LISTS = {
    "items beyond the universe": pa.table({"items": [[int(NUMBER), 1], None, [None, 2]]}),
    "text items": pa.table({"items": [[WORD], ["1"]]}),
    "fractional items": pa.table({"items": [[NUMBER], [1.0]]}),
    "no list": pa.table({"items": [int(NUMBER), 1]}),
}
DAMAGED = {
    "no Parquet": BYTES * 10,
    "Parquet marks around nonsense": b"PAR1" + BYTES * 10 + b"PAR1",
    "empty": b"",
}


@dataclass(frozen=True)
class BadInput:
    """One kind: its data file (written into a folder) and the schema that it is read with."""

    title: str
    suffix: str
    content: bytes | pa.Table
    schema: str

    def write(self, folder):
        path = folder / f"data{self.suffix}"
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            pq.write_table(self.content, path)
        (folder / "schema.toml").write_text(self.schema)
        return path


def bad_files() -> list[BadInput]:
    kinds = [BadInput(f"csv: {title}", ".csv", data, COLUMNS) for title, data in CSV.items()]
    kinds += [BadInput(f"pattern: {title}", ".csv", data, PATTERN) for title, data in ROWS.items()]
    kinds += [BadInput(f"rows: {title}", ".csv", data, NO_HEADER) for title, data in ROWS.items()]
    kinds += [
        BadInput(f"parquet: {title}", ".parquet", data, COLUMNS) for title, data in PARQUET.items()
    ]
    kinds += [BadInput(f"cast: {title}", ".parquet", data, CAST) for title, data in PARQUET.items()]
    kinds += [
        BadInput(f"parquet: {title}", ".parquet", data, COLUMNS) for title, data in DAMAGED.items()
    ]
    kinds += [BadInput(f"dat: {title}", ".dat", data, ITEMS) for title, data in SETS.items()]
    return kinds + [
        BadInput(f"lists: {title}", ".parquet", data, ITEMS) for title, data in LISTS.items()
    ]


class _Loud:
    """An object that shouts its content whenever something goes wrong."""

    def __str__(self):
        raise ValueError(WORD)

    __repr__ = __float__ = __int__ = __bool__ = __str__

    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError(WORD)


def bad_objects() -> dict[str, object]:
    """The same for objects in memory."""
    mixed = pd.DataFrame({"a": [1, WORD], "i": [1, 2], "b": ["x", 3], "c": [True, None]}, dtype=object)
    return {
        "pandas mixed": mixed,
        "pandas loud": pd.DataFrame({"a": [_Loud()], "i": [1], "b": ["x"], "c": [True]}, dtype=object),
        "pandas dates": mixed.assign(a=pd.to_datetime(["2026-01-01", "2026-01-02"])),
        "pandas categories": mixed.assign(b=pd.Categorical([WORD, "x"])),
        "polars text": pl.DataFrame({"a": [WORD], "i": [NUMBER], "b": [WORD], "c": [WORD]}),
        "polars objects": pl.DataFrame({"a": [_Loud()], "i": [1], "b": ["x"], "c": [True]}),
        "polars structs": pl.DataFrame({"a": [{"q": WORD}], "i": [1], "b": ["x"], "c": [True]}),
        "numpy objects": np.array([[WORD, NUMBER, _Loud(), None]], dtype=object),
        "numpy text": np.array([[WORD, DIGITS, WORD, WORD]]),
        "numpy bytes": np.array([[BYTES, BYTES, BYTES, BYTES]]),
        "numpy complex": np.full((2, 4), complex(NUMBER, 1)),
        "numpy three axes": np.full((2, 4, 2), NUMBER),
        "numpy narrow": np.full((2, 3), NUMBER),
        "numpy structured": np.array([(NUMBER, WORD)], dtype=[("a", float), ("b", "U20")]),
        "sparse infinities": sp.csr_array(np.array([[NUMBER, math.inf, -math.inf, math.nan]])),
        "sparse narrow": sp.csr_array(np.full((2, 3), NUMBER)),
        "loud stream": _Loud(),
        "a list of rows": [[NUMBER, WORD]],
        "text": f"{WORD}.parquet"[len(WORD) :] or ".parquet",
    }
