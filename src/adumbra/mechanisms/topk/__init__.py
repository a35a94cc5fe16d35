"""Top-k frequent columns of item sets."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.topk.config import Algorithm, TopKConfig
from adumbra.mechanisms.topk.pictures import pictures, words
from adumbra.mechanisms.topk.plan import METHOD, settle
from adumbra.mechanisms.topk.release import draw

TOP_K = Method(
    name=METHOD,
    config=TopKConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="the k most frequent items, with noisy counts",
    data="item sets, or columns of booleans",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["TOP_K", "Algorithm", "TopKConfig"]
