"""Start-up without the search for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not search for garbage while modules are imported: they make none, and it takes as long.

    What was made then counts as old. Else the next search would go through all of it, several times.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
            if not gc.get_freeze_count():  # what somebody froze stays frozen
                gc.freeze()
                gc.unfreeze()  # to the oldest generation
