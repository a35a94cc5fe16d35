"""The door to noise: what it takes, what it refuses, which engine runs."""

import importlib.util
import sys
import threading

import numpy as np
import pytest

from adumbra.errors import InvalidInput, NoiseKeyReused
from adumbra.numerics import Lattice
from adumbra.privacy import noise
from support.noise import ADD, KINDS, draws, grant, key, set_bounds


@pytest.mark.parametrize("kind", KINDS)
def test_scale_is_in_the_real_unit(kind):
    value = Lattice(np.arange(-500, 500), -7)
    noisy = ADD[kind](value, 3 / 128, key())
    assert noisy.exponent == -7
    assert np.array_equal(noisy.units - value.units, draws(kind, 3.0, 1000, key()))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4, 5), (0, 7)])
def test_shapes_are_kept(shape):
    value = Lattice(np.ones(shape, np.int64), 0)
    noisy = noise.add_gaussian(value, 3.0, key()).units
    assert noisy.shape == shape
    assert np.array_equal(noisy.reshape(-1) - 1, draws("gaussian", 3.0, noisy.size, key()))


def test_strided_values_and_the_value_itself_stay():
    units = np.arange(24).reshape(4, 6)
    before = units.copy()
    turned = noise.add_laplace(Lattice(units.T, 0), 2.0, key()).units
    assert np.array_equal(turned - units.T, draws("laplace", 2.0, 24, key()).reshape(6, 4))
    assert np.array_equal(units, before)


def test_sigma_broadcasts_by_column():
    sigma = np.array([1.0, 50.0, 1.0])
    noisy = noise.add_gaussian(Lattice(np.zeros((1000, 3), np.int64), 0), sigma, key()).units
    assert np.array_equal(noisy, draws("gaussian", np.tile(sigma, 1000), 3000, key()).reshape(1000, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 2.0**-11, 2.0**40 * 1.001])
def test_scales_out_of_range_are_refused(kind, scale):
    with pytest.raises(InvalidInput, match=r"must be 2\^-10 to 2\^40 grid steps; coarsen the value"):
        ADD[kind](Lattice(np.zeros(3, np.int64), 0), scale, key())


def test_wrong_arguments_are_refused():
    value = Lattice(np.zeros((2, 3), np.int64), 0)
    with pytest.raises(InvalidInput, match="value of type ndarray: noise is added to a Lattice"):
        noise.add_gaussian(np.zeros(3), 1.0, key())
    with pytest.raises(InvalidInput, match="sigma with 17 distinct numbers: 1 to 16"):
        noise.add_gaussian(Lattice(np.zeros(17, np.int64), 0), np.arange(1.0, 18.0), key())
    with pytest.raises(InvalidInput, match="sigma with 0 distinct numbers: 1 to 16"):
        noise.add_gaussian(value, np.empty(0), key())
    with pytest.raises(InvalidInput, match=r"sigma of shape \(2,\): must broadcast .* shape \(2, 3\)"):
        noise.add_gaussian(value, np.ones(2), key())
    with pytest.raises(InvalidInput, match=r"sigma of shape \(4, 2, 3\): must broadcast"):
        noise.add_gaussian(value, np.ones((4, 2, 3)), key())


@pytest.mark.parametrize("units", [2**52 + 1, -(2**52) - 1, -(2**63), 2**63 - 1])
def test_units_that_could_leave_exact_floats_are_refused_without_showing_them(units):
    with pytest.raises(InvalidInput, match=r"units exceed 2\^52; coarsen") as caught:
        noise.add_gaussian(Lattice(np.array([0, units]), 0), 1.0, key())
    assert str(units) not in str(caught.value)
    edge = Lattice(np.array([2**52, -(2**52)]), 0)
    assert np.all(np.abs(noise.add_gaussian(edge, 2.0**40, key()).units) < 2**53)


def test_a_key_covers_one_value_scale_and_kind():
    own = grant().key("noise")
    value = Lattice(np.arange(5), 0)
    first = noise.add_gaussian(value, 3.0, own).units
    assert np.array_equal(noise.add_gaussian(Lattice(np.arange(5), 0), 3.0, own).units, first)  # a retry
    for add, other, scale in (
        (noise.add_gaussian, Lattice(np.array([0, 1, 2, 3, 5]), 0), 3.0),
        (noise.add_gaussian, value, 3.5),
        (noise.add_gaussian, value, np.full(5, 3.0)),
        (noise.add_gaussian, Lattice(np.arange(5), 1), 3.0),
        (noise.add_gaussian, Lattice(np.arange(5).reshape(1, 5), 0), 3.0),
        (noise.add_laplace, value, 3.0),
    ):
        with pytest.raises(NoiseKeyReused, match="already covers another value, scale or shape"):
            add(other, scale, own)


def test_refused_calls_leave_the_key_unbound():
    own = grant().key("noise")
    with pytest.raises(InvalidInput):
        noise.add_gaussian(Lattice(np.arange(5), 0), -1.0, own)
    noise.add_gaussian(Lattice(np.arange(4), 0), 1.0, own)


@pytest.mark.parametrize("late", [False, True])
def test_distinct_scales_are_those_of_a_full_sort(late):
    rng = np.random.default_rng(3)
    scales = rng.choice([0.5, 1.0, 3.0], size=(3, 5000))
    if late:  # a number that the first look does not see
        scales[2, 4000] = 7.0
    for one in (scales, scales[:, :0], np.asarray(2.0), np.array([1.0, np.nan])):
        distinct, members = noise._distinct(one)
        expected, places = np.unique(one, return_inverse=True)
        np.testing.assert_array_equal(distinct, expected)
        np.testing.assert_array_equal(members.reshape(one.shape), places.reshape(one.shape))


def test_engine_choice(monkeypatch):
    monkeypatch.delenv("ADUMBRA_NOISE", raising=False)
    assert noise.noise_engine() == "numba"
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        noise._has_numba.cache_clear()
        assert noise.noise_engine() == "numpy"
    noise._has_numba.cache_clear()
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    assert noise.noise_engine() == "numpy"
    monkeypatch.setenv("ADUMBRA_NOISE", "fast")
    with pytest.raises(InvalidInput, match="ADUMBRA_NOISE=fast: must be numpy, numba or unset"):
        noise.noise_engine()


def test_numba_waits_until_it_pays(monkeypatch):
    monkeypatch.delenv("ADUMBRA_NOISE", raising=False)
    monkeypatch.setattr(noise.Sampler, "drawn", 0)
    assert noise.Sampler(1000)._kernel is None
    monkeypatch.setattr(noise.Sampler, "drawn", noise._SETTLED)
    assert noise.Sampler(1000)._kernel is noise.compiled_kernel()
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    assert noise.Sampler(1000)._kernel is None


def test_kernel_without_a_place_for_its_cache(monkeypatch):
    import numba

    true_njit = numba.njit

    def njit(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return true_njit(**options)

    monkeypatch.setattr(numba, "njit", njit)
    kernel = noise.compiled_kernel.__wrapped__()
    assert kernel.py_func is noise.coarse_kernel
    assert not kernel.targetoptions.get("cache", False)


def test_a_numba_that_cannot_be_loaded_costs_no_release(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)  # installed, and broken
    noise.loaded_kernel.cache_clear()
    noise.compiled_kernel.cache_clear()
    monkeypatch.setattr(noise.Sampler, "drawn", noise._SETTLED)
    monkeypatch.delenv("ADUMBRA_NOISE", raising=False)
    assert noise.Sampler(1000)._kernel is None
    noise.require_kernel()
    monkeypatch.setenv("ADUMBRA_NOISE", "numba")
    with pytest.raises(InvalidInput, match="ADUMBRA_NOISE=numba: cannot be loaded; install it again"):
        noise.require_kernel()
    monkeypatch.setenv("ADUMBRA_NOISE", "fortran")
    with pytest.raises(InvalidInput, match="must be numpy, numba or unset"):
        noise.require_kernel()
    noise.loaded_kernel.cache_clear()


def test_importing_noise_does_not_import_numba():
    import subprocess

    code = (
        "import sys, adumbra.privacy.noise, adumbra.privacy.selection; sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_threads_draw_the_same_noise_as_one(engine, monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", engine)
    usual = [draws("gaussian", 1000.0, 100, key(block)) for block in range(4)]
    set_bounds(monkeypatch, coarse=0.5, fine=0.25)  # through the exact tier, which shares its arithmetic
    own, results = grant(), {}

    def work(block):
        results[block] = draws("gaussian", 1000.0, 100, own.key("noise", block))

    threads = [threading.Thread(target=work, args=(block,)) for block in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(results[block], usual[block]) for block in range(4))
