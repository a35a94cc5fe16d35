"""One command under caps of processor time, wall time and memory; its end is a result whatever it is."""

import os
import resource
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from comparison.environments import last_line

THREADS = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "",
    "PYTHONWARNINGS": "ignore",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip


@dataclass(kw_only=True)
class Caps:
    """What a run may use; wall time is wider than processor time, for machines that others use too."""

    cpu_seconds: int
    wall_seconds: int
    memory_gib: float


@dataclass(kw_only=True)
class Outcome:
    """How a run ended and what it used."""

    outcome: str  # ok, time-out, memory, crash
    message: str
    wall_s: float
    cpu_s: float
    peak_mb: float


def run(command: list[str], caps: Caps, log: Path) -> Outcome:
    """The command in a process group of its own, which is ended as a whole at a cap."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (caps.cpu_seconds, caps.cpu_seconds + 5))
        room = int(caps.memory_gib * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))

    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, **THREADS},
            preexec_fn=limit, start_new_session=True,  # noqa: PLW1509 - one thread here, limits must hold before exec
        )  # fmt: skip
        late = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not late and time.perf_counter() - start > caps.wall_seconds:
                os.killpg(process.pid, signal.SIGKILL)
                late = True
            time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    outcome, message = _end(
        process.returncode, late, cpu, caps, log.read_text("utf-8", errors="replace")
    )
    return Outcome(
        outcome=outcome, message=message, wall_s=round(wall, 1), cpu_s=round(cpu, 1),
        peak_mb=round(usage.ru_maxrss / 1024),
    )  # fmt: skip


def _end(code: int, late: bool, cpu: float, caps: Caps, said: str) -> tuple[str, str]:
    if code == 0:
        return "ok", ""
    if late:
        return "time-out", f"{caps.wall_seconds} s of wall time"
    # The signal says it; the clock that is read afterwards may show a little less than the cap.
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu > 0.95 * caps.cpu_seconds):
        return "time-out", f"{caps.cpu_seconds} s of processor time"
    message = last_line(said)
    if "MemoryError" in said or "bad_alloc" in said or "ArrayMemoryError" in said:
        return "memory", message or f"{caps.memory_gib} GiB"
    return "crash", message or f"exit code {code}"
