"""Between the currencies: pure epsilon, bounded range, Gaussian mu, and the (epsilon, delta) curve.

    delta(mu, epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

Every function returns the float that is nearest to the real value on the side of more noise or higher
cost. The arithmetic that decides it is 256-bit, with a relative allowance of 2^-128 against ourselves:
float64 loses up to 14 digits of the difference above when mu is small, and no constant repairs that.

Guarantee   the result errs to the safe side, for every admitted argument.
Reference   Balle & Wang 2018; Dong, Roth & Su 2022; Dong, Durfee & Rogers 2020; Smith & Thakurta 2022.
Proof       conversion.proof.md.
Limits      the library mpmath is trusted to compute erfc and exp to the precision asked for.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from mpmath import mpf
from mpmath.ctx_mp import MPContext

from adumbra.errors import require
from adumbra.numerics import fraction_upper

# From a budget and a sensitivity to a noise scale: always rounded toward more noise.
#
# Guarantee   noise of these scales on a value of the stated sensitivity costs at most the stated budget.
# Reference   Dwork, McSherry, Nissim & Smith 2006 (Laplace); Balle & Wang 2018 (analytic Gaussian);
# Durfee & Rogers 2019 (Gumbel, bounded range).
# Proof       calibration.proof.md.
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


EPSILON_RANGE = (1e-12, 1e4)  # what the proof of the numerics admits; a budget may be narrower
MU_RANGE = (1e-12, 1e4)
DELTA_RANGE = (1e-300, 0.5)

PRECISION = 256  # bits
SLACK = math.ldexp(1.0, -128)  # relative allowance for every error of the 256-bit evaluation
FAR = 40.0  # Phi(-40) < 2^-1074: beyond, delta is below the smallest float

# A context of our own: its precision is set here and never again, so threads and other users of mpmath
# cannot change it, and the two functions used below (exp, erfc of a real) read it only.
_real = MPContext()
_real.prec = PRECISION
_mpf = _real.mpf


def delta_of(mu: float, epsilon: float) -> float:
    """The delta of a mu-GDP release at this epsilon, rounded up."""
    _require_mu(mu)
    require(
        0 <= epsilon <= EPSILON_RANGE[1], f"epsilon={epsilon}: must lie in [0, {EPSILON_RANGE[1]:g}]"
    )
    if epsilon / mu - mu / 2 > FAR:
        return math.ulp(0.0)
    return min(_float_upper(_delta(mu, epsilon)), 1.0)


@lru_cache(maxsize=4096)
def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon (not below 1e-12) at which a mu-GDP release has this delta, rounded up."""
    _require_mu(mu)
    _require_delta(delta)

    def excess(epsilon: float) -> float:
        return float(_real.log(_delta(mu, epsilon) / delta))

    smallest = EPSILON_RANGE[0]
    if excess(smallest) <= 0:
        return smallest
    # delta <= Phi(mu/2 - epsilon/mu), which is at most the target here (Numerics, bracket).
    largest = mu * mu / 2 + mu * _quantile_upper(delta)
    return _edge(excess, _root(excess, smallest, largest), safe=math.inf, unsafe=0.0)


@lru_cache(maxsize=4096)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose curve passes under (epsilon, delta), rounded down."""
    _require_epsilon(epsilon)
    _require_delta(delta)

    def excess(mu: float) -> float:
        return float(_real.log(_delta(mu, epsilon) / delta))

    # Both are below the answer: delta <= Phi(mu/2 - epsilon/mu), and delta <= mu / sqrt(2 pi).
    z = _quantile_upper(delta)
    from_epsilon = 2 * epsilon / (z + math.sqrt(z * z + 2 * epsilon))
    smallest = 0.999 * max(from_epsilon, delta * math.sqrt(2 * math.pi))
    largest = 2 * smallest
    while excess(largest) <= 0:
        smallest, largest = largest, 2 * largest
    return _edge(excess, _root(excess, smallest, largest), safe=0.0, unsafe=math.inf)


@lru_cache(maxsize=4096)
def pure_to_mu(epsilon: float) -> float:
    """The mu at which a pure epsilon mechanism enters a Gaussian account, rounded up.

    2 Phi^-1(e^epsilon / (1 + e^epsilon)), that is Phi(-mu/2) (1 + e^epsilon) = 1.
    """
    _require_epsilon(epsilon)
    odds = 1 + _real.exp(epsilon)

    def excess(mu: float) -> float:
        return float(_real.log(_tail(_mpf(mu) / 2) * odds * (1 + _mpf(SLACK))))

    # mu <= epsilon sqrt(2 pi)/2 (h is concave) and mu <= sqrt(8 log odds) (the normal tail).
    largest = min(1.2534 * epsilon, math.sqrt(8 * float(_real.log(odds))))
    return _edge(excess, _root(excess, 0.0, largest), safe=math.inf, unsafe=0.0)


def bounded_range_to_mu(epsilon: float) -> float:
    """The mu of an epsilon-bounded-range selection (exponential mechanism, Gumbel).

    The same as of a pure epsilon/2 mechanism (claim 3 of the proof).
    """
    return pure_to_mu(epsilon / 2)


def mu_to_bounded_range(mu: float) -> float:
    """The largest epsilon whose bounded-range selection costs at most mu, rounded down.

    2 log(Phi(mu/2) / Phi(-mu/2)), the inverse of `bounded_range_to_mu`.
    """
    _require_mu(mu)
    half = _mpf(mu) / 2
    epsilon = float(2 * _real.log(_tail(-half) / _tail(half)))
    require(
        2 * EPSILON_RANGE[0] <= epsilon <= EPSILON_RANGE[1],
        f"mu={mu}: its selection parameter {epsilon:.3g} leaves [2e-12, 1e4]; ask for another budget",
    )
    while bounded_range_to_mu(epsilon) > mu:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def compose_mu(*mus: float) -> float:
    """The mu of all of them together, sqrt(sum mu_i^2): the smallest float that is not below it."""
    require(len(mus) >= 1, "mus=(): nothing to compose; give at least one")
    for mu in mus:
        _require_mu(mu)
    exact = sum((Fraction(mu) ** 2 for mu in mus), Fraction(0))
    root = math.sqrt(exact)
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def pure_delta_of(claimed: float, epsilon: float) -> float:
    """The largest delta at `epsilon` that a pure `claimed` mechanism can have, rounded up.

    max(0, (e^claimed - e^epsilon) / (1 + e^claimed)); randomised response reaches it.
    """
    _require_epsilon(claimed)
    require(epsilon >= 0, f"epsilon={epsilon}: must not be below 0")
    if epsilon >= claimed:
        return 0.0
    top = _real.exp(claimed)
    return _float_upper((top - _real.exp(epsilon)) / (1 + top) * (1 + _mpf(SLACK)))


def _delta(mu: float, epsilon: float) -> mpf:
    """The curve in 256 bits, times 1 + SLACK: not below the real value."""
    far = _mpf(epsilon) / mu
    half = _mpf(mu) / 2
    exact = _tail(far - half) - _real.exp(epsilon) * _tail(far + half)
    return exact * (1 + _mpf(SLACK))


def _tail(x: mpf) -> mpf:
    """Phi(-x) = erfc(x / sqrt 2) / 2."""
    return _real.erfc(x / _real.sqrt(2)) / 2


def _quantile_upper(delta: float) -> float:
    """A z with Phi(-z) <= delta, from Phi(-z) <= e^(-z^2/2)/2; the factor outweighs the float errors."""
    return 1.000001 * math.sqrt(-2 * math.log(2 * delta)) + 1e-6


def _root(excess: Callable[[float], float], a: float, b: float) -> float:
    """A float within a few steps of the sign change between a and b (Illinois' regula falsi)."""
    value_a, value_b = excess(a), excess(b)
    while True:
        x = b - value_b * (b - a) / (value_b - value_a)
        value = excess(x)
        if value == 0 or abs(x - b) <= 2 * math.ulp(x):
            return x
        if (value > 0) == (value_b > 0):
            value_a /= 2
        else:
            a, value_a = b, value_b
        b, value_b = x, value


def _edge(excess: Callable[[float], float], x: float, *, safe: float, unsafe: float) -> float:
    """The last float, from `safe` to `unsafe`, at which nothing is exceeded; x is a guess near it."""
    while excess(x) > 0:
        x = math.nextafter(x, safe)
    while excess(beyond := math.nextafter(x, unsafe)) <= 0:
        x = beyond
    return x


def _float_upper(value: mpf) -> float:
    """The smallest float that is not below a 256-bit number."""
    nearest = float(value)
    return nearest if _mpf(nearest) >= value else math.nextafter(nearest, math.inf)


def _require_mu(mu: float) -> None:
    low, high = MU_RANGE
    require(low <= mu <= high, f"mu={mu}: must lie in [{low:g}, {high:g}]; ask for another budget")


def _require_epsilon(epsilon: float) -> None:
    low, high = EPSILON_RANGE
    require(
        low <= epsilon <= high,
        f"epsilon={epsilon}: must lie in [{low:g}, {high:g}]; ask for another budget",
    )


def _require_delta(delta: float) -> None:
    low, high = DELTA_RANGE
    require(low <= delta < high, f"delta={delta}: must lie in [{low:g}, {high:g}); 1e-6 is usual")
