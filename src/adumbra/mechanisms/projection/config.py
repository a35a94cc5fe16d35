"""The public parameters of DPPro and of JL + Laplace."""

from dataclasses import dataclass

from adumbra.errors import require
from adumbra.matrices import CLIP_TAIL, FAMILIES
from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields
from adumbra.privacy.guarantee import require_budget

_COMPONENTS = "Columns to release."
_FAMILY = "How the projection is drawn. auto: by a public rule. gaussian: the paper's choice."
_NONZEROS = "Nonzero entries per row of the sparse family."
_GUESS = "Public guess of a squared distance, used only for the error that the plan prints."
_FAMILIES = ("auto", *FAMILIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class DPProConfig:
    """Public parameters, all of them; the release's card prints each."""

    n_components: int = option(_COMPONENTS)
    epsilon: float = option(fields.EPSILON)
    delta: float = option("Must be above 0: the noise is Gaussian (`--delta`).", default=1e-6)
    row_norm: float | None = option(fields.ROW_NORM, default=None)
    family: str = option(_FAMILY, default="auto", choices=_FAMILIES)
    nonzeros: int = option(_NONZEROS, default=1)
    clip_tail: float = option(fields.CLIP_TAIL, default=CLIP_TAIL)
    matrix_seed: int = option(fields.MATRIX_SEED, default=0)
    distance_guess: float | None = option(_GUESS, default=None)

    def __post_init__(self) -> None:
        settle_fields(self)
        _require_projection(self.n_components, self.family, self.clip_tail)
        require_budget(self.epsilon, self.delta)
        require(self.delta > 0, "delta=0: DPPro's noise is Gaussian; give a delta, or use jl-laplace")
        require(self.matrix_seed >= 0, f"matrix_seed={self.matrix_seed}: must be 0 or above")


@dataclass(frozen=True, slots=True, kw_only=True)
class JLLaplaceConfig:
    """Public parameters, all of them; the matrix is not one."""

    n_components: int = option(_COMPONENTS)
    epsilon: float = option(fields.EPSILON)
    delta: float = option("Must be 0: the guarantee is pure.", default=0.0)
    row_norm: float | None = option(fields.ROW_NORM, default=None)
    family: str = option(_FAMILY, default="auto", choices=_FAMILIES)
    nonzeros: int = option(_NONZEROS, default=1)
    clip_tail: float = option(fields.CLIP_TAIL, default=CLIP_TAIL)
    distance_guess: float | None = option(_GUESS, default=None)

    def __post_init__(self) -> None:
        settle_fields(self)
        _require_projection(self.n_components, self.family, self.clip_tail)
        require_budget(self.epsilon, self.delta)
        require(
            self.delta == 0, f"delta={self.delta}: the guarantee is pure; leave it out, or use dppro"
        )


def _require_projection(n_components: int, family: str, clip_tail: float) -> None:
    """The rules of what both configs ask."""
    require(n_components >= 1, f"n_components={n_components}: must be at least 1")
    known = family in _FAMILIES
    require(known, f"family={family}: unknown; use auto or one of {', '.join(FAMILIES)}")
    require(0.0 < clip_tail < 1.0, f"clip_tail={clip_tail}: must lie between 0 and 1")
