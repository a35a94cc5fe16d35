"""What one guarantee protects: the unit of privacy and the neighbour relation.

Below `data` and `privacy` alike, because a schema declares the pair and a guarantee carries it.
"""

from enum import StrEnum

from adumbra.errors import Unsupported


class Unit(StrEnum):
    """Whose change is hidden."""

    ROW = "row"
    ELEMENT = "element"


class Neighbours(StrEnum):
    """Which two tables must look alike."""

    REPLACE_ONE = "replace-one"  # one row becomes another; the number of rows is public
    ADD_REMOVE = "add-remove"  # one row more or less; the number of rows is private
    # one cell changes within its column's bounds, or one row of item sets holds one item more or less
    # (an exchange is two such changes); n is public
    ONE_ELEMENT = "one-element"

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be shown."""
        return self is not Neighbours.ADD_REMOVE


LEGAL_PAIRS = (
    (Unit.ROW, Neighbours.REPLACE_ONE),
    (Unit.ROW, Neighbours.ADD_REMOVE),
    (Unit.ELEMENT, Neighbours.ONE_ELEMENT),
)


def require_legal(unit: Unit, neighbours: Neighbours) -> None:
    """Refuse a pair for which no mechanism has a proof."""
    if (unit, neighbours) not in LEGAL_PAIRS:
        legal = ", ".join(f"{u}/{r}" for u, r in LEGAL_PAIRS)
        message = f"unit={unit}, neighbours={neighbours}: not a legal pair; use one of {legal}"
        raise Unsupported(message)
