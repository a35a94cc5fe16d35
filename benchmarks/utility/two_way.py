"""Total variation of two-way marginals between two tables of codes. NOT FOR RELEASE."""

from itertools import combinations

import numpy as np

from adumbra.errors import require
from adumbra.evaluate.utility import total_variation


def two_way(left, right, *, most_pairs=500):
    """The mean total variation over pairs of columns (evenly chosen ones, if there are more)."""
    pairs = list(combinations(range(left.shape[1]), 2))
    require(bool(pairs), "columns: two-way measures need two columns")
    chosen = [pairs[i] for i in np.unique(np.linspace(0, len(pairs) - 1, most_pairs).astype(int))]
    size = int(max(left.max(initial=0), right.max(initial=0))) + 1
    return float(
        np.mean(
            [
                total_variation(left[:, i] * size + left[:, j], right[:, i] * size + right[:, j])
                for i, j in chosen
            ]
        )
    )
