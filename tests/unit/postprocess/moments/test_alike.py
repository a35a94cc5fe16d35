"""Columns with like cells, read together: which readings count, and how wrong they are."""

import numpy as np
import pytest

from adumbra.postprocess.marginals import project_simplex
from adumbra.postprocess.moments import alike
from adumbra.postprocess.moments.alike import FEW_COLUMNS, VERY_FEW, Alike, read_alike

CELLS, TOTAL = 18, 10_000.0
WIDTHS = np.array([1e-12, *np.full(CELLS - 2, 1.0 / (CELLS - 2)), 1e-12])


def read(table, sigma):
    columns = len(table)
    return np.stack(read_alike(list(table), [WIDTHS] * columns, [TOTAL] * columns, sigma))


def bump(centre, width):
    inner = np.exp(-0.5 * ((np.arange(CELLS - 2) - centre) / width) ** 2)
    return np.array([0.0, *inner / inner.sum(), 0.0]) * TOTAL


def errors(found, truth):
    return np.abs(found - truth).sum(axis=1) / (2.0 * TOTAL)


def directions(table, sigma):
    return alike._by_directions(Alike(np.full(len(table), TOTAL), sigma, WIDTHS), table)


def test_columns_with_like_cells_are_read_together():
    rng = np.random.default_rng(4)
    truth = [np.array([5.0, 9.0, 4.0, 1.0]) * 10 for _ in range(40)]
    noisy = [row + rng.normal(size=4) for row in truth] + [np.array([3.0, 4.0])]
    found = read_alike(noisy, [np.full(4, 0.25)] * 40 + [None], [190.0] * 40 + [7.0], 1.0)
    before = sum(np.linalg.norm(a - b) for a, b in zip(noisy, truth, strict=False))
    after = sum(np.linalg.norm(a - b) for a, b in zip(found, truth, strict=False))
    assert after < 0.4 * before
    assert found[-1] is None  # nothing is like it


def test_pairs_share_their_mean_and_numbers_of_two_cells_are_not_pairs():
    rng = np.random.default_rng(6)
    pairs = [np.array([400.0, 600.0]) + rng.normal(scale=50.0, size=2) for _ in range(9)]
    found = read_alike(pairs, [None] * 9, [1000.0] * 9, 50.0)
    assert np.abs(np.stack(found) - [400.0, 600.0]).max() < 40.0
    apart = read_alike(pairs, [None] * 7 + [np.ones(2)] * 2, [1000.0] * 9, 50.0)
    assert apart == [None] * 9  # seven and two: too few of either kind


def test_counts_without_noise_stay():
    truth = np.stack([bump(centre, 2.0) for centre in range(8)])
    assert np.allclose(read(truth, 0.0), truth)


@pytest.mark.parametrize("columns", [40, FEW_COLUMNS])
def test_one_column_unlike_the_others_keeps_its_shape_among_few(columns):
    rng = np.random.default_rng(5)
    truth = np.full((FEW_COLUMNS + 1, CELLS), TOTAL / CELLS)
    truth[0] = 0.0
    truth[0, [0, -1]] = TOTAL / 2  # a target that is low or high; the noise edge hides it
    noisy = truth + rng.normal(scale=800.0, size=truth.shape)
    many, few = read(noisy, 800.0), read(noisy[:columns], 800.0)
    assert errors(few, truth[:columns])[0] < 0.75 * errors(many, truth)[0]
    assert errors(few, truth[:columns])[1:].mean() < errors(many, truth)[1:].mean() + 0.05


def test_columns_with_shapes_of_their_own_are_not_read_as_one():
    """They were drawn to a common shape: twice the error that smoothing alone leaves."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = np.stack([bump(*pair) for pair in zip(rng.uniform(0, 15, 10), [2.5] * 10, strict=True)])
        noisy = truth + rng.normal(scale=260.0, size=truth.shape)
        both = (errors(one, truth).mean() for one in (read(noisy, 260.0), directions(noisy, 260.0)))
        ratios.append(np.divide(*both))
    assert np.mean(ratios) < 0.8
    assert max(ratios) < 1.05


def test_columns_of_one_shape_are_read_as_one():
    """Each by itself would be far worse, and Stein's estimate says so."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = np.repeat(bump(7.0, 2.0)[None], 20, axis=0)
        noisy = truth + rng.normal(scale=400.0, size=truth.shape)
        both = (errors(one, truth).mean() for one in (read(noisy, 400.0), directions(noisy, 400.0)))
        ratios.append(np.divide(*both))
    assert np.mean(ratios) < 1.1


@pytest.mark.parametrize(("columns", "sigma"), [(FEW_COLUMNS, 300.0), (VERY_FEW, 1.1 * TOTAL / CELLS)])
def test_more_than_a_few_columns_are_read_by_directions(columns, sigma):
    """The fewer, the more noise there is: where a cell has more noise than rows, many know more."""
    rng = np.random.default_rng(8)
    noisy = np.repeat(bump(5.0, 3.0)[None], columns + 1, axis=0) + rng.normal(scale=90.0)
    assert np.allclose(read(noisy, sigma), directions(noisy, sigma))
    few = noisy[:columns] + rng.normal(scale=sigma, size=(columns, CELLS))
    assert not np.allclose(read(few, sigma), directions(few, sigma))


@pytest.mark.parametrize(("columns", "cells"), [(8, 400), (FEW_COLUMNS + 8, 18)])
def test_long_columns_and_many_groups_are_read_by_directions_alone(columns, cells, monkeypatch):
    """Eight ordinals of 500 levels took 18 s, and 30 groups of eight columns 14 s."""
    monkeypatch.setattr(alike, "averaged", None)  # is not called
    rng = np.random.default_rng(3)
    noisy = [rng.normal(100.0, 10.0, cells if i < 8 else cells + 1) for i in range(columns)]
    found = read_alike(noisy, [np.ones(len(x)) for x in noisy], [1e4] * columns, 10.0)
    assert all(one.sum() == pytest.approx(1e4) for one in found)


def test_a_shape_that_drowns_is_no_few_lucky_cells():
    """The mean of all columns was taken as it was: nearly all rows fell into two or three cells."""
    truth, found = np.repeat(bump(8.0, 4.0)[None], 100, axis=0), []
    for seed in range(8):
        noisy = truth + np.random.default_rng(seed).normal(scale=6e4, size=truth.shape)
        plain = project_simplex(np.repeat(noisy.mean(axis=0)[None], 100, axis=0), TOTAL)
        found.append([errors(one, truth).mean() for one in (plain, read(noisy, 6e4))])
    before, after = np.mean(found, axis=0)
    assert before > 0.7
    assert after < 0.7 * before
