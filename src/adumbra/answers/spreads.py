"""Variances and correlations from sums of products, with the laws of their noise."""

import numpy as np

from adumbra.answers.reported import TINY, Gate, Law, stands_out
from adumbra.answers.sums import Sums
from adumbra.numerics import Array


def spread_law(sums: Sums, column: Array, *, is_laplace: bool) -> tuple[Array, Law]:
    """A variance: its own size, and reported where it stands out."""
    rest = _centred(sums, column)
    value, form = sums.form(rest, rest) / sums.rows, (rest, rest)
    variance = np.maximum(sums.covariance(form, form), 0.0) / sums.rows**2
    deviation = np.sqrt(variance)
    # W(t) = value less the truth, whatever t is: its law has no part that grows with t
    gate = Gate(stands_out(value, deviation, is_laplace=is_laplace), deviation, 0.0 * deviation)
    return value, Law(1.0 + 0.0 * value, variance, 0.0 * value, 0.0 * value, (gate,), is_laplace)


def correlation_law(sums: Sums, x: Array, y: Array, *, is_laplace: bool) -> tuple[Array, Law]:
    """A covariance over the root of two variances; to first order a ratio with their mean below."""
    centred, squares = [], []
    for column in (x, y):
        rest = _centred(sums, column)
        square = sums.form(rest, rest) / sums.rows
        scale = np.sqrt(np.where(square > 0, square, 1.0) * sums.rows)
        centred.append(rest / scale[..., None])
        squares.append(square)
    one, other = centred
    value = sums.form(one, other)
    forms = ((one, other), (one, one), (other, other))
    cov = [[sums.covariance(a, b) for b in forms] for a in forms]
    at_value = np.stack([1.0 + 0.0 * value, -value / 2.0, -value / 2.0], -1)
    below = np.array([0.0, 0.5, 0.5])
    shared = np.moveaxis(np.array(cov), (0, 1), (-2, -1))
    found = [
        np.einsum("...i,...ij,...j->...", one_side, shared, other_side)
        for one_side, other_side in ((at_value, at_value), (at_value, below), (below, below))
    ]
    gates = []
    for place, square in zip((1, 2), squares, strict=True):
        deviation = np.sqrt(np.maximum(shared[..., place, place], TINY))
        stands = stands_out(np.where(square > 0, 1.0, 0.0), deviation, is_laplace=is_laplace)
        column = shared[..., place] / deviation[..., None]
        gates.append(Gate(stands, (at_value * column).sum(-1), column @ below))
    at, between, size = found
    return value, Law(1.0 + 0.0 * value, at, between, size, tuple(gates), is_laplace)


def _centred(sums: Sums, column: Array) -> Array:
    """A column less its mean."""
    mean = sums.form(column, sums.constant) / sums.rows
    return column - mean[..., None] * sums.constant
