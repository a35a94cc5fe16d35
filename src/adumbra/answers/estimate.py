"""One answer: a value, its interval, where the error comes from, and the truth that it is about."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import ndtri

from adumbra.errors import require

HIDDEN = "hidden by noise"
TABLE, POPULATION = "the table as encoded", "the population that the rows are a sample of"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its error; `interval` covers `target` in at least `level` of all releases.

    `std_error` joins `privacy` (the noise) and `sampling` (0 unless the population was asked about).
    `unresolved` is half of what the released cells leave open; the interval includes it.
    """

    value: float  # NaN if hidden
    std_error: float
    interval: tuple[float, float]
    level: float
    privacy: float  # standard deviation of the privacy noise
    sampling: float  # standard deviation of sampling
    target: str  # the truth that the interval is about
    unresolved: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def is_hidden(self) -> bool:
        """Whether the noise hides the answer."""
        return math.isnan(self.value)

    def __str__(self) -> str:
        low, high = (f"{end:.6g}" for end in self.interval)
        if self.is_hidden:
            return f"{HIDDEN} (between {low} and {high})"
        interval = f"{100 * self.level:.4g} % interval {low} to {high}"
        return f"{self.value:.6g}, {interval} (standard error {self.std_error:.2g})"

    def _repr_html_(self) -> str:
        """For notebooks: value, interval and the truth that it is about, escaped."""
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        listed = f"<ul>{notes}</ul>" if notes else ""
        said, target = html.escape(str(self)), html.escape(self.target)
        return f"<div><p><strong>{said}</strong><br>{target}</p>{listed}</div>"

    def to_dict(self) -> dict[str, object]:
        """Plain values; what is not finite is None, as JSON has no such numbers."""
        return {
            "value": _finite(self.value),
            "std_error": _finite(self.std_error),
            "interval": [_finite(end) for end in self.interval],
            "level": self.level,
            "privacy": _finite(self.privacy),
            "sampling": self.sampling,
            "unresolved": self.unresolved,
            "hidden": self.is_hidden,
            "target": self.target,
            "notes": list(self.notes),
        }


Answer = Estimate | Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How an answer is wanted."""

    level: float = 0.95
    population: bool = False

    def __post_init__(self) -> None:
        require(
            isinstance(self.level, float) and 0.0 < self.level < 1.0,
            f"level={self.level!a}: must lie between 0 and 1, such as 0.95",
        )

    def reach(self, *, is_laplace: bool, sides: int = 2) -> float:
        """Standard deviations from the value to an end of the interval.

        The sum of few Laplace noises lies between one Laplace noise and a normal law; the larger of
        both quantiles serves. `sides` is how many ends share the chance of a miss.
        """
        miss = (1.0 - self.level) / sides
        normal = float(-ndtri(miss))
        return max(normal, math.log(0.5 / miss) / math.sqrt(2.0)) if is_laplace else normal

    def truth(self, words: str) -> str:
        """The target of an interval, in words."""
        return f"{words} in {POPULATION if self.population else TABLE}"


def hidden(asked: Asked, target: str, why: str, within: tuple[float, float]) -> Estimate:
    """No answer: the interval is all that is possible."""
    return Estimate(
        value=math.nan,
        std_error=math.inf,
        interval=within,
        level=asked.level,
        privacy=math.inf,
        sampling=0.0,
        target=target,
        notes=(f"{HIDDEN}: {why}",),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
