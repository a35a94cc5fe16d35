"""Keys for another process: only its own, and one value for each, here or there."""

import copy
import pickle  # noqa: TID251 - what Dask sends with

import numpy as np
import pytest

from adumbra.errors import InvalidInput, NoiseKeyReused
from adumbra.numerics import Lattice
from adumbra.privacy.grant import Grant, HandedKeys, KeyedRows
from adumbra.privacy.noise import add_gaussian
from adumbra.privacy.recorded_noise import NoiseRecord, fixed_grant, recording_grant
from support.noise import GUARANTEE

PURPOSES = ("rows", "label", "matrix")
ROWS = Lattice(np.arange(12).reshape(4, 3), -10)


def draw(rows, keys, block=3):
    return add_gaussian(rows, 1.0, keys.key("rows", block)).units


def keyed(grant=None):
    return KeyedRows(draw, grant or fixed_grant(1, GUARANTEE, PURPOSES), ("rows", "label"))


def sent(handed):
    return pickle.loads(pickle.dumps(handed))  # noqa: S301 - our own bytes


def test_noise_of_handed_keys_is_the_grants_own():
    rows = keyed()
    far = sent(rows.hand_over(2, 5))
    assert np.array_equal(draw(ROWS, far), rows(ROWS))
    rows.accept(2, 5, far.claims())  # the same value under the same key: a retry
    assert list(far.claims()) == [("rows", 3)]


def test_only_the_keys_of_the_blocks_and_purposes_asked_for_leave():
    rows = keyed()
    grant_secret = rows.grant.secret.reveal()
    handed = rows.hand_over(2, 4)
    content = pickle.dumps(handed)
    assert grant_secret not in content
    own = {rows.grant.key(p, b)._secret.reveal() for p in ("rows", "label") for b in (2, 3)}
    assert all(secret in content for secret in own)
    others = [(p, b) for p in PURPOSES for b in range(8) if p == "matrix" or b not in {2, 3}]
    assert not any(rows.grant.key(p, b)._secret.reveal() in content for p, b in others)
    for purpose, block in (("rows", 4), ("rows", 1), ("matrix", 2), ("label", 99)):
        with pytest.raises(NoiseKeyReused, match="was not handed to this process"):
            handed.key(purpose, block)


def test_a_second_value_of_a_key_is_refused_wherever_it_was_drawn():
    rows, other = keyed(), Lattice(ROWS.units + 1, -10)
    one, two = sent(rows.hand_over(0, 9)), sent(rows.hand_over(0, 9))
    draw(ROWS, one)
    draw(other, two)
    rows.accept(0, 9, one.claims())
    with pytest.raises(NoiseKeyReused, match="covers another value"):
        rows.accept(0, 9, two.claims())
    with pytest.raises(NoiseKeyReused, match="covers another value"):
        draw(other, one)  # nor there
    with pytest.raises(NoiseKeyReused, match="covers another value"):
        rows(other)  # nor here


@pytest.mark.parametrize(("purpose", "block"), [("rows", 9), ("rows", -1), ("matrix", 3)])
def test_a_claim_on_a_key_that_was_not_handed_over_is_refused(purpose, block):
    with pytest.raises(NoiseKeyReused, match="not handed"):
        keyed().accept(0, 9, {(purpose, block): b"digest"})


def test_recorded_and_undeclared_keys_stay_where_they_are():
    grant = recording_grant(NoiseRecord(), 1, GUARANTEE, PURPOSES)
    with pytest.raises(InvalidInput, match="grant: its keys are recorded in this process"):
        keyed(grant).hand_over(0, 1)
    undeclared = KeyedRows(draw, fixed_grant(1, GUARANTEE, ("rows",)), ("rows", "label"))
    with pytest.raises(InvalidInput, match="purpose='label': not declared"):
        undeclared.hand_over(0, 1)


def test_what_holds_keys_shows_nothing_and_a_grant_still_refuses_to_be_sent():
    rows = KeyedRows(draw, Grant("e", GUARANTEE, PURPOSES, ""), ("rows",))
    handed = rows.hand_over(0, 2)
    assert repr(handed) == "HandedKeys(hidden)"
    assert "Secret" not in repr(rows)
    assert not np.array_equal(draw(ROWS, handed, 0), draw(ROWS, handed, 1))
    for held in (rows, rows.grant):
        with pytest.raises(TypeError, match="holds a secret"):
            pickle.dumps(held)
    assert isinstance(copy.copy(handed), HandedKeys)
    assert not copy.copy(handed).claims()
