"""LDA publishing: rows that keep class means and a pooled covariance."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.lda.config import LDAConfig
from adumbra.mechanisms.lda.pictures import pictures, words
from adumbra.mechanisms.lda.plan import METHOD, settle
from adumbra.mechanisms.lda.release import draw

LDA = Method(
    name=METHOD,
    config=LDAConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="synthetic rows that keep class means and spread, to train a classifier",
    data="tables with a label",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["LDA", "LDAConfig"]
