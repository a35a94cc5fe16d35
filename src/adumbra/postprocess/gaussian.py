"""Normal rows whose sample moments are those of the law: sampling error where none is needed.

The generator is public; rows of each class are centred exactly, and where there are enough rows the
pooled second moment is made the identity.
"""

from contextlib import suppress

import numpy as np
from scipy.linalg import solve_triangular

from adumbra.numerics import Array, Ints
from adumbra.postprocess.spectrum import conditional_sizes

_WHITEN_ROWS = 2  # rows for each column before the sample covariance is made exact
_WHITEN_WIDTH = 1024  # wider rows are left as drawn: the eigenproblem would cost more than it gives


def class_labels(shares: Array, rows: int) -> Ints:
    """Class codes in order, by the largest remainders of rows x shares."""
    return np.repeat(np.arange(len(shares)), conditional_sizes(shares, rows)).astype(np.int64)


def class_runs(labels: Ints) -> list[tuple[int, slice]]:
    """Codes of neighbouring rows of one class and where they are; labels in order have one run each."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[:1] - 1))
    stops = np.append(starts[1:], len(labels))[: len(starts)]
    return [(int(labels[a]), slice(int(a), int(b))) for a, b in zip(starts, stops, strict=True)]


def normal_rows(
    labels: Ints, width: int, rng: np.random.Generator, factor: Array | None = None
) -> Array:
    """Standard normal rows, centred in every run of a class, white over all where the rows suffice.

    With a factor A (any x width) the rows are multiplied by its transpose: their covariance is A A^T.
    """
    rows = rng.standard_normal((len(labels), width))
    for _, members in class_runs(labels):
        rows[members] -= rows[members].mean(axis=0)
    mix = np.eye(width) if factor is None else factor.T
    if len(rows) >= _WHITEN_ROWS * width and width <= _WHITEN_WIDTH:
        with suppress(np.linalg.LinAlgError):  # as many classes as rows: nothing to make white
            lower = np.linalg.cholesky(rows.T @ rows / len(rows))
            mix = solve_triangular(lower, mix, lower=True, trans="T")
    return np.asarray((mix.T @ rows.T).T)  # column by column in memory, as decoding reads it
