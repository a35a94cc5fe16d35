"""Planted bugs: the auditor is audited. Each mutant is set for one examination, and must be found.

A mutant that no check sees is a hole in the audit; a finding where nothing is planted is a false alarm
or a defect.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from adumbra.audit import planted
from adumbra.audit.cases import all_cases
from adumbra.audit.checks import ATTACK_RUNS, Finding, examine
from adumbra.audit.mutant_list import MUTANTS, Mutant
from adumbra.errors import InvalidInput

__all__ = ["EPSILON", "MUTANTS", "Mutant", "Verdict", "find", "sound_hosts", "try_mutants"]

EPSILON = 8.0  # where an attack sees a shortfall of a few per cent (docs/theory.md T16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant."""

    mutant: str
    case: str
    check: str  # that is there for such a bug
    findings: tuple[Finding, ...]

    @property
    def caught(self) -> bool:
        """Whether the check that is there for it saw it; another one would be luck."""
        return self.check in self.by

    @property
    def by(self) -> tuple[str, ...]:
        """The checks that saw it."""
        return tuple(dict.fromkeys(finding.check for finding in self.findings))


def try_mutants(
    runs: int = ATTACK_RUNS, method: str | None = None, *, thorough: bool = False
) -> Iterator[Verdict]:
    """Plant each bug in turn and examine its case, with the check that is there for it or with all."""
    cases = {case.name: case for case in all_cases(EPSILON)}
    for mutant in MUTANTS:
        if method is not None and not mutant.case.startswith(f"{method}/"):
            continue
        host, only = mutant.host(cases), None if thorough else mutant.check
        with planted.plant(mutant.patches()):
            findings = tuple(examine(host, runs, only))
        yield Verdict(mutant=mutant.name, case=mutant.case, check=mutant.check, findings=findings)


def sound_hosts(runs: int = ATTACK_RUNS) -> Iterator[Verdict]:
    """The same cases and tables with nothing planted: every finding is a false alarm."""
    cases = {case.name: case for case in all_cases(EPSILON)}
    seen: set[tuple[str, bool]] = set()
    for mutant in MUTANTS:
        if (mutant.case, mutant.tables is None) in seen:
            continue
        seen.add((mutant.case, mutant.tables is None))
        findings = tuple(examine(mutant.host(cases), runs))
        yield Verdict(mutant="nothing planted", case=mutant.case, check="", findings=findings)


def find(name: str) -> Mutant:
    """The mutant of that name."""
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    raise InvalidInput(f"mutant={name}: unknown; `adumbra audit --mutants` prints their names")
