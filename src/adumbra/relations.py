"""What one guarantee protects: the unit of privacy and the neighbour relation.

Below `data` and `privacy` alike, because a schema declares the pair and a guarantee carries it.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from adumbra.errors import Unsupported, require


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

    rows_are_public: bool  # whether the number of rows may be shown

    def __init__(self, word: str) -> None:
        self.rows_are_public = word in ("replace-one", "one-element")

    @property
    def row_steps(self) -> "tuple[Neighbours, ...]":
        """The changes of one row of which a change of one unit consists (persons.proof.md, L1)."""
        if self is Neighbours.REPLACE_PERSON:
            return Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
        return (Neighbours.ADD_REMOVE,) if self is Neighbours.ADD_REMOVE_PERSON else (self,)


class Moved(StrEnum):
    """What moves by at most a declared amount."""

    CELL = "cell-moves"
    ROW = "row-moves"  # in L2


@dataclass(frozen=True, slots=True)
class Moves:
    """One cell, or one row in L2, moves by at most an amount in the units of its columns; n is public.

    It is measured on values as read: missing ones filled, clipped to their bounds, whole numbers
    rounded. The amount is part of the relation, so unequal amounts are unlike relations and never add.
    """

    what: Moved
    amount: float
    rows_are_public: ClassVar[bool] = True  # whether the number of rows may be shown

    def __post_init__(self) -> None:
        amount = self.amount
        is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
        least, most = AMOUNTS
        require(
            is_number and math.isfinite(amount) and least <= amount <= most,
            f"amount={amount!r}: must be a number from {least:g} to {most:g}, in the columns' units",
        )
        object.__setattr__(self, "amount", float(amount))

    def __str__(self) -> str:
        """As ledgers and cards write it: word and amount."""
        return f"{self.what} {self.amount!r}"

    @property
    def figure(self) -> str:
        """The amount for people, exactly."""
        return repr(self.amount).removesuffix(".0")


AMOUNTS = (1e-60, 1e60)
Relation = Neighbours | Moves
LEGAL_PAIRS = (
    (Unit.ROW, Neighbours.REPLACE_ONE),
    (Unit.ROW, Neighbours.ADD_REMOVE),
    (Unit.ELEMENT, Neighbours.ONE_ELEMENT),
    (Unit.PERSON, Neighbours.REPLACE_PERSON),
    (Unit.PERSON, Neighbours.ADD_REMOVE_PERSON),
    (Unit.ELEMENT, Moved.CELL),
    (Unit.ROW, Moved.ROW),
)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one unit reaches into a sum over rows: its relation, and how many rows it may move."""

    neighbours: Neighbours
    rows: int = 1  # 1, or the declared bound of a person
    # A change of one unit is at most `rows` changes of these kinds, of one row each.
    steps: tuple[Neighbours, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", self.neighbours.row_steps)


def relation_of(text: str) -> Relation:
    """The relation that `str` wrote so, letter by letter; anything else raises ValueError."""
    word, _, amount = text.partition(" ")
    if word not in tuple(Moved):
        return Neighbours(text)
    found = Moves(Moved(word), float(amount))
    require(str(found) == text, f"{text!r}: is not a relation; write the amount as {found.amount!r}")
    return found


def relation_named(word: str, amount: float | None) -> Relation:
    """The relation of a word, with the amount that it needs or that it must not have."""
    if word in tuple(Moved):
        require(amount is not None, f"amount is absent: {word} needs one, in the columns' units")
        return Moves(Moved(word), amount)  # type: ignore[arg-type]  # it is there
    require(amount is None, f"amount={amount}: {word} has none; leave it out")
    return Neighbours(word)


def word_of(relation: Relation) -> Neighbours | Moved:
    """The relation without its amount."""
    return relation.what if isinstance(relation, Moves) else relation


def is_legal(unit: Unit, relation: Relation) -> bool:
    """Whether some mechanism has a proof for the pair."""
    return (unit, word_of(relation)) in LEGAL_PAIRS


def require_legal(unit: Unit, neighbours: Relation) -> None:
    """Refuse a pair for which no mechanism has a proof."""
    if not is_legal(unit, neighbours):
        legal = ", ".join(f"{u}/{r}" for u, r in LEGAL_PAIRS)
        message = f"unit={unit}, neighbours={neighbours}: not a legal pair; use one of {legal}"
        raise Unsupported(message)
