"""Selection draws from the exponential mechanism exactly: chi-square against softmax, 1e-9 each.

The secret is fixed, so a red test is a bug. ADUMBRA_FULL=1 draws five times as many.
"""

from itertools import permutations

import numpy as np
import pytest

from adumbra.numerics import Lattice
from adumbra.privacy import selection
from adumbra.privacy.selection import exponential_choice, gumbel_top_k
from support.chisquare import FALSE_ALARM, FULL, multinomial_p_value
from support.noise import grant

DRAWS = 30_000 if FULL else 6_000
UNITS = np.array([0, 1, 2, 3, 3, 6])  # on grid 1/2
SCALE = 1.7


def softmax(scale):
    weights = np.exp(UNITS / 2 / scale)
    return weights / weights.sum()


def test_choices_follow_softmax():
    own = grant(11)
    counts = np.zeros(UNITS.size)
    for block in range(DRAWS):
        counts[exponential_choice(Lattice(UNITS, -1), SCALE, own.key("noise", block))] += 1
    assert multinomial_p_value(softmax(SCALE), counts) > FALSE_ALARM
    for factor in (0.8, 1.25):
        assert multinomial_p_value(softmax(factor * SCALE), counts) < FALSE_ALARM


def peeled(order, scale):
    """The chance of an ordered choice: rounds of softmax over what is left."""
    weights, chance = np.exp(UNITS / 2 / scale), 1.0
    for i in order:
        chance *= weights[i] / weights.sum()
        weights[i] = 0.0
    return chance


def test_ordered_pairs_follow_peeled_rounds():
    own = grant(12)
    pairs = list(permutations(range(UNITS.size), 2))
    seen = dict.fromkeys(pairs, 0)
    for block in range(DRAWS):
        seen[tuple(gumbel_top_k(Lattice(UNITS, -1), SCALE, 2, own.key("noise", block)).tolist())] += 1
    counts = np.array([seen[pair] for pair in pairs])
    assert multinomial_p_value(np.array([peeled(pair, SCALE) for pair in pairs]), counts) > FALSE_ALARM
    for factor in (0.8, 1.25):
        wrong = np.array([peeled(pair, factor * SCALE) for pair in pairs])
        assert multinomial_p_value(wrong, counts) < FALSE_ALARM


@pytest.mark.parametrize("exact", [False, True])
def test_many_equal_columns_are_chosen_alike(exact, monkeypatch):
    # top half of 100 equal scores, decided by floats or wholly by exact comparisons
    if exact:
        monkeypatch.setattr(selection, "_NOISE_ERROR", 100.0)
    own, rounds = grant(13), 40 if exact else DRAWS // 5
    first = np.zeros(100)
    for block in range(rounds):
        first[gumbel_top_k(Lattice(np.zeros(100, np.int64), 0), 1.0, 50, own.key("noise", block))] += 1
    # each column is chosen in half of the rounds; sampling without replacement halves the variance
    statistic = ((first - rounds / 2) ** 2 / (rounds / 4)).sum() * 99 / 100
    from scipy import stats

    assert stats.chi2.sf(statistic, 99) > FALSE_ALARM
    biased = first + rounds * 0.2 * (np.arange(100) < 50) - rounds * 0.2 * (np.arange(100) >= 50)
    statistic = ((biased - rounds / 2) ** 2 / (rounds / 4)).sum() * 99 / 100
    assert stats.chi2.sf(statistic, 99) < FALSE_ALARM


def test_small_gumbel_noise_follows_its_law():
    """The float noise itself over both halves, at 10^6 draws, by its distribution function."""
    words = grant(14).key("noise").words("gumbel", 10**6)
    lower, upper = selection._intervals(np.zeros(10**6, np.int64), 1.0, words)
    u = np.exp(-np.exp(-(lower + upper) / 2))  # uniform if the noise is Gumbel
    counts = np.bincount((u * 200).astype(np.int64), minlength=200)
    assert multinomial_p_value(np.ones(200), counts) > FALSE_ALARM
    for factor in (0.97, 1.03):
        stretched = np.exp(-np.exp(-factor * (lower + upper) / 2))
        wrong = np.bincount((stretched * 200).astype(np.int64), minlength=200)
        assert multinomial_p_value(np.ones(200), wrong) < FALSE_ALARM
