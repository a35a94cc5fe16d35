"""Dates and times: each cell is read alone, as Python reads it, whatever holds it; nothing raises."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adumbra.data.cells import array_column, pandas_column, read_cells
from adumbra.data.columns import fill_column, fill_values
from adumbra.data.encode import Encoder
from adumbra.data.opening import open_source
from adumbra.errors import InvalidInput
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema
from adumbra.schema.times import instant_of

KINDS = {
    Kind.DATE: Column(name="x", kind=Kind.DATE, lower="1700-01-01", upper="2200-01-01", missing="null"),
    Kind.DATETIME: Column(
        name="x", kind=Kind.DATETIME, lower="1700-01-01", upper="2200-01-01", missing="null"
    ),
}
TIMES = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2300, 1, 1))  # noqa: DTZ001  (no zone)
ZONES = st.none() | st.integers(-1439, 1439).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))


def read(column, array):
    out = np.empty(len(array))
    pieces = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    fill_column(column, pa.concat_arrays(pieces), out)
    return out.tolist()


def wanted(column, value):
    found = instant_of(column.kind, value)
    return column.fill if found is None else float(np.clip(found, *column.limits))


@pytest.mark.parametrize("kind", list(KINDS))
@settings(deadline=None)  # the first call loads time zones
@given(st.lists(st.tuples(TIMES, ZONES), min_size=1, max_size=8))
def test_every_holder_of_a_time_says_the_same(kind, pairs):
    column = KINDS[kind]
    times = [time.replace(tzinfo=zone) for time, zone in pairs]
    expected = [wanted(column, time) for time in times]
    assert read(column, read_cells(times)) == expected
    texts = [time.isoformat(sep=" ") for time in times]
    assert [wanted(column, text) for text in texts] == expected
    assert read(column, pa.array(texts)) == expected
    assert read(column, pa.array([f"  {text}\t" for text in texts], pa.large_binary())) == expected
    assert read(column, pandas_column(pd.Series(times, dtype=object))) == expected
    assert read(column, pandas_column(pd.Series(texts, dtype="string"))) == expected
    plain = [time for time, _ in pairs]
    expected = [wanted(column, time) for time in plain]
    assert read(column, pandas_column(pd.Series(plain, dtype="datetime64[us]"))) == expected
    assert read(column, pl.Series(plain).to_arrow()) == expected
    assert read(column, array_column(np.array(plain, dtype=object))) == expected
    zoned = pd.Series(plain, dtype="datetime64[us]").dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    assert read(column, pandas_column(zoned)) == expected
    days = [wanted(column, time.date()) for time in plain]
    assert read(column, pa.array([time.date() for time in plain])) == days
    assert read(column, pa.array([time.date() for time in plain], pa.date64())) == days
    assert read(column, read_cells([time.date() for time in plain])) == days


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@given(ticks=st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=6))
def test_any_tick_of_any_unit_is_cut_downwards_and_clamped(kind, unit, ticks):
    column, rate = KINDS[kind], {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    exact = [tick * 10**6 // rate for tick in ticks]
    exact = [micros // 86_400_000_000 if kind is Kind.DATE else micros for micros in exact]
    low, high = (int(end) for end in column.limits)
    expected = [float(max(low, min(high, count))) for count in exact]
    assert read(column, pa.array(ticks, pa.timestamp(unit))) == expected
    assert read(column, pa.array(ticks, pa.timestamp(unit, "UTC"))) == expected
    assert read(column, pandas_column(pd.Series(np.array(ticks, f"datetime64[{unit}]")))) == expected
    assert read(column, read_cells([np.datetime64(tick, unit) for tick in ticks])) == expected


@given(st.lists(st.binary(max_size=40) | st.text("0123456789-T:+.Z ", max_size=30), max_size=8))
def test_any_text_reads_alone_and_raises_nothing(texts):
    cells = [text.encode() if isinstance(text, str) else text for text in texts]
    for column in KINDS.values():
        together = read(column, pa.array(cells, pa.binary()))
        assert together == [read(column, pa.array([cell], pa.binary()))[0] for cell in cells]
        for cell, value in zip(cells, together, strict=True):
            text = cell.decode("latin-1").strip(" \t\n\r\v\f")
            assert value == wanted(column, text if text.isascii() else "")


class Odd(dt.datetime):
    def utcoffset(self):
        raise RuntimeError("a foreign clock")


@pytest.mark.parametrize(
    "cell",
    [None, 3, 2.5, True, "x", b"\xff", pd.NaT, np.datetime64("NaT"), dt.timedelta(1), Odd(2020, 1, 1)],
    ids=repr,
)  # fmt: skip
def test_what_is_no_time_is_missing_and_alone(cell):
    day = dt.date(2020, 1, 2)
    for column in KINDS.values():
        given_cells = [day, cell, day]
        expected = [wanted(column, day), column.fill, wanted(column, day)]
        assert read(column, read_cells(given_cells)) == expected
        assert read(column, pandas_column(pd.Series(given_cells, dtype=object))) == expected
    number = Column(name="x", kind=Kind.NUMBER, lower=0, upper=1, missing=0.25)
    assert read(number, read_cells([day, pd.Timestamp(2020, 1, 1)])) == [0.25, 0.25]
    assert read(number, pandas_column(pd.Series([day, None], dtype="datetime64[us]"))) == [0.25, 0.25]


def test_numbers_are_no_dates():
    for column in KINDS.values():
        out = np.array([0.0, 1.0])
        fill_values(column, out, out)
        assert out.tolist() == [column.fill] * 2
        schema = Schema(columns=(column,), unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
        with pytest.raises(InvalidInput, match="is not read from arrays"):
            open_source(np.zeros((3, 1)), schema)
        with pytest.raises(InvalidInput, match="cannot be read as date"):
            open_source(pa.table({"x": [1, 2]}), schema)
        with pytest.raises(InvalidInput, match="declare cast = true"):
            open_source(pa.table({"x": ["2020-01-01"]}), schema)


def test_every_source_reads_the_same_rows(tmp_path):
    columns = (*KINDS.values(), Column(name="r", kind=Kind.ORDINAL, categories=("1", "2", "x")))
    names = ("d", "t", "r")
    columns = tuple(
        Column(**{f: getattr(c, f) for f in ("kind", "lower", "upper", "categories", "missing")}, name=n)
        for c, n in zip(columns, names, strict=True)
    )
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    times = [
        dt.datetime.fromisoformat("2020-01-01T08:30"),
        None,
        dt.datetime.fromisoformat("1999-12-31T23:59:59.000005"),
    ]
    frame = pd.DataFrame({"d": times, "t": times, "r": ["1", "x", None]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = [
        [wanted(columns[0], a or ""), wanted(columns[1], a or ""), b]
        for a, b in zip(times, (0.0, 2.0, 1.0), strict=True)
    ]
    holders = (frame, frame.astype(object), pl.from_pandas(frame), pa.Table.from_pandas(frame))
    for data in (*holders, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        (block,) = open_source(data, schema).batches(4096)
        assert np.asarray(block.values).tolist() == expected


@given(st.lists(st.tuples(TIMES, st.floats(allow_nan=True)), min_size=1, max_size=5), st.booleans())
def test_encoded_rows_stay_within_the_norm_that_proofs_use(cells, centred):
    columns = (
        Column(name="t", kind=Kind.DATETIME, lower="1900-01-01", upper="2100-01-01"),
        Column(name="r", kind=Kind.ORDINAL, categories=("a", "b", "c")),
        Column(name="n", kind=Kind.NUMBER, lower=-1, upper=3),
        Column(name="c", kind=Kind.CATEGORY, categories=("a", "b")),
    )
    schema = Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    table = pa.table(
        {
            "t": [time for time, _ in cells],
            "r": ["abc?"[number % 4] for number in range(len(cells))],
            "n": [number for _, number in cells],
            "c": ["ab"[number % 2] for number in range(len(cells))],
        }
    )
    encoder = Encoder(schema, centred=centred)
    assert encoder.names == ("t", "r", "n", "c=a", "c=b")
    (block,) = open_source(table, schema).batches(4096)
    rows = encoder.encode(block)
    bound = encoder.norm_upper()
    assert bound**2 <= (3 / 4 + 1 if centred else 4) * (1 + 1e-12)
    assert (np.linalg.norm(rows, axis=1) <= bound).all()
    assert np.abs(rows).max() <= 1.0
