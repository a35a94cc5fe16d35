"""Item sets as bounded sparse rows, and their exact product with a public matrix.

    row      every item of a row of length L weighs z = min(rint(2^15/norm), floor(sqrt(4^15/L))) units,
             so that L z^2 <= 4^15 in integers: the row lies in the unit ball of its norm bound
    element  every item weighs 2^15 units whatever else the row holds: one item more or less is a
             change of 1 in one column

The sparse twin of `bounds.bound_rows` and `bounds.bound_elements`; no dense row is ever made.

Proof       set_rows.proof.md, of `bound_sets`, `bound_set_elements`, `project_sets`.
"""

import math
from dataclasses import dataclass

import numpy as np

from adumbra.data.sources import SetBatch
from adumbra.errors import InvalidInput, require
from adumbra.matrices import ProjectionMatrix
from adumbra.numerics import EXACT, ROW_BITS, Array


@dataclass(frozen=True, slots=True)
class BoundedSets:
    """Item sets with one integer weight a row."""

    batch: SetBatch
    weights: Array  # integers in float64, one per row; an item's real value is weight * 2**-ROW_BITS
    whole_rows: bool  # True: weight^2 * length <= 4^15; False: weight is 2^15 in every row


def bound_sets(batch: SetBatch, norm: float) -> BoundedSets:
    """Weigh rows so that each has at most the norm; long rows are scaled down, none is cut."""
    require(math.isfinite(norm) and norm > 0, f"norm={norm}: must be finite and above 0")
    longest = np.floor(np.sqrt(4**ROW_BITS // np.maximum(batch.lengths, 1)))
    return BoundedSets(batch, np.minimum(np.rint(2.0**ROW_BITS / norm), longest), whole_rows=True)


def bound_set_elements(batch: SetBatch) -> BoundedSets:
    """Weigh every item alike, so that a cell depends on itself alone."""
    return BoundedSets(batch, np.full(len(batch), 2.0**ROW_BITS), whole_rows=False)


def project_sets(sets: BoundedSets, matrix: ProjectionMatrix) -> Array:
    """The exact product, as integers in float64 on 2^-(15+20): sums of matrix rows, then one weight."""
    require(
        sets.batch.width == matrix.n_features,
        f"width={sets.batch.width}: the matrix has {matrix.n_features} rows",
    )
    # of whole rows |z sum_j R_jl| <= sqrt(L) z |R_.l| <= 2^15 |R_.l|
    longest = matrix.longest_column if sets.whole_rows else matrix.largest_column
    if 2.0**ROW_BITS * longest * (1 + 2**-40) >= EXACT:
        raise InvalidInput("matrix: a column is too long for exact products; scale it down")
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and tables need none

    batch = sets.batch
    ones = np.ones(len(batch.indices))
    table = csr_array((ones, batch.indices, batch.indptr), shape=(len(batch), batch.width))
    return np.asarray((table @ matrix.units) * sets.weights[:, None], dtype=np.float64)
