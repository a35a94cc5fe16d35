"""From a budget and a sensitivity to a noise scale: always rounded toward more noise.

Guarantee   noise of these scales on a value of the stated sensitivity costs at most the stated budget.
Reference   Dwork, McSherry, Nissim & Smith 2006 (Laplace); Balle & Wang 2018 (analytic Gaussian);
            Durfee & Rogers 2019 (Gumbel, bounded range).
Proof       calibration.proof.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from adumbra.errors import require
from adumbra.numerics import fraction_upper
from adumbra.privacy.conversion import bounded_range_to_mu, mu_to_bounded_range

SHARES_TOLERANCE = Fraction(1, 10**9)  # decimal shares such as 0.1, 0.2, 0.7 do not add to 1 as floats


def gaussian_sigma(l2: float, mu: float) -> float:
    """The standard deviation l2 / mu, rounded up: mu-GDP for a value of L2 sensitivity l2.

    With mu_of(epsilon, delta) it is the analytic Gaussian mechanism.
    """
    return _ratio_upper("l2", l2, "mu", mu)


def laplace_scale(l1: float, epsilon: float) -> float:
    """The Laplace scale l1 / epsilon, rounded up: pure epsilon for a value of L1 sensitivity l1."""
    return _ratio_upper("l1", l1, "epsilon", epsilon)


def gumbel_scale(score_range: float, epsilon0: float) -> float:
    """The Gumbel scale g / epsilon0, rounded up: each round is epsilon0-bounded-range and epsilon0-DP.

    g is the largest spread, over neighbours, of the changes of any two scores.
    """
    return _ratio_upper("score_range", score_range, "epsilon0", epsilon0)


def gumbel_epsilon0(mu: float, k: int) -> float:
    """The largest epsilon0 of k peeled Gumbel rounds within mu: k mu(epsilon0/2)^2 <= mu^2."""
    require(k >= 1, f"k={k}: must be at least 1")
    epsilon0 = mu_to_bounded_range(mu / math.sqrt(k))
    # The division above rounds; the inequality itself is checked in exact rationals.
    while k * Fraction(bounded_range_to_mu(epsilon0)) ** 2 > Fraction(mu) ** 2:
        epsilon0 = math.nextafter(epsilon0, 0.0)
    return epsilon0


def split_mu(mu: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Parts mu_i = mu sqrt(share_i), rounded down, so that sum mu_i^2 <= mu^2; shares add to 1."""
    _require_positive("mu", mu)
    square = Fraction(mu) ** 2
    parts = []
    for share in _exact_shares(shares):
        part = math.sqrt(square * share)
        while Fraction(part) ** 2 > square * share:
            part = math.nextafter(part, 0.0)
        parts.append(part)
    return tuple(parts)


def split_epsilon(epsilon: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Parts epsilon share_i, rounded down, so that their sum is at most epsilon; shares add to 1."""
    _require_positive("epsilon", epsilon)
    # -upper(-x) is the largest float that is not above x.
    return tuple(-fraction_upper(-Fraction(epsilon) * share) for share in _exact_shares(shares))


def _exact_shares(shares: Sequence[float]) -> list[Fraction]:
    """The shares as rationals that add to exactly 1."""
    for share in shares:
        _require_positive("share", share)
    exact = [Fraction(share) for share in shares]
    total = sum(exact, Fraction(0))
    require(
        abs(total - 1) <= SHARES_TOLERANCE,
        f"shares={tuple(shares)}: must add up to 1, not {float(total):g}; divide each by their sum",
    )
    return [share / total for share in exact]


def _ratio_upper(name: str, sensitivity: float, amount_name: str, amount: float) -> float:
    """The quotient, rounded up; a sensitivity of 0 would mean no noise, so it is refused."""
    _require_positive(name, sensitivity)
    _require_positive(amount_name, amount)
    exact = Fraction(sensitivity) / Fraction(amount)
    require(
        exact < Fraction(2) ** 1000, f"{name}={sensitivity}, {amount_name}={amount}: the scale overflows"
    )
    return fraction_upper(exact)


def _require_positive(name: str, value: float) -> None:
    require(math.isfinite(value) and value > 0, f"{name}={value}: must be finite and above 0")
