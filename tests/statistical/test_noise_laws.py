"""Ten million draws against the exact pmf; every test can say "wrong" of a scale that is 3 % off.

False-alarm chance: 1e-9 each. The secret is fixed (the noise is reproducible), so a red test is a bug.
ADUMBRA_FULL=1 draws 10^7 samples instead of 2 x 10^6.
"""

import numpy as np
import pytest

from adumbra.privacy.grant import open_grant
from support.chisquare import (
    FALSE_ALARM,
    FULL,
    WRONG_SCALES,
    contingency_p_value,
    multinomial_p_value,
    pmf_p_value,
)
from support.noise import KINDS, draws, grant, key

DRAWS = 10**7 if FULL else 2 * 10**6
SCALES = (0.5, 3.0, 10.7, 1000.0, 2.0**20, 1.3 * 2.0**24, 2.0**30)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_the_exact_one(kind, scale):
    sample = draws(kind, scale, DRAWS, key(block=int(scale)))
    assert pmf_p_value(kind, scale, sample) > FALSE_ALARM
    for factor in WRONG_SCALES:
        assert pmf_p_value(kind, factor * scale, sample) < FALSE_ALARM


@pytest.mark.parametrize("factor", WRONG_SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_of_a_wrong_scale_is_rejected(kind, factor):
    sample = draws(kind, factor * 1000.0, DRAWS, key(block=99))
    assert pmf_p_value(kind, 1000.0, sample) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_law_and_a_shift_are_rejected(kind):
    sample = draws(kind, 1000.0, DRAWS, key(block=98))
    other = {"gaussian": "laplace", "laplace": "gaussian"}[kind]
    alike = 1000.0 * (np.sqrt(0.5) if other == "laplace" else np.sqrt(2))  # the same variance
    assert pmf_p_value(other, alike, sample) < FALSE_ALARM
    assert pmf_p_value(kind, 1000.0, sample + 30) < FALSE_ALARM  # a bias of 3 % of the scale


def test_a_floor_instead_of_rounding_is_rejected():
    # the slip that the law of |K| at small scales is there to catch
    sample = np.floor(3.0 * np.random.default_rng(1).standard_normal(DRAWS)).astype(np.int64)
    assert pmf_p_value("gaussian", 3.0, sample) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_low_digits_are_uniform_at_a_large_scale(kind):
    # holes in the lattice (Mironov) or a short uniform would show in the last bits
    digits = draws(kind, 2.0**30, DRAWS, key(block=97)) & 63
    counts = np.bincount(digits, minlength=64)
    assert multinomial_p_value(np.ones(64), counts) > FALSE_ALARM
    coarse = (draws(kind, 2.0**30, DRAWS, key(block=97)) // 2 * 2) & 63  # a planted hole
    counts = np.bincount(coarse, minlength=64)
    assert multinomial_p_value(np.ones(64), counts) < FALSE_ALARM


def quadrants(one, other):
    """Counts of one sample's size class by the other's: independent samples give a product table."""
    classes = [np.searchsorted(np.quantile(s, [0.2, 0.4, 0.6, 0.8]), s) for s in (one, other)]
    return np.bincount(5 * classes[0] + classes[1], minlength=25).reshape(5, 5).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_purposes_and_neighbours_are_independent(kind):
    own = grant(5, ("rows", "sums"))
    base = draws(kind, 1000.0, DRAWS, own.key("rows", 0))
    for other in (own.key("rows", 1), own.key("sums", 0), grant(6, ("rows",)).key("rows", 0)):
        assert contingency_p_value(quadrants(base, draws(kind, 1000.0, DRAWS, other))) > FALSE_ALARM
    assert contingency_p_value(quadrants(base[:-1], base[1:])) > FALSE_ALARM
    # the planted bug: one block repeats a hundredth of another's noise
    leaky = draws(kind, 1000.0, DRAWS, own.key("rows", 2))
    leaky[::100] = base[::100]
    assert contingency_p_value(quadrants(base, leaky)) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_sign_is_symmetric_and_independent_of_size(kind):
    sample = draws(kind, 1000.0, DRAWS, key(block=96))
    sample = sample[sample != 0]
    size = np.searchsorted(np.quantile(np.abs(sample), np.linspace(0.1, 0.9, 9)), np.abs(sample))
    table = np.array([np.bincount(size[sample > 0]), np.bincount(size[sample < 0])], np.float64)
    assert contingency_p_value(table) > FALSE_ALARM
    positive, even = (sample > 0).mean(), 6.2 * 0.5 / np.sqrt(sample.size)  # 6.2 standard errors: 6e-10
    assert abs(positive - 0.5) < even


def test_production_grants_follow_the_law_too():
    # a fresh secret of the operating system: the only test here whose draws differ from run to run
    sample = draws("gaussian", 1.3 * 2.0**24, DRAWS, open_grant("e", None, ("rows",), "h").key("rows"))
    assert pmf_p_value("gaussian", 1.3 * 2.0**24, sample) > FALSE_ALARM
