"""Laws by class: what columns of many classes have in common, and what is left where there is none."""

import numpy as np
import pytest

from adumbra.postprocess.moments import classes as laws_of_classes
from adumbra.postprocess.moments.classes import (
    MANY_CLASSES,
    MOST_JOINT,
    MOST_LEVELS,
    MOST_ORDERED,
    ByClass,
    conditional,
    contrasts,
)

ROWS = 9000.0


def table(classes, columns, cells, tie, seed=0):
    """Counts by class of columns that all move with one hidden order of the classes."""
    rng = np.random.default_rng(seed)
    order, sizes = np.linspace(-1.0, 1.0, classes), np.full(classes, ROWS / classes)
    found = []
    for _ in range(columns):
        law = np.full(cells, 1.0 / cells)
        slope = rng.permutation(np.linspace(-1.0, 1.0, cells))
        found.append(sizes[:, None] * law * (1.0 + tie * np.outer(order, slope)))
    return sizes, found


def read(sizes, noisy, truth, sigma):
    columns = [
        ByClass(own, sizes, exact.sum(axis=0) / exact.sum(), None)
        for own, exact in zip(noisy, truth, strict=True)
    ]
    return columns, conditional(columns, sigma, sigma)


def error(laws, truth):
    exact = [one / one.sum(axis=1, keepdims=True) for one in truth]
    return np.mean([np.abs(a - b).sum(axis=1).mean() / 2.0 for a, b in zip(laws, exact, strict=True)])


@pytest.mark.parametrize("size", [2, 3, 9])
def test_contrasts_are_orthonormal_and_add_up_to_nothing(size):
    rows = contrasts(size)
    assert rows.shape == (size - 1, size)
    assert np.allclose(rows @ rows.T, np.eye(size - 1))
    assert np.allclose(rows.sum(axis=1), 0.0)


def test_many_classes_learn_from_what_all_columns_have_in_common():
    """Cell by cell (as few classes are read) the error is a third larger."""
    both = []
    for seed in range(6):
        sizes, truth = table(9, 14, 6, 0.6, seed)
        rng = np.random.default_rng(100 + seed)
        noisy = [one + 60.0 * rng.normal(size=one.shape) for one in truth]
        columns, laws = read(sizes, noisy, truth, 60.0)
        each = [c.laws(c.beyond(c.joint - c.expected, 60.0**2)) for c in columns]
        both.append((error(laws, truth), error(each, truth)))
    together, apart = np.mean(both, axis=0)
    assert together < 0.75 * apart


def test_classes_that_do_not_differ_stay_nearly_alike():
    sizes, truth = table(MANY_CLASSES, 10, 5, 0.0)
    rng = np.random.default_rng(5)
    noisy = [one + 80.0 * rng.normal(size=one.shape) for one in truth]
    columns, laws = read(sizes, noisy, truth, 80.0)
    plain = error([c.laws(c.joint - c.expected) for c in columns], truth)
    assert error(laws, truth) < 0.25 * plain


@pytest.mark.parametrize("classes", [2, MANY_CLASSES])
def test_counts_without_noise_are_the_laws(classes):
    sizes, truth = table(classes, 4, 5, 0.5)
    _, laws = read(sizes, truth, truth, 0.0)
    assert error(laws, truth) < 1e-4


def test_no_class_and_no_column():
    alone = ByClass(np.array([[3.0, 1.0]]), np.array([4.0]), np.array([0.6, 0.4]), None)
    assert np.allclose(conditional([alone], 1.0, 1.0)[0], [[0.6, 0.4]])
    assert conditional([], 1.0, 1.0) == []


@pytest.mark.parametrize(
    ("classes", "columns", "cells"), [(8, 2, MOST_JOINT // 16 + 1), (2, 1, MOST_LEVELS + 1)]
)
def test_very_many_cells_are_read_one_by_one(monkeypatch, classes, columns, cells):
    """400 columns of ten levels in six classes took 35 s, after the charge; one of 8,192 levels 1 GB."""
    monkeypatch.setattr(laws_of_classes, "believed", None)  # is not called
    sizes, truth = table(classes, columns, cells, 0.5)
    rng = np.random.default_rng(6)
    noisy = [one + rng.normal(size=one.shape) for one in truth]
    _, laws = read(sizes, noisy, truth, 1.0)
    assert np.allclose(laws[0].sum(axis=1), 1.0)


def test_a_long_number_is_read_cell_by_cell(monkeypatch):
    """To compare neighbours takes the cube of the cells: 800 levels took a minute after the charge."""
    monkeypatch.setattr(laws_of_classes, "ordered_signal", None)  # is not called
    sizes, truth = table(2, 1, MOST_ORDERED + 1, 0.5)
    column = ByClass(truth[0] + 1.0, sizes, truth[0].sum(axis=0) / ROWS, np.ones(MOST_ORDERED + 1))
    assert np.allclose(conditional([column], 1.0, 1.0)[0].sum(axis=1), 1.0)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_classes_that_do_not_differ_come_halfway_to_one_law(classes):
    """Each column found some strength in its own noise, and rows showed it."""
    before, after = [], []
    for seed in range(6):
        sizes, truth = table(classes, 20, 6, 0.0, seed)
        noise = 400.0 * np.random.default_rng(300 + seed).normal(size=(20, classes, 6))
        columns, laws = read(sizes, [one + z for one, z in zip(truth, noise, strict=True)], truth, 400.0)
        each = [c.laws(c.beyond(c.joint - c.expected, 400.0**2)) for c in columns]
        before.append(error(each, truth))
        after.append(error(laws, truth))
    assert np.mean(after) < 0.55 * np.mean(before)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_that_differ_keep_what_few_cells_tell(classes):
    sizes, truth = table(classes, 1, 6, 0.8, 3)
    noise = 40.0 * np.random.default_rng(5).normal(size=truth[0].shape)
    columns, laws = read(sizes, [truth[0] + noise], truth, 40.0)
    assert error(laws, truth) < 0.5 * error([columns[0].pooled[None].repeat(classes, axis=0)], truth)
