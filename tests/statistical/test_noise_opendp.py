"""OpenDP's exact samplers as an oracle that shares no code with ours.

Two-sample chi-square, false-alarm chance 1e-9. Its Gaussian is the discrete one, which agrees with the
rounded one at large scales only.
"""

import numpy as np
import opendp.prelude as dp
import pytest

from support.chisquare import FALSE_ALARM, FULL, two_sample_p_value
from support.noise import draws, key

DRAWS = 200_000 if FULL else 60_000


def opendp_draws(kind, scale):
    dp.enable_features("contrib")
    space = (
        dp.vector_domain(dp.atom_domain(T="i64")),
        {"laplace": dp.l1_distance, "gaussian": dp.l2_distance}[kind](T="i64"),
    )
    make = {"laplace": dp.m.make_laplace, "gaussian": dp.m.make_gaussian}[kind]
    return np.array(make(*space, scale=scale)([0] * DRAWS), np.int64)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("laplace", 3.0), ("laplace", 2.0**20), ("gaussian", 2.0**20), ("gaussian", 2.0**30)],
)
def test_samplers_agree_and_a_tenth_off_is_seen(kind, scale):
    theirs = opendp_draws(kind, scale)
    for factor, agrees in ((1.0, True), (0.9, False), (1.1, False)):
        ours = draws(kind, factor * scale, 5 * DRAWS, key(block=int(100 * factor)))
        assert (two_sample_p_value(ours, theirs) > FALSE_ALARM) == agrees
