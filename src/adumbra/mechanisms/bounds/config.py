"""The public parameters of bought bounds and levels."""

from dataclasses import dataclass

from adumbra.errors import require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields

METHOD = "bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    chance: float = option(
        "Chance that noise alone widens any bound or names any level that no row has.", default=0.05
    )
    expected_rows: int | None = option(fields.EXPECTED_ROWS, default=None)

    def __post_init__(self) -> None:
        settle_fields(self)
        require(1e-9 <= self.chance <= 0.5, f"chance={self.chance}: must lie between 1e-9 and 0.5")
