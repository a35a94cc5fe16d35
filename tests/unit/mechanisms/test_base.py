from dataclasses import asdict

import pytest

from adumbra.mechanisms.base import (
    MOST_ROWS,
    Noise,
    calibrate_gaussian,
    calibrate_laplace,
    rows_of,
)


@pytest.mark.parametrize(("count", "rows"), [(-5.0, 1), (0.2, 1), (41.7, 42), (1e12, MOST_ROWS)])
def test_a_noisy_count_asks_for_some_rows_and_not_for_billions(count, rows):
    assert rows_of(count) == rows


def test_a_fine_lattice_is_coarsened_and_the_rounding_is_paid_for():
    fine = calibrate_gaussian(1.0, 0.25, exponent=-60, rounding=10.0)
    assert fine.exponent == -22  # sigma is 4, so the grid is 4 * 2^-24
    assert fine.sensitivity == pytest.approx(1.0 + 10.0 * 2.0**-22)
    assert fine.sensitivity >= 1.0 + 10.0 * 2.0**-22
    assert fine.scale >= fine.sensitivity / 0.25
    scale = calibrate_laplace(1.0, 0.5, exponent=-60, rounding=100.0)
    assert scale.exponent == -23
    assert scale.sensitivity == pytest.approx(1.0 + 100.0 * 2.0**-23)
    assert scale.scale >= scale.sensitivity / 0.5


@pytest.mark.parametrize("calibrate", [calibrate_gaussian, calibrate_laplace])
def test_a_coarse_lattice_is_left_alone_and_costs_nothing(calibrate):
    coarse = calibrate(1.0, 0.25, exponent=-10, rounding=10.0)
    assert (coarse.exponent, coarse.sensitivity) == (-10, 1.0)
    assert coarse.scale == 4.0


@pytest.mark.parametrize("calibrate", [calibrate_gaussian, calibrate_laplace])
def test_a_public_bound_of_the_value_keeps_it_within_what_noise_takes(calibrate):
    huge = calibrate(1e-6, 0.25, exponent=-30, rounding=10.0, largest=2.0**31)
    assert huge.exponent == 32 - 51
    assert huge.sensitivity >= 1e-6 + 10.0 * 2.0**huge.exponent
    assert 2.0**31 / 2.0**huge.exponent <= 2.0**51


def test_a_noise_entry_is_plain():
    noise = Noise(purpose="rows", distribution="gaussian", scale=2.0, sensitivity=0.5, grid=0.25)
    assert asdict(noise) == {
        "purpose": "rows",
        "distribution": "gaussian",
        "scale": 2.0,
        "sensitivity": 0.5,
        "grid": 0.25,
    }
