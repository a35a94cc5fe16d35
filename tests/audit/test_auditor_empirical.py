"""Empirical attacks: they find a copied table, nothing in noise, and they say what they are."""

import numpy as np
import pytest

from adumbra.audit.empirical import WORDS, evidence, shadow_attack
from adumbra.errors import InvalidInput

RNG = np.random.default_rng(0)
MEMBERS, OUTSIDERS = RNG.standard_normal((400, 3)), RNG.standard_normal((800, 3))


def test_a_release_that_copies_its_members_is_found():
    found = evidence(MEMBERS + 1e-3 * RNG.standard_normal(MEMBERS.shape), MEMBERS, OUTSIDERS)
    assert found.density_advantage > 0.25
    assert found.attribute_advantage > 0.25
    assert found.distance_ratio < 0.05


def test_a_release_that_knows_nothing_scores_nothing():
    """Each bound is more than 6 standard errors wide."""
    found = evidence(RNG.standard_normal((400, 3)), MEMBERS, OUTSIDERS)
    assert abs(found.density_advantage) < 6.5 * found.standard_error
    assert abs(found.attribute_advantage) < 6.5 * found.standard_error
    assert 0.6 < found.distance_ratio < 1.6
    assert found.to_dict()["words"] == WORDS
    assert "not a guarantee" in WORDS


def test_shadow_releases_tell_an_exact_mean_and_not_a_noisy_one():
    population, target = RNG.standard_normal((40, 2)), np.array([30.0, 0.0])

    def exact(rows, _number):
        return np.tile(rows.mean(axis=0), (5, 1))

    def noisy(rows, number):
        noise = np.random.default_rng(number).standard_normal((1, 2))
        return np.tile(rows.mean(axis=0) + 100 * noise, (5, 1))

    assert shadow_attack(exact, target, population, shadows=20) == 1.0
    assert abs(shadow_attack(noisy, target, population, shadows=200)) < 0.65
    with pytest.raises(InvalidInput, match="shadows=2"):
        shadow_attack(exact, target, population, shadows=2)


def test_too_few_rows_are_refused():
    with pytest.raises(InvalidInput, match="released: needs"):
        evidence(MEMBERS[:3], MEMBERS, OUTSIDERS)
