"""The public parameters of DPPro and of JL + Laplace."""

from dataclasses import dataclass
from typing import Literal

from adumbra.errors import require
from adumbra.matrices import CLIP_TAIL, FAMILIES
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields

DPPRO, JL_LAPLACE = "dppro", "jl-laplace"
_FAMILY = "How the projection is drawn. auto: by a public rule. gaussian: the paper's choice."
_GUESS = "Public guess of a squared distance, used only for the error that the plan prints."
_FAMILIES = ("auto", *FAMILIES)
_LABEL = "A declared label: left out, released as it is (declared public), or randomised."
_LABEL_SHARE = "Row unit: share of the budget (mu^2 or epsilon) for a randomised label."
_Label = Literal["left-out", "public", "randomised"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProjectionConfig:
    """What both methods ask."""

    n_components: int = option("Columns to release.")
    epsilon: float = option(fields.EPSILON)
    delta: float
    row_norm: float | None = option(fields.ROW_NORM, default=None)
    family: str = option(_FAMILY, default="auto", choices=_FAMILIES)
    nonzeros: int = option("Nonzero entries per row of the sparse family.", default=1)
    clip_tail: float = option(fields.CLIP_TAIL, default=CLIP_TAIL)
    distance_guess: float | None = option(_GUESS, default=None)
    label: _Label = option(_LABEL, default="left-out")
    label_share: float = option(_LABEL_SHARE, default=0.5)

    def __post_init__(self) -> None:
        settle_fields(self)
        n_components, family, clip_tail = self.n_components, self.family, self.clip_tail
        share = self.label_share
        require(0.0 < share < 1.0, f"label_share={share}: must lie between 0 and 1")
        require(n_components >= 1, f"n_components={n_components}: must be at least 1")
        known = family in _FAMILIES
        require(known, f"family={family}: unknown; use auto or one of {', '.join(FAMILIES)}")
        require(0.0 < clip_tail < 1.0, f"clip_tail={clip_tail}: must lie between 0 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class DPProConfig(_ProjectionConfig):
    """Public parameters, all of them; the release's card prints each."""

    delta: float = option("Must be above 0: the noise is Gaussian (`--delta`).", default=1e-6)
    matrix_seed: int = option(fields.MATRIX_SEED, default=0)

    def __post_init__(self) -> None:
        _ProjectionConfig.__post_init__(self)  # `super` does not know a class with slots
        require(self.delta > 0, "delta=0: DPPro's noise is Gaussian; give a delta, or use jl-laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class JLLaplaceConfig(_ProjectionConfig):
    """Public parameters, all of them; the matrix is not one."""

    delta: float = option("Must be 0: the guarantee is pure.", default=0.0)

    def __post_init__(self) -> None:
        _ProjectionConfig.__post_init__(self)
        require(
            self.delta == 0, f"delta={self.delta}: the guarantee is pure; leave it out, or use dppro"
        )
