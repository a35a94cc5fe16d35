"""Every tier and engine gives the one true value of the law, bit for bit."""

import numpy as np
import pytest

from adumbra.numerics import Lattice
from adumbra.privacy import _tables, noise
from adumbra.privacy._laws import Law, decide
from support.noise import ADD, KINDS, SCALES, count_tiers, draws, key, reference, set_bounds

ENGINES = ("numpy", "numba")
SIZE = 3 * noise.CHUNK + 777


def no_more(further: int) -> int:
    raise AssertionError(f"word {further} read")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_engines_and_exact_arithmetic_agree(kind, scale, monkeypatch):
    own = key()
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    size = 2000 if scale == 2.0**40 else SIZE  # there nearly all samples leave the coarse tier
    by_numpy = draws(kind, scale, size, own)
    monkeypatch.setenv("ADUMBRA_NOISE", "numba")
    assert np.array_equal(draws(kind, scale, size, own), by_numpy)
    words = own.words("samples", 150)
    assert np.array_equal(reference(kind, scale, words), by_numpy[:150])
    exact = [decide(Law(kind, scale), word >> 1, no_more) for word in words.tolist()]
    assert np.array_equal(exact, np.abs(by_numpy[:150]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [3.0, 1.3 * 2.0**24])
def test_forced_fine_and_exact_tiers_give_the_same_noise(kind, scale, engine, monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", engine)
    many = 3 * noise.CHUNK  # doubts are settled on the way, too
    usual = draws(kind, scale, many, key())
    with monkeypatch.context() as patch:  # an error bound of a quarter: half of all samples go on
        set_bounds(patch, coarse=0.25)
        tiers = count_tiers(patch)
        assert np.array_equal(draws(kind, scale, many, key()), usual)
        assert 0.4 * many < tiers["fine"] < 0.6 * many
    with monkeypatch.context() as patch:  # no coarse decision at all, one fine one in two
        set_bounds(patch, coarse=0.5, fine=0.25)
        tiers = count_tiers(patch)
        assert np.array_equal(draws(kind, scale, 600, key()), usual[:600])
        assert tiers["fine"] == 600
        assert 200 < tiers["exact"] < 400


def test_usual_bounds_send_few_samples_on(monkeypatch):
    tiers = count_tiers(monkeypatch)
    draws("gaussian", 2.0**24.5, 10**6, key())
    assert tiers["fine"] < 2_000  # chance 1e-4 of each
    assert tiers["exact"] <= 10  # chance below 1e-7 of each


@pytest.mark.parametrize("engine", ENGINES)
def test_a_planted_wrong_bound_is_seen(engine, monkeypatch):
    # without its error bound the coarse tier rounds some samples the wrong way at a large scale
    monkeypatch.setenv("ADUMBRA_NOISE", engine)
    right = draws("gaussian", 2.0**34, 20_000, key())
    set_bounds(monkeypatch, coarse=0.0)
    wrong = draws("gaussian", 2.0**34, 20_000, key())
    assert np.count_nonzero(wrong != right) > 20


def test_kernel_as_plain_python_agrees(monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", "numpy")
    sampler = noise.Sampler(2000)
    for kind in KINDS:
        table = _tables.scaled_table(kind, 2.0**30)
        words = key().words("samples", 2000)
        words[:3] = (0, 1, 2**64 - 1)  # far below the table, and its upper end
        units = np.arange(2000)
        one, two, doubtful = np.empty(2000, np.int64), np.empty(2000, np.int64), np.empty(2000, np.int64)
        compiled = noise.compiled_kernel()
        lookup = noise._COARSE_SHIFT, noise._COARSE_BASE
        for kernel in (noise.coarse_kernel, compiled, compiled.py_func):
            count = kernel(words, units, one, table.packed, table.coarse_limit, doubtful, *lookup)
            left = sampler.coarse(words, units, two, table)
            assert np.array_equal(doubtful[:count], left)
            assert 0 in left
            sure = np.setdiff1d(np.arange(2000), left)
            assert np.array_equal(one[sure], two[sure])


@pytest.mark.parametrize("kind", KINDS)
def test_ends_of_the_uniform(kind):
    law = Law(kind, 5.0)
    table = _tables.scaled_table(law.kind, law.scale)
    words = np.array([0, 1, 2, 2**40, 2**64 - 1, 2**64 - 2], np.uint64)
    values, open_ = noise.fine(words, table)
    assert open_[:3].tolist() == [0, 1, 2]
    assert set(open_.tolist()) <= {0, 1, 2, 4, 5}
    assert values[3] == decide(law, 2**39, no_more)
    assert decide(law, 2**63 - 1, no_more) == 0
    asked = []

    def extend(further):
        asked.append(further)
        return 0 if further < 3 else 12345

    deep = decide(law, 0, extend)
    assert asked[:4] == [0, 1, 2, 3]
    u = 12345.5 * 2.0 ** -(63 + 4 * 64)
    expected = 5 * np.sqrt(-2 * np.log(u)) if kind == "gaussian" else -5 * np.log(u)
    assert 0.97 * expected < deep < expected + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_uniform_on_a_threshold_reads_further_words(kind):
    # the 63 leading bits of T(m) leave both m and m - 1 possible; the next word decides
    import mpmath

    from adumbra.privacy._laws import arithmetic, threshold

    law = Law(kind, 7.0)
    with arithmetic(300) as mp:
        bits = int(mp.floor(mp.ldexp(threshold(law, 9, mp), 63 + 64)))
    leading, word = bits >> 64, bits & (2**64 - 1)
    assert isinstance(bits, int)
    assert mpmath.mp.prec == 53  # nobody else's precision was touched
    assert decide(law, leading, lambda further: max(0, word - 1)) == 9
    assert decide(law, leading, lambda further: min(2**64 - 1, word + 1)) == 8
    # the very word of the threshold needs one more
    asked = []

    def last(further):
        asked.append(further)
        return word if further == 0 else 0

    assert decide(law, leading, last) == 9
    assert asked == [0, 1]


def test_estimates_are_corrected(monkeypatch):
    # the first guess of the exact tier decides nothing: any guess ends at the same place
    from adumbra.privacy import _laws

    law, words = Law("gaussian", 30.0), key().words("samples", 20).tolist()
    right = [decide(law, word >> 1, no_more) for word in words]
    for shift in (-3, 4):
        true = _laws._estimate
        with monkeypatch.context() as patch:
            patch.setattr(
                _laws, "_estimate", lambda law, u, mp, s=shift, true=true: true(law, u, mp) + s
            )
            assert [decide(law, word >> 1, no_more) for word in words] == right


@pytest.mark.parametrize("engine", ENGINES)
def test_noise_depends_on_position_only(engine, monkeypatch):
    monkeypatch.setenv("ADUMBRA_NOISE", engine)
    size = noise.CHUNK + 5000
    sigma = np.where(np.arange(size) % 3 == 0, 3.0, 1.3 * 2.0**24)
    mixed = draws("gaussian", sigma, size, key())
    for scale in (3.0, 1.3 * 2.0**24):
        alone = draws("gaussian", scale, size, key())
        assert np.array_equal(mixed[sigma == scale], alone[sigma == scale])
    assert np.array_equal(draws("gaussian", 3.0, 10, key()), draws("gaussian", 3.0, size, key())[:10])


def test_positions_hold_in_the_exact_tier_too(monkeypatch):
    sigma = np.where(np.arange(400) % 2 == 0, 3.0, 1000.0)
    usual = draws("gaussian", sigma, 400, key())
    set_bounds(monkeypatch, coarse=0.5, fine=0.5)
    tiers = count_tiers(monkeypatch)
    assert np.array_equal(draws("gaussian", sigma, 400, key()), usual)
    assert tiers == {"fine": 400, "exact": 400}


def test_the_noisy_value_is_clamped_to_exact_floats(monkeypatch):
    from adumbra.privacy import noise

    set_bounds(monkeypatch, coarse=0.5, fine=0.5)
    monkeypatch.setattr(noise, "decide", lambda law, leading, extend: 2**60)
    for kind in KINDS:
        out = ADD[kind](Lattice(np.zeros(100, np.int64), 0), 3.0, key()).units
        assert set(out.tolist()) == {2**53 - 1, 1 - 2**53}
