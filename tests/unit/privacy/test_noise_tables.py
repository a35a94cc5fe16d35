"""The error bounds of the tables hold, and are not far from what is reached."""

import functools
import hashlib
import math
import sys
import threading
from importlib.resources import files
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import special

from adumbra.errors import VerificationFailed
from adumbra.privacy import _tables
from adumbra.privacy._laws import Law, arithmetic, laplace_offset, normal_quantile, threshold
from adumbra.privacy._tables import LOWEST, OCTAVES
from support.noise import KINDS

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import noise_tables


def true_values(kind, points):
    """F at 60 digits, for points V in (0, 2^63)."""
    mp = mpmath.MPContext()
    mp.dps = 60
    u = [mp.mpf(float(x)) / mp.mpf(2) ** 63 for x in points]
    return [mp.sqrt(2) * mp.erfinv(1 - p) if kind == "gaussian" else -mp.log(p) for p in u]


def hostile_points(octave, bits):
    """Edges of the first cells, where remainders are largest, and random points of one octave."""
    edges = 1 + np.array([0, 1, 2, 3]) / 2**bits
    near = np.concatenate(
        [edges, np.nextafter(edges, 0)[1:], 1 + np.random.default_rng(octave).random(12)]
    )
    return np.ldexp(near, LOWEST + octave)


def test_kept_tables_are_the_computed_ones():
    raw = noise_tables.kept_bytes()
    assert hashlib.sha256(raw).hexdigest() == _tables.KEPT_DIGEST
    assert raw == files("adumbra.privacy").joinpath(_tables.KEPT).read_bytes()
    for kind in KINDS:
        fine, edges = noise_tables.computed(kind)
        np.testing.assert_array_equal(_tables.unit_table(kind).fine, fine)
        np.testing.assert_array_equal(_tables.unit_table(kind).edges, edges)


def test_damaged_tables_are_refused(monkeypatch):
    monkeypatch.setattr(_tables, "KEPT_DIGEST", "0" * 64)
    with pytest.raises(VerificationFailed, match="not the tables of this version"):
        _tables._unit_table.__wrapped__("gaussian")


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_and_are_nearly_reached(kind):
    unit = _tables.unit_table(kind)
    fine_bound, coarse_bound = _tables.fine_errors(unit, 1.0), _tables.coarse_errors(unit, 1.0)
    reading = _tables._reading(unit.edges)
    reached = 0.0
    for octave in (0, 1, 8, 20, 30, 31):
        for bits, table, bound in (
            (_tables.FINE_BITS, unit.fine, fine_bound),
            (_tables.COARSE_BITS, unit.coarse, coarse_bound),
        ):
            points = hostile_points(octave, bits)
            cells = (points.view(np.int64) >> (52 - bits)) - ((1023 + LOWEST) << bits)
            x = points - _tables.midpoints(bits)[cells] if bits == _tables.FINE_BITS else points
            value = np.zeros_like(x)
            for coefficient in table[::-1]:
                value = value * x + coefficient[cells]
            truth = true_values(kind, points)
            error = max(abs(float(t - float(v))) for t, v in zip(truth, value, strict=True))
            allowed = bound[octave] - reading[octave]  # these points are floats: nothing is unread
            assert error <= allowed
            if bits == _tables.COARSE_BITS:
                reached = max(reached, error / allowed)
    assert reached > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_edges_bound_every_derivative_in_their_octave(kind):
    unit = _tables.unit_table(kind)
    by_cell = unit.fine.reshape(_tables.FINE_DEGREE + 1, OCTAVES, -1)
    for n in range(_tables.FINE_DEGREE + 1):
        largest = np.abs(by_cell[n]).max(axis=1) * np.ldexp(1.0, n * np.arange(LOWEST, 63))
        assert np.all(largest <= unit.edges[n])
        assert np.all(largest >= unit.edges[n] / 3)
        sign = (-1) ** n
        assert np.all(sign * by_cell[n] > 0)  # one sign, so the sizes are monotone


def test_derivative_polynomials_by_hand():
    # P_1 ... P_4 of the normal quantile: 1, z, 2 z^2 + 1, 6 z^3 + 7 z
    polynomial, seen = [1], []
    for n in range(1, 5):
        seen.append(polynomial)
        polynomial = noise_tables.next_polynomial(polynomial, n)
    assert seen == [[1], [0, 1], [1, 0, 2], [0, 7, 0, 6]]


def test_shift_of_a_polynomial():
    coefficients, by = np.array([[1.0], [-2.0], [3.0], [5.0]]), np.array([0.5])
    shifted = _tables._shifted(coefficients, by)[:, 0]
    for x in (-1.0, 0.0, 2.0):
        direct = np.polyval(coefficients[::-1, 0], x + 0.5)
        assert math.isclose(np.polyval(shifted[::-1], x), direct, rel_tol=1e-14)


def test_erfc_of_mpmath_against_a_series_in_integers():
    """The one special function that the exact tier trusts, against rigorous floors and ceilings."""
    bits = 400
    for numerator in (1, 3, 8, 20, 37, 60, 90):
        # erfc(x / sqrt 2) = 1 - sqrt(2 / pi) exp(-x^2 / 2) sum x^(2n+1) / (2n+1)!!,  x = numerator / 8
        low = high = (numerator << bits) // 8
        term_low, term_high = low, high + 1
        high += 1
        for n in range(1, 2000):
            term_low = term_low * numerator**2 // (64 * (2 * n + 1))
            term_high = -(-term_high * numerator**2 // (64 * (2 * n + 1)))
            low, high = low + term_low, high + term_high
            if numerator**2 * 2 < 64 * (2 * n + 3) and term_high <= 1:
                break
        high += 2 * term_high  # the rest is below a geometric series of ratio 1/2
        with arithmetic(300) as mp:
            x = mp.mpf(numerator) / 8
            factor = mp.sqrt(2 / mp.pi) * mp.exp(-x * x / 2)
            least, most = (1 - factor * mp.ldexp(s, -bits) for s in (high, low))
            value = mp.erfc(x / mp.sqrt(2))
            assert abs(value - (least + most) / 2) <= value * mp.ldexp(1, 32 - 200)


def test_quantile_solves_its_equation():
    with arithmetic(200) as mp:
        for tail in (0.999, 0.5, 1e-3, 1e-19, mp.mpf(10) ** -400):
            z = normal_quantile(mp.mpf(tail), mp.sqrt(-2 * mp.log(tail)), 2.0**-60, mp)
            assert abs(mp.erfc(z / mp.sqrt(2)) / tail - 1) < 1e-35
            if tail > 1e-300:
                assert math.isclose(float(z), -special.ndtri(float(tail) / 2), rel_tol=1e-9)


def test_thresholds_are_tails_of_the_laws():
    with arithmetic(200) as mp:
        laplace, normal = Law("laplace", 2.5), Law("gaussian", 2.5)
        q = math.exp(-1 / 2.5)
        pmf = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-200, 201)}
        for m in (1, 2, 7):
            direct = sum(p for k, p in pmf.items() if abs(k) >= m)
            assert math.isclose(float(threshold(laplace, m, mp)), direct, rel_tol=1e-12)
            direct = 2 * special.ndtr(-(m - 0.5) / 2.5)
            assert math.isclose(float(threshold(normal, m, mp)), direct, rel_tol=1e-12)
        for scale in (2.0**-10, 0.3, 3.0, 2.0**40):
            assert 0 < laplace_offset(scale, mp) < 0.5


def test_common_guard_drops_the_octaves_that_cost_more_than_they_decide():
    errors = np.full(OCTAVES, 1e-5)
    errors[:3] = 0.4
    assert _tables._common_guard(errors) == 1e-5
    errors[-1] = 0.4  # half of all samples: better to keep them
    assert _tables._common_guard(errors) == 1e-5
    errors[-1] = 0.1
    assert _tables._common_guard(errors) == 0.1


def test_precision_is_given_back():
    with arithmetic(300) as outer:
        with arithmetic(100) as inner:
            assert inner.prec == 100
        assert outer.prec == 300


def test_threads_share_one_table(monkeypatch):
    built = []
    true = _tables._coarse_from_fine
    monkeypatch.setattr(_tables, "_coarse_from_fine", lambda fine: built.append(1) or true(fine))
    monkeypatch.setattr(_tables, "_unit_table", functools.lru_cache(_tables._unit_table.__wrapped__))
    tables = []
    threads = [
        threading.Thread(target=lambda: tables.append(_tables.unit_table("laplace"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert len({id(table) for table in tables}) == 1
