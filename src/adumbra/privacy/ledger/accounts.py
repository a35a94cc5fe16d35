"""Accounts: what a spend costs each population that pays for it, and the guarded charge itself.

Amounts are integers of 10^-12 units; costs are rounded up, caps are rounded down:

    pure       units = epsilon      (a float is read as the decimal that prints it: 0.1 is 1/10)
    gaussian   units = mu^2         (a pure epsilon enters with mu = pure_to_mu(epsilon))

`charge` runs inside one write transaction, given by its `Chain`.

Proof       ledger.proof.md, of `cost`, `cap` and `charge`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cache

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from adumbra.errors import BudgetRefused, InvalidInput, Unsupported
from adumbra.numerics import figure_lower, figure_upper
from adumbra.privacy.conversion import epsilon_of
from adumbra.privacy.guarantee import BUDGET_RANGE, PrivacyGuarantee, promise
from adumbra.privacy.ledger.chain import Chain
from adumbra.privacy.ledger.model import populations
from adumbra.privacy.ledger.values import MAX_UNITS, Currency, Population
from adumbra.relations import Neighbours, Unit, relation_of

# Statements of every release, built once: to put one together takes longer than to run it.
_POPULATION = select(populations).where(populations.c.name == bindparam("wanted"))
_GUARDED = (
    update(populations)
    .where(populations.c.name == bindparam("of"))
    .where(populations.c.spent + bindparam("units") <= populations.c.cap)
    .values(spent=populations.c.spent + bindparam("units"))
    .returning(populations.c.spent)
)
SCALE = 10**12  # units of 1
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
        from scipy.special import log_ndtr  # noqa: PLC0415 - slow to import, and few refusals need it

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


@dataclass(frozen=True, slots=True)
class Account:
    """One population's row."""

    population: Population
    cap: int
    spent: int

    @property
    def left(self) -> int:
        """Units that may still be spent."""
        return self.cap - self.spent


def all_accounts(connection: Connection) -> list[Account]:
    """Every population, by name."""
    rows = connection.execute(select(populations).order_by(populations.c.name)).mappings()
    return [_account(row) for row in rows]


def lineage(connection: Connection, name: str) -> list[Account]:
    """A population and its ancestors, itself first: all of them pay."""
    found: list[Account] = []
    wanted: str | None = name
    while wanted is not None:
        row = connection.execute(_POPULATION, {"wanted": wanted}).mappings().first()
        if row is None:
            raise _unknown(connection, wanted)
        found.append(_account(row))
        wanted = found[-1].population.parent
    return found


def _unknown(connection: Connection, name: str) -> InvalidInput:
    """A near name goes first: the same people under two names would have two budgets."""
    command = f"run `adumbra ledger register {name}`"
    known = [str(other) for other in connection.execute(select(populations.c.name)).scalars()]
    near = get_close_matches(name, known, n=1)
    remedy = f"did you mean {near[0]}? For other people {command}" if near else command
    return InvalidInput(f"population={name}: not registered; {remedy}")


def _account(row: RowMapping) -> Account:
    population = Population(
        name=row["name"],
        unit=Unit(row["unit"]),
        neighbours=relation_of(row["neighbours"]),
        epsilon=float(row["epsilon"]),
        delta=float(row["delta"]),
        owner=row["owner"],
        purpose=row["purpose"],
        parent=row["parent"] or None,
    )
    return Account(population, row["cap"], row["spent"])


def unlike(one: Unit, other: Unit) -> str:
    """Why a release of rows cannot be charged to persons, nor the other way round."""
    if Unit.PERSON not in (one, other) or one is other:
        return ""
    return (
        ": a person may have any number of rows, so what hides one row says nothing of a person; "
        "declare unit='person' in the schema, or register the same people apart and quote both"
    )


def prices(accounts: Sequence[Account], guarantee: PrivacyGuarantee) -> list[int]:
    """What each account would pay; a guarantee that does not fit is refused with the reason."""
    people = accounts[0].population
    guarantee.checked()
    if (guarantee.unit, guarantee.neighbours) != (people.unit, people.neighbours):
        raise Unsupported(
            f"guarantee={guarantee.unit}/{guarantee.neighbours}: population {people.name} is registered "
            f"for {people.unit}/{people.neighbours}; unlike guarantees do not add"
            + unlike(guarantee.unit, people.unit)
        )
    return [cost(guarantee, account.population) for account in accounts]


def check(connection: Connection, name: str, guarantee: PrivacyGuarantee) -> None:
    """Refuse what cannot pass, without taking the write lock; `charge` decides again."""
    accounts = lineage(connection, name)
    if any(
        units > account.left
        for account, units in zip(accounts, prices(accounts, guarantee), strict=True)
    ):
        raise refusal(accounts, guarantee)


def charge(chain: Chain, name: str, guarantee: PrivacyGuarantee) -> dict[str, int]:
    """Charge a population and every ancestor, or refuse and change nothing: the gate."""
    accounts = lineage(chain.connection, name)
    paid = {}
    for account, units in zip(accounts, prices(accounts, guarantee), strict=True):
        if not pay(chain.connection, account.population.name, units):
            raise refusal(accounts, guarantee)
        paid[account.population.name] = units
    return paid


def pay(connection: Connection, name: str, units: int) -> bool:
    """Add to `spent` if, and only if, the cap allows it: one guarded statement."""
    if units > MAX_UNITS:
        return False
    return connection.execute(_GUARDED, {"of": name, "units": units}).first() is not None


def refusal(accounts: Sequence[Account], guarantee: PrivacyGuarantee) -> BudgetRefused:
    """Asked, left and the largest request that would pass, at the delta that was asked for."""
    asked = guarantee.epsilon_at(guarantee.delta)
    asked = asked if guarantee.is_pure else shown(asked)
    narrowest = min(accounts, key=lambda account: room(account, guarantee.delta))
    largest = room(narrowest, guarantee.delta)
    people = narrowest.population
    at = f" at delta={people.delta!r}" if people.delta else ""
    advice = f"ask for at most {largest!r}" if largest > 0 else "the budget of these people is spent"
    if guarantee.is_pure and people.delta and largest > 0:
        advice += f", or for more with a delta of {people.delta!r} (a pure epsilon costs more here)"
    return BudgetRefused(
        f"epsilon={asked!r} asked, {largest!r} left of {people.epsilon!r}{at} for population "
        f"{people.name}; {advice}; only `adumbra ledger raise`, with a written reason, allows more",
        asked=asked,
        left=largest,
        largest=largest,
    )


def room(account: Account, delta: float) -> float:
    """The largest epsilon at this delta (0: pure) that the account can still pay."""
    return affordable(account.left, account.population, delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The price of one guarantee in one account; every epsilon is at the account's delta."""

    population: str
    delta: float  # 0: the account adds epsilons; above 0: squares of mu
    cap: float
    takes: float
    left: float
    left_after: float

    def sentence(self) -> str:
        """For whoever is about to pay."""
        at = f" at delta={figure_upper(self.delta)}" if self.delta else ""
        adds = " (squares add)" if self.delta else ""
        takes, cap = figure_upper(self.takes, 12), figure_upper(self.cap, 12)
        left, after = figure_lower(self.left, 12), figure_lower(self.left_after, 12)
        return (
            f"{self.population}: takes epsilon={takes} of {cap}{at}; "
            f"{left} left before, {after} after{adds}"
        )

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def quote(connection: Connection, name: str, guarantee: PrivacyGuarantee) -> tuple[Quote, ...]:
    """The price in a population's account and in each of its ancestors', itself first."""
    found = []
    above = lineage(connection, name)
    for account, units in zip(above, prices(above, guarantee), strict=True):
        people = account.population
        found.append(
            Quote(
                population=people.name,
                delta=people.delta,
                cap=people.epsilon,
                takes=spent_epsilon([guarantee], people),
                left=affordable(account.left, people, people.delta),
                left_after=affordable(account.left - units, people, people.delta),
            )
        )
    return tuple(found)
