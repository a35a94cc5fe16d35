"""The public parameters of a release made for answers."""

from dataclasses import dataclass

from adumbra.errors import require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields

METHOD = "answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    columns: tuple[str, ...] = option(
        "Columns that can be asked about, by name. Widths grow with their number. (): all.", default=()
    )
    outcome: str | None = option(
        "The column that regressions explain or whose groups are compared: its sums get less noise. "
        "none: the label, if it is one of the columns.",
        default=None,
    )
    histogram_share: float = option(
        "Share of the budget for one-way histograms, which give caps and quantiles.", default=0.15
    )
    cap_share: float = option(
        "Share of rows beyond each cap of a number, about. 0: caps at the declared bounds.",
        default=0.005,
    )
    expected_rows: int | None = option(fields.EXPECTED_ROWS, default=None)

    def __post_init__(self) -> None:
        settle_fields(self)
        share, beyond = self.histogram_share, self.cap_share
        require(0.01 <= share <= 0.9, f"histogram_share={share}: must lie between 0.01 and 0.9")
        require(0.0 <= beyond <= 0.25, f"cap_share={beyond}: must lie between 0 and 0.25")
