"""A release made for answers: histograms, then sums of products of whole rows within caps."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.answers.config import METHOD, AnswersConfig
from adumbra.mechanisms.method import Method, Steps

if TYPE_CHECKING:
    from adumbra.mechanisms.answers.plan import Parts


def _steps() -> "Steps[AnswersConfig, Parts]":
    from adumbra.mechanisms.answers import plan, release  # noqa: PLC0415 - see `Method`

    return Steps(settle=plan.settle, draw=release.draw, pictures=release.pictures, words=release.words)


ANSWERS = Method(
    name=METHOD,
    config=AnswersConfig,
    steps=_steps,
    purpose="means, shares, differences, correlations and regressions with error bars; no rows",
    data="tables",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["ANSWERS", "AnswersConfig"]
