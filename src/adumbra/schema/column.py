"""One declared column, checked: its limits, its codes, its missing value."""

import math
from dataclasses import dataclass
from typing import Any

from adumbra.errors import require
from adumbra.numerics import EXACT
from adumbra.schema.rules import OWN_CATEGORY, Declaration, Kind
from adumbra.schema.times import instant_of

Facts = dict[str, object]
# What encloses bounds that are to be bought, where nothing narrower is declared.
WIDEST: dict[Kind, tuple[Any, Any]] = {
    Kind.NUMBER: (-(2.0**40), 2.0**40),
    Kind.INTEGER: (-(2**40), 2**40),
    Kind.DATE: ("1900-01-01", "2100-01-01"),
    Kind.DATETIME: ("1900-01-01T00:00:00", "2100-01-01T00:00:00"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Declaration):
    """One column; `missing` is the value that anything unreadable gets.

    By default that is the middle of the bounds or of the ordered levels, the first category, or false.
    With `missing = "null"` an unreadable number stays one, for methods that can give it back. Bounds,
    atoms and the missing value of dates and times are given as such, or as ISO text.
    """

    def __post_init__(self) -> None:
        if self.private is True and self.lower is None and self.upper is None and self.kind in WIDEST:
            for name, value in zip(("lower", "upper"), WIDEST[self.kind], strict=True):
                object.__setattr__(self, name, value)
        if self.kind in (Kind.DATE, Kind.DATETIME):
            for name in ("lower", "upper", "missing"):
                object.__setattr__(self, name, self._instant(getattr(self, name)))
            object.__setattr__(self, "atoms", tuple(self._instant(value) for value in self.atoms))
        faults = self.faults()
        require(not faults, "; ".join(f"column {self.name!r}, {message}" for _, message in faults))
        for name in ("lower", "upper", "missing"):
            object.__setattr__(self, name, _held(getattr(self, name)))
        object.__setattr__(self, "atoms", tuple(sorted(map(_held, self.atoms))))

    def _instant(self, value: Any) -> Any:  # noqa: ANN401  (what is no date is refused by `faults`)
        """A date or time as a whole number; anything else as it is."""
        found = instant_of(self.kind, value)
        return value if found is None else found

    @property
    def newer_field(self) -> str:
        """What of it the first format cannot say; empty if there is nothing."""
        if self.kind in (Kind.DATE, Kind.DATETIME, Kind.ORDINAL):
            return f"kind={str(self.kind)!r}"
        named = ("atoms", "source", "private")
        return next((name for name in named if getattr(self, name)), "")

    @property
    def limits(self) -> tuple[float, float]:
        """The closed range of the column's float64 values: its bounds, or its first and last code."""
        if self.lower is not None and self.upper is not None:
            return float(self.lower), float(self.upper)
        return 0.0, float(self.levels - 1)

    @property
    def levels(self) -> int:
        """How many codes there are; 0 for a column with bounds."""
        if self.kind is Kind.BOOLEAN:
            return 2
        return len(self.categories) + (self.missing == OWN_CATEGORY)

    @property
    def fill(self) -> float:
        """The float64 value (number or code) of everything unreadable."""
        if self.private or self.keeps_null:  # of a private column it is counted nowhere
            return self._beyond
        if self.is_numeric and self.missing is None:
            lower, upper = self.limits
            middle = lower + (upper - lower) / 2
            return float(round(middle)) if self.is_whole else middle
        if self.kind.has_bounds:
            return float(self.missing or 0)
        if self.kind is Kind.BOOLEAN:
            return float(bool(self.missing))
        if self.missing == OWN_CATEGORY and self.kind is Kind.CATEGORY:
            return float(len(self.categories))
        return float(self.categories.index(str(self.missing))) if self.missing is not None else 0.0

    @property
    def _beyond(self) -> float:
        """The next value above the bounds or codes, which no other cell can have."""
        upper = self.limits[1]
        return upper + 1.0 if self.is_whole else math.nextafter(upper, math.inf)

    def _plain(self, value: float | str | None) -> object:
        """A declared value as a file writes it."""
        is_time = self.kind.is_time and isinstance(value, int | float)
        return self.text(float(value)) if is_time else value  # type: ignore[arg-type]

    def facts(self) -> Facts:
        """The declared fields, without those left at their default."""
        given: Facts = {"name": self.name, "kind": str(self.kind)}
        if self.kind.has_bounds:
            given |= {"lower": self._plain(self.lower), "upper": self._plain(self.upper)}
        if self.atoms:
            given["atoms"] = [self._plain(value) for value in self.atoms]
        if self.categories:
            given["categories"] = list(self.categories)
        if self.missing is not None:
            given["missing"] = self._plain(self.missing)
        given |= {name: True for name in ("cast", "private") if getattr(self, name)}
        return given | ({"source": self.source} if self.source else {})


def _held(value: Any) -> Any:  # noqa: ANN401  (a number, a word or nothing)
    """Canonical JSON holds large whole numbers as floats."""
    return float(value) if isinstance(value, int) and abs(value) >= EXACT else value
