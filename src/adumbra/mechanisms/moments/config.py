"""The public parameters of the moments synthesizer."""

from dataclasses import dataclass

from adumbra.errors import require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields

METHOD = "moments"

NUMBERS = ("auto", "bins", "scores")
LEAST_SHARE = 1e-3  # of the budget for histograms: a smaller one buys noise alone


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    synthetic_rows: int | None = option(
        "Synthetic rows to draw. none: as many as the data has, where that is public.", default=None
    )
    expected_rows: int | None = option(
        "Public guess of the number of rows, for the public rules, where n is private.", default=None
    )
    marginal_share: float | None = option(
        "Share of the budget for one-way histograms. none: by a public rule.", default=None
    )
    table_share: float | None = option(
        "Share of the budget for tables of two or three columns that are chosen by their error and "
        "measured. none: by a public rule; 0: no such tables.",
        default=None,
    )
    numbers: str = option(
        "How numbers enter the second moments: as bins, or as one scaled column (scores).",
        default="auto",
        choices=NUMBERS,
    )
    sample_seed: int = option(fields.SAMPLE_SEED, default=0)

    def __post_init__(self) -> None:
        settle_fields(self)
        share = self.marginal_share
        lies = share is None or LEAST_SHARE <= share <= 0.95
        require(lies, f"marginal_share={share}: must lie between {LEAST_SHARE} and 0.95")
        paid = self.table_share
        require(paid is None or 0.0 <= paid <= 0.9, f"table_share={paid}: must lie between 0 and 0.9")
        require(
            self.numbers in NUMBERS, f"numbers={self.numbers}: unknown; use one of {', '.join(NUMBERS)}"
        )
