"""A guarantee is a value: how much, against which neighbours, for which unit.

Two currencies: pure epsilon, or Gaussian mu with its whole (epsilon, delta) curve. Unlike units or
relations never meet in one sum.

Proof       guarantee.proof.md, of `PrivacyGuarantee.compose` and the constructors.
"""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from adumbra.errors import InvalidInput, Unsupported, require
from adumbra.numerics import figure_upper, fraction_upper
from adumbra.privacy.conversion import (
    DELTA_RANGE,
    MU_RANGE,
    compose_mu,
    delta_of,
    epsilon_of,
    mu_of,
    pure_delta_of,
    pure_to_mu,
)
from adumbra.relations import Relation, Unit, relation_of, require_legal

BUDGET_RANGE = (1e-9, 1e3)  # epsilon that a config or a cap may ask for
QUOTED_RANGE = (1e-12, 1e4)  # epsilon that a sum of budgets may reach
FIELDS = ("unit", "neighbours", "epsilon", "mu", "delta")


def require_budget(epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that no release can be asked for; delta=0 asks for pure epsilon."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        require(_is_number(value), f"{name}={value!r}: must be a number")
    low, high = BUDGET_RANGE
    require(low <= epsilon <= high, f"epsilon={epsilon}: must lie in [{low:g}, {high:g}]; 1 is usual")
    least, most = DELTA_RANGE
    require(
        delta == 0 or least <= delta < most,
        f"delta={delta}: must be 0 (pure) or lie in [{least:g}, {most:g}); 1e-6 is usual",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyGuarantee:
    """Pure epsilon or Gaussian `mu`, one of them; `delta` is where a Gaussian one is quoted."""

    unit: Unit
    neighbours: Relation  # its amount included, where it has one
    pure_epsilon: float | None = None  # "epsilon" where a guarantee is stored
    mu: float | None = None
    delta: float = 0.0
    is_pure: bool = field(init=False, repr=False, compare=False)  # pure epsilon, with no delta at all

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_pure", self.mu is None)
        require_legal(self.unit, self.neighbours)
        require(
            (self.pure_epsilon is None) != (self.mu is None),
            f"pure_epsilon={self.pure_epsilon}, mu={self.mu}: set exactly one of them",
        )
        require(_is_number(self.delta), f"delta={self.delta!r}: must be a number")
        if self.mu is None:
            _require_within("epsilon", self.pure_epsilon, QUOTED_RANGE)
            require(self.delta == 0, f"delta={self.delta}: a pure guarantee has delta=0")
        else:
            _require_within("mu", self.mu, MU_RANGE)
            low, high = DELTA_RANGE
            require(
                low <= self.delta < high,
                f"delta={self.delta}: a Gaussian guarantee is quoted at a delta in [{low:g}, {high:g})",
            )

    @property
    def epsilon(self) -> float:
        """Epsilon at the quoted delta, rounded up; a pure guarantee's own."""
        return self.epsilon_at(self.delta)

    def as_mu(self) -> float:
        """What it costs in the Gaussian currency, rounded up."""
        return self.mu if self.mu is not None else pure_to_mu(_amount(self.pure_epsilon))

    def epsilon_at(self, delta: float) -> float:
        """The epsilon at this delta, rounded up; a pure guarantee's does not depend on delta."""
        return epsilon_of(self.mu, delta) if self.mu is not None else _amount(self.pure_epsilon)

    def delta_at(self, epsilon: float) -> float:
        """The delta at this epsilon, rounded up; 0 for a pure guarantee at its own epsilon and above."""
        if self.mu is not None:
            return delta_of(self.mu, epsilon)
        return pure_delta_of(_amount(self.pure_epsilon), epsilon)

    def compose(self, other: "PrivacyGuarantee") -> "PrivacyGuarantee":
        """Both on the same data: pure ones add, else squares of mu do (a pure one enters by `as_mu`)."""
        if (self.unit, self.neighbours) != (other.unit, other.neighbours):
            message = (
                f"{self.neighbours} per {self.unit} with {other.neighbours} per {other.unit}: "
                "unlike guarantees do not compose; keep one ledger population for each"
            )
            raise Unsupported(message)
        if self.mu is None and other.mu is None:
            total = Fraction(_amount(self.pure_epsilon)) + Fraction(_amount(other.pure_epsilon))
            return PrivacyGuarantee(
                unit=self.unit, neighbours=self.neighbours, pure_epsilon=fraction_upper(total)
            )
        return PrivacyGuarantee(
            unit=self.unit,
            neighbours=self.neighbours,
            mu=compose_mu(self.as_mu(), other.as_mu()),
            delta=max(self.delta, other.delta),
        )

    def checked(self) -> "PrivacyGuarantee":
        """The same, made anew: a forged object (negative, NaN, ...) is refused."""
        return PrivacyGuarantee.from_dict(self.to_dict())

    def quoted(self) -> dict[str, object]:
        """As a card quotes it: fields, epsilon at the quoted delta, and in one line."""
        epsilon = self.epsilon_at(self.delta)
        return {
            "variant": "pure" if self.is_pure else "gaussian",
            "value": self.to_dict(),
            "quoted": {"epsilon": epsilon, "delta": self.delta},
            "sentence": self.sentence_at(epsilon),
        }

    def sentence(self) -> str:
        """The guarantee in one line; figures are rounded up."""
        return self.sentence_at(self.epsilon_at(self.delta))

    def sentence_at(self, epsilon: float) -> str:
        """The same at the epsilon that a card quotes; machines may differ in its last bit."""
        where = f"{self.neighbours}, per {self.unit}"
        if self.mu is None:
            return f"epsilon={figure_upper(epsilon)} (pure), {where}"
        at = f"epsilon={figure_upper(epsilon)} at delta={figure_upper(self.delta)}"
        return f"{at} (mu={figure_upper(self.mu, digits=4)}), {where}"

    def _repr_html_(self) -> str:
        """For notebooks: the sentence."""
        return f"<p>{html.escape(self.sentence())}</p>"

    def facts(self) -> dict[str, str | float | None]:
        """For people and scripts: as `to_dict`, with epsilon at the quoted delta."""
        return {**self.to_dict(), "epsilon": self.epsilon}

    def to_dict(self) -> dict[str, str | float | None]:
        """The fields, for a card or a ledger line; epsilon is that of a pure guarantee."""
        return {
            "unit": str(self.unit),
            "neighbours": str(self.neighbours),
            "epsilon": self.pure_epsilon,
            "mu": self.mu,
            "delta": self.delta,
        }

    @staticmethod
    def from_dict(fields: Mapping[str, object]) -> "PrivacyGuarantee":
        """The inverse of `to_dict`; whatever else is in there is refused."""
        require(
            sorted(fields) == sorted(FIELDS),
            f"guarantee fields={sorted(map(str, fields))}: must be {', '.join(FIELDS)}",
        )
        try:
            unit, neighbours = Unit(str(fields["unit"])), relation_of(str(fields["neighbours"]))
        except ValueError as error:
            message = f"guarantee: {error}; see relations.py for the legal pairs"
            raise InvalidInput(message) from None
        return PrivacyGuarantee(
            unit=unit,
            neighbours=neighbours,
            pure_epsilon=_optional_number("epsilon", fields["epsilon"]),
            mu=_optional_number("mu", fields["mu"]),
            delta=_amount(_optional_number("delta", fields["delta"])),
        )


def pure(epsilon: float, unit: Unit, neighbours: Relation) -> PrivacyGuarantee:
    """Pure epsilon."""
    require_budget(epsilon, 0.0)
    return PrivacyGuarantee(unit=unit, neighbours=neighbours, pure_epsilon=float(epsilon))


def promise(epsilon: float, delta: float, unit: Unit, neighbours: Relation) -> PrivacyGuarantee:
    """What a config's (epsilon, delta) asks for: pure at delta=0, else the largest mu that keeps it."""
    require_budget(epsilon, delta)
    if delta == 0:
        return pure(epsilon, unit, neighbours)
    return PrivacyGuarantee(
        unit=unit, neighbours=neighbours, mu=mu_of(float(epsilon), float(delta)), delta=float(delta)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _optional_number(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, (int, float)) and _is_number(value):
        return float(value)
    message = f"{name}={value!r}: must be a number or null"
    raise InvalidInput(message)


def _require_within(name: str, value: float | None, limits: tuple[float, float]) -> None:
    low, high = limits
    require(
        value is not None and _is_number(value) and low <= value <= high,
        f"{name}={value!r}: must lie in [{low:g}, {high:g}]",
    )


def _amount(value: float | None) -> float:
    """The number that validation has shown to be there."""
    if value is None:
        message = "guarantee: a number is missing"
        raise InvalidInput(message)
    return value
