import pytest

from adumbra.errors import Unsupported
from adumbra.relations import LEGAL_PAIRS, Neighbours, Reach, Unit, require_legal


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_only_the_proven_pairs_are_legal(unit, neighbours):
    if (unit, neighbours) in LEGAL_PAIRS:
        require_legal(unit, neighbours)
    else:
        with pytest.raises(
            Unsupported, match=f"unit={unit}, neighbours={neighbours}: not a legal pair; use"
        ):
            require_legal(unit, neighbours)


def test_add_remove_and_persons_hide_the_number_of_rows():
    private = [Neighbours.ADD_REMOVE, Neighbours.REPLACE_PERSON, Neighbours.ADD_REMOVE_PERSON]
    assert [n for n in Neighbours if not n.rows_are_public] == private


def test_a_person_is_changed_row_by_row():
    row, grown = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
    assert Reach(Neighbours.REPLACE_PERSON, 3).steps == (row, grown)  # their numbers of rows may differ
    assert Reach(Neighbours.ADD_REMOVE_PERSON, 3).steps == (grown,)
    for relation in (row, grown, Neighbours.ONE_ELEMENT):
        assert Reach(relation).steps == (relation,)
