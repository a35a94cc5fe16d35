"""The public parameters of PCA publishing."""

import math
from dataclasses import dataclass
from typing import Literal

from adumbra.errors import require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields
from adumbra.privacy.conversion import mu_of, split_epsilon, split_mu

METHOD = "pca"


@dataclass(frozen=True, slots=True, kw_only=True)
class PCAConfig:
    """Public parameters, all of them; the release's card prints each."""

    n_components: int = option("Private directions to keep. 0: publish the mean alone.")
    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    output: Literal["rows", "sample"] = option(
        "rows: every row with noise, in order. sample: synthetic rows from the noisy moments.",
        default="rows",
    )
    moments_share: float = option(
        "Share of the budget (mu^2 or epsilon) for mean and directions, where noisy rows follow.",
        default=0.5,
    )
    bound: Literal["auto", "basis", "clip"] = option(
        "How a row's change is bounded: by the basis, by a clip, or (auto) by the less noisy one.",
        default="auto",
    )
    clip_deviations: float = option(
        "Clip radius, in root mean squares of the kept noisy variances.", default=3.0
    )
    shrink: bool = option(
        "Pull noisy coordinates towards the mean, for the least squared error.", default=False
    )
    synthetic_rows: int | None = option(fields.SYNTHETIC_ROWS, default=None)
    sample_seed: int = option(fields.SAMPLE_SEED, default=0)

    def __post_init__(self) -> None:
        settle_fields(self)
        require(self.n_components >= 0, f"n_components={self.n_components}: must be 0 or above")
        share = self.moments_share
        require(0.0 < share < 1.0, f"moments_share={share}: must lie between 0 and 1")
        wide = math.isfinite(self.clip_deviations) and self.clip_deviations > 0
        require(wide, f"clip_deviations={self.clip_deviations}: must be finite and above 0")

    @property
    def is_pure(self) -> bool:
        """Whether the noise is Laplace."""
        return self.delta == 0

    @property
    def noisy_rows(self) -> bool:
        """Whether any budget goes to rows."""
        return self.output == "rows" and self.n_components > 0


def idle_options(config: PCAConfig) -> dict[str, str]:
    """Options that the others leave without effect, with the case."""
    of_rows = ("moments_share", "bound", "clip_deviations", "shrink")
    idle: dict[str, str] = {}
    if config.output == "rows":
        idle = dict.fromkeys(("synthetic_rows", "sample_seed"), "with output=rows")
    else:
        idle = dict.fromkeys(of_rows, "with output=sample")
    if config.n_components == 0:
        idle |= dict.fromkeys((*of_rows, "sample_seed"), "with n_components=0")
    if config.bound == "basis":
        idle["clip_deviations"] = "with bound=basis"
    return idle


def budget_parts(config: PCAConfig) -> tuple[float, float]:
    """Epsilon (pure) or mu of the moments and of the rows; 0 for rows that carry nothing."""
    whole = config.epsilon if config.is_pure else mu_of(config.epsilon, config.delta)
    if not config.noisy_rows:
        return whole, 0.0
    shares = (config.moments_share, 1.0 - config.moments_share)
    moments, rows = (split_epsilon if config.is_pure else split_mu)(whole, shares)
    return moments, rows
