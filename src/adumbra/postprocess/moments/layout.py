"""The cells of a moments release: which histogram a column has, from schema and card.

Whoever sums rows and whoever reads released counts use these functions. The two choices that they take
(`is_binned`, `parts`) are facts of the card: the rules that choose may change, old cards stay readable.
"""

import math

import numpy as np

from adumbra.errors import InvalidInput, require
from adumbra.numerics import Array
from adumbra.postprocess.moments.design import Feature
from adumbra.schema.schema import Column, Kind, Schema

MOST_CLASSES = 64  # a label with more levels is an ordinary column
FINE_CELLS = 32  # equal cells of a number that is cut into bins


def label_of(schema: Schema) -> tuple[int | None, int]:
    """The label column if it has classes, and how many; a numeric target is an ordinary column."""
    index = schema.label_index
    if index is None:
        return None, 1
    column = schema.columns[index]
    lower, upper = column.limits
    levels = upper - lower + 1.0
    if column.kind is Kind.NUMBER or levels > MOST_CLASSES:
        return None, 1
    require(not column.keeps_null, f"label {column.name!r}, missing='null': a class cannot be missing")
    return index, int(levels)


def features_of(
    schema: Schema, label: int | None, *, is_binned: bool, parts: int
) -> tuple[Feature, ...]:
    """What is measured of each column; `parts` are the equal cells of a number."""
    if schema.items is not None:
        return tuple(
            Feature(name=str(i + schema.items.lower), index=i, cells=2, edges=None, is_levels=False)
            for i in range(schema.items.width)
        )
    own = [(index, column) for index, column in enumerate(schema.columns) if index != label]
    columns = tuple(_feature(column, index, parts, is_binned) for index, column in own)
    return columns + tuple(_flag(column, index) for index, column in own if column.keeps_null)


def _flag(column: Column, index: int) -> Feature:
    """Whether a number is missing, as a column of its own."""
    name = f"{column.name} is missing"
    return Feature(
        name=name,
        index=index,
        cells=2,
        edges=None,
        is_levels=False,
        missing=column.fill,
        is_flag=True,
    )


def _feature(column: Column, index: int, parts: int, is_binned: bool) -> Feature:
    """How a column is measured: a number by cells, a pair of levels as a number, more levels one-hot."""
    if not column.is_numeric:
        return Feature(
            name=column.name, index=index, cells=column.levels, edges=None, is_levels=column.levels > 2
        )
    is_integer = column.kind is Kind.INTEGER
    lower, upper = column.limits
    edges = number_edges(lower, upper, parts, is_integer=is_integer, is_fine=is_binned)
    return Feature(
        name=column.name,
        index=index,
        cells=len(edges) - 1,
        edges=edges,
        is_levels=is_binned and len(edges) > 3,
        missing=column.fill if column.keeps_null else None,
        is_integer=is_integer,
        lower=lower,
        upper=upper,
    )


def number_edges(lower: float, upper: float, parts: int, *, is_integer: bool, is_fine: bool) -> Array:
    """Cells of a number: its two bounds apart (many columns pile up there), equal widths between.

    Fine cells add powers of two from the lower bound on, where amounts of money crowd. An integer with
    few values has one cell a value.
    """
    width = upper - lower
    if width <= 0:
        raise InvalidInput(f"lower={lower}, upper={upper}: a number needs lower below upper")
    if is_integer and width < (128 if is_fine else 2 * parts):
        return np.arange(lower, upper + 2.0) - 0.5
    inner = lower + width * np.arange(1, parts) / parts
    if is_fine:
        inner = np.union1d(inner, lower + width * 2.0 ** (-np.arange(1, 21) / 2.0))
    if is_integer:
        first, last = np.array([lower - 0.5, lower + 0.5]), np.array([upper - 0.5, upper + 0.5])
        inner = inner[(inner > lower + 1.0) & (inner < upper - 1.0)]
    else:
        first = np.array([lower, np.nextafter(lower, upper)])
        last = np.array([upper, np.nextafter(upper, math.inf)])
        inner = inner[(inner > first[1]) & (inner < upper)]
    return np.concatenate((first, inner, last))
