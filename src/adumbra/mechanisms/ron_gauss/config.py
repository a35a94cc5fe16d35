"""The public parameters of RON-Gauss."""

from dataclasses import dataclass
from typing import Literal

from adumbra.errors import require
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields

METHOD = "ron-gauss"


@dataclass(frozen=True, slots=True, kw_only=True)
class RONGaussConfig:
    """Public parameters, all of them; the release's card prints each."""

    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    n_components: int | Literal["auto"] = option(
        "Dimension of the random projection. auto: by a public rule.", default="auto"
    )
    goal: str = option(
        "What n_components=auto is chosen for: rows like the real ones, or groups of rows.",
        default="rows",
        choices=("rows", "clusters"),
    )
    mode: Literal["unsupervised", "supervised", "gmm"] = option(
        "One Gaussian, one with a numeric target (supervised), or one per class (gmm).",
        default="unsupervised",
    )
    centring: Literal["private", "public"] = option(
        "Around a mean that is paid for, or around the middle of the declared bounds.", default="private"
    )
    covariance: Literal["auto", "class", "tied", "sphere"] = option(
        "Of a mixture: one per class, tied, a sphere, or auto by a public rule.", default="auto"
    )
    rescale: Literal["clip", "normalise"] = option(
        "After centring: clip long rows, or normalise all to length 1 as the paper does.", default="clip"
    )
    unit_rows: bool = option(
        "Scale every row to length 1 first, as the paper does. Magnitudes are lost.", default=False
    )
    row_norm: float | None = option(fields.ROW_NORM, default=None)
    mean_share: float | None = option(
        "Share of the budget (mu^2 or epsilon) for the mean. none: by a public rule.", default=None
    )
    clip_factor: float = option(
        "Centred rows are clipped at this times their noisy root mean square.", default=1.0
    )
    clip_tail: float = option(fields.CLIP_TAIL, default=1e-3)
    expected_rows: int | None = option(fields.EXPECTED_ROWS, default=None)
    synthetic_rows: int | None = option(fields.SYNTHETIC_ROWS, default=None)
    output: Literal["columns", "projected"] = option(
        "columns: rows in the schema's columns. projected: rows of the random projection.",
        default="columns",
    )
    matrix_seed: int = option(fields.MATRIX_SEED, default=0)
    sample_seed: int = option(fields.SAMPLE_SEED, default=0)

    def __post_init__(self) -> None:
        settle_fields(self)
        require(
            self.n_components == "auto" or self.n_components >= 1,
            f"n_components={self.n_components}: must be auto or at least 1",
        )
        require(self.goal in ("rows", "clusters"), f"goal={self.goal!r}: must be rows or clusters")
        require(
            self.goal == "rows" or self.mode == "unsupervised",
            f"goal={self.goal}: has no effect with mode={self.mode}, which has classes or a target; "
            "leave it out",
        )
        for name, value in (("mean_share", self.mean_share), ("clip_tail", self.clip_tail)):
            require(value is None or 0.0 < value < 1.0, f"{name}={value}: must lie between 0 and 1")
        require(
            0.0 < self.clip_factor <= 16.0,
            f"clip_factor={self.clip_factor}: must be above 0 and at most 16",
        )
        require(
            self.covariance != "sphere" or self.centring == "private",
            "covariance=sphere: needs the spread that centring=private buys",
        )
