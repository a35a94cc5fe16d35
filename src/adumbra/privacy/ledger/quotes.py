"""What a release would take of each account that pays for it, in the account's own numbers."""

from dataclasses import asdict, dataclass

from sqlalchemy import Connection

from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger import money
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
        at = f" at delta={self.delta:g}" if self.delta else ""
        adds = " (squares add)" if self.delta else ""
        return (
            f"{self.population}: takes epsilon={self.takes:.12g} of {self.cap:.12g}{at}; "
            f"{self.left:.12g} left before, {self.left_after:.12g} after{adds}"
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
                takes=money.spent_epsilon(units, people),
                left=money.affordable(account.left, people, people.delta),
                left_after=money.affordable(account.left - units, people, people.delta),
            )
        )
    return tuple(found)
