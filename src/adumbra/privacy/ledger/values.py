"""The nouns of the ledger: populations, states, heads, statements, amounts. Frozen values, no storage.

Amounts are integers of 10^-12 units; costs are rounded up, caps are rounded down:

    pure       units = epsilon      (a float is read as the decimal that prints it: 0.1 is 1/10)
    gaussian   units = mu^2         (a pure epsilon enters with mu = pure_to_mu(epsilon))

Proof       ledger.proof.md, of `cost` and `cap`.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache

from scipy.special import log_ndtr

from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.privacy.conversion import epsilon_of
from adumbra.privacy.guarantee import BUDGET_RANGE, PrivacyGuarantee, promise, require_budget
from adumbra.relations import Neighbours, Relation, Unit, require_legal

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class State(StrEnum):
    """Where one spend stands; everything from `reserved` on is charged, except `void`."""

    RESERVED = "reserved"  # charged; no noise drawn yet
    DRAWN = "drawn"  # noise may have been drawn: never again under this id
    SEALED = "sealed"  # the bytes are staged, flushed to disk and their digest is recorded
    PUBLISHING = "publishing"  # the target is recorded; the rename may or may not have happened
    PUBLISHED = "published"  # the release is out
    VOID = "void"  # given up before anything was drawn; the charge was returned


NEXT: dict[State, tuple[State, ...]] = {
    State.RESERVED: (State.DRAWN, State.VOID),
    State.DRAWN: (State.SEALED,),
    State.SEALED: (State.PUBLISHING,),
    State.PUBLISHING: (State.PUBLISHED,),
    State.PUBLISHED: (),
    State.VOID: (),
}


REMEDY: dict[State, str] = {
    State.RESERVED: "nothing was drawn yet; `adumbra ledger void` returns its charge",
    State.DRAWN: "its noise is never drawn again; `adumbra release` once more is a new charge",
    State.SEALED: "`adumbra ledger resume` publishes the same bytes at no new charge",
    State.PUBLISHING: "`adumbra ledger resume` publishes the same bytes at no new charge",
    State.PUBLISHED: "it is done",
    State.VOID: "its charge was returned; `adumbra release` once more is a new charge",
}


class Currency(StrEnum):
    """What a population counts."""

    PURE = "pure"  # the sum of epsilon
    GAUSSIAN = "gaussian"  # the sum of mu squared


@dataclass(frozen=True, slots=True)
class Population:
    """The people (or cells) who share one budget; `delta=0` makes its currency pure epsilon."""

    name: str
    unit: Unit
    neighbours: Relation
    epsilon: float
    delta: float = 1e-6
    owner: str = ""
    purpose: str = ""
    parent: str | None = None

    def __post_init__(self) -> None:
        require(
            NAME.fullmatch(self.name) is not None,
            f"name={self.name!r}: must be 1 to 64 letters, digits, dots, dashes or underscores",
        )
        require_legal(self.unit, self.neighbours)
        require_budget(self.epsilon, self.delta)
        for label, text in (("owner", self.owner), ("purpose", self.purpose)):
            require(
                len(text) <= 400 and text.isprintable(),
                f"{label}: one printable line of at most 400 letters",
            )

    @property
    def currency(self) -> Currency:
        """Pure epsilon without a delta, Gaussian mu squared with one."""
        return Currency.PURE if self.delta == 0 else Currency.GAUSSIAN


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerHead:
    """The end of the public chain, signed: whoever holds it can see a roll-back."""

    ledger: str
    sequence: int
    hash: str
    signature: str
    public_key: str
    # Of a ledger with operators: the last event, and the one that enrolled whoever signed it. The
    # signature above is then that of the enrolment.
    act: dict[str, str] | None = None
    enrolment: dict[str, str] | None = None

    def to_dict(self) -> dict[str, object]:
        """As it is copied into a card."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One spend, as `show` lists it."""

    id: str
    population: str
    state: State
    epsilon: float  # what it was charged, at the population's delta
    guarantee: str  # what it was charged for, in words
    digest: str
    staged: str
    target: str
    day: str  # of its charge
    method: str  # empty where the request does not name it

    @property
    def is_stranded(self) -> bool:
        """Charged, but nothing came out (yet): what a crash leaves behind."""
        return self.state not in (State.PUBLISHED, State.VOID)

    @property
    def remedy(self) -> str:
        """What can be done with it now."""
        return REMEDY[self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two populations whose rows look alike and about which nobody has said why."""

    population: str
    other: str
    share: float  # estimated part of the smaller table that is also in the other
    is_same: bool  # the two tables hold exactly the same rows
    remedy: str  # what the steward can do about it

    def sentence(self) -> str:
        """For the steward's eyes only."""
        what = "the same rows" if self.is_same else f"about {self.share:.0%} of the smaller table's rows"
        return f"populations {self.population} and {self.other} hold {what}; {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapChange:
    """One recorded raise of a cap."""

    sequence: int
    day: str
    before: float
    after: float
    reason: str
    delta: float | None = None  # the new one, if it changed as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The account of one population, in the numbers people use."""

    population: Population
    cap_units: int
    spent_units: int
    spent: float  # epsilon at the population's delta
    left: float  # the largest request that would pass, the ancestors' caps included
    more_like_last: int | None  # None before the first release
    entries: tuple[Entry, ...]
    raised: tuple[CapChange, ...] = ()
    overlaps: tuple[Overlap, ...] = field(default=())

    @property
    def stranded(self) -> tuple[Entry, ...]:
        """Entries that are charged and not published."""
        return tuple(entry for entry in self.entries if entry.is_stranded)

    def sentence(self) -> str:
        """One line: spent, left, and how many more like the last."""
        people = self.population
        at = f" at delta={people.delta!r}" if people.delta else ""
        more = (
            ""
            if self.more_like_last is None
            else f"; about {self.more_like_last} more releases like the last"
        )
        spent = f"epsilon={self.spent!r} spent of {people.epsilon!r}{at}"
        adds = " (squares add)" if people.delta and self.spent_units else ""
        return f"{people.name}: {spent}, {self.left!r} left{adds}{more}"


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
