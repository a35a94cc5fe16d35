"""Attack every claim and write the table of docs/explanation/audit.md.

python tools/audit_table.py                          all methods, a million runs on each table
python tools/audit_table.py --method moments         one method: its rows are made anew, others stay
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from adumbra.audit.attack import Attack, attack
from adumbra.audit.cases import METHODS, all_cases

PAGE = Path(__file__).resolve().parent.parent / "docs/explanation/audit.md"
EPSILONS = (1.0, 8.0)
HEAD = "| claim | kind | proven of 1 | at 99 % | exact | proven of 8 | at 99 % | exact |"
RULE = "| --- | --- | --- | --- | --- | --- | --- | --- |"


def attack_one(task: tuple[str, float, int]) -> Attack:
    """One claim, made anew in this process."""
    name, epsilon, runs = task
    cases = {case.name: case for case in all_cases(epsilon, method=name.split("/", 1)[0])}
    return attack(cases[name], runs)


def line_of(found: list[Attack]) -> str:
    """One row: the same claim at both epsilons."""
    kind = "Gaussian" if found[0].delta else "pure"
    cells = [
        f"{value:.3f}"
        for one in found
        for value in (one.epsilon_lower, one.epsilon_lower_99, one.exact_epsilon)
    ]
    return f"| `{found[0].case}` | {kind} | {' | '.join(cells)} |"


def main() -> None:
    """Attack, print the new rows, and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--method", choices=list(METHODS))
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    names = [case.name for case in all_cases(1.0, method=asked.method)]
    tasks = [(name, epsilon, asked.runs) for name in names for epsilon in EPSILONS]
    before = time.perf_counter()
    with ProcessPoolExecutor(asked.processes) as pool:
        found = list(pool.map(attack_one, tasks))
    rows = {name: line_of(found[2 * place : 2 * place + 2]) for place, name in enumerate(names)}
    refuted = [one.case for one in found if one.violated]
    print("\n".join([HEAD, RULE, *rows.values()]))
    print(f"{len(found)} claims, {len(refuted)} refuted, {time.perf_counter() - before:.0f} s")
    write(rows)


def write(rows: dict[str, str]) -> None:
    """Replace the page's table; rows of claims that were not attacked now stay as they are."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("| claim | kind |"))
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    known = {line.split("`")[1]: line for line in lines[start + 2 : end]} | rows
    order = [case.name for case in all_cases(1.0)]
    table = [HEAD, RULE, *(known[name] for name in order if name in known)]
    PAGE.write_text("\n".join([*lines[:start], *table, *lines[end:]]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
