"""What each neighbour relation protects, in the words of cards and pages."""

from dataclasses import dataclass

from adumbra.relations import Moved, Moves, Neighbours, Relation

FORMATS = FIRST_FORMAT, FORMAT = "adumbra-release/1", "adumbra-release/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One relation in words."""

    protects: str
    attacker: str
    hides: str
    headline: str


WORDS = {
    Neighbours.REPLACE_ONE: Words(
        protects=(
            "One whole row is protected: the release would look nearly the same had any one row been "
            "any other. The number of rows is public."
        ),
        attacker=(
            "Picture an attacker who knows every row but one, and who hesitates evenly between two "
            "candidates for it"
        ),
        hides="one row replaced",
        headline=(
            "Torn between two equally likely candidates for one row, an attacker picks the right one"
        ),
    ),
    Neighbours.ADD_REMOVE: Words(
        protects=(
            "One whole row is protected, its presence too: the release would look nearly the same had "
            "any one row been left out or added. The number of rows is private."
        ),
        attacker=(
            "Picture an attacker who knows every other row, and who wonders at even odds whether one "
            "more row is in the table"
        ),
        hides="one row more or less",
        headline="At even odds whether one row is in the table, an attacker is right",
    ),
    Neighbours.ONE_ELEMENT: Words(
        protects=(
            "One single value is protected: the release would look nearly the same had any one cell "
            "held any other value within its column's bounds. A whole row, which is many values, is "
            "protected less. The number of rows is public."
        ),
        attacker=(
            "Picture an attacker who knows every value but one, and who hesitates evenly between two "
            "candidates for it"
        ),
        hides="one value replaced",
        headline=(
            "Torn between two equally likely candidates for one value, an attacker picks the right one"
        ),
    ),
    Neighbours.REPLACE_PERSON: Words(
        protects=(
            "One whole person is protected, with all their rows: the release would look nearly the same "
            "had any one person been any other. Of each person at most max_rows_per_person rows are "
            "used, or more that weigh as much. The number of rows is private. A person is all rows of "
            "one id; people who share an id count as one person, and for one of them alone the promise "
            "is up to twice as weak."
        ),
        attacker=(
            "Picture an attacker who knows all rows of every person but one, and who hesitates evenly "
            "between two candidates for that person, each with all their rows"
        ),
        hides="one person with all their rows replaced",
        headline=(
            "Torn between two equally likely candidates for one person with all their rows, an attacker "
            "picks the right one"
        ),
    ),
    Neighbours.ADD_REMOVE_PERSON: Words(
        protects=(
            "One whole person is protected, with all their rows, their presence too: the release would "
            "look nearly the same had any one person been left out or added. Of each person at most "
            "max_rows_per_person rows are used, or more that weigh as much. The numbers of persons and "
            "of rows are private. A person is all rows of one id; people who share an id count as one "
            "person, and for one of them alone the promise is up to twice as weak."
        ),
        attacker=(
            "Picture an attacker who knows all rows of every other person, and who wonders at even odds "
            "whether one more person, with all their rows, is in the table"
        ),
        hides="one person with all their rows more or less",
        headline=(
            "At even odds whether one person with all their rows is in the table, an attacker is right"
        ),
    ),
}
ONE_ITEM = Words(
    protects=(
        "One item of one row is protected: the release would look nearly the same had any one row held "
        "one item more or one item less. An exchange of one item for another is two such changes, and "
        "is protected less, as is a whole row. The number of rows is public."
    ),
    attacker=(
        "Picture an attacker who knows every row except whether one of them holds one item, and who "
        "gives that even odds"
    ),
    hides="one item more or less in one row",
    headline="At even odds whether one row holds one item, an attacker is right",
)
MEASURED = (
    "It is measured in the columns' own units, on values as read: missing ones filled, clipped to their "
    "bounds, whole numbers rounded. The number of rows is public."
)


def moves_words(relation: Moves) -> Words:
    """The words of a small change: how large it is, and that no larger one is promised."""
    amount = relation.figure
    apart = f"that are at most {amount} apart"
    if relation.what is Moved.CELL:
        thing, hides = "value", f"a change of at most {amount} in one cell, not any change"
        alike = f"any one cell held a value at most {amount} away"
        larger = "A larger change of a cell, or a change of several cells, is protected less."
    else:
        thing, apart = "row", f"{apart} in L2"
        hides = f"a change of one row by at most {amount} in L2, not any change"
        alike = f"any one row been another at most {amount} away in L2"
        larger = "A larger change of a row, or a change of several rows, is protected less."
    return Words(
        protects=(
            f"A small change is protected: the release would look nearly the same had {alike}. It hides "
            f"{hides}. {larger} {MEASURED}"
        ),
        attacker=(
            f"Picture an attacker who knows every {thing} but one, and who hesitates evenly between two "
            f"candidates for it {apart}"
        ),
        hides=hides,
        headline=(
            f"Torn between two equally likely candidates for one {thing} {apart}, an attacker picks the "
            "right one"
        ),
    )


def words_for(neighbours: Relation, *, item_sets: bool, release_format: str = FORMAT) -> Words:
    """The words of a relation; format 1 had those of tables for item sets."""
    if isinstance(neighbours, Moves):
        return moves_words(neighbours)
    if neighbours is Neighbours.ONE_ELEMENT and item_sets and release_format != FIRST_FORMAT:
        return ONE_ITEM
    return WORDS[neighbours]
