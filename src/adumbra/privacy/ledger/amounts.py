"""The ledger's currencies as integers: 10^-12 units, costs rounded up, caps rounded down.

    pure       units = epsilon      (a float is read as the decimal that prints it: 0.1 is 1/10)
    gaussian   units = mu^2         (a pure epsilon enters with mu = pure_to_mu(epsilon))

Proof       ledger.proof.md, of `cost` and `cap`.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache

from scipy.special import log_ndtr

from adumbra.errors import InvalidInput, Unsupported
from adumbra.privacy.conversion import epsilon_of
from adumbra.privacy.guarantee import BUDGET_RANGE, PrivacyGuarantee, promise
from adumbra.privacy.ledger.values import Currency, Population
from adumbra.relations import Neighbours, Unit

SCALE = 10**12
MAX_UNITS = 9 * 10**15  # below 2^53: exact in JSON, in int64 sums and in every database
DIGITS = 6  # significant digits of a Gaussian account's printed epsilon
PURE_DIGITS = 15  # of a pure one's: as many as pass through a float unchanged


def decimal(value: float) -> Fraction:
    """The number a person wrote: the shortest decimal that reads back as this float."""
    return Fraction(repr(float(value)))


def cost(guarantee: PrivacyGuarantee, population: Population) -> int:
    """What a guarantee costs a population, in units, rounded up; at least one unit.

    A spend that asks for the whole cap, fraction of a unit included, costs the whole cap.
    """
    exact = _amount(guarantee, population.currency) * SCALE
    units = max(1, math.ceil(exact))
    whole = _whole(population.epsilon, population.delta)
    return math.floor(whole) if exact <= whole < units else units


def cap(population: Population, given_up: int = 0) -> int:
    """A population's budget in units, rounded down, less what raises of a full account gave up."""
    units = math.floor(_whole(population.epsilon, population.delta)) - given_up
    if not 1 <= units <= MAX_UNITS:
        raise InvalidInput(
            f"epsilon={population.epsilon!r}, delta={population.delta!r}: too small a cap for the ledger"
        )
    return units


@cache
def _whole(epsilon: float, delta: float) -> Fraction:
    """A cap (epsilon, delta) in units, exactly."""
    whole = promise(epsilon, delta, Unit.ROW, Neighbours.REPLACE_ONE)  # the relation has no price
    return _amount(whole, Currency.PURE if delta == 0 else Currency.GAUSSIAN) * SCALE


def _amount(guarantee: PrivacyGuarantee, currency: Currency) -> Fraction:
    """Epsilon or mu squared, exactly; a Gaussian guarantee has no price in a pure population."""
    if currency is Currency.GAUSSIAN:
        return Fraction(guarantee.as_mu()) ** 2
    if guarantee.pure_epsilon is None:
        raise Unsupported(
            f"guarantee={guarantee.sentence()}: a pure population takes pure epsilon only; "
            "use delta=0 or a population registered with a delta"
        )
    return decimal(guarantee.pure_epsilon)


def spent_epsilon(spends: Iterable[PrivacyGuarantee], population: Population) -> float:
    """What these spends come to as epsilon at the population's delta, rounded up to printed digits.

    From the guarantees themselves: their units are rounded, and a spend of the whole cap may be charged
    a fraction of a unit less than it is.
    """
    total = sum((_amount(spend, population.currency) for spend in spends), Fraction(0))
    if population.currency is Currency.PURE or total == 0:
        whole, parts = Decimal(total.numerator), Decimal(total.denominator)
        return float(Context(prec=PURE_DIGITS, rounding=ROUND_CEILING).divide(whole, parts))
    epsilon = shown(epsilon_of(_sqrt_upper(total), population.delta))
    return (
        min(population.epsilon, epsilon)
        if total * SCALE <= _whole(population.epsilon, population.delta)
        else epsilon
    )


def affordable(units: int, population: Population, delta: float) -> float:
    """The largest epsilon at this delta (0: pure) that costs at most `units`; 0 when there is none.

    What it returns costs at most `units` itself, so a refusal may print it as advice.
    """
    mu = _sqrt_lower(max(units, 0))
    if units <= 0:
        return 0.0
    if population.currency is Currency.PURE:
        guess, digits = float(Fraction(units, SCALE)), PURE_DIGITS
    elif delta == 0:  # the inverse of mu = 2 Phi^-1(e^eps / (1 + e^eps))
        guess, digits = float(log_ndtr(mu / 2) - log_ndtr(-mu / 2)), DIGITS
    else:
        guess, digits = epsilon_of(mu, delta), DIGITS
    guess = min(guess, BUDGET_RANGE[1])
    for candidate in (
        _digits(guess, ROUND_HALF_EVEN, digits),
        _digits(guess, ROUND_FLOOR, digits),
        _digits(guess * (1 - 10.0 ** (1 - digits)), ROUND_FLOOR, digits),
    ):
        if candidate >= BUDGET_RANGE[0] and _price(candidate, delta, population) <= units:
            return candidate
    return 0.0


def shown(epsilon: float) -> float:
    """An epsilon at the digits that people read, rounded up."""
    return _digits(epsilon, ROUND_CEILING, DIGITS)


def _price(epsilon: float, delta: float, population: Population) -> int:
    """The cost of a request (epsilon, delta)."""
    return cost(promise(epsilon, delta, population.unit, population.neighbours), population)


def _digits(value: float, rounding: str, digits: int) -> float:
    """A float at so many significant digits."""
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - digits + 1)), rounding=rounding))


def _sqrt_upper(exact: Fraction) -> float:
    """The smallest float whose square is not below `exact`: mu itself for one spend."""
    root = math.sqrt(exact)
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    while Fraction(math.nextafter(root, 0.0)) ** 2 >= exact:
        root = math.nextafter(root, 0.0)
    return root


def _sqrt_lower(units: int) -> float:
    """The root of `units` in real size: a float that is not above it."""
    exact = Fraction(units, SCALE)
    root = math.sqrt(exact)
    while Fraction(root) ** 2 > exact:
        root = math.nextafter(root, 0.0)
    return root
