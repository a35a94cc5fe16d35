"""What every table of the utility benchmark is made with: a schema by row, and one split."""

import numpy as np
import pyarrow as pa

from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema

FEW = 12  # distinct values up to which a column of numbers is one of codes
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def schema_of(columns, label, neighbours=REPLACE):
    return Schema(columns=tuple(columns), unit=Unit.ROW, neighbours=neighbours, label=label)


def split(table, seed=0, share=0.2):
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(table.num_rows * (1 - share))
    return table.take(pa.array(order[:cut])), table.take(pa.array(order[cut:]))
