"""The figures draw true curves, and draw nothing else."""

import math
import re

import mpmath
import numpy as np
import pytest

from adumbra.report import figures


@pytest.mark.parametrize("mu", [0.01, 0.2368, 1.0, 4.0])
def test_the_gaussian_curve_is_the_best_tests(mu):
    thresholds = np.linspace(-3, 3 + mu, 25)
    rates = np.array([float(mpmath.ncdf(-t)) for t in thresholds])
    truth = [float(mpmath.ncdf(mu - t)) for t in thresholds]
    np.testing.assert_allclose(figures.gaussian_power(mu)(rates), truth, rtol=1e-11)
    np.testing.assert_array_equal(figures.gaussian_power(mu)(np.array([0.0, 1.0])), [0.0, 1.0])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_the_pure_curve_is_the_most_that_two_inequalities_allow(epsilon):
    most, grow = np.linspace(0, 1, 20001), math.exp(epsilon)
    for rate in np.linspace(0, 1, 41):
        power = float(figures.pure_power(epsilon)(np.array([rate]))[0])
        allowed = most[(most <= grow * rate + 1e-12) & (1 - rate <= grow * (1 - most) + 1e-12)]
        assert power == pytest.approx(allowed.max(), abs=1e-4)


def test_huge_epsilons_do_not_overflow():
    np.testing.assert_array_equal(figures.pure_power(1e4)(np.array([0.0, 0.5, 1.0]))[1:], [1.0, 1.0])


def test_densities_are_densities():
    x = np.linspace(-40, 40, 400001)
    for density in (figures.normal_density, figures.laplace_density):
        assert np.trapezoid(density(x), x) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("shift", [1e-9, 0.2368, 30.0])
def test_figures_are_clean_and_themed(shift):
    made = [
        figures.overlap_figure(figures.normal_density, shift, 'a "quoted" <alt>'),
        figures.attack_figure(figures.gaussian_power(shift), (0.4, 0.6), "alt"),
    ]
    assert 'aria-label="a &quot;quoted&quot; &lt;alt&gt;"' in made[0]
    for svg in made:
        assert svg.startswith("<svg viewBox=")
        assert svg.rstrip().endswith("</svg>")
        assert not re.search(
            r"https?:|xmlns|<metadata|<style|<script|#0[1-5]0[1-5]|font-family|nan|inf\b", svg
        )
        assert "var(--accent)" in svg
        assert len(svg) < 16000
