"""The moments synthesizer: rows from noisy histograms and one noisy Gram."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.plan import METHOD, settle
from adumbra.mechanisms.moments.release import draw, pictures, words

MOMENTS = Method(
    name=METHOD,
    config=MomentsConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="synthetic rows of a mixed table or of item sets; the default, to be tried first",
    data="tables and item sets",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["MOMENTS", "MomentsConfig"]
