"""Selection: the exact order of score + Gumbel, whatever the tier that decides it."""

import re

import mpmath
import numpy as np
import pytest

from adumbra.errors import InvalidInput, NoiseKeyReused
from adumbra.numerics import Lattice
from adumbra.privacy import selection
from adumbra.privacy.selection import exponential_choice, gumbel_top_k
from support.noise import key


def reference_order(scores, scale, own):
    """All a_i at 80 digits from 191 bits each, by the textbook formula -ln(-ln u)."""
    mp = mpmath.MPContext()
    mp.dps = 80
    size = scores.units.size
    streams = [own.words(name, size).tolist() for name in ("gumbel", "extend-0", "extend-1")]
    noisy = []
    for units, word, *further in zip(scores.units.tolist(), *streams, strict=True):
        bits = (word >> 1) << 128 | further[0] << 64 | further[1]
        half = (mp.mpf(bits) + mp.mpf(0.5)) / mp.mpf(2) ** 192
        u = 1 - half if word & 1 else half
        value = mp.mpf(units) * mp.mpf(2) ** scores.exponent
        noisy.append(value - mp.mpf(scale) * mp.log(-mp.log(u)))
    return np.array(sorted(range(size), key=lambda i: -noisy[i]))


def some_scores(size=300, spread=40, exponent=-2, seed=5):
    return Lattice(np.random.default_rng(seed).integers(-spread, spread, size), exponent)


def whole_order(scores, scale, key):
    return gumbel_top_k(scores, scale, scores.units.size, key)


@pytest.mark.parametrize("scale", [0.01, 1.0, 3.7, 1e6])
def test_order_is_the_exact_one(scale):
    scores = some_scores()
    truth = reference_order(scores, scale, key())
    assert np.array_equal(whole_order(scores, scale, key()), truth)
    for k in (1, 7, 299):
        assert np.array_equal(gumbel_top_k(scores, scale, k, key()), truth[:k])
    assert exponential_choice(scores, scale, key()) == truth[0]


@pytest.mark.parametrize("error", [1e-3, 0.3, 1e3])
def test_forced_exact_comparisons_give_the_same_order(error, monkeypatch):
    scores = some_scores(size=60)
    usual = whole_order(scores, 2.0, key())
    compared = []
    true = selection._compare
    monkeypatch.setattr(selection, "_NOISE_ERROR", error)
    monkeypatch.setattr(selection, "_compare", lambda a, b: compared.append(1) or true(a, b))
    assert np.array_equal(whole_order(scores, 2.0, key()), usual)
    assert np.array_equal(gumbel_top_k(scores, 2.0, 5, key()), usual[:5])
    assert compared or error == 1e-3


def test_a_planted_wrong_bound_is_seen(monkeypatch):
    # noise with an error of 1e-2 but a bound that denies it: contenders come out in the wrong order
    scores = some_scores(size=400, spread=3)
    right = whole_order(scores, 2.0, key())
    true = selection._log
    monkeypatch.setattr(selection, "_log", lambda x: np.round(true(x), 2))
    assert not np.array_equal(whole_order(scores, 2.0, key()), right)
    monkeypatch.setattr(selection, "_NOISE_ERROR", 0.1)
    assert np.array_equal(whole_order(scores, 2.0, key()), right)


def test_float_intervals_hold_the_exact_values():
    size = 1500
    drop = -np.random.default_rng(1).integers(0, 2**40, size)
    own = key()
    words = own.words("gumbel", size)
    words[:6] = (2, 3, 2**40, 2**40 + 1, 2**64 - 1, 2**64 - 2)  # the ends of both halves
    lower, upper = selection._intervals(drop, 2.0**-30, words)
    for i in range(size):
        contender = selection._Contender(i, int(drop[i]), int(words[i]), 0, 2.0**30, own)
        low, high = contender.enclose(2)
        assert lower[i] <= low <= high <= upper[i]
    assert np.median(upper - lower) < 4 * selection._NOISE_ERROR


def test_log_keeps_its_bound():
    mp = mpmath.MPContext()
    mp.dps = 40
    rng = np.random.default_rng(2)
    points = np.concatenate(
        [np.exp(rng.uniform(-44.3, 4.1, 2000)), 2.0 ** np.arange(-64, 7), [1 - 2.0**-53]]
    )
    error = [
        abs(float(mp.log(mp.mpf(x)) - mp.mpf(y)))
        for x, y in zip(points, selection._log(points), strict=True)
    ]
    assert max(error) < 2.0**-45


def test_uniforms_without_a_set_bit_are_extended():
    class Zeros:
        """A key whose first words are all zero and whose further ones come late."""

        def words(self, stream, count, start=0):
            given = {"gumbel": 0, "extend-0": 0, "extend-1": 5 + 10 * start}
            return np.full(count, given[stream], np.uint64)

    lower, upper = selection._intervals(np.zeros(2, np.int64), 1.0, np.array([0, 1], np.uint64))
    assert np.all(np.isinf(lower))
    assert np.all(np.isinf(upper))
    # all contenders have u near 0, so the smallest u is the smallest noise
    order = selection._order(np.zeros(4, np.int64), 0, 1.0, 4, Zeros())
    assert order.tolist() == [3, 2, 1, 0]


def test_equal_scores_do_not_tie():
    scores = Lattice(np.zeros(1000, np.int64), 0)
    order = whole_order(scores, 1.0, key())
    assert sorted(order.tolist()) == list(range(1000))


def test_large_scores_lose_nothing():
    units = np.array([2**62, 2**62 - 1, -(2**62), 2**62 - 3])
    scores = Lattice(units, 0)
    assert np.array_equal(whole_order(scores, 0.5, key()), reference_order(scores, 0.5, key()))
    assert gumbel_top_k(Lattice(units, 0), 2.0**-150, 4, key()).tolist() == [0, 1, 3, 2]


def test_wrong_arguments_are_refused():
    scores = some_scores(size=5)
    with pytest.raises(InvalidInput, match=r"scores of shape \(2, 2\): must be one row of scores"):
        gumbel_top_k(Lattice(np.zeros((2, 2), np.int64), 0), 1.0, 1, key())
    for k in (0, 6):
        with pytest.raises(InvalidInput, match=f"k={k}: must lie between 1 and the number of scores, 5"):
            gumbel_top_k(scores, 1.0, k, key())
    for scale in (0.0, -1.0, np.nan, np.inf, 1e-80, 1e80):
        with pytest.raises(
            InvalidInput, match=re.escape(f"scale={scale} on grid 0.25: must be above 0")
        ):
            gumbel_top_k(scores, scale, 1, key())
    for units in (2**62 + 1, -(2**63)):
        with pytest.raises(InvalidInput, match=r"units exceed 2\^62") as caught:
            gumbel_top_k(Lattice(np.array([0, units]), 0), 1.0, 1, key())
        assert str(units) not in str(caught.value)


def test_a_key_selects_once():
    own = key()
    first = gumbel_top_k(some_scores(), 1.0, 3, own)
    assert np.array_equal(gumbel_top_k(some_scores(), 1.0, 3, own), first)
    for scores, scale, k in (
        (some_scores(), 1.0, 4),
        (some_scores(), 1.1, 3),
        (some_scores(seed=6), 1.0, 3),
    ):
        with pytest.raises(NoiseKeyReused):
            gumbel_top_k(scores, scale, k, own)
