"""Empty cells pass the threshold of bought bounds no more often than the plan says, and nearly so often.

A release counts as wrong if any block of its empty cells is found. Of 2,000 releases at chance .05 the
proof allows 100 wrong ones in the mean: P(Binomial(2000, .05) > 165) < 1e-9.
"""

import numpy as np
import pytest

from adumbra.mechanisms.bounds import BoundsConfig, plan
from adumbra.numerics import Lattice
from adumbra.postprocess.found import found_range
from adumbra.privacy.noise import add_gaussian, add_laplace
from adumbra.privacy.recorded_noise import fixed_grant
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

RELEASES, MOST = 2000, 165


def schema():
    columns = (
        Column(name="a", kind=Kind.INTEGER, lower=0, upper=63, private=True),
        Column(name="b", kind=Kind.CATEGORY, categories=tuple("abcdefgh"), private=True),
    )
    return Schema(columns=columns, unit=Unit.ROW, neighbours=Neighbours.ADD_REMOVE)


def wrong_releases(delta, epsilon, chance, shrunk=1.0):
    """Releases of an empty table in which anything is found."""
    settled = plan.settle(BoundsConfig(epsilon=epsilon, delta=delta, chance=chance), schema())
    parts, planned = settled.parts, settled.plan
    grant = fixed_grant(3, planned.guarantee, planned.purposes)
    empty = Lattice(np.zeros((RELEASES, parts.histograms.size), np.int64), int(parts.counting.exponent))
    add = add_laplace if delta == 0 else add_gaussian
    counts = add(empty, parts.counting.scale, grant.key(plan.COUNTS)).to_float()
    numbers, levels = counts[:, :64], counts[:, 64:]

    def limit(width):
        return shrunk * parts.limit(width)

    return sum(
        found_range(first, limit) is not None or bool((second > limit(1)).any())
        for first, second in zip(numbers, levels, strict=True)
    )


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 20.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_empty_cells_are_found_no_more_often_than_said(delta, epsilon):
    assert wrong_releases(delta, epsilon, 0.05) <= MOST


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_lower_threshold_is_caught(delta, epsilon):
    assert wrong_releases(delta, epsilon, 0.05, shrunk=0.5) > MOST
