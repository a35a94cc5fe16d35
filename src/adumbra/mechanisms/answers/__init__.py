"""A release made for answers: histograms, then sums of products of whole rows within caps."""

from adumbra.mechanisms.answers.config import AnswersConfig
from adumbra.mechanisms.answers.plan import METHOD, settle
from adumbra.mechanisms.answers.release import draw, pictures, words
from adumbra.mechanisms.base import Method

ANSWERS = Method(
    name=METHOD,
    config=AnswersConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="means, shares, differences, correlations and regressions with error bars; no rows",
    data="tables",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["ANSWERS", "AnswersConfig"]
