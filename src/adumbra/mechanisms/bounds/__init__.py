"""Bounds and levels for a charge: noisy counts on a public grid, and what stands above the noise."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.bounds.config import BoundsConfig
from adumbra.mechanisms.bounds.plan import METHOD, settle
from adumbra.mechanisms.bounds.release import draw, pictures, words

BOUNDS = Method(
    name=METHOD,
    config=BoundsConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="bounds and levels of columns that are declared private, to be written into a schema",
    data="tables",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["BOUNDS", "BoundsConfig"]
