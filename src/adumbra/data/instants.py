"""Cells as dates and times: days, or microseconds, since 1970-01-01, as float64; NaN for no time.

    Arrow dates and timestamps, numpy's and pandas' times     the instant, in UTC where there is a zone
    Python's date and datetime                                the same
    text                                                      2020-01-31, 2020-01-31T08:30:00.5+02:00
    anything else, numbers too                                none

What is finer than a microsecond, or than a day in a column of dates, is cut off downwards. Values that
float64 cannot hold exactly lie beyond every bound that a schema may declare, and stay there.

Proof       columns.proof.md, of `read_instants`, `parse_instants` and `cell_instant`.
"""

import datetime as dt
import math
from contextlib import suppress

import numpy as np
import pyarrow as pa

from adumbra.data.compute import pc
from adumbra.numerics import Array, Ints
from adumbra.schema.schema import Kind
from adumbra.schema.times import DAY, EPOCH, ISO

_FARTHEST = 2**62  # what lies beyond stays beyond every bound
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LENGTHS = {"W": 7 * DAY, "D": DAY, "h": DAY // 24, "m": 60 * 10**6, "s": 10**6, "ms": 10**3, "us": 1}
_FINER = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}  # so many make a microsecond
_PARTS = ("year", "month", "day", "hour", "minute", "second", "ahead", "more")


def is_instants(storage: pa.DataType) -> bool:
    """Whether a storage type holds dates or times of dates."""
    return bool(pa.types.is_date(storage) or pa.types.is_timestamp(storage))


def read_instants(array: pa.Array, kind: Kind) -> Array:
    """The instants of a plain Arrow array of dates or timestamps; NaN throughout for any other type."""
    storage = array.type
    if not is_instants(storage):
        return np.full(len(array), math.nan)
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    width = pa.int32() if pa.types.is_date32(storage) else pa.int64()
    ticks = pc.fill_null(array.view(width), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_date32(storage):
        values = ticks.astype(np.float64) * (1.0 if kind is Kind.DATE else float(DAY))
    else:
        rate = _PER_SECOND["ms" if pa.types.is_date64(storage) else storage.unit]
        values = _counted(ticks, rate, kind)
    return np.where(is_null, math.nan, values)


def _counted(ticks: Ints, rate: int, kind: Kind) -> Array:
    """Counts of 1/rate seconds as days or microseconds, downwards."""
    if kind is Kind.DATE:
        return (ticks // (86_400 * rate)).astype(np.float64)
    if rate > 10**6:
        return (ticks // (rate // 10**6)).astype(np.float64)
    return ticks.astype(np.float64) * float(10**6 // rate)


def parse_instants(texts: pa.Array, kind: Kind) -> Array:
    """The instants of texts (bytes in any layout); blanks around them are ignored."""
    plain = pc.ascii_trim_whitespace(pc.cast(texts, pa.large_string(), safe=False))
    found = pc.extract_regex(pc.cast(plain, pa.large_binary()), f"^(?:{ISO})$")
    is_found = found.is_valid().to_numpy(zero_copy_only=False)
    numbers = {name: _digits(found.field(name), is_found) for name in _PARTS}
    year, month, day = numbers["year"], numbers["month"], numbers["day"]
    inside = is_found & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(inside, year, 1970) - 1970) * 12 + np.where(inside, month, 1) - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    inside &= day <= after - first
    for name, most in (("hour", 23), ("minute", 59), ("second", 59), ("ahead", 23), ("more", 59)):
        inside &= numbers[name] <= most
    is_behind = np.asarray(pc.equal(found.field("sign"), b"-").to_numpy(zero_copy_only=False), bool)
    offset = (numbers["ahead"] * 60 + numbers["more"]) * np.where(is_behind, -1, 1)
    minutes = numbers["hour"] * 60 + numbers["minute"] - offset
    part = _micros(found.field("fraction"), is_found)
    micros = (first + day - 1) * DAY + (minutes * 60 + numbers["second"]) * 10**6 + part
    return np.where(inside, _counted(micros, 10**6, kind), math.nan)


def _micros(fraction: pa.Array, is_found: np.ndarray) -> Ints:
    """Decimals of a second (at most 18) as whole microseconds, downwards."""
    counted = pc.fill_null(pc.binary_length(fraction), 0).to_numpy(zero_copy_only=False)
    lengths = np.where(is_found, counted, 0).astype(np.int64)
    digits = _digits(fraction, is_found)
    more, less = 10 ** np.maximum(6 - lengths, 0), 10 ** np.maximum(lengths - 6, 0)
    return np.asarray(digits * more // less, np.int64)


def _digits(field: pa.Array, is_found: np.ndarray) -> Ints:
    """Texts of digits as whole numbers; 0 where there is none."""
    chosen = pc.if_else(pc.and_(pa.array(is_found), pc.greater(pc.binary_length(field), 0)), field, b"0")
    text = pc.cast(pc.fill_null(chosen, b"0"), pa.large_string())
    return np.asarray(pc.cast(text, pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def cell_instant(value: object) -> int | None:
    """The microseconds of a Python object that is a date or a time of one; else None."""
    kind = type(value)
    if not issubclass(kind, dt.date | np.datetime64):
        return None
    with suppress(Exception):  # a foreign time zone, an instant that its own type cannot turn
        own = getattr(value, "to_datetime64", None)  # pandas' times are finer than Python's
        held = value if own is None else own()
        if isinstance(held, np.datetime64):
            return None if np.isnat(held) else _clipped(_numpy_instant(held))
        if isinstance(held, dt.datetime):
            return _clipped(_python_instant(held))
        if isinstance(held, dt.date):
            return (held.toordinal() - EPOCH.toordinal()) * DAY
    return None


def _python_instant(value: dt.datetime) -> int:
    offset = value.utcoffset() or dt.timedelta(0)
    return (value.replace(tzinfo=None) - EPOCH - offset) // dt.timedelta(microseconds=1)


def _numpy_instant(value: np.datetime64) -> int:
    unit, step = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        value = value.astype("datetime64[D]")
        unit, step = "D", 1
    ticks = int(value.astype(np.int64)) * step
    return ticks * _LENGTHS[unit] if unit in _LENGTHS else ticks // _FINER[unit]


def _clipped(microseconds: int) -> int:
    return max(min(microseconds, _FARTHEST), -_FARTHEST)
