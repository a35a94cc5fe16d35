"""One declared column, checked: its limits, its codes, its missing value."""

import math
from dataclasses import dataclass
from typing import Any

from adumbra.errors import require
from adumbra.numerics import EXACT
from adumbra.schema.rules import OWN_CATEGORY, Declaration, Kind
from adumbra.schema.times import instant_of

Facts = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Declaration):
    """One column; `missing` is the value that anything unreadable gets.

    By default that is the middle of the bounds or of the ordered levels, the first category, or false.
    With `missing = "null"` an unreadable number stays one, for methods that can give it back. Bounds,
    atoms and the missing value of dates and times are given as such, or as ISO text.
    """

    def __post_init__(self) -> None:
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
        return "atoms" if self.atoms else "source" if self.source else ""

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
        if self.is_numeric:
            lower, upper = self.limits
            if self.missing is None:
                middle = lower + (upper - lower) / 2
                return float(round(middle)) if self.is_whole else middle
            if self.keeps_null:  # the next value above the bounds, which no other cell can have
                return upper + 1.0 if self.is_whole else math.nextafter(upper, math.inf)
            ranked = self.kind is Kind.ORDINAL
            return float(self.categories.index(str(self.missing)) if ranked else self.missing)
        if self.kind is Kind.BOOLEAN:
            return float(bool(self.missing))
        if self.missing == OWN_CATEGORY:
            return float(len(self.categories))
        return float(self.categories.index(str(self.missing))) if self.missing is not None else 0.0

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
        given |= {"cast": True} if self.cast else {}
        return given | ({"source": self.source} if self.source else {})


def _held(value: Any) -> Any:  # noqa: ANN401  (a number, a word or nothing)
    """Canonical JSON holds large whole numbers as floats."""
    return float(value) if isinstance(value, int) and abs(value) >= EXACT else value
