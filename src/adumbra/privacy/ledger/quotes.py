"""What a release would take of each account that pays for it, in the account's own numbers."""

from dataclasses import asdict, dataclass

from sqlalchemy import Connection

from adumbra.numerics import figure_lower, figure_upper
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import amounts
from adumbra.privacy.ledger.accounts import lineage, prices


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
                takes=amounts.spent_epsilon([guarantee], people),
                left=amounts.affordable(account.left, people, people.delta),
                left_after=amounts.affordable(account.left - units, people, people.delta),
            )
        )
    return tuple(found)
