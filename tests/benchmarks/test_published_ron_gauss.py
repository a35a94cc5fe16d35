import numpy as np
import pytest
from published import ron_gauss as baselines

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 2, 3000)
ROWS = np.where(CODES[:, None] == 1, 0.4, -0.4) * np.ones(6) + 0.1 * RNG.standard_normal((3000, 6))


def separation(rows, codes, place):
    """How far apart the two classes lie along the line between real class means."""
    mapped = place(ROWS)
    line = mapped[CODES == 1].mean(axis=0) - mapped[CODES == 0].mean(axis=0)
    gap = rows[codes == 1].mean(axis=0) - rows[codes == 0].mean(axis=0)
    return float(gap @ line / (line @ line))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: baselines.as_published_not_private(ROWS, CODES, 1000.0, 3, rng),
        lambda rng: baselines.gaussian_without_projection(ROWS, CODES, 2, 1000.0, rng),
        lambda rng: baselines.identity_query(
            ROWS, CODES, 1000.0, baselines.bernoulli_basis(6, 3, rng), rng
        ),
        lambda rng: baselines.identity_query(
            ROWS, CODES, 1000.0, baselines.principal_basis_not_private(ROWS, 2), rng
        ),
    ],
)
def test_with_a_huge_budget_each_baseline_finds_the_classes(make):
    rows, codes, place = make(np.random.default_rng(1))
    assert separation(rows, codes, place) == pytest.approx(1.0, abs=0.1)


def test_the_exponential_choice_prefers_the_nearer_table():
    rows, codes, place = baselines.exponential_choice(ROWS, CODES, 2, 1000.0, np.random.default_rng(2))
    assert separation(rows, codes, place) > 0.0
    assert rows.shape == ROWS.shape


def test_the_published_regression_runs_and_finds_the_slope():
    targets = np.clip(ROWS.mean(axis=1), -1, 1)
    rng = np.random.default_rng(3)
    drawn, goals, place = baselines.as_published_supervised_not_private(ROWS, targets, 1000.0, 3, rng)
    mapped = place(ROWS)
    assert mapped.shape == (3000, 3)
    weights, *_ = np.linalg.lstsq(drawn, goals, rcond=None)
    assert np.corrcoef(mapped @ weights, targets)[0, 1] > 0.9


def test_zero_rows_stay_zero():
    assert baselines.unit_rows(np.zeros((1, 3))).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "make", [baselines.gaussian_supervised_without_projection, baselines.exponential_choice_supervised]
)
def test_with_a_huge_budget_the_other_regressions_find_the_sign_of_the_slope(make):
    targets = np.clip(ROWS.mean(axis=1), -1, 1)
    drawn, goals, place = make(ROWS, targets, 1000.0, np.random.default_rng(4))
    weights, *_ = np.linalg.lstsq(np.c_[drawn, np.ones(len(drawn))], goals, rcond=None)
    assert np.corrcoef(place(ROWS) @ weights[:-1], targets)[0, 1] > 0.5
    assert np.abs(goals).max() <= 1.0
