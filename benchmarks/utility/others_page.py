"""The section of docs/explanation/utility.md on AIM and MST of others, from the lines of `others.py`."""

from comparison import facts
from utility.moments_tables import NAMES

COMPARED = (
    "LR AUC", "GB AUC", "LR AUC, undeclared", "GB AUC, undeclared",
    "one-way TV", "two-way TV", "three-way TV",
)  # fmt: skip
TITLES = {"dpmm_mst": "dpmm MST", "dpmm_aim": "dpmm AIM"}
ABOUT = """### AIM and MST of others on the same splits

Printed by `python benchmarks/utility/others.py`: one draw each, δ = 1e-6, each package in an environment
of its own, under a cap of processor time. These packages are private under add-remove alone, where a
histogram needs 1/√2 of replace-one's noise: theirs is the easier task, but for `adult-add-remove`. Ours
is the mean of the draws above. Beside the best of theirs that finished (a tie counts for us; a table
where neither finished is not counted):
"""


def section(lines, cells, shown, short):
    """Nothing without lines; `shown` and `short` write a cell of our draws and one number."""
    held = facts.newest([line for line in lines if line["kind"] == "other"], "data", "method", "epsilon")
    ran = {key: runs[-1] for key, runs in held.items()}
    if not ran:
        return ""
    tasks = sorted({(name, e) for name, _, e in ran}, key=lambda one: (NAMES.index(one[0]), one[1]))
    rows = []
    for name, epsilon in tasks:
        ours = [shown(cells.get((name, "moments", epsilon, score))) for score in COMPARED]
        seconds = cells.get((name, "moments", epsilon, "CPU s"))
        spent = f"{seconds[0]:.1f}" if seconds else ""
        rows.append([name, f"{epsilon:g}", "**adumbra**", *ours, spent])
        for method in dict.fromkeys(method for _, method, _ in ran):
            line = ran.get((name, method, epsilon))
            if line is not None:
                title = TITLES.get(method, method)
                rows.append(["", "", title, *_ended(line, short), f"{line['cpu_s']:.0f}"])
    head = ["data", "ε", "method", *COMPARED, "CPU s"]
    text = "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
    where = facts.origin(line for line in lines if line["kind"] == "others")
    parts = (ABOUT + "\n" + _standing(ran, cells, tasks, short), text, "\n".join(where))
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _ended(line, short):
    """The scores of one run of another package, or how it ended."""
    if line["outcome"] != "ok":
        return [f"{line['outcome']}: {line['message']}".replace("|", "/")] + [""] * (len(COMPARED) - 1)
    return [short(line["scores"][score]) if score in line["scores"] else "" for score in COMPARED]


def _standing(ran, cells, tasks, short):
    """On how many of the tables our mean is at least as good as all that finished."""
    said = []
    for score in COMPARED:
        sign, first, behind = (-1 if "TV" in score else 1), 0, []
        for name, epsilon in tasks:
            ours = cells.get((name, "moments", epsilon, score))
            runs = [line for (n, _, e), line in ran.items() if (n, e) == (name, epsilon)]
            theirs = [sign * line["scores"][score] for line in runs if score in line["scores"]]
            if ours is None or not theirs:
                continue
            gap = max(theirs) - sign * ours[0]
            if gap <= 0:
                first += 1
            else:
                behind.append(f"`{name}` (ε = {epsilon:g}, by {short(gap)})")
        if first or behind:
            losses = f"; behind on {', '.join(behind)}" if behind else ""
            said.append(f"- {score}: first on {first} of {first + len(behind)}{losses}.")
    return "\n".join(said)
