"""Schema values to a matrix of fixed ranges: numbers scaled by their bounds, categories one-hot.

number    (x - lower) / (upper - lower), less 1/2 if centred    in [0, 1] or [-1/2, 1/2], exactly
category  one column a level, 0 or 1                            one 1 in each group
label     apart: class codes, or a numeric target in [-1, 1]
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from adumbra.data.batch import Batch
from adumbra.data.schema import Column, Kind, Schema
from adumbra.errors import require
from adumbra.numerics import Array, Ints, fraction_upper, sqrt_upper


@dataclass(frozen=True, slots=True)
class Encoder:
    """The public map between schema values and encoded columns; the label is no encoded column."""

    schema: Schema
    centred: bool = True
    features: tuple[Column, ...] = field(init=False, repr=False)  # the encoded schema columns, in order
    places: tuple[int, ...] = field(init=False, repr=False)  # where each feature stands in the schema
    starts: tuple[int, ...] = field(init=False, repr=False)  # first encoded column of each feature
    names: tuple[str, ...] = field(init=False, repr=False)  # of the encoded columns
    numeric: tuple[int, ...] = field(init=False, repr=False)  # encoded columns that hold numbers
    groups: tuple[slice, ...] = field(init=False, repr=False)  # encoded columns of each one-hot group

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
                names += [f"{column.name}={level}" for level in level_names(column)]
        derived = {
            "features": features,
            "places": places,
            "starts": tuple(starts),
            "names": tuple(names),
        }
        derived |= {"numeric": tuple(numeric), "groups": tuple(groups)}
        for attribute, value in derived.items():
            object.__setattr__(self, attribute, value)

    @property
    def width(self) -> int:
        """Encoded columns."""
        return len(self.names)

    def norm_upper(self) -> float:
        """A bound of every encoded row's L2 norm: sqrt(p1/4 + p2) if centred, else sqrt(p1 + p2).

        p1 numbers lie in [-1/2, 1/2] (or [0, 1]); each of p2 one-hot groups holds a single 1.
        """
        square = Fraction(len(self.numeric), 4 if self.centred else 1) + len(self.groups)
        return sqrt_upper(fraction_upper(square))

    def encode(self, batch: Batch) -> Array:
        """Rows x width, column by column in memory: each column is scaled in the cache."""
        values = batch.values
        if values.strides[0] > values.strides[1]:
            values = np.asfortranarray(values)
        encoded: Array = np.empty((len(values), self.width), order="F")
        for column, place, start in zip(self.features, self.places, self.starts, strict=True):
            if column.is_numeric:
                scale_number(column, values[:, place], encoded[:, start], centred=self.centred)
            else:
                for level in range(column.levels):
                    np.equal(values[:, place], level, out=encoded[:, start + level], casting="unsafe")
        return encoded

    @property
    def label(self) -> Column | None:
        """The label's declaration."""
        index = self.schema.label_index
        return None if index is None else self.schema.columns[index]

    @property
    def label_levels(self) -> int:
        """Classes of the label: levels, or whole numbers between the bounds of an integer label."""
        column = self._required_label()
        lower, upper = column.limits
        require(
            column.kind is not Kind.NUMBER,
            f"label={column.name!r}: a number has no classes; use it as a target or declare categories",
        )
        return int(upper - lower) + 1

    def labels(self, batch: Batch) -> Ints:
        """Class codes 0 ... label_levels - 1 of each row."""
        column = self._required_label()
        require(self.label_levels >= 1, "label: has no classes")
        codes = self._label_values(batch) - column.limits[0]
        return codes.astype(np.int64)

    def targets(self, batch: Batch) -> Array:
        """The label scaled to [-1, 1] by its bounds or codes."""
        column = self._required_label()
        scaled = np.empty(len(batch))
        scale_number(column, self._label_values(batch), scaled, centred=True)
        scaled *= 2.0
        return scaled

    def _required_label(self) -> Column:
        column = self.label
        require(column is not None, "label is absent: declare one in the schema's [table]")
        assert column is not None  # noqa: S101  (for mypy; `require` raised)
        return column

    def _label_values(self, batch: Batch) -> Array:
        index = self.schema.label_index
        values: Array = batch.values[:, index or 0]
        return values


def level_names(column: Column) -> tuple[str, ...]:
    """The levels of a category or boolean column as text; the category of its own has an empty name."""
    if column.kind is Kind.BOOLEAN:
        return ("false", "true")
    own = ("",) if column.levels > len(column.categories) else ()
    return column.categories + own


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
    if column.kind is Kind.INTEGER:
        values = np.rint(values)
    return np.where(np.isnan(values), column.fill, values)
