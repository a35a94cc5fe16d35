"""The process that notes branches: the package is imported anew here, with notes in it.

    python -m support.branch_watch REPORT < NAMES-AND-EDITS

`branches.examine_branches` starts it and reads the file REPORT.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType

from support.branches import NOTE, Edit, Report, Watched, judged, modules, noted


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

    def find_spec(self, fullname: str, path, target=None) -> ModuleSpec | None:
        """A watched module, to be loaded with notes."""
        if fullname not in self.files:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = NotedLoader(fullname, spec.origin, self.watched, self.edits)
        return spec


def watch(names: Sequence[str], edits: Sequence[Edit]) -> Report:
    """Record the named releases, or all, with planted edits in the source and all branches noted."""
    watched, faults = Watched(), []
    for name in [name for name in sys.modules if name.split(".")[0] == "adumbra"]:
        del sys.modules[name]  # `modules` looked for the package's folder
    sys.meta_path.insert(0, NotedFinder(watched, edits))
    for name in modules():
        import_module(name)
    drills = import_module("support.branch_drills")
    with TemporaryDirectory() as folder:
        for case, chosen in drills.recorded_cases(Path(folder), lambda name: not names or name in names):
            faults += drills.faults(case, chosen)
    return judged(watched, faults)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asdict(watch(*json.load(sys.stdin)))))
