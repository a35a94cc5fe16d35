"""Which branches of the code that makes noise the recorded transcripts take; every other is listed.

A wrong scale in a branch that no transcript takes is seen by no check. So the source of each module that
makes or calibrates noise is read, each of its conditions is noted when it is decided, and each outcome
must be reached by some recorded release, or stand in `branch_list` with the reason why it need not.

    if, while, a if c else b, comprehensions with if      true and false
    match, except                                         each case

An outcome that only raises releases nothing, and needs no line. Not branches: `np.where`, `min`, a table
of functions; the several transcripts of `checks` are for those.

The modules are imported with notes in them in a process of its own (`branch_watch`).
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import adumbra
from support.branch_list import LISTED

NOTE = "__note_branch__"
PACKAGES = ("mechanisms", "privacy")
APART = {  # modules of these packages that draw nothing, and why
    "adumbra.privacy.ledger": "accounts of what was spent",
    "adumbra.privacy.conversion": "public arithmetic; tests/property/test_accounting_oracles.py",
    "adumbra.privacy.fingerprint": "for the ledger's private log; no output depends on it",
    "adumbra.privacy.guarantee": "public words and figures of a claim",
    "adumbra.privacy.recorded_noise": "the auditor's own",
}
# What a module that makes, calibrates or hands on noise imports.
MAKES_NOISE = re.compile(
    r"calibrate_|adumbra\.privacy(\.(noise|selection|grant|conversion|_laws))? import"
)
LONGEST = 44  # characters of a condition in the name of a branch

Edit = tuple[str, str, str]  # module, text of its source, what stands there instead


def modules() -> dict[str, Path]:
    """The modules whose branches count, by name, with their files."""
    root = Path(adumbra.__file__).parent
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            name = ".".join(("adumbra", *path.relative_to(root).with_suffix("").parts))
            name = name.removesuffix(".__init__")
            if not name.startswith(tuple(APART)) and _makes_noise(
                name, path.read_text(encoding="utf-8")
            ):
                found[name] = path
    return found


def _makes_noise(name: str, source: str) -> bool:
    return name.startswith("adumbra.privacy") or MAKES_NOISE.search(source) is not None


class _Noting(ast.NodeTransformer):
    """Wraps every condition in a call that notes how it was decided."""

    def __init__(self, module: str) -> None:
        self.module = module.removeprefix("adumbra.")
        self.branches: list[str] = []  # names, by number
        self.refusals: set[str] = set()
        self._inside: list[str] = []
        self._seen: dict[str, int] = {}

    def _number(self, words: str, outcomes: Sequence[str], refused: Sequence[bool]) -> int:
        """The number of the first of some outcomes."""
        words = " ".join(words.split())
        words = words if len(words) <= LONGEST else words[:LONGEST] + "..."
        place = f"{self.module}:{'.'.join(self._inside)}: {words}"
        self._seen[place] = self._seen.get(place, 0) + 1
        if self._seen[place] > 1:
            place += f" #{self._seen[place]}"
        first = len(self.branches)
        for outcome, is_refused in zip(outcomes, refused, strict=True):
            self.branches.append(f"{place} [{outcome}]")
            if is_refused:
                self.refusals.add(self.branches[-1])
        return first

    def _noted(self, test: ast.expr, then: bool = False, otherwise: bool = False) -> ast.expr:
        first = self._number(ast.unparse(test), ("no", "yes"), (otherwise, then))
        return _call(first, test)

    def _visit_place(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        self._inside.append(node.name)
        self.generic_visit(node)
        self._inside.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._visit_place(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._visit_place(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        then, otherwise = _raises(node.body), bool(node.orelse) and _raises(node.orelse)
        test = self._noted(node.test, then, otherwise) if self._inside else node.test
        self.generic_visit(node)
        node.test = test
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        test = node.test if isinstance(node.test, ast.Constant) else self._noted(node.test)
        self.generic_visit(node)
        node.test = test
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self._noted(node.test) if self._inside else node.test
        self.generic_visit(node)
        node.test = test
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [self._noted(test) for test in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        return self._visit_case(node, f"case {ast.unparse(node.pattern)}")

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        return self._visit_case(node, f"except {ast.unparse(node.type) if node.type else ''}")

    def _visit_case(self, node: ast.match_case | ast.ExceptHandler, words: str) -> ast.AST:
        first = self._number(words, ("taken",), (_raises(node.body),))
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call(first, ast.Constant(0))))
        return node


def _call(number: int, value: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(number), value], [])


def _raises(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise)


def noted(source: str, module: str) -> tuple[ast.Module, list[str], set[str]]:
    """The syntax of a module with notes in it, its branches by number, and those that only raise."""
    tree, visitor = ast.parse(source), _Noting(module)
    tree = ast.fix_missing_locations(visitor.visit(tree))
    return tree, visitor.branches, visitor.refusals


@dataclass(slots=True)
class Watched:
    """All branches of the watched modules, and those that were taken so far."""

    branches: list[str] = field(default_factory=list)
    refusals: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    def noting(self, own: Sequence[str]) -> Callable[[int, object], bool]:
        """What the notes of one module call."""

        def note(first: int, decided: object) -> bool:
            found = bool(decided)
            self.taken.add(own[first + found])
            return found

        return note


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of every branch."""

    taken: tuple[str, ...]
    listed: Mapping[str, str]  # with the reason
    refusals: tuple[str, ...]  # not taken, and only raise
    missing: tuple[str, ...]  # neither taken nor listed
    stale: tuple[str, ...]  # listed, but taken after all or no branch any more
    faults: tuple[str, ...]  # of the recorded releases

    @property
    def is_whole(self) -> bool:
        """Whether the audit saw every branch that it must, and nothing wrong."""
        return not (self.missing or self.stale or self.faults)

    def by_mechanism(self) -> dict[str, tuple[int, int, int, int]]:
        """How many branches of each package are taken, listed, refusals and missing."""
        parts = (self.taken, self.listed, self.refusals, self.missing)
        return {
            name: (counts[0], counts[1], counts[2], counts[3])
            for name in sorted({_package(one) for part in parts for one in part})
            for counts in [[sum(_package(one) == name for one in part) for part in parts]]
        }


def _package(branch: str) -> str:
    """The method, what all methods share, or the noise itself."""
    places = branch.split(":", 1)[0].split(".")
    if places[0] != "mechanisms":
        return places[0]
    return places[1] if len(places) > 2 else "shared"


def judged(watched: Watched, faults: Sequence[str]) -> Report:
    """The branches of recorded releases beside the list."""
    branches = set(watched.branches)
    reasons = {branch: reason for reason, listed in LISTED.items() for branch in listed}
    open_ones = branches - watched.taken
    return Report(
        taken=tuple(sorted(watched.taken)),
        listed={branch: reasons[branch] for branch in sorted(open_ones & reasons.keys())},
        refusals=tuple(sorted(open_ones & watched.refusals)),
        missing=tuple(sorted(open_ones - watched.refusals - reasons.keys())),
        stale=tuple(sorted(reasons.keys() - open_ones)),
        faults=tuple(faults),
    )


def examine_branches(names: Sequence[str] = (), edits: Sequence[Edit] = ()) -> Report:
    """Record releases in a process of its own and say what became of every branch.

    `edits` plant bugs into the source that this process reads.
    """
    tests = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [sys.executable, "-m", "support.branch_watch", report],
            env={**os.environ, "PYTHONPATH": str(tests)},
            input=json.dumps([list(names), list(edits)]),
            text=True,
            check=True,
        )
        found = json.loads(report.read_text())
    listed = found.pop("listed")
    return Report(listed=listed, **{name: tuple(values) for name, values in found.items()})
