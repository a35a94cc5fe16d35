"""Planted bugs: the auditor is audited. Each mutant is set for one examination, and must be found.

They are set in a process of their own (`alone`), never in this one.

A mutant that no check sees is a hole in the audit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from adumbra.audit.alone import reports
from adumbra.audit.checks import ATTACK_RUNS, Finding
from adumbra.audit.mutant import Mutant
from adumbra.audit.mutant_list import MUTANTS

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


def chosen_mutants(method: str | None) -> list[Mutant]:
    """The mutants of one method, or all."""
    return [one for one in MUTANTS if method is None or one.case.startswith(f"{method}/")]


def try_mutants(
    runs: int = ATTACK_RUNS, method: str | None = None, *, thorough: bool = False
) -> Iterator[Verdict]:
    """Plant each bug in turn and examine its case, with the check that is there for it or with all."""
    for report in reports("mutants", runs, method or "", thorough):
        findings = tuple(Finding(**finding) for finding in report.pop("findings"))
        yield Verdict(**report, findings=findings)
