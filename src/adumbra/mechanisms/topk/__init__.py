"""Top-k frequent columns of item sets."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.method import Method, Steps
from adumbra.mechanisms.topk.config import METHOD, Algorithm, TopKConfig

if TYPE_CHECKING:
    from adumbra.mechanisms.topk.plan import Parts


def _steps() -> "Steps[TopKConfig, Parts]":
    from adumbra.mechanisms.topk import pictures, plan, release  # noqa: PLC0415 - see `Method`

    return Steps(settle=plan.settle, draw=release.draw, pictures=pictures.pictures, words=pictures.words)


TOP_K = Method(
    name=METHOD,
    config=TopKConfig,
    steps=_steps,
    purpose="the k most frequent items, with noisy counts",
    data="item sets, or columns of booleans",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["TOP_K", "Algorithm", "TopKConfig"]
