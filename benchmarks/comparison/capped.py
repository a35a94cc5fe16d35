"""One command under caps of processor time, wall time and memory; its end is a result whatever it is."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from comparison.environments import last_line

LIMITED = Path(__file__).with_name("limited.py")
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
    code: int  # of the process's exit; below 0 a signal


def run(command: list[str], caps: Caps, log: Path) -> Outcome:
    """The command in a process group of its own, which is ended as a whole at a cap."""
    limits = (caps.cpu_seconds, caps.wall_seconds, int(caps.memory_gib * 2**30))
    launch = [sys.executable, "-I", "-S", str(LIMITED), *map(str, limits), *command]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            launch, stdout=subprocess.PIPE, stderr=file, env={**os.environ, **THREADS}, check=True
        )
    ended = json.loads(done.stdout)
    said = log.read_text("utf-8", errors="replace")
    if ended["spent"]:  # and not yet waited for by the process that started them
        ended["cpu_s"] = max(ended["cpu_s"], float(caps.cpu_seconds))
    outcome, message = _end(ended["code"], ended["late"], ended["cpu_s"], caps, said)
    return Outcome(
        outcome=outcome, message=message, wall_s=round(ended["wall_s"], 1),
        cpu_s=round(ended["cpu_s"], 1), peak_mb=round(ended["peak_mb"]), code=ended["code"],
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
    how = f"{signal.Signals(-code).name} " if code < 0 else ""  # who was killed did not say why
    return "crash", f"{how}{message}".strip() or f"exit code {code}"
