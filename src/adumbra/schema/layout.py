"""The public layout of encoded rows: numbers scaled by their bounds, categories one-hot.

number    (x - lower) / (upper - lower), less 1/2 if centred    in [0, 1] or [-1/2, 1/2], exactly;
          dates, times and the codes of ordered levels are numbers, too
category  one column per level, 0 or 1                            one 1 in each group
label     apart: class codes, or a numeric target in [-1, 1]
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from adumbra.errors import require
from adumbra.numerics import Array, few_columns, fraction_upper, sqrt_upper
from adumbra.schema.schema import Column, Kind, Schema


@dataclass(frozen=True, slots=True, eq=False)
class NumberRun:
    """Neighbouring columns of numbers, which are scaled together: a call per column costs as much."""

    columns: tuple[Column, ...]
    places: slice  # in the schema
    starts: slice  # among encoded columns
    centred: bool
    lower: Array = field(init=False, repr=False)
    widths: Array = field(init=False, repr=False)
    is_even: NDArray[np.bool_] = field(init=False, repr=False)  # scaled by a division alone

    def __post_init__(self) -> None:
        lower, upper = np.array([column.limits for column in self.columns]).T
        derived = {"lower": lower, "widths": upper - lower}
        derived["is_even"] = (lower == -upper) & self.centred
        for attribute, value in derived.items():
            object.__setattr__(self, attribute, value)

    def scale(self, values: Array, out: Array) -> None:
        """`scale_number` of all, a few at a time."""
        for few in few_columns(*values.shape):
            even = int(np.count_nonzero(self.is_even[few]))
            if even == few.stop - few.start:
                np.divide(values[:, few], self.widths[few], out=out[:, few])
            elif even:
                for at in range(few.start, few.stop):
                    scale_number(self.columns[at], values[:, at], out[:, at], centred=self.centred)
            else:
                part = np.subtract(values[:, few], self.lower[few], out=out[:, few])
                part /= self.widths[few]
                if self.centred:
                    part -= 0.5


@dataclass(frozen=True, slots=True)
class Layout:
    """Which encoded columns stand for which schema columns; the label is not encoded."""

    schema: Schema
    centred: bool = True
    features: tuple[Column, ...] = field(init=False, repr=False)  # the encoded schema columns, in order
    places: tuple[int, ...] = field(init=False, repr=False)  # where each feature stands in the schema
    starts: tuple[int, ...] = field(init=False, repr=False)  # first encoded column of each feature
    names: tuple[str, ...] = field(init=False, repr=False)  # of the encoded columns
    numeric: tuple[int, ...] = field(init=False, repr=False)  # encoded columns that hold numbers
    groups: tuple[slice, ...] = field(init=False, repr=False)  # encoded columns of each one-hot group
    runs: tuple[NumberRun, ...] = field(init=False, repr=False, compare=False)  # of numbers
    width: int = field(init=False, repr=False, compare=False)  # encoded columns
    label: Column | None = field(init=False, repr=False, compare=False)  # the label's declaration

    def __post_init__(self) -> None:
        self.schema.require_closed()
        require(
            self.schema.items is None,
            "items: item sets are counted, not encoded; use a table of columns",
        )
        listed = enumerate(self.schema.columns)
        places = tuple(place for place, column in listed if column.name != self.schema.label)
        features = tuple(self.schema.columns[place] for place in places)
        require(bool(features), "columns: the label is the only one; declare a column to encode")
        names: list[str] = []
        starts, numeric, groups = [], [], []
        for column in features:
            starts.append(len(names))
            if column.is_numeric:
                numeric.append(len(names))
                names.append(column.name)
            else:
                groups.append(slice(len(names), len(names) + column.levels))
                names += [f"{column.name}={level}" for level in column.level_names]
        derived: dict[str, object] = {
            "features": features,
            "places": places,
            "starts": tuple(starts),
            "names": tuple(names),
        }
        derived |= {"numeric": tuple(numeric), "groups": tuple(groups), "width": len(names)}
        index = self.schema.label_index
        derived["label"] = None if index is None else self.schema.columns[index]
        for attribute, value in derived.items():
            object.__setattr__(self, attribute, value)
        object.__setattr__(self, "runs", tuple(self._runs()))

    def _runs(self) -> Iterator[NumberRun]:
        """Features that are numbers and neighbours in the schema."""
        first, features, places = 0, self.features, self.places
        for at in range(1, len(features) + 1):
            is_next = at < len(features) and places[at] == places[at - 1] + 1
            if is_next and features[at].is_numeric == features[at - 1].is_numeric:
                continue
            if features[first].is_numeric:
                begins = places[first], self.starts[first]
                own, encoded = (slice(one, one + at - first) for one in begins)
                yield NumberRun(features[first:at], own, encoded, self.centred)
            first = at

    def norm_upper(self) -> float:
        """A bound of every encoded row's L2 norm: sqrt(p1/4 + p2) if centred, else sqrt(p1 + p2).

        p1 numbers lie in [-1/2, 1/2] (or [0, 1]); each of p2 one-hot groups holds a single 1.
        """
        square = Fraction(len(self.numeric), 4 if self.centred else 1) + len(self.groups)
        return sqrt_upper(fraction_upper(square))

    @property
    def label_levels(self) -> int:
        """Classes of the label: levels, or whole numbers between the bounds of an integer label."""
        column = self.required_label()
        lower, upper = column.limits
        require(
            column.kind is not Kind.NUMBER,
            f"label={column.name!r}: a number has no classes; use it as a target or declare categories",
        )
        return int(upper - lower) + 1

    def required_label(self) -> Column:
        """The label's declaration; raises where there is none."""
        column = self.label
        require(column is not None, "label is absent: declare one in the schema's [table]")
        assert column is not None  # noqa: S101  (for mypy; `require` raised)
        return column


def scale_number(column: Column, values: Array, out: Array, *, centred: bool) -> None:
    """Write (x - lower) / width, less 1/2 if centred.

    For lower <= x <= upper the result stays within [0, 1], since rounding is monotone and
    fl(upper - lower) is the divisor itself; with lower = -upper, x / (2 upper) is the same to rounding.
    """
    lower, upper = column.limits
    if centred and lower == -upper:
        np.divide(values, upper - lower, out=out)
        return
    np.subtract(values, lower, out=out)
    np.divide(out, upper - lower, out=out)
    if centred:
        np.subtract(out, 0.5, out=out)


def unscale_number(column: Column, encoded: Array, *, centred: bool) -> Array:
    """Encoded numbers back in the column's own unit, clipped to its bounds; NaN becomes missing."""
    lower, upper = column.limits
    values = encoded + 0.5 if centred else encoded
    values = np.clip(values * (upper - lower) + lower, lower, upper)
    if column.is_whole:
        values = np.rint(values)
    return np.where(np.isnan(values), column.fill, values)
