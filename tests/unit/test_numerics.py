import math
from fractions import Fraction

import numpy as np
import pytest

from adumbra.errors import InvalidInput
from adumbra.numerics import (
    Lattice,
    coarsen,
    fraction_upper,
    grid_exponent,
    product_upper,
    round_up,
    sqrt_upper,
    sum_upper,
)


def test_a_lattice_refuses_floats():
    with pytest.raises(InvalidInput, match="int64 array; quantise first"):
        Lattice(np.zeros(3), -4)


def test_a_lattice_value_is_exact():
    value = Lattice(np.array([1, -3, 2**52 + 1]), -10)
    assert [Fraction(x) for x in value.to_float()] == [Fraction(u, 1024) for u in (1, -3, 2**52 + 1)]
    assert value.grid == 2.0**-10


@pytest.mark.parametrize("exponent", [-1100, -1074, -1060, -1023, -1022, -60, 0, 900, 1022, 1023, 1100])
def test_floats_of_any_grid_are_the_nearest(exponent):
    units = np.array([[0, 1, -1, 3], [2**53 - 1, 1 - 2**53, 5, 2**40 + 1]])
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(units.astype(np.float64), exponent)
        found = Lattice(units, exponent).to_float(order="F")
    assert np.array_equal(found, expected)
    assert found.flags.f_contiguous


@pytest.mark.parametrize("shift", [1, 2, 7, 40, 62, 63, 64, 65])
def test_coarsen_rounds_to_nearest_with_halves_up(shift):
    rng = np.random.default_rng(shift)
    half = 2 ** min(shift - 1, 62)
    edge = np.array([-(2**63), 2**63 - 1, -(2**62), 2**62 - 1, 0, half, -half, half - 1])
    units = np.concatenate([edge, rng.integers(-(2**63), 2**63 - 1, 500)])
    got = coarsen(Lattice(units, -30), -30 + shift)
    want = [math.floor(Fraction(int(u), 2**shift) + Fraction(1, 2)) for u in units]
    assert got.exponent == -30 + shift
    assert got.units.tolist() == want


def test_coarsen_to_a_finer_grid_keeps_the_value_and_beyond_63_bits_gives_zero():
    value = Lattice(np.array([5, -7]), 0)
    assert coarsen(value, -3) is value
    assert coarsen(value, 63).units.tolist() == [0, 0]
    assert coarsen(value, 200).units.tolist() == [0, 0]


@pytest.mark.parametrize("x", [2.0, 3.0, 0.1, 1e-300, 1e300, 4.0, 0.0])
def test_upper_functions_never_fall_below_and_are_tight(x):
    assert Fraction(sqrt_upper(x)) ** 2 >= Fraction(x)
    assert sqrt_upper(x) <= math.sqrt(x) * (1 + 2**-51)
    assert Fraction(sum_upper(x, 0.1, 0.2)) >= Fraction(x) + Fraction(0.1) + Fraction(0.2)
    assert sum_upper(x, 0.1, 0.2) <= math.fsum([x, 0.1, 0.2]) * (1 + 2**-51)
    assert Fraction(product_upper(x, 0.1, 0.3)) >= Fraction(x) * Fraction(0.1) * Fraction(0.3)


def test_fraction_upper_is_the_smallest_float_above():
    assert fraction_upper(Fraction(1, 3)) >= Fraction(1, 3) > Fraction(math.nextafter(1 / 3, 0) - 2**-53)
    assert fraction_upper(Fraction(2, 3)) == round_up(2 / 3) or Fraction(2 / 3) >= Fraction(2, 3)
    assert fraction_upper(Fraction(1, 4)) == 0.25


def test_grid_exponent_is_the_coarsest_power_not_above():
    assert grid_exponent(1.0) == -24
    assert grid_exponent(1.999) == -24
    assert grid_exponent(2.0) == -23
    assert grid_exponent(12.7, bits=20) == -17


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_grid_exponent_refuses_what_is_no_scale(sigma):
    with pytest.raises(InvalidInput, match="must be finite and above 0"):
        grid_exponent(sigma)
