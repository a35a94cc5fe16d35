"""What docs/how-to/choose-epsilon.md says of rows and of several releases."""

import math
from dataclasses import replace

import pytest

from adumbra.mechanisms.moments import MomentsConfig
from adumbra.mechanisms.moments.forecast import READ
from adumbra.mechanisms.moments.plan import settle
from adumbra.privacy.conversion import mu_of
from support.moments import mixed_schema


def test_twice_the_rows_halve_the_error_of_noise_alone():
    errors = [
        settle(
            MomentsConfig(epsilon=1.0, table_share=0.0), replace(mixed_schema(), rows=rows)
        ).plan.details["one_way_total_variation"]
        for rows in (50_000, 100_000)
    ]
    for name, error in errors[0].items():
        noise = [one / (1.0 - one / READ) for one in (error, errors[1][name])]  # see `forecast.left`
        assert noise[1] == pytest.approx(noise[0] / 2.0, rel=1e-4)
        assert errors[1][name] < 0.55 * error


def test_four_releases_at_a_half_cost_about_one_at_one():
    assert 2.0 * mu_of(0.5, 1e-6) / mu_of(1.0, 1e-6) == pytest.approx(1.05, abs=5e-3)
    assert math.sqrt(3.0) * mu_of(0.5, 1e-6) < mu_of(1.0, 1e-6)
