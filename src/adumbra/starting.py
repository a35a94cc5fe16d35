"""Start-up without the search for garbage, and without what few need."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not search for garbage while modules are imported: they make none, and it takes as long.

    What was made then counts as old. Else the next search would go through all of it, several times.
    """
    was_enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
            is_more = len(sys.modules) > modules  # else nothing was imported, and counting takes long
            if is_more and not gc.get_freeze_count():  # what somebody froze stays frozen
                gc.freeze()
                gc.unfreeze()  # to the oldest generation


class Late:
    """A module that is imported when something of it is first asked for: slow, and few need it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        return getattr(import_module(self._name), name)


arrow_compute: Any = Late("pyarrow.compute")  # columns of numbers need none of it
