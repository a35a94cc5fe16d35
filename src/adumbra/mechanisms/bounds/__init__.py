"""Bounds and levels for a charge: noisy counts on a public grid, and what stands above the noise."""

from typing import TYPE_CHECKING

from adumbra.mechanisms.bounds.config import METHOD, BoundsConfig
from adumbra.mechanisms.method import Method, Steps

if TYPE_CHECKING:
    from adumbra.mechanisms.bounds.plan import Parts


def _steps() -> "Steps[BoundsConfig, Parts]":
    from adumbra.mechanisms.bounds import plan, release  # noqa: PLC0415 - see `Method`

    return Steps(settle=plan.settle, draw=release.draw, pictures=release.pictures, words=release.words)


BOUNDS = Method(
    name=METHOD,
    config=BoundsConfig,
    steps=_steps,
    purpose="bounds and levels of columns that are declared private, to be written into a schema",
    data="tables",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["BOUNDS", "BoundsConfig"]
