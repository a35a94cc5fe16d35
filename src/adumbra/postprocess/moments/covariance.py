"""The covariance of encoded rows, as far as one-way laws already know it.

Post-processing only: every argument is public or paid for.
"""

import math

import numpy as np

from adumbra.numerics import Array
from adumbra.postprocess.latent import Block
from adumbra.postprocess.matrices import directions_above

Directions = tuple[Array, Array]  # eigenvalues, and their vectors as columns
_WIDE = 512  # numbers: more vary in a few directions, and alike in all others


def stretch_of(total: Array, variances: Array) -> float:
    """What clipping took from the covariance: the marginals' variance over the Gram's, from 1 to 4."""
    seen = float(np.trace(total))
    return min(max(float(variances.sum()) / seen, 1.0), 4.0) if seen > 0.0 else 1.0


def set_levels(total: Array, blocks: tuple[Block, ...], run: slice, shares: Array) -> None:
    """Inside a category the covariance is known from its histogram: diag(p) - p p^T."""
    for block in blocks:
        if block.is_levels and run.start <= block.start and block.start + block.width <= run.stop:
            own = slice(block.start - run.start, block.start - run.start + block.width)
            pooled = shares @ block.shares
            total[own, own] = np.diag(pooled) - np.outer(pooled, pooled)


def variances_of(block: Block, class_shares: Array) -> Array:
    """Variances by the marginal: of a number, of each level."""
    if block.is_levels:
        pooled = class_shares @ block.shares
        return np.asarray(pooled * (1.0 - pooled))
    mean = block.shares @ block.values
    return np.array([block.shares @ block.values**2 - mean**2])


def with_rest(signal: Directions, between: Array, variances: Array, is_number: Array) -> Array:
    """The covariance inside classes, with what shrinkage took from numbers put back as their own noise.

    Among numbers alone, where it left nothing: directions that drowned vary alike. Beside levels, whose
    columns keep every direction alive, column by column: a number that drowned must not become a
    function of the others.
    """
    values, vectors = signal
    within = np.asarray((vectors * values) @ vectors.T) - between
    numbers = np.flatnonzero(is_number)
    if len(numbers) == 0:
        return within
    if len(numbers) < len(is_number):
        lack = variances[numbers] - between[numbers, numbers] - within[numbers, numbers]
        within[numbers, numbers] += np.maximum(lack, 1e-3 * variances[numbers] + 1e-12)
        return within
    wanted = float(variances.sum() - np.trace(between))
    if len(within) >= _WIDE:
        return _with_rest_of_few(_directions(within) if between.any() else signal, wanted)
    values, vectors = np.linalg.eigh(within)
    is_empty = values <= 1e-9 * max(float(values[-1]), 1e-12)
    rest = max(wanted - float(values[~is_empty].sum()), 1e-3 * abs(wanted) + 1e-12)
    values[is_empty] = rest / max(int(is_empty.sum()), 1)
    return np.asarray((vectors * values) @ vectors.T)


def _with_rest_of_few(signal: Directions, wanted: float) -> Array:
    """The same for many columns, from the few directions that shrinkage left alone: the others share."""
    values, vectors = signal
    width = len(vectors)
    rest = max(wanted - float(values.sum()), 1e-3 * abs(wanted) + 1e-12)
    each = rest / max(width - len(values), 1)
    if len(values) == 0:
        return np.diag(np.full(width, each))
    filled = (vectors * (values - each)) @ vectors.T
    filled[np.diag_indices(width)] += each
    return np.asarray(filled)


def _directions(within: Array) -> Directions:
    """What is left of the signal beside the classes."""
    size = float(np.linalg.norm(within)) / math.sqrt(len(within))
    return directions_above(within, 1e-9 * max(size, 1e-12))


def within_pairs(within: Array, between: Array, variances: Array, is_pair: Array) -> Array:
    """The covariance with no pair of levels varying more than its (well known) share allows.

    A pair that follows the class, or a column like it, has hardly any variance of its own.
    """
    left = np.maximum(variances - np.diagonal(between), 1e-3 * variances + 1e-12)
    most = np.where(is_pair, left / np.maximum(np.diagonal(within), 1e-300), 1.0)
    factors = np.sqrt(np.minimum(most, 1.0))
    return np.asarray(within * np.outer(factors, factors))
