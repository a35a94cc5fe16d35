"""The tables of docs/explanation/utility.md, made anew from the results of `moments.py`."""

from collections import defaultdict

from comparison import facts
from utility import others_page
from utility.moments_tables import NAMES, TUNED

START, END = "<!-- measured: written by benchmarks/utility/moments.py -->", "<!-- /measured -->"
BALANCED = ("gfe_user_a", "mnist_5k", "sylva", "isolet_1560")  # judged by balanced accuracy
MAIN = ("LR AUC", "GB AUC", "LR AUC, undeclared", "GB AUC, undeclared", "ridge R2")
ERRORS = ("one-way TV", "two-way TV", "three-way TV")


def write(lines, path):
    """The block between the two marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(START, 1)
    path.write_text(before + START + "\n" + page(lines) + END + rest.split(END, 1)[1], encoding="utf-8")


def short(value):
    return f"{value:.3f}".replace("0.", ".", 1)


def cells_of(lines):
    """{(data, method, epsilon, score): (mean, half interval, draws)}, of the source measured last."""
    held = facts.newest(
        [line for line in lines if line["kind"] == "utility"], "data", "method", "epsilon"
    )
    found = {}
    for key, runs in held.items():
        values = defaultdict(list)
        for one in runs:
            for score, value in one["scores"].items():
                values[score].append(value)
        found |= {(*key, score): facts.interval(held) for score, held in values.items()}
    return found


def shown(cell, *, draws=False):
    if cell is None:
        return ""
    mean, half, count = cell
    spread = "" if count < 3 else f" ± {short(half)}"
    return f"{short(mean)}{spread}" + (f" ({count})" if draws else "")


def page(lines):
    cells = cells_of(lines)
    epsilons = sorted({key[2] for key in cells if key[1] == "moments"})
    head = (
        "| data | score | "
        + " | ".join(f"ε = {epsilon:g} | floor" for epsilon in epsilons)
        + " | ron-gauss | lda | real | CPU s |\n"
        + "|"
        + " --- |" * (6 + 2 * len(epsilons))
        + "\n"
    )
    runs = [line for line in lines if line["kind"] == "run"]
    used = {
        line["source"]
        for one in facts.newest(
            [line for line in lines if line["kind"] == "utility"], "data", "method", "epsilon"
        ).values()
        for line in one
    }
    where = facts.origin(run for run in runs if run["source"] in used)
    measured = [name for name in NAMES if (name, "moments", 1.0, "CPU s") in cells]
    parts = []
    for title, names in (
        ("Held out: nothing was chosen on these", [n for n in measured if n not in TUNED]),
        ("Seen while rules and constants were chosen (in-sample)", [n for n in measured if n in TUNED]),
    ):
        rows = "".join(table(cells, name, epsilons) for name in names)
        parts.append(f"### {title}\n\n{head}{rows}\n{below(cells, names, epsilons)}\n\n")
    parts.append(others_page.section(lines, shown, short))
    return f"{trees(lines)}\n\n" + "".join(parts) + "\n".join(where) + "\n"


def below(cells, names, epsilons):
    """Where the mean of our draws is worse than the floor, which spends all of its budget on columns."""
    found = []
    for name in names:
        for epsilon in epsilons:
            listed = [_against_floor(cells, name, epsilon, score) for score in ERRORS]
            own = [words for words in listed if words]
            if own:
                found.append(f"`{name}` at ε = {epsilon:g}: {', '.join(own)}")
    if not found:
        return "No mean of our draws is worse than the floor."
    return (
        "Worse than the floor (in brackets) in the mean of our draws, in bold where the difference is "
        "larger than its 95 % interval: " + "; ".join(found) + "."
    )


def _against_floor(cells, name, epsilon, score):
    """Our error, if it is above the floor's; and that of real rows, if these are above it, too."""
    ours, floor = (cells.get((name, m, epsilon, score)) for m in ("moments", "independent"))
    if ours is None or floor is None or short(ours[0]) <= short(floor[0]):
        return ""
    is_sure = ours[0] - floor[0] > facts.half_of_difference(ours, floor)
    words = f"{score[:-3]} {shown(ours)} ({short(floor[0])})"
    real = cells.get((name, "real", None, score))
    more = f", real rows {short(real[0])}" if real is not None and real[0] > floor[0] else ""
    return (f"**{words}**" if is_sure else words) + more


def trees(lines):
    """Which tables were measured on which tree of `src`, the newest tree first."""
    held = [line for line in lines if line["kind"] == "utility" and line["method"] == "moments"]
    names = {line["data"]: line["source"] for line in held}  # the file grows at its end
    order = list(dict.fromkeys(line["source"] for line in reversed(held)))
    parts = [
        f"`{source}` ({', '.join(f'`{name}`' for name in NAMES if names.get(name) == source)})"
        for source in order
        if source in names.values()
    ]
    return (
        f"Trees of `src` that `moments` was last measured on, the newest first: {'; '.join(parts)}. "
        "Where `git rev-parse HEAD:src` begins otherwise, the code is newer than the figures."
    )


def table(cells, name, epsilons):
    """The lines of one data set: the scores it is judged by."""
    scores = ("LR balanced accuracy", *ERRORS) if name in BALANCED else (*MAIN, *ERRORS)
    text, is_first = "", True
    for score in scores:
        if (name, "moments", epsilons[0], score) not in cells and (
            name,
            "moments",
            1.0,
            score,
        ) not in cells:
            continue
        row = [name if is_first else "", score.replace("R2", "R²")]
        for epsilon in epsilons:
            row.append(shown(cells.get((name, "moments", epsilon, score)), draws=is_first))
            floor = cells.get((name, "independent", epsilon, score))
            row.append(short(floor[0]) if floor is not None and "TV" in score else "")
        row += [shown(cells.get((name, rival, 1.0, score))) for rival in ("ron-gauss", "lda")]
        real = cells.get((name, "real", None, score))
        seconds = cells.get((name, "moments", 1.0, "CPU s")) if is_first else None
        row += [short(real[0]) if real else "", f"{seconds[0]:.1f}" if seconds else ""]
        text, is_first = text + "| " + " | ".join(row) + " |\n", False
    return text
