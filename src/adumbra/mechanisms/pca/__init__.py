"""PCA publishing: rows along private directions, or synthetic rows from them."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.method import Method, Steps
from adumbra.mechanisms.pca.config import METHOD, PCAConfig

if TYPE_CHECKING:
    from adumbra.mechanisms.box_release import MomentParts


def _steps() -> "Steps[PCAConfig, MomentParts]":
    from adumbra.mechanisms.pca import pictures, plan, release  # noqa: PLC0415 - see `Method`

    return Steps(settle=plan.settle, draw=release.draw, pictures=pictures.pictures, words=pictures.words)


PCA = Method(
    name=METHOD,
    config=PCAConfig,
    steps=_steps,
    purpose="the main directions of a table, and each row in them, noisy, or synthetic rows",
    data="tables",
    neighbours="replace-one; with -o output=sample add-remove and persons as well",
)

__all__ = ["PCA", "PCAConfig"]
