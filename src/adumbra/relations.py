"""What one guarantee protects: the unit of privacy and the neighbour relation.

Below `data` and `privacy` alike, because a schema declares the pair and a guarantee carries it.
"""

from dataclasses import dataclass
from enum import StrEnum

from adumbra.errors import Unsupported


class Unit(StrEnum):
    """Whose change is hidden."""

    ROW = "row"
    ELEMENT = "element"
    PERSON = "person"  # all rows that carry one id


class Neighbours(StrEnum):
    """Which two tables must look alike."""

    REPLACE_ONE = "replace-one"  # one row becomes another; the number of rows is public
    ADD_REMOVE = "add-remove"  # one row more or less; the number of rows is private
    # one cell changes within its column's bounds, or one row of item sets holds one item more or less
    # (an exchange is two such changes); n is public
    ONE_ELEMENT = "one-element"
    # all rows of one person become those of another, whose number may differ; or one person more or
    # less: the number of rows is private in both
    REPLACE_PERSON = "replace-person"
    ADD_REMOVE_PERSON = "add-remove-person"

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be shown."""
        return self in (Neighbours.REPLACE_ONE, Neighbours.ONE_ELEMENT)

    @property
    def row_steps(self) -> "tuple[Neighbours, ...]":
        """The changes of one row of which a change of one unit consists (persons.proof.md, L1)."""
        if self is Neighbours.REPLACE_PERSON:
            return Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
        return (Neighbours.ADD_REMOVE,) if self is Neighbours.ADD_REMOVE_PERSON else (self,)


LEGAL_PAIRS = (
    (Unit.ROW, Neighbours.REPLACE_ONE),
    (Unit.ROW, Neighbours.ADD_REMOVE),
    (Unit.ELEMENT, Neighbours.ONE_ELEMENT),
    (Unit.PERSON, Neighbours.REPLACE_PERSON),
    (Unit.PERSON, Neighbours.ADD_REMOVE_PERSON),
)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one unit reaches into a sum over rows: its relation, and how many rows it may move."""

    neighbours: Neighbours
    rows: int = 1  # 1, or the declared bound of a person

    @property
    def steps(self) -> tuple[Neighbours, ...]:
        """A change of one unit is at most `rows` changes of these kinds, of one row each."""
        return self.neighbours.row_steps


def require_legal(unit: Unit, neighbours: Neighbours) -> None:
    """Refuse a pair for which no mechanism has a proof."""
    if (unit, neighbours) not in LEGAL_PAIRS:
        legal = ", ".join(f"{u}/{r}" for u, r in LEGAL_PAIRS)
        message = f"unit={unit}, neighbours={neighbours}: not a legal pair; use one of {legal}"
        raise Unsupported(message)
