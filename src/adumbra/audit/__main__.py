"""The auditor's own process: here alone bugs are planted, and stdout and stderr are watched.

    python -m adumbra.audit FD mutants RUNS METHOD THOROUGH
    python -m adumbra.audit FD replay PAIRS METHOD
    python -m adumbra.audit FD branches 0 "" NAMES-AND-EDITS

Reports go to the file descriptor FD, one JSON object per line. `alone` starts it.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any

from adumbra.audit.branches import NOTE, Edit, Watched, judged, modules, noted
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


class NotedLoader(SourceFileLoader):
    """Compiles a module with notes in it."""

    def __init__(self, name: str, path: str, watched: Watched, edits: Sequence[Edit]) -> None:
        super().__init__(name, path)
        self.watched, self.edits = watched, edits
        self.own: list[str] = []

    def get_code(self, fullname: str) -> CodeType:
        """The module's source with edits and notes, compiled; no cached code is used."""
        source = Path(self.path).read_text(encoding="utf-8")
        for module, old, new in self.edits:
            source = source.replace(old, new) if module == fullname else source
        tree, own, refusals = noted(source, fullname)
        self.own += own
        self.watched.branches += own
        self.watched.refusals |= refusals
        code: CodeType = compile(tree, self.path, "exec")
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run it with what its notes call."""
        vars(module)[NOTE] = self.watched.noting(self.own)
        super().exec_module(module)


class NotedFinder(MetaPathFinder):
    """Finds the watched modules."""

    def __init__(self, watched: Watched, edits: Sequence[Edit]) -> None:
        self.watched, self.edits, self.files = watched, edits, modules()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:  # noqa: ANN401, ARG002
        """A watched module, to be loaded with notes."""
        if fullname not in self.files:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = NotedLoader(fullname, spec.origin, self.watched, self.edits)
        return spec


def watch(
    wanted: Callable[[str], bool], edits: Sequence[Edit] = ()
) -> Iterator[tuple[list[str], Watched]]:
    """Record releases with all branches noted; in this process alone.

    The package is imported anew, so whatever this process had made of it before is of other classes.
    """
    require(__name__ == "__main__", "watch: changes a whole process; only the auditor's own may do it")
    watched = Watched()
    for name in [name for name in sys.modules if name.split(".")[0] == "adumbra"]:
        del sys.modules[name]
    sys.meta_path.insert(0, NotedFinder(watched, edits))
    for name in modules():
        import_module(name)
    drills = import_module("adumbra.audit.drills")
    with TemporaryDirectory() as folder:
        for case, chosen in drills.recorded_cases(Path(folder), wanted):
            yield list(drills.faults(case, chosen)), watched


def branches(asked: str) -> Iterator[dict[str, object]]:
    """What became of every branch after some recordings, with planted edits in the source."""
    names, edits = json.loads(asked)
    found = list(watch(lambda name: not names or name in names, edits))
    yield asdict(judged(found[-1][1], [fault for faults, _ in found for fault in faults]))


def main(arguments: list[str]) -> None:
    """Do one part of the audit and report it."""
    descriptor, part, count, method, *rest = arguments
    match part:
        case "mutants":
            found = try_mutants(int(count), method or None, thorough=rest == ["True"])
        case "branches":
            found = branches(*rest)
        case _:
            found = replay(int(count), method or None)
    with os.fdopen(int(descriptor), "w", encoding="utf-8") as report:
        for one in found:
            report.write(json.dumps(one) + "\n")
            report.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
