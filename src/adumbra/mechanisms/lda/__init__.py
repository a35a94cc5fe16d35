"""LDA publishing: rows that keep class means and a pooled covariance."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.lda.config import METHOD, LDAConfig
from adumbra.mechanisms.method import Method, Steps

if TYPE_CHECKING:
    from adumbra.mechanisms.box_release import MomentParts


def _steps() -> "Steps[LDAConfig, MomentParts]":
    from adumbra.mechanisms.lda import pictures, plan, release  # noqa: PLC0415 - see `Method`

    return Steps(settle=plan.settle, draw=release.draw, pictures=pictures.pictures, words=pictures.words)


LDA = Method(
    name=METHOD,
    config=LDAConfig,
    steps=_steps,
    purpose="synthetic rows that keep class means and spread, to train a classifier",
    data="tables with a label",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["LDA", "LDAConfig"]
