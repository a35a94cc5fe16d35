"""What a statistic is: a bounded, exact sum over rows that knows how far one person can move it."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from adumbra.numerics import Ints
from adumbra.relations import Neighbours

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
        """How far one unit of privacy moves the whole sum."""
