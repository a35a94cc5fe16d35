"""The moments synthesizer: rows from noisy histograms and one noisy Gram."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.method import Method, Steps
from adumbra.mechanisms.moments.config import METHOD, MomentsConfig

if TYPE_CHECKING:
    from adumbra.mechanisms.moments.plan import Parts


def _steps() -> "Steps[MomentsConfig, Parts]":
    from adumbra.mechanisms.moments import plan, release  # noqa: PLC0415 - see `Method`

    return Steps(
        settle=plan.settle,
        draw=release.draw,
        pictures=release.pictures,
        words=release.words,
        behind=("scipy.linalg",),
    )


MOMENTS = Method(
    name=METHOD,
    config=MomentsConfig,
    steps=_steps,
    purpose="synthetic rows of a mixed table or of item sets; the default, to be tried first",
    data="tables and item sets",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["MOMENTS", "MomentsConfig"]
