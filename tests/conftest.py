"""What all tests share: databases for the ledger, temporary folders in memory, and no deadlines."""

import gc
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import typer.testing
from hypothesis import HealthCheck, settings

BENCHMARKS = str(Path(__file__).resolve().parents[1] / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)  # scripts beside the package; last: none hides an installed package

pytest_plugins = ("support.costs", "support.ledger", "support.evidence")

MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30  # noqa: S108 - our folders in it are mkdtemp's


def memory_has_room() -> bool:
    """Whether temporary files may lie in memory, and twice as many would fit."""
    if not os.access(MEMORY, os.W_OK):
        return False
    status = os.statvfs(MEMORY)
    is_free = status.f_bavail * status.f_frsize >= 2 * ROOM
    return is_free and os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >= ROOM


# A release syncs some forty times, for 4 ms each on a disk. In memory every call is still made, but none
# waits. Tests of durability look at the calls and kill processes, not machines.
if "TMPDIR" not in os.environ and memory_has_room():
    os.environ["TMPDIR"] = str(MEMORY)  # for the processes that tests start, too
    tempfile.tempdir = None

# Tests run in two processes. Threads of BLAS and OpenMP on top would wait for each other by spinning.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read when the library is loaded: nothing has loaded it yet

# As the command line does: imports and small releases make no garbage worth a search every 700 objects.
gc.set_threshold(50_000)

# No test is timed: on a busy machine an example may take any time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# All commands with their options are put together once per process, as for a user, and not per command.
typer.testing._get_command = cache(typer.testing._get_command)


def pytest_collection_finish() -> None:
    """What is loaded by now stays; looking through it for garbage is a twentieth of a small release."""
    gc.collect()
    gc.freeze()
