"""How long the rows of item sets are: an exact histogram, and the tail that the length scan asks about.

    h_m = #{i : |t_i| = m}, m = 0..L, and h_(L+1) = #{i : |t_i| > L};   g(m) = #{i : |t_i| > m}, m = 1..L

Proof       lengths.proof.md, of `LengthHistogram.sensitivity` and `tail_counts`.
"""

from dataclasses import dataclass

import numpy as np

from adumbra.errors import Unsupported, require
from adumbra.numerics import Ints, sqrt_upper
from adumbra.relations import Neighbours
from adumbra.statistics.base import Sensitivity
from adumbra.statistics.counts import ItemRows


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthHistogram:
    """Rows of 0, 1, ..., `longest` items, and of more."""

    longest: int

    def __post_init__(self) -> None:
        require(self.longest >= 1, f"longest={self.longest}: must be at least 1")

    @property
    def exponent(self) -> int:
        """Whole numbers."""
        return 0

    def zero(self) -> Ints:
        """No rows."""
        return np.zeros(self.longest + 2, np.int64)

    def add(self, total: Ints, rows: ItemRows) -> Ints:
        """Add a block's histogram in place."""
        total += np.bincount(np.minimum(rows.lengths, self.longest + 1), minlength=self.longest + 2)
        return total

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """One row is in one bin (add-remove); or it leaves one and enters another (replace-one)."""
        if neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(l1=1.0, l2=1.0)
        if neighbours is Neighbours.REPLACE_ONE:
            return Sensitivity(l1=2.0, l2=sqrt_upper(2.0))
        raise Unsupported(f"neighbours={neighbours}: lengths are per row; use add-remove or replace-one")


def tail_counts(histogram: Ints) -> Ints:
    """g(1), ..., g(L) of a histogram: rows longer than each length.

    One row moves all of them by 0 or +1, or all of them by 0 or -1: under add-remove as well as under
    replace-one, where the longer of the two rows decides the sign.
    """
    longer = np.cumsum(histogram[::-1])[::-1]  # rows of at least m items
    return np.ascontiguousarray(longer[2:])
