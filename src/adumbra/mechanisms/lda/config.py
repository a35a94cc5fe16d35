"""The public parameters of LDA publishing."""

from dataclasses import dataclass

from adumbra.errors import require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields
from adumbra.postprocess.greedy import Loss

METHOD = "lda"


@dataclass(frozen=True, slots=True, kw_only=True)
class LDAConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    synthetic_rows: int | None = option(fields.SYNTHETIC_ROWS, default=None)
    loss: Loss = option("Error that the sampler minimises. absolute: the paper's.", default="squared")
    floor: float = option(
        "Least eigenvalue of the released covariance, in edges of the noise's spectrum.", default=0.25
    )
    expected_rows: int | None = option(fields.EXPECTED_ROWS, default=None)

    def __post_init__(self) -> None:
        settle_fields(self)
        require(0.0 <= self.floor <= 10.0, f"floor={self.floor}: must lie between 0 and 10")
