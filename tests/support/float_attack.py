"""Float and support attacks: holes in the set of possible outputs, order of sums.

Noise added to a float leaves a fingerprint of the value in the last bits: 1 + noise is a multiple of
2^-53, 0 + noise near 0 is not. One such output tells the tables apart for certain (Mironov, CCS 2012).
On a lattice both tables have the same support, and the event never happens.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from adumbra.audit.bounds import GATE, Counts, pure_epsilon_lower
from adumbra.data.bounds import bound_rows
from adumbra.numerics import Array, Ints, Lattice, grid_exponent
from adumbra.privacy.guarantee import pure
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit
from adumbra.statistics.moments import Gram

Law = Literal["laplace", "gaussian"]
Draw = Callable[[float, int], Array]  # a value and a number of runs to noisy values


def naive_noise(law: Law, seed: int = 0) -> Draw:
    """What must be caught: numpy's float noise added to a float, scale 1."""
    rng = np.random.default_rng(seed)

    def draw(value: float, runs: int) -> Array:
        noise = rng.laplace(size=runs) if law == "laplace" else rng.standard_normal(runs)
        return value + noise

    return draw


def product_noise(law: Law, seed: int = 0) -> Draw:
    """Ours: the same law of scale 1 on a lattice, through the production samplers."""
    exponent = grid_exponent(1.0)

    def draw(value: float, runs: int) -> Array:
        claim = pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE)  # of the grant; the noise does not use it
        key = fixed_grant(seed, claim, (f"value {value}",)).key(f"value {value}")
        units = np.full(runs, round(value * 2.0**-exponent), np.int64)
        add = add_laplace if law == "laplace" else add_gaussian
        return add(Lattice(units, exponent), 1.0, key).to_float()

    return draw


def support_attack(draw: Draw, runs: int) -> float:
    """The epsilon that the last bits prove, at confidence 1 - 1e-9, for the values 0 and 1."""
    hits = [int((draw(value, runs) % 2.0**-53 != 0).sum()) for value in (0.0, 1.0)]
    return pure_epsilon_lower(Counts(before=hits[1], after=hits[0], runs=runs), GATE)


def float_sum_spread(rows: Array, orders: int, seed: int = 0) -> int:
    """How many different float sums the same rows have in different orders."""
    rng = np.random.default_rng(seed)
    return len({rng.permutation(rows).sum(axis=0).tobytes() for _ in range(orders)})


def exact_gram_spread(rows: Array, orders: int, seed: int = 0) -> int:
    """The same for the product's Gram, in different orders and block sizes; 1 if sums are exact."""
    rng = np.random.default_rng(seed)
    statistic, found = Gram(width=rows.shape[1]), set()
    for order in range(orders):
        shuffled = rng.permutation(rows)
        total: Ints = statistic.zero()
        for piece in np.array_split(shuffled, 1 + order % 7):
            total = statistic.add(total, bound_rows(piece, 1.0))
        found.add(total.tobytes())
    return len(found)
