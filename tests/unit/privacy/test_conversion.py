"""Conversions against oracles at 40 to 60 digits, at the edges, and on the safe side by one float."""

import math
import threading
from fractions import Fraction

import mpmath
import pytest

from adumbra.errors import InvalidInput
from adumbra.privacy import conversion
from adumbra.privacy.conversion import (
    bounded_range_to_mu,
    compose_mu,
    delta_of,
    epsilon_of,
    mu_of,
    mu_to_bounded_range,
    pure_delta_of,
    pure_to_mu,
)
from support.accounting import DELTAS, EPSILONS, curve, curve_by_quadrature, pure_excess


@pytest.mark.parametrize(("delta", "sigma"), [(1e-5, 3.731), (1e-6, 4.225)])
def test_published_sigmas(delta, sigma):
    assert round(1 / mu_of(1.0, delta), 3) == sigma


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 20.0])
@pytest.mark.parametrize("mu_factor", [0.12, 0.3, 1.0, 2.5])
def test_delta_matches_quadrature(epsilon, mu_factor):
    mu = mu_factor * math.sqrt(2 * epsilon)
    exact = curve_by_quadrature(mu, epsilon)
    ours = delta_of(mu, epsilon)
    assert ours >= exact
    assert ours <= exact * (1 + mpmath.mpf(2) ** -51)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_curve_against_sixty_digits(epsilon):
    for delta in DELTAS:
        mu = mu_of(epsilon, delta)
        exact = curve(mu, epsilon)
        assert exact <= delta
        assert exact >= delta * (1 - 1e-10)  # one step of mu moves delta by far less
        ours = delta_of(mu, epsilon)
        assert exact <= ours <= exact * (1 + mpmath.mpf(2) ** -51)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_results_are_the_last_safe_float(epsilon):
    for delta in DELTAS:
        mu = mu_of(epsilon, delta)
        assert curve(mu, epsilon) <= delta < curve(math.nextafter(mu, math.inf), epsilon)
        back = epsilon_of(mu, delta)
        assert back <= epsilon
        assert curve(mu, back) <= delta < curve(mu, math.nextafter(back, 0.0))
    mu = pure_to_mu(epsilon)
    assert pure_excess(mu, epsilon) <= 0 < pure_excess(math.nextafter(mu, 0.0), epsilon)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-6, 1000.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-18, 0.1, 0.4999999])
def test_extremes_stay_safe(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert curve(mu, epsilon) <= delta < curve(mu * (1 + 1e-15), epsilon)


def test_epsilon_has_a_floor():
    assert epsilon_of(1e-9, 0.1) == 1e-12
    assert curve(1e-9, 0) <= 0.1


def test_epsilon_of_large_mu():
    epsilon = epsilon_of(1e4, 1e-6)
    assert curve(1e4, epsilon) <= 1e-6 < curve(1e4, math.nextafter(epsilon, 0.0))


def test_far_tail():
    assert delta_of(1e-12, 1e4) == math.ulp(0.0)
    assert delta_of(1.0, 41.0) == math.ulp(0.0)
    assert curve(1.0, 40.51) < math.ulp(0.0)
    assert delta_of(1e4, 0.0) == 1.0
    assert delta_of(1.0, 0.0) >= curve(1.0, 0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-13, 1.1e4])
def test_arguments_out_of_range(bad):
    for call in (
        lambda: delta_of(bad, 1.0),
        lambda: epsilon_of(bad, 1e-6),
        lambda: mu_of(bad, 1e-6),
        lambda: pure_to_mu(bad),
        lambda: bounded_range_to_mu(2 * bad),
        lambda: mu_to_bounded_range(bad),
        lambda: compose_mu(0.1, bad),
        lambda: pure_delta_of(bad, 0.0),
    ):
        with pytest.raises(InvalidInput, match="must lie in"):
            call()


@pytest.mark.parametrize("bad", [0.0, -1e-6, math.nan, math.inf, 0.5, 1e-301])
def test_delta_out_of_range(bad):
    for call in (lambda: mu_of(1.0, bad), lambda: epsilon_of(1.0, bad)):
        with pytest.raises(InvalidInput, match=r"^delta=.*: must lie in"):
            call()


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, 1.1e4])
def test_epsilon_of_a_curve_out_of_range(bad):
    with pytest.raises(InvalidInput, match=r"^epsilon=.*: must lie in"):
        delta_of(1.0, bad)


def test_pure_delta():
    assert pure_delta_of(1.0, 1.0) == 0.0
    assert pure_delta_of(1.0, 7.0) == 0.0
    with mpmath.workdps(40):
        exact = (mpmath.e - mpmath.exp(mpmath.mpf(0.25))) / (1 + mpmath.e)
    assert exact <= pure_delta_of(1.0, 0.25) <= exact * (1 + mpmath.mpf(2) ** -51)
    with pytest.raises(InvalidInput, match="must not be below 0"):
        pure_delta_of(1.0, -0.1)


@pytest.mark.parametrize("mu", [1e-6, 0.02367, 0.2367, 1.0, 3.0, 17.0, 60.0])
def test_selection_parameter_is_the_inverse(mu):
    epsilon = mu_to_bounded_range(mu)
    assert bounded_range_to_mu(epsilon) <= mu
    assert bounded_range_to_mu(epsilon * (1 + 1e-15)) > mu * (1 - 1e-15)
    assert pure_excess(mu, epsilon / 2) <= 0 < pure_excess(mu * (1 - 1e-14), epsilon / 2)


def test_selection_parameter_out_of_range():
    with pytest.raises(InvalidInput, match="its selection parameter"):
        mu_to_bounded_range(200.0)
    with pytest.raises(InvalidInput, match="its selection parameter"):
        mu_to_bounded_range(1e-12)


def test_composition_is_exact():
    assert compose_mu(3.0, 4.0) == 5.0
    assert compose_mu(0.7) == 0.7
    with pytest.raises(InvalidInput, match="nothing to compose"):
        compose_mu()
    # sqrt rounds down, to nearest and up among these; each must give the smallest float not below.
    for n in range(2, 60):
        mus = [0.1 + i / 7 for i in range(n)]
        exact = sum(Fraction(mu) ** 2 for mu in mus)
        root = compose_mu(*mus)
        assert Fraction(root) ** 2 >= exact > Fraction(math.nextafter(root, 0.0)) ** 2


def test_lemma_b():
    """4 phi A >= x (1 - A^2), and the constants that its proof quotes."""
    with mpmath.workdps(50):
        for i in range(1, 1201):
            x = mpmath.mpf(i) / 100
            tail = mpmath.erfc(x / mpmath.sqrt(2)) / 2
            a = 1 - 2 * tail
            assert 4 * mpmath.npdf(x) * a > x * (1 - a * a)
            assert 1 - a * a <= mpmath.sqrt(2 * mpmath.pi) * mpmath.npdf(x)  # the disc in the square
            assert tail / mpmath.npdf(x) < mpmath.sqrt(x * x + 2) - x  # Komatu
        x = mpmath.mpf("1.2")
        assert (2 * mpmath.ncdf(x) - 1) / x > mpmath.mpf("0.641") > mpmath.sqrt(2 * mpmath.pi) / 4
        assert mpmath.npdf(x) * (x + mpmath.sqrt(x * x + 2)) < mpmath.mpf("0.594") < mpmath.ncdf(x)
        assert mpmath.npdf(1) / mpmath.ncdf(1) > mpmath.mpf("0.28")  # lambda(-1)


def test_threads_and_other_users_of_mpmath_do_not_matter():
    expected = [delta_of(0.3 + i / 100, 1.0) for i in range(40)]
    seen = []

    def work():
        seen.append([delta_of(0.3 + i / 100, 1.0) for i in range(40)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    with mpmath.workdps(5):  # around all threads: in each of them, their restoring would race
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert mpmath.mp.prec == 53
    assert seen == [expected] * 4
    assert conversion._real.prec == conversion.PRECISION
