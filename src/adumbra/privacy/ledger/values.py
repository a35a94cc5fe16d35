"""The nouns of the ledger: populations, states, heads, statements. Frozen values, no storage."""

import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from adumbra.errors import require
from adumbra.privacy.guarantee import require_budget
from adumbra.relations import Relation, Unit, require_legal

MAX_UNITS = 9 * 10**15  # below 2^53: exact in JSON, in int64 sums and in every database
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
