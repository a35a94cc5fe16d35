"""Columns of synthetic rows that are computed from the declared ones: maps, cuts and sums."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adumbra.numerics import Array, Ints
from adumbra.schema.conditions import Mask, can_be_missing, compile_condition
from adumbra.schema.row_rules import CUT, MAP, Derived
from adumbra.schema.schema import Column, Kind


def derived_array(derived: Derived, sources: Sequence[tuple[Column, Array]]) -> pa.Array:
    """The computed column of rows; missing where a source is, or where a map says nothing."""
    missing = np.zeros(len(sources[0][1]), bool)
    for column, values in sources:
        if can_be_missing(column):
            missing |= values == column.fill
    if derived.form == MAP:
        return _mapped(derived, *sources[0])
    if derived.form == CUT:
        cells = np.searchsorted(derived.points(sources[0][0]), sources[0][1], side="right")
        return _named(cells, derived.labels, missing) if derived.labels else _whole(cells, missing)
    times = derived.times or (1,) * len(sources)
    total = np.zeros(len(missing))
    for factor, (_, values) in zip(times, sources, strict=True):
        total += factor * np.where(missing, 0.0, values)
    is_whole = all(c.is_whole for c, _ in sources) and all(f == int(f) for f in times)
    return _whole(total, missing) if is_whole else pa.array(total, mask=missing)


def _mapped(derived: Derived, column: Column, values: Array) -> pa.Array:
    fill = column.fill if can_be_missing(column) else None
    places = np.full(len(values), -1)
    for place, (_, condition) in enumerate(derived.values):
        places[compile_condition(condition, column).holds(values, fill)] = place
    outputs = tuple(output for output, _ in derived.values)
    if derived.kind is Kind.INTEGER:
        return _whole(np.array([int(output) for output in outputs])[places], places < 0)
    return _named(places, outputs, places < 0)


def _named(places: Ints, names: Sequence[str], missing: Mask) -> pa.Array:
    indices = pa.array(places.astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, type=pa.string()))


def _whole(values: Array | Ints, missing: Mask) -> pa.Array:
    return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
