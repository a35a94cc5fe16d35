import pytest

from adumbra.errors import Unsupported
from adumbra.relations import LEGAL_PAIRS, Neighbours, Unit, require_legal


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


def test_only_add_remove_hides_the_number_of_rows():
    assert [n for n in Neighbours if not n.rows_are_public] == [Neighbours.ADD_REMOVE]
