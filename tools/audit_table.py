"""Write the table of docs/explanation/audit.md: what the last `make audit PART=claims` proved.

python tools/audit_table.py            rows of claims that were attacked are made anew, others stay
"""

import json
from pathlib import Path
from typing import Any

from adumbra.audit.cases import all_cases

ROOT = Path(__file__).resolve().parent.parent
PAGE, EVIDENCE = ROOT / "docs/explanation/audit.md", ROOT / "benchmarks/results/audit.jsonl"
EPSILONS = (1.0, 8.0)
HEAD = "| claim | kind | proven of 1 | at 99 % | exact | proven of 8 | at 99 % | exact |"
RULE = "| --- | --- | --- | --- | --- | --- | --- | --- |"
Claim = dict[str, Any]


def attacked() -> dict[str, list[Claim]]:
    """Every claim of the evidence that was attacked at both epsilons."""
    lines = EVIDENCE.read_text(encoding="utf-8").splitlines()
    tests = [json.loads(line) for line in lines]
    passed = [test for test in tests if test["outcome"] == "passed"]
    claims = [value for test in passed for name, value in test["figures"] if name == "claim"]
    found = {(one["name"], one["claimed"]): one for one in claims}
    names = [name for name, epsilon in found if epsilon == EPSILONS[0] and (name, EPSILONS[1]) in found]
    return {name: [found[name, epsilon] for epsilon in EPSILONS] for name in names}


def line_of(found: list[Claim]) -> str:
    """One row: the same claim at both epsilons."""
    kind = "Gaussian" if found[0]["delta"] else "pure"
    cells = [f"{one[name]:.3f}" for one in found for name in ("proven", "at_99", "exact")]
    return f"| `{found[0]['name']}` | {kind} | {' | '.join(cells)} |"


def main() -> None:
    """Replace the page's table."""
    rows = {name: line_of(found) for name, found in attacked().items()}
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("| claim | kind |"))
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    known = {line.split("`")[1]: line for line in lines[start + 2 : end]} | rows
    order = [case.name for case in all_cases(EPSILONS[0])]
    table = [HEAD, RULE, *(known[name] for name in order if name in known)]
    PAGE.write_text("\n".join([*lines[:start], *table, *lines[end:]]) + "\n", encoding="utf-8")
    print(f"{len(rows)} rows of the evidence, {len(table) - 2} in the table, {len(order)} claims")


if __name__ == "__main__":
    main()
