"""DPPro and JL + Laplace: every row through a random projection, with noise."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.method import Method, Steps
from adumbra.mechanisms.projection import config
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig

if TYPE_CHECKING:
    from adumbra.mechanisms.projection.plan import DPProParts, JLParts


def _dppro() -> "Steps[DPProConfig, DPProParts]":
    from adumbra.mechanisms.projection import plan, release  # noqa: PLC0415 - see `Method`

    return Steps(
        settle=plan.settle_dppro,
        draw=release.draw_dppro,
        pictures=release.pictures,
        words=release.words,
    )


def _jl_laplace() -> "Steps[JLLaplaceConfig, JLParts]":
    from adumbra.mechanisms.projection import plan, release  # noqa: PLC0415 - see `Method`

    return Steps(
        settle=plan.settle_jl_laplace,
        draw=release.draw_jl_laplace,
        pictures=release.pictures,
        words=release.words,
    )


DPPRO = Method(
    name=config.DPPRO,
    config=DPProConfig,
    steps=_dppro,
    purpose="every row, projected, with Gaussian noise: distances, neighbours and clusters of rows",
    data="tables and item sets",
    neighbours="replace-one or one-element; of numbers cell-moves or row-moves",
)
JL_LAPLACE = Method(
    name=config.JL_LAPLACE,
    config=JLLaplaceConfig,
    steps=_jl_laplace,
    purpose="the same with Laplace noise, for a pure guarantee",
    data="tables and item sets",
    neighbours="replace-one or one-element; of numbers cell-moves or row-moves",
)

__all__ = ["DPPRO", "JL_LAPLACE", "DPProConfig", "JLLaplaceConfig"]
