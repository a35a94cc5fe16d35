"""The auditor's own process: here alone bugs are planted, and stdout and stderr are watched.

    python -m adumbra.audit FD mutants RUNS METHOD THOROUGH
    python -m adumbra.audit FD replay PAIRS METHOD

Reports go to the file descriptor FD, one JSON object per line. `alone` starts it.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from adumbra.audit.cases import all_cases
from adumbra.audit.checks import examine
from adumbra.audit.mutants import EPSILON, Verdict, chosen_mutants
from adumbra.audit.planted import Patch
from adumbra.audit.replay import replay_kind
from adumbra.audit.replay_kinds import chosen_kinds
from adumbra.errors import require

STREAMS = (1, 2)


@contextmanager
def plant(patches: list[Patch]) -> Iterator[None]:
    """Set the wrong versions, and take them back whatever happens; in this process alone."""
    require(__name__ == "__main__", "plant: changes a whole process; only the auditor's own may do it")
    right = [getattr(place, name) for place, name, _ in patches]
    try:
        for place, name, wrong in patches:
            setattr(place, name, wrong)
        yield
    finally:
        for (place, name, _), old in zip(patches, right, strict=True):
            setattr(place, name, old)


def try_mutants(runs: int, method: str | None, *, thorough: bool) -> Iterator[dict[str, object]]:
    """Plant each bug in turn and examine its case."""
    cases = {case.name: case for case in all_cases(EPSILON, method=method)}
    for mutant in chosen_mutants(method):
        host, only = mutant.host(cases), None if thorough else mutant.check
        with plant(mutant.patches()):
            findings = tuple(examine(host, runs, only))
        yield asdict(
            Verdict(mutant=mutant.name, case=mutant.case, check=mutant.check, findings=findings)
        )


def replay(pairs: int, method: str | None) -> Iterator[dict[str, object]]:
    """Compare pairs of every kind, with what this process writes to its streams."""
    written = dict.fromkeys(STREAMS, 0)

    def streams() -> tuple[str, str]:
        sys.stdout.flush()
        sys.stderr.flush()
        found = []
        for stream in STREAMS:  # files that `alone` opened for reading too
            size = os.fstat(stream).st_size
            found.append(os.pread(stream, size - written[stream], written[stream]))
            written[stream] = size
        first, second = (text.decode(errors="backslashreplace") for text in found)
        return first, second

    with TemporaryDirectory() as folder:
        for seed, kind in enumerate(chosen_kinds(method)):
            yield asdict(replay_kind(Path(folder), kind, pairs, seed, streams=streams))


def main(arguments: list[str]) -> None:
    """Do one part of the audit and report it."""
    descriptor, part, count, method, *rest = arguments
    if part == "mutants":
        found = try_mutants(int(count), method or None, thorough=rest == ["True"])
    else:
        found = replay(int(count), method or None)
    with os.fdopen(int(descriptor), "w", encoding="utf-8") as report:
        for one in found:
            report.write(json.dumps(one) + "\n")
            report.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
