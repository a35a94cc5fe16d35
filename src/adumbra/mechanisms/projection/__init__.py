"""DPPro and JL + Laplace: every row through a random projection, with noise."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.projection import plan
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.plan import settle_dppro, settle_jl_laplace
from adumbra.mechanisms.projection.release import draw_dppro, draw_jl_laplace, pictures, words

DPPRO = Method(
    name=plan.DPPRO,
    config=DPProConfig,
    settle=settle_dppro,
    draw=draw_dppro,
    pictures=pictures,
    words=words,
    purpose="every row, projected, with Gaussian noise: distances, neighbours and clusters of rows",
    data="tables and item sets",
    neighbours="replace-one or one-element; of numbers cell-moves or row-moves",
)
JL_LAPLACE = Method(
    name=plan.JL_LAPLACE,
    config=JLLaplaceConfig,
    settle=settle_jl_laplace,
    draw=draw_jl_laplace,
    pictures=pictures,
    words=words,
    purpose="the same with Laplace noise, for a pure guarantee",
    data="tables and item sets",
    neighbours="replace-one or one-element; of numbers cell-moves or row-moves",
)

__all__ = ["DPPRO", "JL_LAPLACE", "DPProConfig", "JLLaplaceConfig"]
