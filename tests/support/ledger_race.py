"""Many processes, one cap: each tries to reserve again and again, all starting at the same moment.

Run as a script with one JSON object; prints the grants of each process and the time of the whole.
"""

import json
import os
import resource
import sys
import time

from adumbra.errors import BudgetRefused
from adumbra.privacy.guarantee import promise
from adumbra.privacy.ledger import open_ledger
from adumbra.relations import Neighbours, Unit


def attempt(location: str, epsilon: float, attempts: int, go: int, out: int) -> None:
    """Wait for the start, then try."""
    ledger = open_ledger(location)
    guarantee = promise(epsilon, 0.0, Unit.ROW, Neighbours.REPLACE_ONE)
    os.write(out, b"ready\n")
    os.read(go, 1)
    granted = 0
    for _ in range(attempts):
        try:
            ledger.reserve("people", guarantee, request={"method": "race"}, source_pin="pin")
            granted += 1
        except BudgetRefused:
            pass
    os.write(out, f"{granted}\n".encode())


def main() -> None:
    """`{"location", "epsilon", "attempts", "processes"}` in, `{"granted", "seconds", "cpu"}` out."""
    job = json.loads(sys.argv[1])
    go_read, go_write = os.pipe()
    out_read, out_write = os.pipe()
    children = []
    for _ in range(job["processes"]):
        pid = os.fork()
        if pid == 0:
            attempt(job["location"], job["epsilon"], job["attempts"], go_read, out_write)
            os._exit(0)
        children.append(pid)
    with os.fdopen(out_read) as lines:
        for _ in children:
            assert lines.readline() == "ready\n"
        start = time.perf_counter()
        os.write(go_write, b"x" * len(children))
        granted = [int(lines.readline()) for _ in children]
    seconds = time.perf_counter() - start
    for pid in children:
        os.waitpid(pid, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(json.dumps({"granted": granted, "seconds": seconds, "cpu": cpu}))  # noqa: T201  the report


if __name__ == "__main__":
    main()
