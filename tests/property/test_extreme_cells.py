"""No cell makes numpy warn where rows are bounded and watched: a warning would tell of the cell."""

import math

import numpy as np
import pytest

from adumbra.data.bounds import bound_elements, bound_rows, clip_projected
from adumbra.data.opening import open_source
from adumbra.data.sources import WatchedSource
from adumbra.errors import InvalidInput
from adumbra.privacy.fingerprint import Fingerprint
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema

TINY, LARGE = 5e-324, 1.7e308
CELLS = (
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    TINY,
    2.3e-308,
    1e-160,
    1e160,
    LARGE,
    -LARGE,
    math.inf,
    -math.inf,
    math.nan,
)
NORMS = (1e-305, 1e-308, TINY, 1e-160, 1.0, 1e160, 1e300, LARGE)


def tables(width):
    """Rows of one extreme cell, of all pairs of them, and of none."""
    rows = [np.full(width, cell) for cell in CELLS]
    for one in CELLS:
        rows += [np.resize([one, other], width) for other in CELLS[::3]]
    yield np.array(rows)
    yield np.zeros((3, width))
    for cell in CELLS[5::2]:
        lone = np.zeros((3, width))
        lone[1, 0] = cell
        yield lone


@pytest.mark.parametrize("norm", NORMS)
def test_no_float_makes_the_bounds_warn(norm):
    for values in tables(5):
        try:
            rows = bound_rows(values, norm)
        except InvalidInput:
            continue  # of the norm
        assert all(sum(int(u) ** 2 for u in row) <= rows.limit for row in rows.units)
        assert np.abs(bound_elements(values).units).max() <= 2**14
        clip_projected(np.nan_to_num(np.rint(values), posinf=2.0**53, neginf=-(2.0**53)), -35, 1.0)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, TINY), (-1e-305, 1e-305), (-8e307, 8e307)])
def test_no_cell_makes_the_fingerprint_warn(bounds):
    schema = Schema.numeric(3, *bounds, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)
    for values in tables(3):
        source = WatchedSource(open_source(values, schema))
        fingerprint = Fingerprint(b"key", source.watched_columns)
        source.watch(fingerprint.update)
        assert sum(len(batch) for batch in source.batches(4096)) == len(values)
        assert fingerprint.digest().endswith(f"{len(values):016x}")
