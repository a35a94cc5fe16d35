"""NOT FOR RELEASE: total variation of one-way marginals between two tables of one schema.

    TV = 1/2 sum |p - q|          numbers in 16 equal bins between their declared bounds

The comparison reads private rows: its figures are for the steward's desk.
"""

import numpy as np
import pyarrow as pa

from adumbra.data.opening import open_source
from adumbra.data.sources import Batch
from adumbra.errors import require
from adumbra.numerics import NOISE_BLOCK, Array, Ints
from adumbra.schema.schema import Column, Schema

STAMP = "NOT FOR RELEASE"
BINS = 16


def schema_values(table: pa.Table, schema: Schema) -> Array:
    """A table as numbers and codes, the way a release reads it."""
    source = open_source(table, schema.by_row())
    parts = [block.values for block in source.batches(NOISE_BLOCK) if isinstance(block, Batch)]
    return np.concatenate([np.empty((0, schema.width)), *parts])


def table_codes(table: pa.Table, schema: Schema) -> Ints:
    """Every column as codes: levels, or the bin of a number."""
    require(schema.items is None, "items: give a table of columns; one-way measures need columns")
    values = schema_values(table, schema)
    return np.stack([column_codes(c, values[:, i]) for i, c in enumerate(schema.columns)], axis=1)


def column_codes(column: Column, values: Array) -> Ints:
    """One column as codes; what is missing, where the schema keeps it, has a code of its own."""
    if not column.is_numeric:
        return values.astype(np.int64)
    lower, upper = column.limits
    bins = np.clip(((values - lower) / (upper - lower) * BINS).astype(np.int64), 0, BINS - 1)
    return np.where(values > upper, BINS, bins)  # missing ones, where the schema keeps them


def total_variation(left: Ints, right: Ints) -> float:
    """The total variation of the distributions of two code columns."""
    size = int(max(left.max(initial=0), right.max(initial=0))) + 1
    p = np.bincount(left, minlength=size) / max(len(left), 1)
    q = np.bincount(right, minlength=size) / max(len(right), 1)
    return float(np.abs(p - q).sum() / 2.0)


def one_way(left: Ints, right: Ints) -> float:
    """The mean total variation over columns."""
    return float(np.mean([total_variation(left[:, j], right[:, j]) for j in range(left.shape[1])]))
