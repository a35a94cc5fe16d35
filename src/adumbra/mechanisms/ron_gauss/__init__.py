"""RON-Gauss: Gaussian models of randomly projected rows."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.method import Method, Steps
from adumbra.mechanisms.ron_gauss.config import METHOD, RONGaussConfig

if TYPE_CHECKING:
    from adumbra.mechanisms.ron_gauss.plan import Parts


def _steps() -> "Steps[RONGaussConfig, Parts]":
    from adumbra.mechanisms.ron_gauss import pictures, plan, release  # noqa: PLC0415 - see `Method`

    return Steps(settle=plan.settle, draw=release.draw, pictures=pictures.pictures, words=pictures.words)


RON_GAUSS = Method(
    name=METHOD,
    config=RONGaussConfig,
    steps=_steps,
    purpose="synthetic rows of one Gaussian, of one per class, or with a numeric target",
    data="tables",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["RON_GAUSS", "RONGaussConfig"]
