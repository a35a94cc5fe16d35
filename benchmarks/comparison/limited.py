"""One command under limits, waited for by a small process, which prints how it ended as JSON.

    python -I -S limited.py CPU_SECONDS WALL_SECONDS MEMORY_BYTES COMMAND...

The peak memory that the system reports for a child begins with that of the process that forked it. So
the process that forks must be smaller than anything measured: this one imports next to nothing.
"""

import json
import os
import resource
import signal
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")


def used(leader):
    """CPU seconds of a session so far: the limit of the system is one per process."""
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - as small as can be
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended; its parent counts it
            continue
        if int(fields[3]) == leader:
            total += sum(map(int, fields[11:15]))  # its own, and of the children that it waited for
    return total / TICKS


def main(cpu_seconds, wall_seconds, memory_bytes, *command):
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.setsid()  # a cap of wall time ends the command with all that it started
        cpu, room = int(cpu_seconds), int(memory_bytes)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        os.dup2(2, 1)  # all that the command says goes to the log; stdout is this process's own
        os.execvp(command[0], command)  # noqa: S606 - the benchmark's own command
    late = spent = False
    looked = start
    try:
        while True:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                break
            now = time.perf_counter()
            if now > looked + 1.0:
                looked, spent = now, spent or used(child) > int(cpu_seconds)
            late = late or now - start > float(wall_seconds)
            if late or spent:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)
    except KeyboardInterrupt:
        os.killpg(child, signal.SIGKILL)  # its session is its own: the keyboard does not reach it
        raise
    ended = {
        "code": os.waitstatus_to_exitcode(status), "late": late, "spent": spent,
        "wall_s": time.perf_counter() - start,
        "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024,
    }  # fmt: skip
    sys.stdout.write(json.dumps(ended))


if __name__ == "__main__":
    main(*sys.argv[1:])
