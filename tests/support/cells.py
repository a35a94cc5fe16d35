"""Cells that no careful schema expects."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd


class Liar:
    """Says that it is a text, cannot be iterated, printed, compared or turned into a number."""

    @property
    def __class__(self):
        raise RuntimeError("CANARY")

    def _raise(self, *_):
        raise RuntimeError("CANARY")

    __str__ = __repr__ = __float__ = __iter__ = __eq__ = __bool__ = __len__ = _raise
    __hash__ = object.__hash__


class Float(float):
    def __float__(self):
        raise RuntimeError("CANARY")


HOSTILE = [
    None,
    math.nan,
    math.inf,
    "CANARY",
    "1",
    "1.0",
    "True",
    "\ud800",
    b"x",
    b"\xff",
    bytearray(b"1"),
    [1, 2],
    {"a": 1},
    10**400,
    -(10**30),
    2**53 + 1,
    2**64 - 1,
    Decimal("0.5"),
    Decimal("sNaN"),
    Fraction(1, 2),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.date(9999, 1, 1),
    dt.timedelta(1),
    pd.Timestamp("2020-01-01"),
    pd.NaT,
    pd.NA,
    pd.Interval(0, 1.5),
    np.timedelta64(1, "s"),
    np.datetime64("2020"),
    np.float32(0.5),
    np.longdouble(1),
    np.array(1),
    np.array([1, 2]),
    1 + 0j,
    1 + 2j,
    True,
    np.bool_(0),
    Liar(),
    Float(1.0),
    object(),
]


def objects(values):
    """A numpy array of Python objects, none of them converted."""
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells
