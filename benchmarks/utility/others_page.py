"""The section of docs/explanation/utility.md on AIM and MST of others, from the lines of `others.py`."""

from comparison import facts
from utility.moments_tables import NAMES

COMPARED = (
    "LR AUC", "GB AUC", "LR AUC, undeclared", "GB AUC, undeclared",
    "one-way TV", "two-way TV", "three-way TV",
)  # fmt: skip
OWN = "adumbra"  # `moments` under add-remove; the tables above are replace-one
TITLES = {"dpmm_mst": "dpmm MST", "dpmm_aim": "dpmm AIM"}
ABOUT = """### AIM and MST of others on the same splits

Printed by `python benchmarks/utility/others.py`: δ = 1e-6, all under **add-remove**, the only relation
that these packages are private under. Ours has fresh draws for it, mean ± half of the 95 % interval;
theirs one draw each, in an environment of its own, under a cap of processor time. Our mean beside the
best of theirs that finished (a tie counts for us; a table where neither finished is not counted);
*within* says that our own interval reaches it:
"""


def section(lines, shown, short):
    """Nothing without lines; `shown` and `short` write a cell of our draws and one number."""
    held = facts.newest([line for line in lines if line["kind"] == "other"], "data", "method", "epsilon")
    ran = {key: runs[-1] for key, runs in held.items() if key[1] != OWN}
    own = {(name, e): _means(runs) for (name, method, e), runs in held.items() if method == OWN}
    if not ran:
        return ""
    tasks = sorted({(name, e) for name, _, e in ran}, key=lambda one: (NAMES.index(one[0]), one[1]))
    rows = []
    for name, epsilon in tasks:
        ours = own.get((name, epsilon), {})
        cells = [shown(ours.get(score)) for score in COMPARED]
        spent = f"{ours['CPU s'][0]:.1f}" if ours else ""
        rows.append([name, f"{epsilon:g}", "**adumbra**", *cells, spent])
        for method in dict.fromkeys(method for _, method, _ in ran):
            line = ran.get((name, method, epsilon))
            if line is not None:
                title = TITLES.get(method, method)
                rows.append(["", "", title, *_ended(line, short), f"{line['cpu_s']:.0f}"])
    head = ["data", "ε", "method", *COMPARED, "CPU s"]
    text = "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
    where = facts.origin(line for line in lines if line["kind"] == "others")
    parts = (ABOUT + "\n" + _standing(ran, own, tasks, short), text, "\n".join(where))
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _means(runs):
    """Mean, half interval and number of our draws, by score."""
    found = {s: facts.interval(run["scores"][s] for run in runs if s in run["scores"]) for s in COMPARED}
    scored = {score: cell for score, cell in found.items() if cell[2]}
    return scored | {"CPU s": facts.interval(run["cpu_s"] for run in runs)}


def _ended(line, short):
    """The scores of one run of another package, or how it ended."""
    if line["outcome"] != "ok":
        return [f"{line['outcome']}: {line['message']}".replace("|", "/")] + [""] * (len(COMPARED) - 1)
    return [short(line["scores"][score]) if score in line["scores"] else "" for score in COMPARED]


def _standing(ran, own, tasks, short):
    """On how many of the tables our mean is at least as good as all that finished."""
    said = []
    for score in COMPARED:
        sign, first, behind = (-1 if "TV" in score else 1), 0, []
        for name, epsilon in tasks:
            ours = own.get((name, epsilon), {}).get(score)
            runs = [line for (n, _, e), line in ran.items() if (n, e) == (name, epsilon)]
            theirs = [sign * line["scores"][score] for line in runs if score in line["scores"]]
            if ours is None or not theirs:
                continue
            gap = max(theirs) - sign * ours[0]
            if gap <= 0:
                first += 1
            else:
                within = ", within" if gap <= ours[1] else ""
                behind.append(f"`{name}` (ε = {epsilon:g}, by {short(gap)}{within})")
        if first or behind:
            losses = f"; behind on {', '.join(behind)}" if behind else ""
            said.append(f"- {score}: first on {first} of {first + len(behind)}{losses}.")
    return "\n".join(said)
