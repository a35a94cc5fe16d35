"""The audit's grants: known secrets, recorded noise, and no way from production into them."""

import numpy as np
import pytest

from adumbra.errors import InvalidInput, NoiseKeyReused, VerificationFailed
from adumbra.numerics import Lattice
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.recorded_noise import NoiseRecord, fixed_grant, recording_grant, replaying_grant
from adumbra.privacy.selection import gumbel_top_k
from support.noise import GUARANTEE, draws, grant

PURPOSES = ("sums", "rows", "choice")


def run(own, exact):
    """A small mechanism: an aggregate, rows in two blocks, a selection."""
    sums = add_laplace(Lattice(exact, -4), 2.0, own.key("sums"))
    rows = [add_gaussian(Lattice(exact[b : b + 2], 0), 3.0, own.key("rows", b)) for b in (0, 2)]
    return sums, rows, gumbel_top_k(Lattice(exact, 0), 1.5, 2, own.key("choice"))


def test_fixed_grants_repeat_and_say_so():
    one, two, other = grant(7), grant(7), grant(8)
    assert one.not_private
    assert "NOT PRIVATE" in one.entry_id
    assert one.ledger_head == "NOT PRIVATE"
    same = [draws("gaussian", 5.0, 100, own.key("noise")) for own in (one, two, other)]
    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])


def test_a_recording_draws_the_usual_noise():
    exact = np.arange(4)
    usual = run(fixed_grant(3, GUARANTEE, PURPOSES), exact)
    record = NoiseRecord()
    own = recording_grant(record, 3, GUARANTEE, PURPOSES)
    recorded = run(own, exact)
    assert own.not_private
    assert np.array_equal(usual[0].units, recorded[0].units)
    assert np.array_equal(usual[2], recorded[2])
    assert set(record.calls) == {("sums", 0), ("rows", 0), ("rows", 2), ("choice", 0)}
    assert record.pairs == []
    assert record.unmatched() == (("choice", 0), ("rows", 0), ("rows", 2), ("sums", 0))


def test_a_replay_returns_the_recorded_output_whatever_the_value():
    record = NoiseRecord()
    first = run(recording_grant(record, 3, GUARANTEE, PURPOSES), np.array([10, 20, 30, 40]))
    own = replaying_grant(record, 3, GUARANTEE, PURPOSES)
    assert own.not_private
    second = run(own, np.array([10, 26, 30, 32]))
    assert np.array_equal(first[0].units, second[0].units)
    assert all(np.array_equal(a.units, b.units) for a, b in zip(first[1], second[1], strict=True))
    assert np.array_equal(first[2], second[2])
    assert record.unmatched() == ()
    pairs = {(pair.purpose, pair.block): pair for pair in record.pairs}
    sums = pairs["sums", 0]
    assert (sums.l1(), sums.l2(), sums.spread()) == (14 / 16, 10 / 16, 14 / 16)
    assert float(sums.first.scale) == float(sums.second.scale) == 2.0
    assert (pairs["rows", 0].l2(), pairs["rows", 2].l2()) == (6.0, 8.0)
    assert (pairs["choice", 0].first.kind, pairs["choice", 0].spread()) == ("gumbel", 14.0)


def test_calls_that_depend_on_the_data_are_found():
    record = NoiseRecord()
    add_gaussian(
        Lattice(np.arange(3), 0), 1.0, recording_grant(record, 3, GUARANTEE, PURPOSES).key("sums")
    )
    own = replaying_grant(record, 3, GUARANTEE, PURPOSES)
    with pytest.raises(VerificationFailed, match="purpose='rows', block=0: drawn on the neighbour only"):
        add_gaussian(Lattice(np.arange(3), 0), 1.0, own.key("rows"))
    same = Lattice(np.arange(3), 0)
    calls = [
        (Lattice(np.arange(4), 0), 1.0),
        (Lattice(np.arange(3), 1), 1.0),
        (same, 1.0 + 2.0**-52),  # a scale that follows the data
        (same, np.ones(3)),
    ]
    for value, scale in calls:
        own = replaying_grant(record, 3, GUARANTEE, PURPOSES)
        with pytest.raises(VerificationFailed, match="kind, shape, grid or scale differ"):
            add_gaussian(value, scale, own.key("sums"))
    own = replaying_grant(record, 3, GUARANTEE, PURPOSES)
    assert np.array_equal(
        add_gaussian(same, 1.0, own.key("sums")).units, record.calls["sums", 0][1].units
    )


def stepping(own, exact, *, whole):
    """A step with a draw inside, and one more draw outside."""

    def draw():
        return add_laplace(Lattice(exact, 0), 1.0, own.key("rows")).units

    inside = own.step(("asked", *exact.tolist()), draw, whole=whole)
    return inside, add_laplace(Lattice(exact, 0), 1.0, own.key("sums")).units


@pytest.mark.parametrize("whole", [False, True])
def test_a_step_is_noted_and_replayed(whole):
    record = NoiseRecord()
    first = stepping(recording_grant(record, 3, GUARANTEE, PURPOSES), np.array([1, 2]), whole=whole)
    assert [asked for asked, _ in record.steps] == [("asked", 1, 2)]
    assert record.fault() == f"noise calls on the table only: {record.unmatched()}"
    for again in (record.followed(), record.followed()):
        own = replaying_grant(again, 3, GUARANTEE, PURPOSES)
        second = stepping(own, np.array([5, 2]), whole=whole)
        assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
        assert again.steps_again == [("asked", 5, 2)]
        # what is inside a whole step is replayed with it, and so met by nothing
        assert {pair.purpose for pair in again.pairs} == ({"sums"} if whole else {"rows", "sums"})
        assert again.fault() is None


def test_steps_that_depend_on_the_data_are_found():
    record = NoiseRecord()
    recording_grant(record, 3, GUARANTEE, PURPOSES).step("labels", list)
    assert record.followed().fault() == "noise calls on the table only: ()"
    own = replaying_grant(record.followed(), 3, GUARANTEE, PURPOSES)
    with pytest.raises(VerificationFailed, match="step 1: on the neighbour only"):
        own.step(1, list)  # another kind of step
    own = replaying_grant(record.followed(), 3, GUARANTEE, PURPOSES)
    own.step("labels", list)
    with pytest.raises(VerificationFailed, match="step 2: on the neighbour only"):
        own.step("labels", list)


def test_recorded_keys_obey_the_rules_of_keys():
    record = NoiseRecord()
    for own in (
        recording_grant(record, 3, GUARANTEE, PURPOSES),
        replaying_grant(record, 3, GUARANTEE, PURPOSES),
    ):
        with pytest.raises(InvalidInput, match="not declared"):
            own.key("other")
        add_gaussian(Lattice(np.arange(3), 0), 1.0, own.key("sums"))
        with pytest.raises(NoiseKeyReused):
            add_gaussian(Lattice(np.arange(3) + 1, 0), 1.0, own.key("sums"))


def test_stretched_noise_is_wider_and_every_choice_can_come():
    exact = np.arange(4)
    usual = run(fixed_grant(3, GUARANTEE, PURPOSES), exact)
    record = NoiseRecord()
    wide = run(recording_grant(record, 3, GUARANTEE, PURPOSES, stretch=5), exact)
    assert np.array_equal(wide[0].units - exact, 5 * (usual[0].units - exact))
    for own, other in zip(wide[1], usual[1], strict=True):
        start = exact[: len(own.units)] if own is wide[1][0] else exact[2:4]
        assert np.array_equal(own.units - start, 5 * (other.units - start))
    grants = [recording_grant(NoiseRecord(), seed, GUARANTEE, PURPOSES, stretch=5) for seed in range(60)]
    chosen = {tuple(run(own, exact)[2].tolist()) for own in grants}
    assert {place for one in chosen for place in one} == set(range(4))  # no score keeps one out
    assert all(len(set(one)) == 2 for one in chosen)
    again = run(replaying_grant(record, 3, GUARANTEE, PURPOSES), exact + 1)
    assert np.array_equal(again[0].units, wide[0].units)
    assert np.array_equal(again[2], wide[2])


def test_stretched_noise_stays_a_lattice_value():
    own = recording_grant(NoiseRecord(), 3, GUARANTEE, ("sums",), stretch=2**50)
    wide = add_laplace(Lattice(np.zeros(50, np.int64), 0), 1000.0, own.key("sums"))
    assert set(np.abs(wide.units).tolist()) <= {0, 2**52}
