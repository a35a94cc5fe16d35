"""What a statistic is: a bounded, exact sum over rows that knows how far one person can move it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from adumbra.numerics import Ints, product_upper
from adumbra.relations import Neighbours, Reach

RowsT_contra = TypeVar("RowsT_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The largest change between neighbours in the statistic's real unit, rounded up."""

    l1: float
    l2: float


class Statistic(Protocol[RowsT_contra]):
    """A commutative monoid over integer arrays: zero, add a block of rows, merge two partial sums."""

    @property
    def exponent(self) -> int:
        """The real value of one unit is 2**exponent."""

    def zero(self) -> Ints:
        """The sum over no rows."""

    def add(self, total: Ints, rows: RowsT_contra) -> Ints:
        """The total with a block's exact sum added in place."""

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """How far a change of one row (or of one element) moves the whole sum.

        Relations of persons have no value here: calibrate by `reach_sensitivity`.
        """


def reach_sensitivity(of_row: Callable[[Neighbours], Sensitivity], reach: Reach) -> Sensitivity:
    """How far one unit moves a sum over rows, from how far one row does.

    row, element          that of the row or element
    add-remove-person     m times that of one row more or less
    replace-person        m times the larger of one row replaced and one row more or less

    Both are reached by m equal rows (persons.proof.md, of this function).
    """
    steps = [of_row(step) for step in reach.steps]
    return Sensitivity(
        l1=product_upper(float(reach.rows), max(step.l1 for step in steps)),
        l2=product_upper(float(reach.rows), max(step.l2 for step in steps)),
    )
