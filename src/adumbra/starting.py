"""Start-up without the search for garbage."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
