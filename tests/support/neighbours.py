"""Worst-case neighbouring rows for the sensitivities of docs/theory.md T5, T6, T7."""

import numpy as np


def equal_coordinates(p):
    """One row whose Gram has the largest L1 norm: all coordinates equal."""
    return np.full(p, 1 / np.sqrt(p))


def orthogonal_pair(p):
    """Two unit rows at right angles: the largest Frobenius change of a Gram."""
    x, y = np.zeros(p), np.zeros(p)
    x[0], y[min(1, p - 1)] = 1.0, 1.0
    return x, y


def two_type_pair(p):
    """The pair that makes every |x_i x_j - y_i y_j| equal for even p (near-extremal for odd p)."""
    high, low = np.sqrt((2 + np.sqrt(2)) / (2 * p)), np.sqrt((2 - np.sqrt(2)) / (2 * p))
    half = p // 2
    x = np.array([high] * half + [low] * (p - half))
    y = np.array([-low] * half + [high] * (p - half))
    return x / np.linalg.norm(x), y / np.linalg.norm(y)


def ascend_pair(p, weights, rng, rounds=60):
    """Alternating ascent: fix the signs of A = xx^T - yy^T, take the extreme eigenvectors, repeat."""
    x, y = rng.standard_normal((2, p))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    for _ in range(rounds):
        signs = np.sign(np.outer(x, x) - np.outer(y, y))
        _, vectors = np.linalg.eigh(signs * weights)
        x, y = vectors[:, -1], vectors[:, 0]
    return x, y


def hostile_rows(p, rng):
    """A row that stresses bounds: long, tiny, sparse, equal, non-finite."""
    kind = rng.integers(7)
    row = rng.standard_normal(p)
    if kind == 0:
        row *= 1e6
    elif kind == 1:
        row *= 1e-9
    elif kind == 2:
        row *= rng.random(p) < 2 / p
    elif kind == 3:
        row = np.sign(row)
    elif kind == 4:
        row[rng.integers(p)] = rng.choice([np.nan, np.inf, -np.inf, 1e308])
    elif kind == 5:
        row = np.zeros(p)
        row[rng.integers(p)] = rng.choice([-1.0, 1.0]) * 10
    return row
