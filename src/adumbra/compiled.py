"""Plain loops as machine code, where numba is installed; what they compute is the same without it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

LoopT = TypeVar("LoopT", bound=Callable[..., Any])


def machine_code(loop: LoopT, steps: Sequence[Callable[..., Any]] = ()) -> LoopT:
    """A loop compiled, with the plain functions that it calls; kept on disk if a place is writable."""
    import numba  # noqa: PLC0415  (optional, and slow to import)
    from numba.extending import register_jitable  # noqa: PLC0415

    for step in steps:  # plain functions to Python, known to numba from here on
        register_jitable(step)
    try:
        return cast("LoopT", numba.njit(nogil=True, cache=True)(loop))
    except RuntimeError:  # numba found no writable place for its cache
        return cast("LoopT", numba.njit(nogil=True)(loop))
