"""Audit sound claims many times, one claim each with noise of its own, and count the findings.

    python tools/audit_alarms.py --audits 1000 [--first 0] [--runs 1000]

Every finding is a false alarm or a defect; the exit code is 1 if there is one. An attack is wrong with
chance 1e-9, a comparison of noise with 1e-10; the other checks are exact.
"""

import argparse
import sys

from adumbra.audit.cases import all_cases
from adumbra.audit.checks import examine, settle


def main() -> int:
    """Examine the claims in turn, each time with another seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first audit")
    parser.add_argument("--runs", type=int, default=1000, help="runs of each attack")
    asked = parser.parse_args()
    cases = all_cases(8.0)
    alarms = 0
    for number in range(asked.first, asked.first + asked.audits):
        case = settle(next(cases[number % len(cases)].candidates()))
        for finding in examine(case, asked.runs, seed=1 + number):
            alarms += 1
            print(f"audit {number}, {case.name}: {finding.check}: {finding.detail}")
    print(f"{asked.audits} audits of one claim each, {len(cases)} claims: {alarms} false alarms")
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
