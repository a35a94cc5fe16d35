import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from adumbra.mechanisms.topk.counting import choose_length, count_noise, lattice_bits, length_targets
from adumbra.mechanisms.topk.svt import AHEAD, blocks, drawing, label_columns, sparse
from adumbra.numerics import Lattice
from adumbra.privacy import noise
from adumbra.privacy.recorded_noise import NoiseRecord, fixed_grant, recording_grant
from adumbra.relations import Neighbours, Reach
from adumbra.statistics.counts import Norm
from support.topk import float_draw


def silent(halves, epsilon):
    """No noise at all."""
    return halves


def test_without_noise_the_scan_stops_where_the_tail_meets_its_target():
    tail = np.array([90, 60, 30, 10, 5, 1])
    for target, expected in ((100.0, 1), (45.0, 3), (5.5, 5), (1.25, 6), (0.1, 6), (2.0**80, 1)):
        chosen = choose_length(
            tail, np.full(6, target), 1.0, partial(label_columns, thresholds=silent, columns=silent)
        )
        assert chosen == expected


def test_targets_are_the_derivative_of_the_noise():
    for relation, rows in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE_ONE, 2)):
        flat = length_targets(100, 4, 0.5, Reach(relation), Norm.L1)
        assert flat.tolist() == [rows * 200.0] * 4
        falling = length_targets(100, 4, 0.5, Reach(relation), Norm.L2)
        for m in range(1, 5):

            def noise_error(theta, rows=rows):
                return 100 * math.sqrt(2 / math.pi) * math.sqrt(rows * theta) / 0.5

            slope = (noise_error(m + 1e-6) - noise_error(m - 1e-6)) / 2e-6
            assert falling[m - 1] == pytest.approx(slope, rel=1e-6)


def test_wide_noise_coarsens_the_weights_beforehand():
    assert lattice_bits(1.0) == 15
    assert lattice_bits(2.0**16) == 15
    assert lattice_bits(2.0**20) == 11
    assert lattice_bits(2.0**40) == 0


@pytest.mark.parametrize("norm", list(Norm))
def test_stated_deviation_is_that_of_the_law(norm):
    for length, amount in ((1, 1e-3), (3, 0.2), (50, 5.0), (1, 900.0)):
        calibrated = count_noise(length, amount, Reach(Neighbours.ADD_REMOVE), norm=norm)
        steps = np.arange(-200_000, 200_001) if calibrated.scale / calibrated.grid < 9000 else None
        if norm is Norm.L2:
            assert calibrated.deviation == pytest.approx(calibrated.scale, rel=1e-3)
        elif steps is None:
            assert calibrated.deviation == pytest.approx(math.sqrt(2) * calibrated.scale, rel=1e-6)
        else:
            law = np.exp(-np.abs(steps) * calibrated.grid / calibrated.scale)
            variance = (law * (steps * calibrated.grid) ** 2).sum() / law.sum()
            assert calibrated.deviation == pytest.approx(math.sqrt(variance), rel=1e-6)


def test_every_draw_has_its_own_key_and_its_own_scale():
    record = NoiseRecord()
    draw = drawing(recording_grant(record, 1, None, ("a",)), "a")
    values = np.array([4, 6], np.int64)
    draw(values, Fraction(1, 7))
    draw(values, Fraction(3, 7))
    draw(values, Fraction(10**6))
    scales = [float(call.scale) for call, _ in record.calls.values()]
    assert list(record.calls) == [("a", 0), ("a", 1), ("a", 2)]
    assert scales == [7.0, pytest.approx(7 / 3), 0.25]
    assert Fraction(scales[1]) >= Fraction(7, 3)
    twin = noise.add_laplace(Lattice(values, -1), 7.0, fixed_grant(1, None, ("a",)).key("a", 0))
    assert (record.calls["a", 0][1].units == twin.units).all()


def test_without_noise_labels_are_the_comparisons():
    values = np.array([9, 8, 7, 3, 2, 8, 1])
    plain = label_columns(
        values,
        7,
        sparse(Fraction(1), 3, threshold_share=Fraction(1, 4)),
        thresholds=silent,
        columns=silent,
    )
    assert plain.tolist() == [True, True, False, False, False, True]  # a tie is "no"; stops at the third
    whole = label_columns(values, 7, blocks(Fraction(1), 7), thresholds=silent, columns=silent)
    assert whole.tolist() == [True, True, False, False, False, True, False]


def test_long_runs_are_read_ahead_and_labelled_alike():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 10, 10 * AHEAD)
    schedule = sparse(Fraction(1), 5, threshold_share=Fraction(1, 4))
    labels = label_columns(2 * values, 30, schedule, thresholds=silent, columns=silent)
    assert labels.tolist() == [False] * len(values)
    values[7 * AHEAD] = 50
    labels = label_columns(2 * values, 30, schedule, thresholds=silent, columns=silent)
    assert np.flatnonzero(labels).tolist() == [7 * AHEAD]


def test_nothing_to_label():
    draw = float_draw(np.random.default_rng(1))
    empty = np.array([], np.int64)
    assert label_columns(empty, 0, blocks(Fraction(1), 1), thresholds=draw, columns=draw).size == 0


@pytest.mark.parametrize(
    "make",
    [lambda: blocks(Fraction(1), 0), lambda: sparse(Fraction(1), 0, threshold_share=Fraction(1, 4))],
)
def test_a_schedule_wants_something(make):
    with pytest.raises(ValueError, match=r"wanted=0: must be at least 1"):
        make()
